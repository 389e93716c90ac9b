//! A cluster with a node: pods run, volumes hold bytes, Velero brings them back, and nothing is left behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{BUSYBOX, NODE, Node, STORAGE_CLASS, eventually, send_signal, wait_until};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;

const PATIENCE: Duration = Duration::from_mins(4);

/// Writes eight megabytes nobody can guess and waits. After a restore it finds them and writes nothing.
const WRITER: &str = "test -f /data/bytes || head -c 8388608 /dev/urandom > /data/bytes; sync; sleep 1000000";

/// Whether a node can run here. With `CI=true` it must.
fn can_run() -> Result<bool> {
    let Err(reason) = Node::check_ready() else { return Ok(true) };
    ensure!(std::env::var("CI").as_deref() != Ok("true"), "CI=true, but no node can run here: {reason:#}");
    // Past the test runner, which keeps to itself what a passing test prints.
    writeln!(std::io::stderr(), "skipped, no node can run here: {reason:#}")?;
    Ok(false)
}

/// A claim and a pod that writes to it, with the label `app: writer`.
fn workload() -> Result<Vec<kube::api::DynamicObject>> {
    let metadata = json!({ "name": "writer", "namespace": "shop", "labels": { "app": "writer" } });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }),
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "resources": { "requests": { "storage": "1Gi" } },
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "writer",
                    "image": BUSYBOX,
                    "args": ["-c", WRITER],
                    "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                    "readinessProbe": { "exec": { "command": ["sh", "-c", "test $(stat -c %s /data/bytes) = 8388608"] }, "periodSeconds": 1 },
                }],
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "writer" } }],
            },
        }),
    ];
    objects.into_iter().map(|object| Ok(serde_json::from_value(object)?)).collect()
}

/// Waits until the pod has all its bytes, and returns their checksum as the pod sees them.
async fn checksum(node: &Node) -> Result<String> {
    let pods = Api::<Pod>::namespaced(node.client().await?, "shop");
    wait_until("the pod to be ready", PATIENCE, pods, "writer", |pod| {
        let conditions = pod?.status.as_ref()?.conditions.as_ref()?;
        conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            .then_some(())
    })
    .await?;
    let exec = ["exec", "--namespace=shop", "writer", "--", "sha256sum", "/data/bytes"];
    node.kubectl(&exec).await?.ok()
}

/// What a node has on the machine, found from outside.
#[derive(Debug)]
struct Traces {
    folder: String,
    network: String,
    cgroup: String,
}

impl Traces {
    fn of(folder: &Path, first: u32) -> Result<Self> {
        let network = fs::read_link(format!("/proc/{first}/ns/net"))?.display().to_string();
        let cgroups = fs::read_to_string(format!("/proc/{first}/cgroup"))?;
        let cgroup = cgroups.split(['/', '\n']).find(|part| part.starts_with("nacre-node-"));
        let cgroup = cgroup.context("it is in no cgroup of its own")?.to_owned();
        Ok(Self { folder: folder.display().to_string(), network, cgroup })
    }

    /// Everything of it that is there: processes by their network, mounts in any process's view, cgroups.
    fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()) {
            let namespace = fs::read_link(process.join("ns/net")).unwrap_or_default();
            let name = fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " ");
            // Pods have networks of their own, but their cgroups are the node's.
            let cgroups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
            if namespace == Path::new(&self.network) || cgroups.contains(&self.cgroup) {
                found.push(format!("process {} {name}", process.display()));
            }
            // Unlike `mounts`, this has the folder in the line of a bind mount from there.
            let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            let is_ours = |line: &&str| line.contains(&self.folder);
            found.extend(mounts.lines().filter(is_ours).map(|line| format!("mount {line}")));
        }
        for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let cgroup = hierarchy.path().join(&self.cgroup);
            if cgroup.exists() || hierarchy.file_name() == self.cgroup.as_str() {
                found.push(format!("cgroup {}", cgroup.display()));
            }
        }
        found
    }

    async fn gone(&self) -> Result<()> {
        eventually("everything of the node to be gone", Duration::from_secs(30), async || {
            let left = self.found();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await
    }
}

/// What of the machine a node could change by accident: files where its programs usually have theirs, and settings of
/// the kernel that kubelet likes otherwise.
fn machine() -> Vec<String> {
    let list = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.path().display().to_string()).collect();
        names.sort();
        names
    };
    let folders = ["/run/netns", "/run/containerd", "/var/lib", "/var/log", "/opt"];
    let settings = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"];
    let read = |setting: &str| fs::read_to_string(Path::new("/proc/sys").join(setting)).unwrap_or_default();
    let settings = settings.map(|setting| format!("{setting}={}", read(setting)));
    folders.into_iter().flat_map(list).chain(settings).collect()
}

#[tokio::test]
async fn bytes_in_a_volume_are_backed_up_lost_and_restored_and_nothing_is_left_behind() -> Result<()> {
    if !can_run()? {
        return Ok(());
    }
    let machine_before = machine();
    let node = Node::start().await?;
    let ready = ["get", "node", NODE, "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}"];
    assert_eq!(node.kubectl(&ready).await?.ok()?, "True");

    node.apply(&workload()?).await?;
    let written = checksum(&node).await?;
    let backup =
        ["backup", "create", "one", "--include-namespaces=shop", "--default-volumes-to-fs-backup", "--wait"];
    node.velero(&backup).await?.ok()?;
    assert_phase(&node, "backup", "one").await?;

    let lost = ["delete", "pod,pvc", "--namespace=shop", "--selector=app=writer", "--wait"];
    node.kubectl(&lost).await?.ok()?;
    node.velero(&["restore", "create", "back", "--from-backup=one", "--wait"]).await?.ok()?;
    assert_phase(&node, "restore", "back").await?;
    assert_eq!(checksum(&node).await?, written);

    // What runs goes on while kubelet is away.
    node.restart("kubelet").await?;
    eventually("kubelet to answer again", PATIENCE, async || {
        let same = checksum(&node).await? == written;
        ensure!(same, "the bytes are others");
        Ok(())
    })
    .await?;

    let traces = Traces::of(node.folder(), node.first_process())?;
    let before = traces.found();
    for kind in ["process", "mount", "cgroup"] {
        assert!(before.iter().any(|trace| trace.starts_with(kind)), "no {kind} in {before:#?}");
    }
    send_signal(node.first_process(), "KILL")?;
    traces.gone().await?;
    assert_eq!(machine(), machine_before);
    Ok(())
}

async fn assert_phase(node: &Node, kind: &str, name: &str) -> Result<()> {
    let resource = format!("{kind}s.velero.io/{name}");
    let get = ["get", &resource, "--namespace", node.velero_namespace(), "--output=jsonpath={.status.phase}"];
    let phase = node.kubectl(&get).await?.ok()?;
    ensure!(
        phase == "Completed",
        "{kind} {name} is {phase}: {}",
        node.velero(&[kind, "logs", name]).await?.stdout
    );
    Ok(())
}

/// The bed's own program.
fn bed(command: &str, folder: &Path) -> Command {
    let mut bed = Command::new(env!("CARGO_BIN_EXE_bed"));
    bed.args([command, "--dir"]).arg(folder);
    bed
}

fn says(mut command: Command) -> Result<(bool, String)> {
    let output = command.output()?;
    Ok((output.status.success(), String::from_utf8([output.stdout, output.stderr].concat())?))
}

/// The first process of a cluster that another program started: the one in `enter`, which people use.
fn first_process(folder: &Path) -> Result<u32> {
    let enter = fs::read_to_string(folder.join("enter"))?;
    let mut words = enter.split_whitespace().skip_while(|word| *word != "--target");
    Ok(words.nth(1).context("no process in `enter`")?.parse()?)
}

#[tokio::test]
async fn a_cluster_with_a_node_is_kept_in_the_background_until_it_is_stopped() -> Result<()> {
    if !can_run()? {
        return Ok(());
    }
    let home = tempfile::tempdir()?;
    let folder = home.path().join("bed");
    let mut up = bed("up", &folder);
    up.arg("--with-node");
    let (success, said) = says(up)?;
    assert!(success && said.contains("cluster/enter kubectl"), "{said}");
    let mut pods = Command::new(folder.join("cluster/enter"));
    pods.args(["kubectl", "get", "pods", "--namespace=velero", "--output=name"]);
    let (success, said) = says(pods)?;
    assert!(success && said.contains("pod/node-agent-") && said.contains("pod/velero-"), "{said}");
    let mut images = Command::new(folder.join("cluster/inside"));
    images.args(["ctr", "--namespace=k8s.io", "images", "list", "--quiet"]);
    let (success, said) = says(images)?;
    assert!(success && said.contains(BUSYBOX), "{said}");

    let traces = Traces::of(&folder, first_process(&folder.join("cluster"))?)?;
    let (success, said) = says(bed("down", &folder))?;
    assert!(success && said.contains("is down"), "{said}");
    assert!(!folder.exists());
    traces.gone().await
}

#[tokio::test]
async fn a_parent_killed_while_its_node_starts_leaves_nothing() -> Result<()> {
    if !can_run()? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut parent = bed("serve", folder.path());
    let mut parent = parent.arg("--with-node").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let cluster = folder.path().join("cluster");
    // A pod's log is there once a pod has been started.
    eventually("a pod to run", PATIENCE, async || {
        let pods = fs::read_dir(cluster.join("pods"))?.count();
        ensure!(pods > 0, "no pod yet");
        Ok(())
    })
    .await?;
    let traces = Traces::of(&cluster, first_process(&cluster)?)?;
    parent.kill()?;
    parent.wait()?;
    traces.gone().await
}

#[test]
fn without_root_one_sentence_says_what_is_missing() -> Result<()> {
    let home = tempfile::tempdir()?;
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777))?;
    // Somebody who is not root may not even read the folder it was built in.
    let program = home.path().join("bed-program");
    fs::copy(env!("CARGO_BIN_EXE_bed"), &program)?;
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    let mut up = if is_root {
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        nobody
    } else {
        Command::new(&program)
    };
    up.args(["up", "--with-node", "--dir"]).arg(home.path().join("bed"));
    let (success, said) = says(up)?;
    assert!(!success && said.contains("needs Linux and root") && said.lines().count() == 1, "{said}");
    assert!(!home.path().join("bed").exists());
    Ok(())
}

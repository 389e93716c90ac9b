//! A tenant on a real node: somebody with the `edit` role in one namespace, whose pods have volumes with real bytes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, Phase, labels};
use bed::{Output, wait_until};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{ListParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

use crate::node_cluster::{PATIENCE, is_ready};
use crate::site::{storage_class, workload_image};
use crate::{NodeCluster, Site, command_line};

/// What a tenant loses with everything in a namespace. Requests to nacre stay, or nothing could be restored.
const CONTENTS: &str = "deployments,statefulsets,daemonsets,jobs,cronjobs,pods,services,configmaps,secrets,persistentvolumeclaims";

/// How many replicas a StatefulSet has.
const REPLICAS: usize = 3;

/// Where pods have their volume.
const DATA: &str = "/data";

/// Prints one line for all bytes and names below a folder, except what Velero leaves there after a restore.
const CHECKSUM: &str =
    "cd /data && find . -path ./.velero -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum";

/// What a command in a pod prints last. kubectl also ends with code 0 when it has lost the connection
/// (kubernetes/kubernetes#137404): then a file is half written, or a checksum is missing.
const ENDED: &str = "command-ended";
/// How often a command is tried whose connection is lost.
const ATTEMPTS: usize = 5;

/// A tenant of a [`NodeCluster`].
pub struct NodeTenant<'a> {
    /// The cluster.
    pub cluster: &'a NodeCluster,
    /// The namespace.
    pub namespace: String,
    /// The user.
    pub user: String,
    kubeconfig: PathBuf,
    client: Client,
}

/// The story is over: what runs in the namespace goes before the next tenant is made.
impl Drop for NodeTenant<'_> {
    fn drop(&mut self) {
        self.cluster.finish(&self.namespace);
    }
}

impl<'a> NodeTenant<'a> {
    pub(crate) async fn new(cluster: &'a NodeCluster, namespace: &str, user: &str) -> Result<Self> {
        Ok(Self {
            cluster,
            namespace: namespace.to_owned(),
            user: user.to_owned(),
            kubeconfig: cluster.site.kubeconfig_as(user, namespace)?,
            client: cluster.site.client_as(user).await?,
        })
    }

    /// Runs `kubectl nacre` as the tenant; the namespace is the tenant's.
    pub async fn cli(&self, args: &[&str]) -> Result<Output> {
        self.cluster.site.run_as(&self.kubeconfig, command_line()?, args).await
    }

    /// Types a command into a terminal as the tenant, `kubectl nacre` included, and answers its question with yes.
    pub async fn type_and_confirm(&self, command: &str) -> Result<Output> {
        let plugin = command_line()?;
        let plugins = plugin.parent().context("the command line is in no folder")?.display();
        let typed =
            format!("PATH={plugins}:$PATH; echo y | script --quiet --return --command '{command}' /dev/null");
        // On a node of the bed, in its network and with its kubectl.
        let enter = match &self.cluster.site {
            Site::Node(node) => Some(node.folder().join("enter")),
            Site::Existing(_) => None,
        };
        let shell = ["sh", "-c", &typed];
        let (program, args) = match &enter {
            Some(enter) => (enter.as_path(), &shell[..]),
            None => (Path::new(shell[0]), &shell[1..]),
        };
        self.cluster.site.run_as(&self.kubeconfig, program, args).await
    }

    /// Runs kubectl as the tenant; the namespace is the tenant's.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.cluster.site.run_as(&self.kubeconfig, "kubectl", args).await
    }

    /// A kind in the tenant's namespace, with the tenant's permissions.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies an object as the tenant.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or("object");
        let file = self.kubeconfig.with_extension(format!("{name}.json"));
        std::fs::write(&file, object.to_string())?;
        self.kubectl(&["apply", "--filename", &file.display().to_string()]).await?.ok()?;
        Ok(())
    }

    /// Makes a claim and a pod of this name, waits until the pod is Ready, and writes so many random bytes to the volume.
    pub async fn start_pod(&self, name: &str, bytes: u64) -> Result<()> {
        self.apply(&claim(name)).await?;
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": { "app": name } },
        });
        pod["spec"] = pod_spec(name);
        self.apply(&pod).await?;
        self.write_data(name, bytes).await
    }

    /// The same with a Deployment of one replica. [`Self::pod_of`] finds its pod.
    pub async fn start_deployment(&self, name: &str, bytes: u64) -> Result<()> {
        let mut claim = claim(name);
        // A file system needs more than the bytes of its files.
        claim["spec"]["resources"]["requests"]["storage"] = json!(format!("{}Gi", 1 + (bytes >> 30)));
        self.apply(&claim).await?;
        self.apply_deployment(name, &json!({}), &pod_spec(name)).await?;
        self.write_data(name, bytes).await
    }

    /// Makes a Deployment of one replica, with these annotations and this spec of its pod.
    pub async fn apply_deployment(&self, name: &str, annotations: &Value, pod: &Value) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name },
            "spec": {
                "replicas": 1,
                "strategy": { "type": "Recreate" },
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name }, "annotations": annotations },
                    "spec": pod,
                },
            },
        }))
        .await
    }

    /// The same with a StatefulSet of three replicas, each with a claim and bytes of its own. What is given goes into its
    /// spec. Returns the checksum of each replica's data; [`Self::checksums_of_replicas`] compares.
    pub async fn start_stateful_set(&self, name: &str, bytes: u64, more: &Value) -> Result<Vec<String>> {
        let mut pod = pod_spec(name);
        pod["volumes"] = json!([]);
        let mut spec = json!({
            "serviceName": name,
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim("data")["spec"] }],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.apply(&json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}))
            .await?;
        self.write_replicas(name, bytes).await?;
        let written = self.checksums_of_replicas(name).await?;
        let different: BTreeSet<&String> = written.iter().collect();
        ensure!(different.len() == written.len(), "replicas have the same bytes: {written:?}");
        Ok(written)
    }

    /// Replaces the data of each replica of a StatefulSet by so many random bytes.
    pub async fn write_replicas(&self, name: &str, bytes: u64) -> Result<()> {
        for at in 0..REPLICAS {
            let pod = format!("{name}-{at}");
            bed::eventually("the replica", PATIENCE, async || {
                self.kubectl(&["get", "pod", &pod]).await?.ok()
            })
            .await?;
            self.repeat_in(&pod, &random_bytes(bytes)).await?;
        }
        Ok(())
    }

    /// The checksum of the data of each replica of a StatefulSet.
    pub async fn checksums_of_replicas(&self, name: &str) -> Result<Vec<String>> {
        let mut checksums = Vec::new();
        for at in 0..REPLICAS {
            checksums.push(self.checksum_in(&format!("{name}-{at}")).await?);
        }
        Ok(checksums)
    }

    /// The name of the first pod with the label `app: NAME`, once it is Ready: of that pod or that Deployment.
    pub async fn pod_of(&self, app: &str) -> Result<String> {
        let pods = self.api::<Pod>();
        let with_label = ListParams::default().labels(&format!("app={app}"));
        let name = bed::eventually(&format!("a pod of {app}"), PATIENCE, async || {
            let found = pods.list(&with_label).await?.items;
            let mut alive = found.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            alive.find_map(|pod| pod.metadata.name).context("no pod")
        })
        .await?;
        self.pod_ready(&name).await?;
        Ok(name)
    }

    /// Waits until a pod is Ready.
    pub async fn pod_ready(&self, name: &str) -> Result<()> {
        let what = format!("pod {name} to be Ready");
        wait_until(&what, PATIENCE, self.api::<Pod>(), name, |pod| is_ready(pod?).then_some(())).await
    }

    /// Runs a shell command in the pod of an app, and returns what it printed.
    pub async fn shell(&self, app: &str, command: &str) -> Result<String> {
        self.shell_in(&self.pod_of(app).await?, command).await
    }

    /// The same in a pod of this name, once it is Ready.
    pub async fn shell_in(&self, pod: &str, command: &str) -> Result<String> {
        let printed = self.try_in(pod, command).await?;
        printed.with_context(|| format!("kubectl lost the connection to {pod}: {command}"))
    }

    /// The same for a command that may run twice: again, if the connection was lost.
    async fn repeat_in(&self, pod: &str, command: &str) -> Result<String> {
        for _ in 0..ATTEMPTS {
            if let Some(printed) = self.try_in(pod, command).await? {
                return Ok(printed);
            }
        }
        bail!("kubectl lost the connection to {pod} {ATTEMPTS} times: {command}")
    }

    /// What a command printed; nothing if the connection was lost.
    async fn try_in(&self, pod: &str, command: &str) -> Result<Option<String>> {
        self.pod_ready(pod).await?;
        let command = format!("(\n{command}\n) && echo {ENDED}");
        let exec = ["exec", pod, "--container=main", "--", "sh", "-c", &command];
        Ok(up_to_its_end(&self.kubectl(&exec).await?.ok()?).map(str::to_owned))
    }

    /// Replaces the data of an app by so many random bytes.
    pub async fn write_data(&self, app: &str, bytes: u64) -> Result<()> {
        self.repeat_in(&self.pod_of(app).await?, &random_bytes(bytes)).await?;
        Ok(())
    }

    /// Overwrites the data of an app in place with as many other bytes, while its pod runs.
    pub async fn overwrite_data(&self, app: &str) -> Result<()> {
        let size = self.shell(app, &format!("stat -c %s {DATA}/bytes")).await?;
        self.write_data(app, size.trim().parse()?).await
    }

    /// The checksum of everything in the volume of an app, as its pod sees it; waits until the pod is Ready.
    pub async fn checksum(&self, app: &str) -> Result<String> {
        self.checksum_in(&self.pod_of(app).await?).await
    }

    /// The same for a pod of this name.
    pub async fn checksum_in(&self, pod: &str) -> Result<String> {
        let printed = self.repeat_in(pod, CHECKSUM).await?;
        let checksum = printed.split_whitespace().next().unwrap_or_default();
        ensure!(checksum.len() == 64, "no checksum: {printed}");
        Ok(checksum.to_owned())
    }

    /// Deletes everything in the namespace, as the tenant, and waits until it is gone. Requests to nacre stay.
    pub async fn lose_namespace_contents(&self) -> Result<()> {
        let claims = self.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items.len();
        self.kubectl(&["delete", CONTENTS, "--all", "--wait", "--timeout=3m"]).await?.ok()?;
        // A deleted claim uses up its volume.
        self.cluster.site.add_volumes(claims).await
    }

    /// Asks for a backup of everything, and waits for nothing.
    pub async fn request_backup(&self, name: &str) -> Result<()> {
        let request = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": { "name": name }, "spec": { "backupSpec": {} },
        });
        let requests = self.api::<NonAdminBackup>();
        requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
        Ok(())
    }

    /// Waits until a backup was given to Velero.
    pub async fn backup_created(&self, name: &str, within: Duration) -> Result<()> {
        let what = format!("backup {name} to be Created");
        wait_until(&what, within, self.api::<NonAdminBackup>(), name, |request| {
            (request?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
        })
        .await
    }

    /// The names of the requests that Velero has a Backup for, one for each Backup, sorted; read as an administrator.
    pub async fn velero_backups(&self) -> Result<Vec<String>> {
        let backups = Api::<Backup>::namespaced(self.cluster.site.client().await?, self.cluster.velero());
        let all = backups.list(&ListParams::default()).await?.items;
        let origin = |backup: &Backup, key: &str| backup.annotations().get(key).cloned();
        let own = all
            .iter()
            .filter(|backup| origin(backup, labels::NAB_NAMESPACE).as_ref() == Some(&self.namespace));
        let mut names: Vec<_> = own.filter_map(|backup| origin(backup, labels::NAB_NAME)).collect();
        names.sort();
        Ok(names)
    }
}

/// What a command in a pod printed, if it came to its end.
fn up_to_its_end(printed: &str) -> Option<&str> {
    printed.strip_suffix('\n')?.strip_suffix(ENDED)
}

/// A shell command that replaces what is in the volume.
fn random_bytes(bytes: u64) -> String {
    format!("head -c {bytes} /dev/urandom > {DATA}/bytes && sync")
}

/// A claim of the StorageClass that stories use.
pub fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class(),
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// A pod that waits, with the claim of this name at `/data`. It writes nothing by itself: after a restore, the volume
/// has what came back and nothing else.
pub fn pod_spec(claim: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main",
            "image": workload_image(),
            // Not every image of busybox has a shell as its entrypoint.
            "command": ["/bin/sh"],
            "args": ["-c", "sleep 1000000"],
            "volumeMounts": [{ "name": "data", "mountPath": DATA }],
        }],
        "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
    })
}

#[cfg(test)]
mod tests {
    use super::up_to_its_end;

    #[test]
    fn what_a_lost_connection_cut_off_is_no_answer() {
        assert_eq!(up_to_its_end("abc\ncommand-ended\n"), Some("abc\n"));
        assert_eq!(up_to_its_end("command-ended\n"), Some(""));
        for cut in ["", "abc\n", "abc\ncommand-en"] {
            assert_eq!(up_to_its_end(cut), None, "{cut:?}");
        }
    }
}

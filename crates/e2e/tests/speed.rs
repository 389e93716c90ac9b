//! How fast `kubectl nacre` answers with a thousand backups in the namespace. It is a program of its own, so that
//! nothing else disturbs the measurement.

use std::fmt::Debug;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminRestore,
    NonAdminSchedule,
};
use e2e::TestCluster;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::process::Command;

const BACKUPS: usize = 1000;
const AT_A_TIME: usize = 32;
/// Every command answers within this.
const ANSWER: Duration = Duration::from_millis(300);
/// This one within four times that: it asks the API server about each object of an installation.
const LONGER: &str = "install --dry-run -n velero";
/// The program itself starts within this.
const START: Duration = Duration::from_millis(30);
/// A build without optimisation reads JSON about this much slower; only the release build is held to the letter.
const UNOPTIMISED: u32 = 12;
/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best counts.
const ATTEMPTS: usize = 5;

/// What is timed: at least one line of each command. `@` is the number of the attempt, for what can be done only once.
/// `-n many` is added where no namespace is named.
const TIMED: &[&str] = &[
    "backup get",
    "backup get -o wide",
    "backup get -o json",
    "backup get -o name",
    "backup describe b1",
    "backup wait b1",
    "backup create --dry-run",
    "backup delete b90@ --yes",
    "restore create --dry-run",
    "restore get",
    "restore describe r0",
    "restore wait r0",
    "restore delete r@ --yes",
    "schedule create nightly --schedule @daily --dry-run",
    "schedule get",
    "schedule describe kept",
    "schedule preview kept",
    "schedule pause kept",
    "schedule resume kept",
    "schedule confirm kept",
    "schedule run kept --dry-run",
    "schedule delete s@ --yes",
    "location create mine --provider aws --bucket b --credential keys=cloud --dry-run",
    "location get",
    "location describe kept",
    "location wait kept",
    "location delete l@ --yes",
    "status",
    "usage",
    "explain backup b1",
    "whoami",
    "request list",
    "request show many/kept",
    "request approve many/kept",
    "request reject many/kept",
    "request revoke l@-request",
    "queue list",
    "queue hold backup waits",
    "queue promote backup waits",
    "queue release backup waits",
    "policy show",
    "policy check -f POLICY",
    "policy check --requests -f POLICY",
    "policy egress -n velero",
    "adopt --list",
    "adopt many --dry-run",
    "doctor -n velero",
    "install --dry-run -n velero",
    "uninstall --dry-run -n velero",
    "render -n velero",
    "migration install --dry-run",
    "migration preview",
    "migration upgrade --dry-run",
    "migration rollback --dry-run",
    "migration bridge create --dry-run",
    "migration bridge remove --dry-run",
    "migration grant --user ann --dry-run",
    "migration revoke --user ann --dry-run",
    "migration who-can",
    "migration explain --user ann",
    "completion bash",
    "__complete -- -n many backup describe ",
];

/// What is not timed, and why.
const NOT_TIMED: &[(&str, &str)] = &[
    ("backup logs", "waits for Velero to sign a link, and reads the object storage"),
    ("backup download", "waits for Velero to sign a link, and reads the object storage"),
    ("restore preview", "waits for Velero to sign a link, and reads the object storage"),
    ("restore logs", "waits for Velero to sign a link, and reads the object storage"),
    ("console", "serves pages until it is stopped; how fast they are is measured in tests/console"),
    ("relocate", "needs a second Velero"),
    ("verify", "backs up and restores a volume, which takes minutes"),
];

/// Every command there is: the headings of the reference, which is made of the command line itself.
fn commands() -> impl Iterator<Item = &'static str> {
    include_str!("../../../docs/cli.md").lines().filter_map(|line| line.strip_prefix("## kubectl nacre "))
}

/// A new command is timed, or somebody has a reason why not.
#[test]
fn every_command_is_timed_or_there_is_a_reason() {
    let is_timed =
        |command: &str| TIMED.iter().any(|line| *line == command || line.starts_with(&format!("{command} ")));
    let has_reason = |command: &str| NOT_TIMED.iter().any(|(name, _)| *name == command);
    let wrong: Vec<_> = commands().filter(|command| is_timed(command) == has_reason(command)).collect();
    assert_eq!(wrong, Vec::<&str>::new(), "neither timed nor with a reason, or both");
    for (name, _) in NOT_TIMED {
        assert!(commands().any(|command| command == *name), "{name} is no command");
    }
    assert!(commands().count() > 60);
}

async fn fastest(program: &Path, kubeconfig: &Path, arguments: &[String]) -> Result<Duration> {
    let mut best = Duration::MAX;
    for attempt in 0..ATTEMPTS {
        // `@daily` is a word of cron's.
        let one = |word: &String| word.replace('@', &attempt.to_string());
        let is_name = |word: &&String| !word.starts_with('@');
        let arguments: Vec<String> = arguments
            .iter()
            .map(|word| Some(word).filter(is_name).map_or_else(|| word.clone(), one))
            .collect();
        let began = Instant::now();
        let ended = Command::new(program)
            .args(&arguments)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .await?;
        best = best.min(began.elapsed());
        let code = ended.status.code().context("an exit code")?;
        let complaint = String::from_utf8_lossy(&ended.stderr);
        // doctor finds that nacre does not run here.
        let is_fine = code == 0 || code == 3 || (code == 1 && arguments[0] == "doctor");
        anyhow::ensure!(is_fine, "{arguments:?} ended with {code}: {complaint}");
    }
    Ok(best)
}

/// One object with a status, in the namespace.
async fn put<K>(test_cluster: &TestCluster, name: &str, body: Value, status: Value) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let api = Api::<K>::namespaced(test_cluster.bed.client().await?, "many");
    let mut object = body;
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    object["metadata"] = json!({ "name": name });
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    if !status.is_null() {
        let status = json!({ "status": status });
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

/// One of everything else, and one to delete for each attempt.
async fn furnish(test_cluster: &TestCluster) -> Result<()> {
    let backup = json!({"spec": {"backupSpec": {}}});
    put::<NonAdminBackup>(test_cluster, "waits", backup, json!({"phase": "New"})).await?;
    let names = |kind: &str| (0..ATTEMPTS).map(|number| format!("{kind}{number}")).collect::<Vec<_>>();
    let restore = json!({"spec": {"restoreSpec": {"backupName": "b1"}}});
    let ended = json!({"phase": "Created", "veleroRestore": {"name": "many-r", "namespace": "velero",
        "status": {"phase": "Completed"}}});
    for name in names("r") {
        put::<NonAdminRestore>(test_cluster, &name, restore.clone(), ended.clone()).await?;
    }
    let schedule = json!({"spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}}});
    for name in names("s").iter().map(String::as_str).chain(["kept"]) {
        put::<NonAdminSchedule>(test_cluster, name, schedule.clone(), Value::Null).await?;
    }
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": "b"}, "credential": {"name": "keys", "key": "cloud"}});
    let location = json!({"spec": {"backupStorageLocationSpec": spec}});
    let usable = json!({"phase": "Created", "veleroBackupStorageLocation": {"name": "many-l", "namespace": "velero",
        "status": {"phase": "Available"}}});
    for name in names("l").iter().map(String::as_str).chain(["kept"]) {
        put::<NonAdminBackupStorageLocation>(test_cluster, name, location.clone(), usable.clone()).await?;
    }
    // What is approved can be taken back only once.
    let requests = test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
    let approved = names("l").into_iter().map(|name| (name, "approve"));
    for (name, decision) in approved.chain([("kept".to_owned(), "pending")]) {
        let own = format!("{name}-request");
        let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocationRequest",
            "metadata": {"name": own}, "spec": {"approvalDecision": decision}});
        requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
        let asked = json!({"status": {"phase": "Pending", "nonAdminBackupStorageLocation": {"requestedSpec": spec,
            "nacuuid": own, "name": name, "namespace": "many"}}});
        requests.patch_status(&own, &PatchParams::default(), &Patch::Merge(asked)).await?;
    }
    test_cluster.set_policy("storageLocations: { requireApproval: true }\n").await?;
    test_cluster.bed.apply_yaml(include_str!("live_migration/kubevirt-crds.yaml")).await?;
    test_cluster.bed.apply_yaml(include_str!("live_migration/kubevirt-1.4-roles.yaml")).await
}

async fn fill(test_cluster: &TestCluster) -> Result<()> {
    let client = test_cluster.bed.client().await?;
    let api = Api::<NonAdminBackup>::namespaced(client, "many");
    stream::iter(0..BACKUPS)
        .map(|number| {
            let api = api.clone();
            async move {
                let name = format!("b{number}");
                let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
                    "metadata": {"name": name}, "spec": {"backupSpec": {"ttl": "720h"}}});
                api.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
                // As long as what nacre leaves out of every backup; one of those names, so that the backups are good.
                let excluded = ["nonadminbackups.oadp.openshift.io"; 16];
                let status = json!({"status": {"phase": "Created", "queueInfo": {"estimatedQueuePosition": 0},
                    "conditions": [{"type": "Accepted", "status": "True", "reason": "BackupAccepted", "message": "the backup is allowed",
                        "lastTransitionTime": "2026-11-15T12:00:00Z"}],
                    "veleroBackup": {"name": format!("many-{name}-00000000-0000-4000-8000-000000000000"), "namespace": "velero",
                        "spec": {"includedNamespaces": ["many"], "excludedResources": excluded, "ttl": "720h0m0s"},
                        "status": {"phase": "Completed", "progress": {"totalItems": 42, "itemsBackedUp": 42},
                            "startTimestamp": "2026-11-15T12:00:00Z", "completionTimestamp": "2026-11-15T12:00:12Z"}}}});
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await
}

/// Far more than a pipe holds, to somebody who reads one line of it.
async fn a_reader_that_leaves_is_no_error(program: &Path, kubeconfig: &Path) -> Result<()> {
    let line = r#"set -o pipefail; "$0" backup get -n many -o yaml | head -n 1"#;
    let output =
        Command::new("bash").args(["-c", line]).arg(program).env("KUBECONFIG", kubeconfig).output().await?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_answers_at_once_with_a_thousand_backups() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.bed.namespace("many").await?;
    fill(&test_cluster).await?;
    furnish(&test_cluster).await?;
    let (program, kubeconfig) = (e2e::command_line()?, test_cluster.bed.kubeconfig());
    let slack = if program.components().any(|part| part.as_os_str() == "debug") { UNOPTIMISED } else { 1 };
    let policy = test_cluster.bed.folder().join("policy.yaml");
    std::fs::write(&policy, "backup: { ttl: { max: 720h } }\n")?;
    a_reader_that_leaves_is_no_error(&program, &kubeconfig).await?;
    let mut slow = Vec::new();
    for line in std::iter::once(&"--version").chain(TIMED) {
        let mut arguments: Vec<String> =
            line.split(' ').map(|word| word.replace("POLICY", &policy.display().to_string())).collect();
        let is_about_a_namespace = !line.contains("-n ") && !["--version", "completion bash"].contains(line);
        arguments.extend(["-n", "many"].iter().filter(|_| is_about_a_namespace).map(ToString::to_string));
        let took = fastest(&program, &kubeconfig, &arguments).await?;
        let limit = match *line {
            "--version" => START,
            LONGER => ANSWER * 4,
            _ => ANSWER,
        } * slack;
        println!("{:>4} ms  kubectl nacre {line}", took.as_millis());
        if took > limit {
            slow.push(format!("{line}: {took:?}, more than {limit:?}"));
        }
    }
    assert_eq!(slow, Vec::<String>::new());
    Ok(())
}

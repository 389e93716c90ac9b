//! What the program prints where no cluster is needed: help, manifests, verdicts by a policy in a file, complaints.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them, with SNAPSHOTS=overwrite")]

use snapbox::{cmd::Command, str};

/// A kubeconfig whose server nobody answers at.
const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}], "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]}"#;

/// The program in a folder with these files.
fn nacre(files: &[(&str, &str)], arguments: &[&str]) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files.iter().chain(&[("kubeconfig", KUBECONFIG)]) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let command = Command::new(snapbox::cmd::cargo_bin!("kubectl-nacre"))
        .args(arguments)
        .env("KUBECONFIG", folder.path().join("kubeconfig"))
        .env_remove("VELERO_NAMESPACE")
        .current_dir(folder.path());
    (command, folder)
}

#[test]
fn help_is_grouped_by_audience() {
    let (command, _folder) = nacre(&[], &["-h"]);
    command.assert().success().stdout_eq(str![[r#"
Backups, restores and live-migration permissions for namespace owners

Usage: kubectl nacre [OPTIONS] <COMMAND>

For the owner of a namespace:
  backup      Create, list, download and delete backups of a namespace
  restore     Restore a backup, and see the result
  schedule    Back up the namespace at set times, and decide how long backups are kept
  location    Use your own storage for backups
  status      Show the status of a namespace's backups on one screen
  usage       Show what a namespace, or each, uses: backups, storage and Velero's time
  explain     Show what nacre would do with a request, before it is sent
  whoami      Show who you are to nacre, and what you could back up and restore
  console     Open the console in a browser: see, back up, restore, approve

For administrators:
  request     Approve or reject storage that tenants want to use
  queue       See in which order Velero and nacre work, move a request to the front, or hold it
  policy      Show what tenants may request and which source sets it, or check a policy before it is applied
  adopt       Give the backups of a deleted namespace to the namespace that was re-created under its name
  relocate    Move the backups of tenants to another Velero, which is theirs alone
  doctor      Check that the cluster is ready for nacre, and show how to fix what is not
  verify      Back up, lose and restore a volume in a scratch namespace, to see that nacre works
  install     Install nacre in Velero's namespace, or update an installation
  uninstall   Uninstall nacre without leaving objects stuck; objects of tenants and Velero stay
  render      Print the manifests that install applies; needs no cluster

For those who live-migrate KubeVirt machines:
  migration   Manage who may live-migrate KubeVirt machines: roles, grants, guard

Other:
  completion  Print the shell completion script
  help        Print this message or the help of a command

Options:
      --kubeconfig <KUBECONFIG>       The kubeconfig file to use
      --context <CONTEXT>             The kubeconfig context to use
  -n, --namespace <NAMESPACE>         The namespace. Default: the context's
      --as <USER>                     Impersonate this user
      --as-group <GROUP>              Impersonate this group; may be repeated
      --velero-namespace <NAMESPACE>  Velero's namespace [env: VELERO_NAMESPACE] [default: velero]
  -o, --output <FORMAT>               Output format: table, wide, json, yaml or name
  -h, --help                          Print help
  -V, --version                       Print version

Exit codes:
  0    done, or the answer is good; a backup or restore that was waited for is Completed
  1    it failed: an error, a refusal, or a backup or restore that ended as Failed
  2    the command line is wrong
  3    it worked, and the answer needs attention: PartiallyFailed, 0 items, volume data that is missing, or policy
       would refuse it
  4    --timeout was over before what was waited for
  130  interrupted; the operation continues in the cluster

"#]]);
}

#[test]
fn help_of_a_verb_shows_how_it_is_used() {
    let (command, _folder) = nacre(&[], &["backup", "create", "-h"]);
    command.assert().success().stdout_eq(str![[r#"
Back up the namespace

Usage: kubectl nacre backup create [OPTIONS] [NAME]

Arguments:
  [NAME]  Name of the backup. Default: `backup-` and the time

Options:
      --dry-run[=<MODE>]
          Change nothing. `client` prints the manifest, `server` asks the API server too
  -w, --wait
          Wait until it is finished; the exit code is its outcome
      --timeout <DURATION>
          How long to wait. Default: forever. Exit code 4 on timeout
      --labels <KEY=VALUE,...>
          Labels for the object: app=shop,tier=gold
      --annotations <KEY=VALUE,...>
          Annotations for the object
      --from-schedule <SCHEDULE>
          Back up as this schedule does, now. The backup is not one of its runs: it stays until you delete it or it expires
      --ttl <DURATION>
          How long to keep it, such as 72h or 720h. Default: the policy's or Velero's
      --storage-location <LOCATION>
          The NonAdminBackupStorageLocation to store it in. Default: the cluster's own storage
      --item-operation-timeout <DURATION>
          Timeout of background operations of plugins
      --resource-policies-configmap <CONFIGMAP>
          An administrator's ConfigMap with Velero's resource policy for volumes
  -h, --help
          Print help

What to back up:
      --include-resources <RESOURCES>
          Only these resources: deployments.apps,configmaps
      --exclude-resources <RESOURCES>
          All resources but these
      --include-namespace-scoped-resources <RESOURCES>
          Only these resources inside the namespace; does not go with the two above
      --exclude-namespace-scoped-resources <RESOURCES>
          All resources inside the namespace but these
      --exclude-cluster-scoped-resources <RESOURCES>
          No cluster-scoped resources of these kinds
  -l, --selector <LABELS>
          Only objects with these labels: app=shop,tier!=test
      --or-selector <LABELS>
          Only objects that one of these selects: 'app=a or app=b'; may be repeated
      --ordered-resources <KIND=NAMES;...>
          Objects to back up first, by kind: 'pods=a,b;configmaps=c'

Volumes:
      --snapshot-volumes[=<BOOL>]
          Whether to take snapshots of volumes [possible values: true, false]
      --snapshot-move-data[=<BOOL>]
          Whether to move snapshot data into the storage. Required to restore snapshots from your own storage [possible values: true, false]
      --default-volumes-to-fs-backup[=<BOOL>]
          Whether to save volumes file by file [possible values: true, false]
      --data-mover <NAME>
          The data mover. Default: Velero's own
      --parallel-files-upload <NUMBER>
          Number of files to upload in parallel
      --csi-snapshot-timeout <DURATION>
          Timeout of a CSI snapshot
      --volume-group-snapshot-label-key <LABEL>
          Snapshot claims with the same value of this label together

Connection:
      --kubeconfig <KUBECONFIG>       The kubeconfig file to use
      --context <CONTEXT>             The kubeconfig context to use
  -n, --namespace <NAMESPACE>         The namespace. Default: the context's
      --as <USER>                     Impersonate this user
      --as-group <GROUP>              Impersonate this group; may be repeated
      --velero-namespace <NAMESPACE>  Velero's namespace [env: VELERO_NAMESPACE] [default: velero]
  -o, --output <FORMAT>               Output format: table, wide, json, yaml or name

Examples:
  kubectl nacre backup create                          everything in the namespace, under a name with the date
  kubectl nacre backup create daily --wait             and see how it goes
  kubectl nacre backup create --ttl 72h --storage-location mine
  kubectl nacre backup create --include-resources deployments,configmaps -l app=shop
  kubectl nacre backup create daily --dry-run -o yaml > daily.yaml
  kubectl nacre backup create --from-schedule nightly  as the schedule does, now

A backup covers the namespace it is made in, and nothing cluster-scoped but the volumes of its claims.
With --wait the exit code is Velero's outcome: 0 Completed, 3 PartiallyFailed or 0 items, 1 Failed or refused.

"#]]);
}

#[test]
fn a_dry_run_prints_the_manifest() {
    let arguments =
        ["backup", "create", "daily", "--ttl", "72h", "-l", "app=shop", "--labels", "team=a", "--dry-run"];
    let (command, _folder) = nacre(&[], &arguments);
    command
        .assert()
        .success()
        .stdout_eq(str![[r#"
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata:
  labels:
    team: a
  name: daily
  namespace: shop
spec:
  backupSpec:
    labelSelector:
      matchLabels:
        app: shop
    ttl: 72h

"#]])
        .stderr_eq("");
}

#[test]
fn a_dry_run_of_a_restore_is_json_if_asked() {
    let arguments =
        ["restore", "create", "back", "--from-backup", "daily", "--dry-run", "-o", "json", "-n", "other"];
    let (command, _folder) = nacre(&[], &arguments);
    command.assert().success().stdout_eq(str![[r#"
{
  "apiVersion": "oadp.openshift.io/v1alpha1",
  "kind": "NonAdminRestore",
  "metadata": {
    "name": "back",
    "namespace": "other"
  },
  "spec": {
    "restoreSpec": {
      "backupName": "daily"
    }
  }
}

"#]]);
}

#[test]
fn what_nobody_could_allow_is_not_sent() {
    let arguments =
        ["backup", "create", "--include-resources", "pods", "--include-namespace-scoped-resources", "pods"];
    let (command, _folder) = nacre(&[], &arguments);
    command.assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: this backup would be refused: spec.backupSpec.includedResources: cannot be used together with the filters for namespace-scoped and cluster-scoped resources; use one or the other

"#]]);
}

#[test]
fn velero_habits_get_an_answer() {
    let (command, _folder) = nacre(&[], &["backup", "create", "--include-namespaces", "other"]);
    command.assert().code(2).stderr_eq(str![[r#"
error: invalid value 'other' for '--include-namespaces <INCLUDE_NAMESPACES>': a backup covers the namespace it is made in; choose that with -n

For more information, try '--help'.

"#]]);
}

const BACKUP: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminBackup\nmetadata: {name: daily}\n\
                      spec: {backupSpec: {ttl: 72h}}\n";

#[test]
fn explain_goes_by_a_policy_in_a_file() {
    let files = [("daily.yaml", BACKUP), ("policy.yaml", "backup: {ttl: {max: 48h}}")];
    let (command, _folder) = nacre(&files, &["explain", "-f", "daily.yaml", "--policy", "policy.yaml"]);
    command.assert().code(3).stdout_eq(str![[r#"
backup daily in namespace shop: would be refused
  spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
  rule: backup.ttl of the administrators' policy

policy: from the file
not checked: how volumes are saved: the claims of the namespace cannot be read

"#]]);
}

#[test]
fn a_policy_that_makes_no_sense_makes_everything_wait() {
    let files = [("daily.yaml", BACKUP), ("policy.yaml", "backup:\n  tll: {max: 48h}\n")];
    let (command, _folder) = nacre(&files, &["explain", "-f", "daily.yaml", "--policy", "policy.yaml"]);
    command.assert().code(3).stdout_eq(str![[r#"
backup daily in namespace shop: would have to wait
  what the administrators allow cannot be read at the moment; the backup waits, and goes on by itself when that is mended
  rule: built into nacre, independent of the administrators' policy

policy: from the file
not checked: how volumes are saved: the claims of the namespace cannot be read

"#]]).stderr_eq(str![[r#"
policy: 2:3: backup.tll: there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete

"#]]);
}

#[test]
fn help_of_an_administrators_verb_says_what_it_does_not_do() {
    let (command, _folder) = nacre(&[], &["request", "approve", "-h"]);
    command.assert().success().stdout_eq(str![[r#"
Approve the storage for Velero

Usage: kubectl nacre request approve [OPTIONS] <REQUEST>...

Arguments:
  <REQUEST>...  NAMESPACE/NAME of the location, its name alone if that is unique, or the name of the request

Options:
      --resource-version <VERSION>  Only if the request still has this resourceVersion
  -w, --wait                        Wait until it is finished; the exit code is its outcome
      --timeout <DURATION>          How long to wait. Default: forever. Exit code 4 on timeout
      --reason <REASON>             Reason, stored in the request
  -h, --help                        Print help

Connection:
      --kubeconfig <KUBECONFIG>       The kubeconfig file to use
      --context <CONTEXT>             The kubeconfig context to use
  -n, --namespace <NAMESPACE>         The namespace. Default: the context's
      --as <USER>                     Impersonate this user
      --as-group <GROUP>              Impersonate this group; may be repeated
      --velero-namespace <NAMESPACE>  Velero's namespace [env: VELERO_NAMESPACE] [default: velero]
  -o, --output <FORMAT>               Output format: table, wide, json, yaml or name

Examples:
  kubectl nacre request approve shop/mine              the location `mine` of namespace `shop`
  kubectl nacre request approve mine -n shop           the same
  kubectl nacre request approve shop/mine --wait       and see whether Velero can use it
  kubectl nacre request approve shop/mine farm/barn --reason 'ticket 4711'
  kubectl nacre request approve shop/mine --resource-version 1742

A name that fits several requests lists them, and nothing is done. What is approved is what was asked for: a location
that was changed since is not used. With --wait: 0 Velero can use it, 1 it cannot, 4 not known in time.

"#]]);
}

#[test]
fn a_policy_is_checked_with_its_place_and_field() {
    let text = "backup:\n  tll: { max: 48h }\nsync: { period: soon }\n";
    let (command, _folder) = nacre(&[("policy.yaml", text)], &["policy", "check", "-f", "policy.yaml"]);
    command
        .assert()
        .code(1)
        .stdout_eq(str![[r#"
policy.yaml:2:3: backup.tll: there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete
policy.yaml:3:17: sync.period: "soon" is not a duration; write for example 72h or 1h30m

"#]])
        .stderr_eq(str![[r#"
2 errors, 0 warnings

"#]]);
    let (command, _folder) = nacre(&[], &["policy", "check", "-f", "-", "-o", "json"]);
    command.stdin(text).assert().code(1).stdout_eq(str![[r#"
{
  "found": [
    "a policy"
  ],
  "usable": false,
  "problems": [
    {
      "severity": "error",
      "source": "ConfigMap",
      "field": "backup.tll",
      "line": 2,
      "column": 3,
      "message": "there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete"
    },
    {
      "severity": "error",
      "source": "ConfigMap",
      "field": "sync.period",
      "line": 3,
      "column": 17,
      "message": "/"soon/" is not a duration; write for example 72h or 1h30m"
    }
  ]
}

"#]]);
}

#[test]
fn a_policy_that_is_fine_is_said_to_be() {
    let files = [("policy.yaml", "backup: { ttl: { max: 48h } }\n")];
    let (command, _folder) = nacre(&files, &["policy", "check", "-f", "policy.yaml"]);
    command
        .assert()
        .success()
        .stdout_eq(str![[r#"
policy.yaml: a policy: fine

"#]])
        .stderr_eq("");
}

#[test]
fn a_policy_that_hardly_does_what_was_meant_needs_attention() {
    let files = [("policy.yaml", "backup: { ttl: { max: 48h }, defaults: { ttl: 72h } }\n")];
    let (command, _folder) = nacre(&files, &["policy", "check", "-f", "policy.yaml"]);
    command.assert().code(3).stdout_eq(str![[r#"
policy.yaml:1:47: warning: backup.defaults.ttl: is longer than backup.ttl.max, which is 48h: backups that ask for no ttl are refused

"#]]);
}

const APPLICATION: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: DataProtectionApplication\nmetadata: { name: dpa }\n\
                           spec: { nonAdmin: { enforceBackupSpec: { includedNamespaces: [shop] } } }\n";

#[test]
fn an_application_is_checked_like_a_policy() {
    let (command, _folder) = nacre(&[("dpa.yaml", APPLICATION)], &["policy", "check", "-f", "dpa.yaml"]);
    command.assert().code(1).stdout_eq(str![[r#"
dpa.yaml: spec.nonAdmin.enforceBackupSpec.includedNamespaces: cannot be set for all tenants; leave it out

"#]]);
    let (command, _folder) = nacre(&[("pod.yaml", "kind: Pod")], &["policy", "check", "-f", "pod.yaml"]);
    command.assert().code(1).stdout_eq(str![[r#"
pod.yaml: there is neither a policy, nor a ConfigMap nacre-policy, nor a DataProtectionApplication in it

"#]]);
}

#[test]
fn adopting_needs_a_namespace() {
    let (command, _folder) = nacre(&[], &["adopt"]);
    command.assert().code(2).stderr_eq(str![[r#"
error: the following required arguments were not provided:
  <NAMESPACE>

Usage: kubectl nacre adopt <NAMESPACE>

For more information, try '--help'.

"#]]);
}

#[test]
fn a_cluster_that_does_not_answer_is_said_to() {
    let (command, _folder) = nacre(&[], &["backup", "get"]);
    command.assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: the API server does not answer: Connection refused (os error 111)

"#]]);
}

#[test]
fn without_a_kubeconfig_there_is_nothing_to_do() {
    let (command, _folder) = nacre(&[], &["backup", "get", "--kubeconfig", "missing"]);
    command.assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: failed to read kubeconfig from '"missing"': No such file or directory (os error 2)

"#]]);
}

#[test]
fn deleting_needs_a_name() {
    let (command, _folder) = nacre(&[], &["backup", "delete"]);
    command.assert().code(2).stderr_eq(str![[r#"
error: the following required arguments were not provided:
  <NAME>...

Usage: kubectl nacre backup delete <NAME>...

For more information, try '--help'.

"#]]);
}

#[test]
fn a_doctor_needs_somebody_to_look_at() {
    let (command, _folder) = nacre(&[], &["doctor"]);
    command.assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error: the API server does not answer: Connection refused (os error 111)

"#]]);
}

#[test]
fn completion_knows_four_shells() {
    let (command, _folder) = nacre(&[], &["completion", "powershell"]);
    command.assert().code(2).stderr_eq(str![[r#"
error: invalid value 'powershell' for '<SHELL>'
  [possible values: bash, zsh, fish, kubectl]

For more information, try '--help'.

"#]]);
    let (command, _folder) = nacre(&[], &["completion", "kubectl"]);
    command.assert().success().stdout_eq(str![[r#"
#!/bin/sh
# kubectl asks a program of this name what could stand after `kubectl nacre`. It belongs on the PATH, executable.
exec kubectl-nacre __complete -- "$@"

"#]]);
}

/// The completions for these words, without a cluster.
fn tab(words: &[&str]) -> snapbox::cmd::OutputAssert {
    let (command, _folder) = nacre(&[], &[&["__complete", "--"], words].concat());
    command.assert().success()
}

#[test]
fn commands_flags_and_values_are_completed_without_a_cluster() {
    tab(&["ba"]).stdout_eq(str![[r#"
backup	Create, list, download and delete backups of a namespace
:4

"#]]);
    tab(&["backup", "create", "--snapshot-v"]).stdout_eq(str![[r#"
--snapshot-volumes	Whether to take snapshots of volumes
:4

"#]]);
    tab(&["backup", "get", "--output=ya"]).stdout_eq(str![[r#"
--output=yaml	For programs and people
:4

"#]]);
    tab(&["location", "create", "--provider", ""]).stdout_eq(str![[r#"
aws
azure
gcp
:4

"#]]);
    tab(&["status", "--context", ""]).stdout_eq(str![[r#"
c
:4

"#]]);
    tab(&["explain", "-f", "da"]).stdout_eq(str![[r#"
:0

"#]]);
}

#[test]
fn whoever_cannot_be_asked_is_passed_over_in_silence() {
    for words in [&["backup", "describe", ""][..], &["backup", "get", "--kubeconfig", "missing", ""]] {
        tab(words).stdout_eq(":4\n").stderr_eq("");
    }
    // Those who may not list namespaces have at least those of their contexts.
    tab(&["backup", "get", "-n", ""]).stdout_eq("shop\n:4\n").stderr_eq("");
}

#[test]
fn an_installation_is_in_one_place_and_flags_have_sound_values() {
    let twice = ["install", "--image", "a:1", "-n", "shop", "--velero-namespace", "backup"];
    let (command, _folder) = nacre(&[], &twice);
    command.assert().code(1).stderr_eq(str![[r#"
error: -n is shop and --velero-namespace is backup: nacre runs in Velero's namespace, so say one of them, or the same twice

"#]]);
    let (command, _folder) = nacre(&[], &["install", "--aggregate-to", "admin,boss"]);
    command.assert().code(2).stderr_eq(str![[r#"
error: invalid value 'boss' for '--aggregate-to <ROLE,...>': name some of admin, edit and view, or none

For more information, try '--help'.

"#]]);
    let (command, _folder) = nacre(&[], &["install", "--aggregate-to", "admin,none"]);
    command.assert().code(1).stderr_eq(str![[r#"
error: --aggregate-to: `none` stands alone, or name some of admin, edit and view

"#]]);
    // Both are fine, and nobody answers.
    for timeout in ["2m", "120"] {
        let (command, _folder) = nacre(&[], &["install", "--image", "a:1", "--wait", "--timeout", timeout]);
        command.assert().code(1).stderr_eq(str![[r#"
error: looking at what is installed: the API server does not answer: Connection refused (os error 111)

"#]]);
    }
}

#[test]
fn manifests_are_for_the_namespace_that_was_named_either_way() {
    for flag in ["-n", "--velero-namespace"] {
        let (command, _folder) = nacre(&[], &["render", flag, "backup", "--aggregate-to=none", "-o", "json"]);
        let output = command.assert().success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        assert!(text.contains("\"namespace\": \"backup\"") && !text.contains("\"namespace\": \"velero\""));
        assert!(!text.contains("aggregate-to-edit\": \"true\""));
    }
}

#[test]
fn parts_that_know_nacre_by_its_account_are_not_rendered_for_another() {
    let (command, _folder) = nacre(&[], &["render", "--only", "oadp", "--service-account", "robot"]);
    command.assert().success();
    let both = ["render", "--only", "oadp,admission", "--service-account", "robot"];
    for args in [&both[..], &["render", "--service-account", "robot"]] {
        let (command, _folder) = nacre(&[], args);
        command.assert().code(1).stderr_eq(str![[r#"
error: --service-account goes with --only oadp alone: everything else, admission policies included, knows nacre by the service account non-admin-controller

"#]]);
    }
}

#[test]
fn a_grant_says_in_which_namespace() {
    let (command, _folder) = nacre(&[], &["migration", "grant", "--user", "ann"]);
    command.assert().code(1).stderr_eq(str![[r#"
error: -n: say in which namespace they may migrate, as in -n shop, or --cluster for every namespace

"#]]);
}

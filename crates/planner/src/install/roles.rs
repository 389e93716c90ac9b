//! Who nacre is, what it may do, and what namespace owners may do with it. Each rule is here because something uses it: a
//! story on the real API server fails if one is not.

use api::Kind;
use serde_json::{Value, json};

use super::{EDIT, UserRole, VIEW, ask_labels, look_labels, marked};
use crate::{Object, admission, backup, kubevirt, policy, requester, restore, turns, usage};

/// The account nacre runs as. OADP's operator has it under this name too.
pub const SERVICE_ACCOUNT: &str = "non-admin-controller";
/// For users who are to ask for backups but are not editors of the namespace.
pub(super) const EDITORS: &str = "nonadminbackup-editor-role";

/// The namespace of the leader election lease. The same for every installation, so that there is one leader per
/// cluster.
pub const LEASE_NAMESPACE: &str = "kube-system";
/// Name of the lease.
pub const LEASE: &str = "nacre";
/// The Secret in Velero's namespace that takes its place where nacre may not use Leases.
pub const LEASE_SECRET: &str = "nacre-lease";

const WATCH: &[&str] = &["list", "watch"];
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
pub(crate) const TENANT_KINDS: [Kind; 5] = [
    Kind::NonAdminBackup,
    Kind::NonAdminRestore,
    Kind::NonAdminBackupStorageLocation,
    Kind::NonAdminDownloadRequest,
    Kind::NonAdminSchedule,
];

const HELD_KINDS: [Kind; 4] = [
    Kind::NonAdminBackup,
    Kind::NonAdminRestore,
    Kind::NonAdminBackupStorageLocation,
    Kind::NonAdminSchedule,
];

/// What viewers may read.
const VIEWED_KINDS: [Kind; 4] = HELD_KINDS;

/// The account and every role, with Velero in this namespace, and made part of these user-facing roles.
pub fn roles(namespace: &str, aggregate_to: &[UserRole]) -> Vec<Object> {
    let account = json!({"metadata": {"name": SERVICE_ACCOUNT, "namespace": namespace}});
    let mut objects = vec![marked(Kind::ServiceAccount, account)];
    objects.extend(everywhere(namespace));
    objects.extend(in_velero_namespace(namespace));
    objects.extend(beside_the_lease(namespace));
    objects.extend(tenant_roles(aggregate_to));
    objects
}

/// What nacre may do in every namespace: read requests, hold them, write their status, make those for backups found in
/// storage, delete them, record Events. Of Secrets it may look at one whose name it knows, and neither list, watch nor
/// write any.
fn everywhere(namespace: &str) -> [Object; 2] {
    let rules = json!([
        rule(&[Kind::Namespace], WATCH),
        // Single ones are looked at again after a conflict, here and below.
        rule(&TENANT_KINDS, READ),
        rule(&HELD_KINDS, &["patch"]),
        // For backups found in storage and for runs of schedules; for namespaces that get a schedule by the policy.
        rule(&[Kind::NonAdminBackup], &["create", "delete"]),
        rule(&[Kind::NonAdminSchedule], &["create"]),
        rule(&[Kind::NonAdminRestore, Kind::NonAdminDownloadRequest], &["delete"]),
        status_rule(&HELD_KINDS, &["patch"]),
        status_rule(&[Kind::NonAdminDownloadRequest], &["patch"]),
        rule(&[Kind::Secret], &["get"]),
        // Whether the data of claims is saved, and whether the pods that Velero waits for are still there.
        rule(&[Kind::PersistentVolumeClaim, Kind::Pod], WATCH),
        // Whether a claim's volume is a folder of a node, which Velero does not save.
        rule(&[Kind::PersistentVolume], WATCH),
        // Which claims' drivers can take snapshots.
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["list"]},
        {"apiGroups": ["snapshot.storage.k8s.io"], "resources": ["volumesnapshotclasses"], "verbs": ["list"]},
        // Whether the API server holds pods of tenants' restores to Pod Security level baseline.
        {"apiGroups": [Kind::ValidatingAdmissionPolicy.group()], "verbs": ["get"],
            "resources": [Kind::ValidatingAdmissionPolicy.plural(), Kind::ValidatingAdmissionPolicyBinding.plural()],
            "resourceNames": around_restores(namespace)},
        // What whoever asked is permitted.
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
        admission::webhook::rule(Kind::ValidatingWebhookConfiguration, admission::webhook::CONFIGURATION),
        // Whether the webhook records who asks. Changing it is another matter: see `recording`.
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"],
            "verbs": ["get"], "resourceNames": [admission::webhook::RECORDER]},
    ]);
    [cluster_role("nacre", &json!({}), &rules), cluster_binding("nacre", namespace)]
}

/// What nacre needs for recording who asks, where the API server cannot do that by itself. It is apart, since whoever may
/// change that configuration could have objects of any kind changed.
pub(super) fn recording(namespace: &str) -> [Object; 2] {
    let name = admission::webhook::RECORDER;
    let rules = json!([admission::webhook::rule(Kind::MutatingWebhookConfiguration, name)]);
    [cluster_role(name, &json!({}), &rules), cluster_binding(name, namespace)]
}

/// Gives nacre the ClusterRole of this name.
fn cluster_binding(name: &str, namespace: &str) -> Object {
    marked(
        Kind::ClusterRoleBinding,
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [subject(namespace)],
        }),
    )
}

/// The names of the admission policies around tenants' restores, which their bindings have too.
fn around_restores(namespace: &str) -> Vec<String> {
    let policies = admission::around_restores(namespace).into_iter();
    let policies = policies.filter(|object| object.kind == Kind::ValidatingAdmissionPolicy);
    policies.map(|policy| policy.name().to_owned()).collect()
}

/// What nacre may do where Velero is.
fn in_velero_namespace(namespace: &str) -> [Object; 2] {
    let volumes = [Kind::PodVolumeBackup, Kind::PodVolumeRestore, Kind::DataUpload, Kind::DataDownload];
    let rules = json!([
        rule(&[Kind::Backup, Kind::Restore], WRITE),
        rule(
            &[Kind::DeleteBackupRequest, Kind::DownloadRequest],
            &["get", "list", "watch", "create", "delete"]
        ),
        rule(&[Kind::BackupStorageLocation], WRITE),
        // What the Go controller made for schedules is taken over.
        rule(&[Kind::Schedule], &["list", "watch", "delete"]),
        rule(&[Kind::NonAdminBackupStorageLocationRequest], WRITE),
        status_rule(&[Kind::NonAdminBackupStorageLocationRequest], &["patch"]),
        rule(&[Kind::ServerStatusRequest], &["get", "create", "delete"]),
        // One whose name is known may be looked at everywhere.
        rule(&[Kind::Secret], &["list", "watch", "create", "patch", "delete"]),
        // Volume operations that cannot end are cancelled.
        rule(&volumes, &["get", "list", "watch", "patch"]),
        // Whether the node agent runs.
        rule(&[Kind::DaemonSet], WATCH),
        rule(&[Kind::ConfigMap], READ),
        // nacre's own: modifiers for what comes back from tenants' storage, a copy of the policy in force, which volumes
        // are saved, what deleted backups used, and what is recorded of users.
        rule(&[Kind::ConfigMap], &["create"]),
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": own_config_maps(), "verbs": ["patch"]},
        rule(&[Kind::DataProtectionApplication], WATCH),
        // What Velero could not import from tenants' storage: it only logs that.
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        // Whether Velero deletes native snapshots, so that tenants bring no storage.
        {"apiGroups": [Kind::Backup.group()], "resources": ["volumesnapshotlocations"], "verbs": ["list"]},
    ]);
    let metadata = json!({"name": "nacre", "namespace": namespace});
    [
        marked(Kind::Role, json!({"metadata": metadata, "rules": rules})),
        marked(
            Kind::RoleBinding,
            json!({
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nacre"},
                "subjects": [subject(namespace)],
            }),
        ),
    ]
}

/// The ConfigMaps that nacre makes where Velero is, and may change.
fn own_config_maps() -> Vec<&'static str> {
    restore::MODIFIERS
        .into_iter()
        .chain([policy::IN_FORCE, backup::VOLUME_POLICY, usage::RECORD, turns::LEDGER, requester::LIST])
        .collect()
}

/// What nacre may do where the lease is: make it, keep that one alone, and see whether it is to look after
/// live-migration permissions, for which it is then given more.
fn beside_the_lease(namespace: &str) -> [Object; 2] {
    let rules = json!([
        rule(&[Kind::Lease], &["create"]),
        {"apiGroups": [Kind::Lease.group()], "resources": ["leases"], "resourceNames": [LEASE], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [kubevirt::SETTINGS], "verbs": ["get"]},
    ]);
    let metadata = json!({"name": "nacre", "namespace": LEASE_NAMESPACE});
    [
        marked(Kind::Role, json!({"metadata": metadata, "rules": rules})),
        marked(
            Kind::RoleBinding,
            json!({
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "nacre"},
                "subjects": [subject(namespace)],
            }),
        ),
    ]
}

/// What namespace owners may do: admins and editors ask, viewers look. Statuses are for nacre alone to write, and the
/// requests that administrators decide about are for administrators alone. A download request's status holds a link to
/// everything that was backed up, Secrets included, so viewers, who may not read Secrets, may not read it either.
fn tenant_roles(aggregate_to: &[UserRole]) -> [Object; 3] {
    let write = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let ask = json!([rule(&TENANT_KINDS, &write), status_rule(&TENANT_KINDS, &["get"])]);
    let look = json!([rule(&VIEWED_KINDS, READ), status_rule(&VIEWED_KINDS, &["get"])]);
    [
        cluster_role(EDIT, &ask_labels(aggregate_to), &ask),
        cluster_role(VIEW, &look_labels(aggregate_to), &look),
        cluster_role(EDITORS, &json!({}), &ask),
    ]
}

fn cluster_role(name: &str, labels: &Value, rules: &Value) -> Object {
    marked(Kind::ClusterRole, json!({"metadata": {"name": name, "labels": labels}, "rules": rules}))
}

fn subject(namespace: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace})
}

/// Kinds of one group, and what may be done with them.
pub(super) fn rule(kinds: &[Kind], verbs: &[&str]) -> Value {
    let group = kinds.first().map_or("", |kind| kind.group());
    let resources: Vec<_> = kinds.iter().map(|kind| kind.plural()).collect();
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

pub(super) fn status_rule(kinds: &[Kind], verbs: &[&str]) -> Value {
    let group = kinds.first().map_or("", |kind| kind.group());
    let resources: Vec<_> = kinds.iter().map(|kind| format!("{}/status", kind.plural())).collect();
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[cfg(test)]
mod tests {
    use api::Kind;

    use super::{UserRole, roles};

    #[test]
    fn outside_the_administrators_namespace_a_secret_is_only_looked_at_by_name() {
        let objects = roles("velero", &UserRole::ALL);
        let rules = |kind: Kind| -> Vec<serde_json::Value> {
            let own =
                objects.iter().filter(|object| object.kind == kind && object.name().starts_with("nacre"));
            own.flat_map(|role| role.body["rules"].as_array().unwrap().clone()).collect()
        };
        let about_secrets = |rules: Vec<serde_json::Value>| -> Vec<serde_json::Value> {
            let meant = |rule: &serde_json::Value| {
                ["secrets", "*"]
                    .iter()
                    .any(|name| rule["resources"].to_string().contains(&format!("\"{name}\"")))
            };
            rules.into_iter().filter(meant).map(|rule| rule["verbs"].clone()).collect()
        };
        assert_eq!(about_secrets(rules(Kind::ClusterRole)), [serde_json::json!(["get"])]);
        assert_eq!(about_secrets(rules(Kind::Role)).len(), 1);
        assert!(
            objects
                .iter()
                .filter(|object| object.kind == Kind::Role && object.namespace() != super::LEASE_NAMESPACE)
                .all(|role| role.namespace() == "velero")
        );
        let text =
            serde_json::to_string(&objects.iter().map(|o| o.body.clone()).collect::<Vec<_>>()).unwrap();
        assert!(!text.contains("\"*\""));
    }

    /// H6: a user with only the role `view` reads the download link of somebody's NonAdminDownloadRequest, and with it every Secret in the backup
    #[test]
    fn h6_viewers_may_not_read_download_links() {
        let objects = roles("velero", &UserRole::ALL);
        let rules_of = |name: &str| {
            let role =
                objects.iter().find(|object| object.kind == Kind::ClusterRole && object.name() == name);
            role.unwrap().body["rules"].to_string()
        };
        assert!(!rules_of("nacre:view").contains("downloadrequests"));
        assert!(rules_of("nacre:view").contains("\"nonadminbackups\""));
        for name in ["nacre:edit", super::EDITORS] {
            assert!(rules_of(name).contains("\"nonadmindownloadrequests\""), "{name}");
        }
    }

    #[test]
    fn tenants_may_not_touch_statuses_or_what_administrators_decide() {
        for role in roles("velero", &UserRole::ALL)
            .iter()
            .filter(|object| object.kind == Kind::ClusterRole && object.name() != "nacre")
        {
            for rule in role.body["rules"].as_array().unwrap() {
                let text = rule.to_string();
                assert!(!text.contains("storagelocationrequests"), "{}", role.name());
                assert!(
                    !text.contains("/status") || rule["verbs"] == serde_json::json!(["get"]),
                    "{}",
                    role.name()
                );
            }
        }
    }
}

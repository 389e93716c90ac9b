//! What a Velero for tenants alone may do. Neither role has `bind`, `escalate` or `impersonate`: what Velero creates
//! never gives anybody more than Velero has in that one namespace.

use api::Kind;
use serde_json::{Value, json};

use super::VELERO_ACCOUNT;
use crate::Object;
use crate::install::{SERVICE_ACCOUNT, marked};

/// What Velero may do in every namespace, and without one: hardly more than read.
pub(crate) const IN_CLUSTER: &str = "nacre:velero";
/// What Velero may do in a tenant's namespace, once it is bound there.
pub(crate) const IN_TENANT_NAMESPACES: &str = "nacre:velero-tenant";

/// What nacre needs to bind the latter.
const BINDER: &str = "nacre:velero-access";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The roles of Velero in this namespace, and the bindings that do not depend on tenants.
pub(crate) fn objects(namespace: &str) -> Vec<Object> {
    let account = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let velero = account(VELERO_ACCOUNT);
    let reference =
        |kind: Kind, name: &str| json!({"apiGroup": kind.group(), "kind": kind.name(), "name": name});
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": WRITE}]);
    let own = json!({"name": IN_CLUSTER, "namespace": namespace});
    vec![
        marked(Kind::ClusterRole, json!({"metadata": {"name": IN_CLUSTER}, "rules": in_cluster()})),
        marked(
            Kind::ClusterRoleBinding,
            json!({
                "metadata": {"name": IN_CLUSTER},
                "roleRef": reference(Kind::ClusterRole, IN_CLUSTER), "subjects": [velero],
            }),
        ),
        marked(Kind::ClusterRole, json!({"metadata": {"name": IN_TENANT_NAMESPACES}, "rules": everything})),
        marked(Kind::Role, json!({"metadata": own, "rules": everything})),
        marked(
            Kind::RoleBinding,
            json!({
                "metadata": own,
                "roleRef": reference(Kind::Role, IN_CLUSTER), "subjects": [velero],
            }),
        ),
        marked(Kind::ClusterRole, json!({"metadata": {"name": BINDER}, "rules": of_nacre()})),
        marked(
            Kind::ClusterRoleBinding,
            json!({
                "metadata": {"name": BINDER},
                "roleRef": reference(Kind::ClusterRole, BINDER), "subjects": [account(SERVICE_ACCOUNT)],
            }),
        ),
    ]
}

/// What Velero, its node agent and its data movers need outside tenants' namespaces.
fn in_cluster() -> Value {
    json!([
        // The node agent looks for the pods of its node in all namespaces, and backups for the claims of those pods.
        {"apiGroups": [""], "resources": ["namespaces", "nodes", "pods", "persistentvolumeclaims"], "verbs": READ},
        // What a data mover restored is bound to the tenant's claim.
        {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses", "volumeattachments"], "verbs": READ},
        // A service account is backed up with the names of the cluster's roles it has, which are looked up in all.
        {"apiGroups": [Kind::ClusterRole.group()], "resources": ["clusterroles", "clusterrolebindings"], "verbs": READ},
        // After a backup Velero looks for its snapshots in all namespaces. They have a part without namespace. Which of them
        // Velero may create, an admission policy decides.
        {"apiGroups": ["snapshot.storage.k8s.io"], "resources": ["volumesnapshotclasses", "volumesnapshots"], "verbs": READ},
        {"apiGroups": ["snapshot.storage.k8s.io"], "resources": ["volumesnapshotcontents"], "verbs": WRITE},
    ])
}

/// What nacre needs in addition: to bind that one role, and no other, in tenants' namespaces.
fn of_nacre() -> Value {
    json!([
        {"apiGroups": [Kind::RoleBinding.group()], "resources": [Kind::RoleBinding.plural()],
            "verbs": ["list", "watch", "create", "delete"]},
        {"apiGroups": [Kind::ClusterRole.group()], "resources": [Kind::ClusterRole.plural()],
            "resourceNames": [IN_TENANT_NAMESPACES], "verbs": ["bind"]},
    ])
}

#[cfg(test)]
mod tests {
    use super::{in_cluster, objects};

    #[test]
    fn neither_role_gives_velero_more_permissions_than_it_has() {
        let of_velero = objects("velero").into_iter().filter(|object| object.name() != super::BINDER);
        let text = of_velero.map(|object| object.body.to_string()).collect::<String>();
        for verb in ["\"bind\"", "\"escalate\"", "\"impersonate\"", "\"verbs\":[\"*\"]"] {
            assert!(!text.contains(verb), "{verb}");
        }
    }

    #[test]
    fn without_a_namespace_velero_creates_nothing_but_contents_of_snapshots() {
        for rule in in_cluster().as_array().unwrap() {
            let creates = rule["verbs"].to_string().contains("create");
            assert_eq!(creates, rule["resources"] == serde_json::json!(["volumesnapshotcontents"]), "{rule}");
            assert!(!rule.to_string().contains('*'), "{rule}");
        }
    }
}

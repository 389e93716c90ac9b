//! The rights that Velero's own tools for tenants need. They are given only where the feature is switched on.

use api::Kind;
use serde_json::{Value, json};

use super::{COPIED, RECORD, WATCHED};
use crate::Object;
use crate::install::{self, UserRole};

const READ: [&str; 3] = ["get", "list", "watch"];
/// What nacre itself may do beyond what it always may.
pub(crate) const EXTRA: &str = "nacre:velero-view";
/// What `nacre operator` may do.
const OPERATORS: &str = "nacre:velero-view:operator";

/// All of it, for Velero in this namespace, made part of these user-facing roles.
pub fn objects(namespace: &str, aggregate_to: &[UserRole]) -> Vec<Object> {
    let mut objects = own(namespace);
    objects.extend(operators(namespace));
    objects.extend(tenants(aggregate_to));
    objects
}

/// What nacre may do beyond what it always may: keep copies in tenants' namespaces, answer what is asked there, and
/// write the record of copies in Velero's namespace.
fn own(namespace: &str) -> Vec<Object> {
    let keep = ["get", "list", "watch", "create", "patch", "delete"];
    let answer = ["get", "list", "watch", "patch", "delete"];
    let rules = json!([
        rule(Kind::Backup, &COPIED, &keep),
        rule(Kind::Backup, &[Kind::DownloadRequest], &answer),
        // The request for what `velero restore create` asks for; for backups nacre may do that anyway.
        rule(Kind::NonAdminRestore, &[Kind::NonAdminRestore], &["create"]),
        // What `velero schedule delete` asks for.
        rule(Kind::NonAdminSchedule, &[Kind::NonAdminSchedule], &["delete"]),
    ]);
    let in_velero_namespace = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [RECORD], "verbs": ["delete"],
    }]);
    let subject = json!({"kind": "ServiceAccount", "name": install::SERVICE_ACCOUNT, "namespace": namespace});
    vec![
        cluster_role(EXTRA, &json!({}), &rules),
        binding(Kind::ClusterRoleBinding, EXTRA, &json!({"name": EXTRA}), Kind::ClusterRole, &subject),
        object(
            Kind::Role,
            &json!({"name": EXTRA, "namespace": namespace}),
            &json!({"rules": in_velero_namespace}),
        ),
        binding(
            Kind::RoleBinding,
            EXTRA,
            &json!({"name": EXTRA, "namespace": namespace}),
            Kind::Role,
            &subject,
        ),
    ]
}

/// What `nacre operator` may do, where it runs: remove copies and download links once the controller is gone that kept
/// them.
fn operators(namespace: &str) -> [Object; 2] {
    let rules = json!([
        rule(Kind::Backup, &WATCHED, &["list", "delete"]),
        // nacre holds copies of schedules.
        rule(Kind::Schedule, &[Kind::Schedule], &["patch"]),
    ]);
    let subject = json!({"kind": "ServiceAccount", "name": install::OPERATOR, "namespace": namespace});
    [
        cluster_role(OPERATORS, &json!({}), &rules),
        binding(
            Kind::ClusterRoleBinding,
            OPERATORS,
            &json!({"name": OPERATORS}),
            Kind::ClusterRole,
            &subject,
        ),
    ]
}

/// What namespace owners may do with Velero's kinds in their namespaces: viewers read copies, admins and editors also
/// ask. A DownloadRequest holds a link to everything that was backed up, Secrets too: it is not for viewers.
fn tenants(aggregate_to: &[UserRole]) -> [Object; 2] {
    let asked = [Kind::Backup, Kind::Restore, Kind::DeleteBackupRequest];
    let links = ["create", "get", "list", "watch"];
    let edit = json!([
        rule(Kind::Backup, &asked, &["create"]),
        // Velero's command line pauses and deletes a schedule by writing to it.
        rule(Kind::Schedule, &[Kind::Schedule], &["create", "update", "patch", "delete"]),
        rule(Kind::Backup, &[Kind::DownloadRequest], &links),
        rule(Kind::Backup, &COPIED, &READ),
    ]);
    let view = json!([rule(Kind::Backup, &COPIED, &READ)]);
    [
        cluster_role("nacre:velero-view:edit", &install::ask_labels(aggregate_to), &edit),
        cluster_role("nacre:velero-view:view", &install::look_labels(aggregate_to), &view),
    ]
}

fn cluster_role(name: &str, labels: &Value, rules: &Value) -> Object {
    object(Kind::ClusterRole, &json!({"name": name, "labels": labels}), &json!({ "rules": rules }))
}

fn binding(kind: Kind, name: &str, metadata: &Value, role: Kind, subject: &Value) -> Object {
    let role = json!({"apiGroup": role.group(), "kind": role.name(), "name": name});
    object(kind, metadata, &json!({"roleRef": role, "subjects": [subject]}))
}

fn object(kind: Kind, metadata: &Value, rest: &Value) -> Object {
    let mut body = rest.clone();
    body["metadata"] = metadata.clone();
    install::marked(kind, body)
}

fn rule(group: Kind, kinds: &[Kind], verbs: &[&str]) -> Value {
    let resources: Vec<_> = kinds.iter().map(|kind| kind.plural()).collect();
    json!({"apiGroups": [group.group()], "resources": resources, "verbs": verbs})
}

#[cfg(test)]
mod tests {
    use super::{UserRole, objects, tenants};
    use crate::velero_view::WATCHED;

    #[test]
    fn viewers_read_copies_and_get_no_links() {
        let [edit, view] = tenants(&UserRole::ALL).map(|role| role.body["rules"].to_string());
        assert!(view.contains("\"backups\"") && !view.contains("downloadrequests"), "{view}");
        assert!(!view.contains("create"), "{view}");
        let rules =
            edit.replace("[\"schedules\"],\"verbs\":[\"create\",\"update\",\"patch\",\"delete\"]", "");
        assert!(!rules.contains("patch") && !rules.contains("delete\""), "{edit}");
        assert!(edit.contains("downloadrequests"));
    }

    #[test]
    fn nacre_may_watch_what_it_watches_and_gets_no_star() {
        let all: String =
            objects("velero", &UserRole::ALL).iter().map(|object| object.body.to_string()).collect();
        assert!(WATCHED.iter().all(|kind| all.contains(&format!("\"{}\"", kind.plural()))));
        assert!(!all.contains("\"*\"") && !all.contains("\"secrets\""));
    }
}

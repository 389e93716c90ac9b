//! What `nacre operator` needs in a cluster: every role the controller will need, and its own. It makes no roles itself, so
//! that it never has to hold the rights it would hand out. It does not bear the mark of the controller's installation: what
//! that mark is on comes and goes with the controller.

use api::Kind;
use serde_json::{Value, json};

use super::program::{CONTROLLER, METRICS};
use super::roles::{LEASE, LEASE_NAMESPACE, roles, rule, status_rule};
use super::settings::Settings;
use super::uninstall::FINALIZERS;
use crate::{Object, dpa_operator};

/// The Deployment, its account, its roles and its lease.
pub const OPERATOR: &str = "nacre-operator";

/// All of it, in an order in which it can be applied. The image is the controller's too.
pub fn operator(settings: &Settings) -> Vec<Object> {
    let namespace = settings.namespace.as_str();
    let mut objects = roles(namespace, &settings.aggregate_to);
    objects.push(object(Kind::ServiceAccount, namespace, json!({})));
    objects.extend(bound(Kind::ClusterRole, "", namespace, &everywhere()));
    objects.extend(bound(Kind::Role, namespace, namespace, &here()));
    let held = json!([named_rule(Kind::Lease, &[LEASE], &["get"])]);
    objects.extend(bound(Kind::Role, LEASE_NAMESPACE, namespace, &held));
    objects.push(deployment(settings));
    objects
}

/// Who else has a controller, and letting go of requests.
fn everywhere() -> Value {
    let held = FINALIZERS.map(|(kind, _)| kind);
    json!([
        rule(&[Kind::DataProtectionApplication], &["list", "watch"]),
        named_rule(Kind::Deployment, &[CONTROLLER], &["get"]),
        rule(&held, &["list", "patch"]),
    ])
}

/// The program's parts, and what is said about the application.
fn here() -> Value {
    let whole = ["get", "create", "patch", "delete"];
    json!([
        rule(&[Kind::Deployment], &["list", "watch"]),
        // Whether there is one may be asked everywhere. They are applied under their names, so nothing else can be made.
        named_rule(Kind::Deployment, &[CONTROLLER], &["create", "patch", "delete"]),
        named_rule(Kind::Deployment, &[dpa_operator::OADP], &["get"]),
        named_rule(Kind::Service, &[METRICS], &whole),
        named_rule(Kind::PodDisruptionBudget, &[CONTROLLER], &whole),
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        status_rule(&[Kind::DataProtectionApplication], &["patch"]),
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
        rule(&[Kind::Lease], &["create"]),
        named_rule(Kind::Lease, &[OPERATOR], &["get", "update"]),
    ])
}

/// What may be done with objects of these names.
fn named_rule(kind: Kind, names: &[&str], verbs: &[&str]) -> Value {
    let mut rule = rule(&[kind], verbs);
    rule["resourceNames"] = json!(names);
    rule
}

/// A role, and the account it is given to.
fn bound(kind: Kind, namespace: &str, account: &str, rules: &Value) -> [Object; 2] {
    let binding = if kind == Kind::Role { Kind::RoleBinding } else { Kind::ClusterRoleBinding };
    let given = json!({
        "roleRef": {"apiGroup": kind.group(), "kind": kind.name(), "name": OPERATOR},
        "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": account}],
    });
    [object(kind, namespace, json!({"rules": rules})), object(binding, namespace, given)]
}

fn deployment(settings: &Settings) -> Object {
    let pods = json!({"control-plane": OPERATOR});
    let restricted = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
    });
    let container = json!({
        "name": OPERATOR, "image": settings.image, "args": ["operator"],
        "env": [
            {"name": "WATCH_NAMESPACE", "value": settings.namespace},
            {"name": "RELATED_IMAGE_NON_ADMIN_CONTROLLER", "value": settings.image},
            {"name": "LOG_LEVEL", "value": settings.log_level.to_string()},
            {"name": "LOG_FORMAT", "value": settings.log_format},
        ],
        "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": "health"}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": settings.resources,
        "securityContext": restricted,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    let body = json!({"spec": {
        "replicas": 1,
        "selector": {"matchLabels": pods},
        "template": {
            "metadata": {"labels": pods},
            "spec": {
                "serviceAccountName": OPERATOR,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
            },
        },
    }});
    object(Kind::Deployment, &settings.namespace, body)
}

fn object(kind: Kind, namespace: &str, mut body: Value) -> Object {
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.name().into();
    body["metadata"] = json!({"name": OPERATOR, "labels": {"app.kubernetes.io/name": OPERATOR}});
    if !namespace.is_empty() {
        body["metadata"]["namespace"] = namespace.into();
    }
    Object { kind, body }
}

#[cfg(test)]
mod tests {
    use api::Kind;

    use super::{OPERATOR, operator};
    use crate::install::{Settings, is_ours};

    #[test]
    fn the_operator_holds_no_rights_over_secrets_roles_or_velero() {
        let all = operator(&Settings::default());
        let own: Vec<_> = all.iter().filter(|one| one.name() == OPERATOR).collect();
        assert!(own.iter().all(|one| !is_ours(one)));
        for role in own.iter().filter(|one| matches!(one.kind, Kind::Role | Kind::ClusterRole)) {
            let text = role.body["rules"].to_string();
            for word in ["secrets", "rbac.authorization", "velero.io", "\"*\"", "escalate", "configmaps"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}

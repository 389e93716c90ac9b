//! Which ClusterRoleBindings give Velero a role in all namespaces, and whether it alone.

use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};

use super::found::Found;
use crate::dedicated::VELERO_ACCOUNT;
use crate::rbac::rules::{Request, reach};
use crate::rbac::subject::Who;

/// How a ClusterRoleBinding gives Velero its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    /// To Velero, and to nobody else.
    Alone,
    /// To Velero by name, and to others.
    WithOthers,
    /// To a group that Velero is in, as every service account of its namespace or of the cluster is.
    InGroup(String),
}

/// What service accounts have on no cluster merely for being one. Kubernetes and OpenShift bind roles to all of them, to
/// discover the API or to ask about oneself: those are in nobody's way.
const MORE_THAN_EVERYBODY: [Request; 10] = [
    request("", "configmaps", "get"),
    request("", "secrets", "get"),
    request("", "configmaps", "create"),
    request("", "pods", "create"),
    request("", "namespaces", "create"),
    request("", "persistentvolumes", "create"),
    request("", "serviceaccounts", "impersonate"),
    request("apps", "deployments", "create"),
    request("rbac.authorization.k8s.io", "clusterrolebindings", "create"),
    request("rbac.authorization.k8s.io", "clusterroles", "bind"),
];

const fn request(group: &'static str, resource: &'static str, verb: &'static str) -> Request {
    Request { group, resource, subresource: "", verb }
}

/// Whether a ClusterRoleBinding gives Velero in this namespace a role, and whether it alone.
pub(crate) fn binds_velero(binding: &Found, roles: &[Found], namespace: &str) -> Option<Wide> {
    let velero = Who::account(namespace, VELERO_ACCOUNT);
    let identity = velero.identity();
    let subjects: Vec<Subject> = serde_json::from_value(binding.body["subjects"].clone()).unwrap_or_default();
    let who: Vec<Who> = subjects.iter().filter_map(|subject| Who::of(subject, "")).collect();
    if who.contains(&velero) {
        return Some(if subjects.len() == 1 { Wide::Alone } else { Wide::WithOthers });
    }
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    let group = who.into_iter().find_map(|one| match one {
        Who::Group(name) if identity.groups.contains(&name) => Some(name),
        _ => None,
    })?;
    let role = binding.body["roleRef"]["name"].as_str().unwrap_or_default();
    (group == of_namespace || is_more_than_everybody_has(role, roles)).then_some(Wide::InGroup(group))
}

fn is_more_than_everybody_has(role: &str, roles: &[Found]) -> bool {
    let found = roles.iter().find(|one| one.name() == role);
    let given = found.map(|found| serde_json::from_value::<Vec<PolicyRule>>(found.body["rules"].clone()));
    // A role that does not exist gives nothing.
    let given = given.and_then(Result::ok).unwrap_or_default();
    given.iter().any(|rule| MORE_THAN_EVERYBODY.iter().any(|request| reach(rule, request).is_some()))
}

#[cfg(test)]
mod tests {
    use api::Kind;
    use serde_json::{Value, json};

    use super::{Wide, binds_velero};
    use crate::Object;

    fn found(role: &str, subjects: &Value) -> Option<Wide> {
        let object = |kind, name: &str, rules: Value| Object {
            kind,
            body: json!({"metadata": {"name": name}, "rules": rules}),
        };
        let gives = |group: &str, resource: &str, verb: &str| json!([{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]);
        let roles = [
            object(Kind::ClusterRole, "cluster-admin", gives("*", "*", "*")),
            object(Kind::ClusterRole, "reader", gives("", "secrets", "get")),
            object(
                Kind::ClusterRole,
                "system:basic-user",
                gives("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
            ),
            object(Kind::ClusterRole, "none", Value::Null),
        ];
        let body = json!({"metadata": {"name": "wide"}, "roleRef": {"name": role}, "subjects": subjects});
        binds_velero(&Object { kind: Kind::ClusterRoleBinding, body }, &roles, "tenants")
    }

    fn group(name: &str) -> Value {
        json!([{"kind": "User", "name": "root"}, {"kind": "Group", "name": name}])
    }

    #[test]
    fn velero_is_known_by_both_its_names() {
        let account = json!({"kind": "ServiceAccount", "name": "velero", "namespace": "tenants"});
        let user = json!({"kind": "User", "name": "system:serviceaccount:tenants:velero"});
        assert_eq!(found("none", &json!([account])), Some(Wide::Alone));
        assert_eq!(found("none", &json!([user])), Some(Wide::Alone));
        assert_eq!(
            found("none", &json!([account, {"kind": "Group", "name": "ops"}])),
            Some(Wide::WithOthers)
        );
        let other = json!({"kind": "ServiceAccount", "name": "velero", "namespace": "velero"});
        assert_eq!(found("cluster-admin", &json!([other])), None);
        assert_eq!(found("cluster-admin", &Value::Null), None);
    }

    #[test]
    fn velero_has_what_every_service_account_has() {
        for name in ["system:serviceaccounts:tenants", "system:serviceaccounts", "system:authenticated"] {
            let in_group = Some(Wide::InGroup(name.to_owned()));
            assert_eq!(found("cluster-admin", &group(name)), in_group);
            assert_eq!(found("reader", &group(name)), in_group);
        }
        for name in ["system:serviceaccounts:shop", "system:masters", "system:unauthenticated"] {
            assert_eq!(found("cluster-admin", &group(name)), None, "{name}");
        }
    }

    #[test]
    fn what_kubernetes_itself_gives_everybody_is_in_nobodys_way() {
        for role in ["system:basic-user", "none", "absent"] {
            assert_eq!(found(role, &group("system:authenticated")), None, "{role}");
        }
    }
}

//! What nacre needs on OADP beyond the role that OADP ships for the Go controller: computed from nacre's own roles and that
//! role, so that it is never more than the difference. Each part has the consequence of leaving it out.

use std::sync::LazyLock;

use api::Kind;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::roles::{EDITORS, LEASE_NAMESPACE, roles};
use super::{UserRole, definitions, marked};
use crate::{Object, records};

/// The name of the extra roles and their bindings.
pub const EXTRAS: &str = "nacre-oadp";

/// The rules of OADP's role for its controller.
const OADP_ROLE: &str = include_str!("oadp-role.yaml");

/// What does not work without ConfigMaps in Velero's namespace.
static CONFIG_MAPS: LazyLock<String> = LazyLock::new(|| {
    let others = [
        "there is no policy but that of the DataProtectionApplication",
        "nothing is adopted",
        "restores from tenants' own storage are refused",
        "requests that name a ConfigMap for tenants are refused",
        "emptyDir volumes are saved like claims",
    ];
    let all: Vec<&str> = others.into_iter().chain(records::ALL.map(|record| record.missing)).collect();
    all.join(", ")
});

/// A permission that OADP's role leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it is needed: a namespace, or empty for all.
    pub namespace: String,
    /// The API group.
    pub group: String,
    /// The resource, with its subresource.
    pub resource: String,
    /// The objects it is limited to; none for all.
    pub names: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

/// Which verbs OADP's role has for a resource, in all namespaces.
fn oadp_grants(group: &str, resource: &str) -> Vec<String> {
    static RULES: LazyLock<Vec<PolicyRule>> =
        LazyLock::new(|| serde_saphyr::from_str(OADP_ROLE).unwrap_or_default());
    let names = |list: &Option<Vec<String>>, name: &str| list.iter().flatten().any(|one| one == name);
    let about = |rule: &&PolicyRule| names(&rule.api_groups, group) && names(&rule.resources, resource);
    RULES.iter().filter(about).flat_map(|rule| rule.verbs.clone()).collect()
}

/// Everything that OADP's role leaves out, with Velero in this namespace.
pub fn gaps(namespace: &str) -> Vec<Gap> {
    let own = roles(namespace, &[]).into_iter().filter(|object| object.name() == "nacre");
    let own = own.filter(|object| matches!(object.kind, Kind::ClusterRole | Kind::Role));
    own.flat_map(|role| {
        let rules = role.body["rules"].as_array().cloned().unwrap_or_default();
        rules.iter().flat_map(|rule| gaps_of(role.namespace(), rule)).collect::<Vec<_>>()
    })
    .collect()
}

fn gaps_of(namespace: &str, rule: &Value) -> Vec<Gap> {
    let words = |field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = words("apiGroups").concat();
    let resources = words("resources").into_iter();
    let found = resources.map(|resource| {
        let granted = oadp_grants(&group, &resource);
        let verbs = words("verbs").into_iter().filter(|verb| !granted.contains(verb)).collect();
        let (namespace, group) = (namespace.to_owned(), group.clone());
        Gap { namespace, group, resource, names: words("resourceNames"), verbs }
    });
    found.filter(|gap| !gap.verbs.is_empty()).collect()
}

impl Gap {
    /// What does not work without it.
    pub fn without(&self) -> &'static str {
        match self.resource.as_str() {
            "events" => "tenants get no Events, and read conditions only",
            "configmaps" if self.namespace == LEASE_NAMESPACE => {
                "nacre does not look after live-migration permissions"
            }
            "configmaps" => CONFIG_MAPS.as_str(),
            "leases" => "the record of the leader is in a Secret, and a new leader starts 10 s later",
            "serverstatusrequests" => {
                "nacre does not know Velero's version, so backups in tenants' storage are not imported. With it they are \
                 from Velero 1.18.3 on"
            }
            "volumesnapshotlocations" => "tenants bring storage although Velero can delete native snapshots",
            "dataprotectionapplications" => {
                "changes of the DataProtectionApplication are seen after five seconds"
            }
            "persistentvolumeclaims" | "persistentvolumes" | "daemonsets" => {
                "it is not known whether the data of volumes is saved or restored (DataProtected, DataRestored)"
            }
            "pods" | "podvolumebackups" | "podvolumerestores" | "datauploads" | "datadownloads" => {
                "volume operations that cannot end are not cancelled, and hold up every tenant"
            }
            "pods/log" => "locations do not show which backups in them were refused",
            "storageclasses" | "volumesnapshotclasses" => {
                "claims are never saved by CSI snapshots by default"
            }
            "subjectaccessreviews" => "permissions of requesters are not checked",
            "validatingadmissionpolicies" | "validatingadmissionpolicybindings" => {
                "pods do not come back from tenants' own storage"
            }
            "validatingwebhookconfigurations" => {
                "a bad request is stored first, and refused by its condition"
            }
            "mutatingwebhookconfigurations" => "before Kubernetes 1.36 nobody records who asks",
            "nonadminschedules" | "nonadminschedules/status" => "there are no schedules",
            "schedules" => "schedules of the Go controller are not taken over",
            _ => "",
        }
    }

    fn rule(&self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": self.verbs});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

/// The extra roles, bound to the service account that nacre runs as, and what OADP does not ship of nacre's kinds: schedules,
/// and the roles by which namespace owners use them.
pub fn extras(namespace: &str, account: &str, aggregate_to: &[UserRole]) -> Vec<Object> {
    let schedules = Kind::NonAdminSchedule.plural();
    let mut objects: Vec<Object> =
        definitions().into_iter().filter(|object| object.name().starts_with(schedules)).collect();
    let gaps = gaps(namespace);
    for place in ["", namespace, LEASE_NAMESPACE] {
        let rules: Vec<Value> = gaps.iter().filter(|gap| gap.namespace == place).map(Gap::rule).collect();
        objects.extend(bound(place, namespace, account, &rules));
    }
    let theirs = roles(namespace, aggregate_to).into_iter();
    objects.extend(theirs.filter(|object| object.name().starts_with("nacre:") || object.name() == EDITORS));
    objects
}

fn bound(place: &str, namespace: &str, account: &str, rules: &[Value]) -> [Object; 2] {
    let (role, binding) = if place.is_empty() {
        (Kind::ClusterRole, Kind::ClusterRoleBinding)
    } else {
        (Kind::Role, Kind::RoleBinding)
    };
    let mut metadata = json!({"name": EXTRAS});
    if !place.is_empty() {
        metadata["namespace"] = place.into();
    }
    let given = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": role.group(), "kind": role.name(), "name": EXTRAS},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    [marked(role, json!({"metadata": metadata, "rules": rules})), marked(binding, given)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::VOLUME_POLICY;
    use crate::restore;

    /// With OADP's role and the extras, nacre has all that its own roles give.
    #[test]
    fn together_with_oadps_role_nothing_is_missing() {
        let gaps = gaps("openshift-adp");
        for role in roles("openshift-adp", &[]).iter().filter(|object| object.name() == "nacre") {
            for rule in role.body["rules"].as_array().into_iter().flatten() {
                for resource in rule["resources"].as_array().unwrap() {
                    let (group, resource) =
                        (rule["apiGroups"][0].as_str().unwrap(), resource.as_str().unwrap());
                    for verb in rule["verbs"].as_array().unwrap().iter().filter_map(|verb| verb.as_str()) {
                        let extra = gaps.iter().any(|gap| {
                            gap.namespace == role.namespace()
                                && (gap.group.as_str(), gap.resource.as_str()) == (group, resource)
                                && gap.verbs.iter().any(|one| one == verb)
                        });
                        assert!(
                            oadp_grants(group, resource).contains(&verb.to_owned()) != extra,
                            "{verb} {resource}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn oadps_role_is_read() {
        assert_eq!(oadp_grants("velero.io", "backupstoragelocations/status"), ["get", "patch", "update"]);
        assert_eq!(oadp_grants("", "namespaces"), ["get", "list", "watch"]);
        assert_eq!(oadp_grants("", "configmaps"), [""; 0]);
    }

    #[test]
    fn every_gap_has_a_consequence() {
        let gaps = gaps("openshift-adp");
        assert!(gaps.len() > 15, "{gaps:#?}");
        let silent: Vec<_> = gaps.iter().filter(|gap| gap.without().is_empty()).collect();
        assert!(silent.is_empty(), "{silent:#?}");
    }

    /// `doctor` and the guide name what each ConfigMap of nacre's own is for.
    #[test]
    fn the_loss_of_each_config_map_is_named() {
        let guide = include_str!("../../../../docs/admin-guide.md");
        let row =
            guide.lines().find(|line| line.starts_with("| ConfigMaps in Velero's namespace |")).unwrap();
        let row = row.to_lowercase().replace('`', "");
        for loss in CONFIG_MAPS.split(", ") {
            assert!(row.contains(&loss.to_lowercase()), "not in docs/admin-guide.md: {loss}");
        }
        // Each that nacre may write is one of these, a modifier of restores, or the volume policy.
        let role = roles("openshift-adp", &[]).into_iter().find(|object| {
            object.kind == Kind::Role && object.name() == "nacre" && object.namespace() == "openshift-adp"
        });
        let rules = role.unwrap().body["rules"].clone();
        let own = rules.as_array().unwrap().iter().filter(|rule| rule["resources"] == json!(["configmaps"]));
        let own: Vec<&str> = own
            .flat_map(|rule| rule["resourceNames"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        let is_named = |name: &str| {
            restore::MODIFIERS.contains(&name)
                || name == VOLUME_POLICY
                || records::ALL.iter().any(|record| record.name == name)
        };
        let silent: Vec<_> = own.iter().filter(|name| !is_named(name)).collect();
        assert!(own.len() > 5 && silent.is_empty(), "{own:?}: {silent:?}");
    }

    #[test]
    fn the_extras_are_for_that_installation_and_give_no_secret() {
        let objects = extras("openshift-adp", "somebody", &UserRole::ALL);
        for object in objects.iter().filter(|object| object.kind == Kind::RoleBinding) {
            assert_eq!(object.body["subjects"][0]["namespace"], "openshift-adp");
            assert_eq!(object.body["subjects"][0]["name"], "somebody");
        }
        let own: Vec<_> = objects.iter().filter(|object| object.name() == EXTRAS).collect();
        assert_eq!(own.len(), 6);
        let text = json!(own.iter().map(|object| &object.body).collect::<Vec<_>>()).to_string();
        assert!(
            !text.contains("\"secrets\"") && !text.contains("\"*\"") && !text.contains("\"velero\""),
            "{text}"
        );
        assert!(objects.iter().any(|object| object.kind == Kind::CustomResourceDefinition));
    }
}

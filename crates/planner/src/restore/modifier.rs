//! nacre's own resource modifier for restores from storage that a tenant can write to: the last fence before an
//! object is made.
//!
//! Velero brings back more than its filters say: an annotation on a claim in the tarball makes it fetch the claim's
//! volume although cluster-scoped objects are left out, and plugins pull in what they like. Whatever is fetched goes
//! through the modifier, though. So the modifier turns what must never come back into a kind that does not exist,
//! which Velero reports as an error and does not make.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use serde_json::{Value, json};

use super::Observed;
use crate::policy::FromTenantStorage;
use crate::{Action, config_map};

const KEY: &str = "modifiers.yaml";

/// What must never come back from storage that a tenant can write to, in Velero's patterns: a star ends at a dot, two
/// do not. Admission refuses the same.
pub(crate) const NEVER: [&str; 25] = [
    "persistentvolumes",
    "namespaces",
    "nodes",
    "resourcequotas",
    "limitranges",
    "podtemplates",
    "networkpolicies.**",
    // Where traffic goes: by these a Service would lead into other namespaces.
    "endpoints",
    "endpointslices.**",
    "egressfirewalls.**",
    "network-attachment-definitions.**",
    "priorityclasses.**",
    "*.rbac.authorization.k8s.io",
    "*.admissionregistration.k8s.io",
    "*.apiregistration.k8s.io",
    "*.apiextensions.k8s.io",
    "*.certificates.k8s.io",
    "*.storage.k8s.io",
    "*.snapshot.storage.k8s.io",
    "*.groupsnapshot.storage.k8s.io",
    "*.security.openshift.io",
    "*.oadp.openshift.io",
    "*.velero.io",
    "virtualmachineinstancemigrations.kubevirt.io",
    "virtualmachinecluster*.**",
];

/// What the ConfigMaps are called: without pods, and with them.
pub const MODIFIERS: [&str; 2] =
    ["nacre-restore-from-tenant-storage", "nacre-restore-from-tenant-storage-pods"];

/// What the ConfigMap is called that goes with a policy.
pub(super) fn name(policy: &FromTenantStorage) -> &'static str {
    MODIFIERS[usize::from(policy.pods_come_back())]
}

/// How a Restore refers to it.
pub(super) fn reference(policy: &FromTenantStorage) -> TypedLocalObjectReference {
    config_map::reference(name(policy))
}

/// The write that makes the ConfigMap what it must be, if it is not.
pub(super) fn ensure(seen: &Observed, policy: &FromTenantStorage) -> Option<Action> {
    let text = rules(policy).to_string();
    config_map::ensure(
        &seen.admin_namespace,
        name(policy),
        config_map::single(KEY, text),
        seen.modifier.as_deref(),
    )
}

/// The rules, in JSON, which is YAML.
fn rules(policy: &FromTenantStorage) -> Value {
    let patch = |of: &str, patch: &Value| {
        // Velero reads the patch as text within the text.
        json!({"conditions": {"groupResource": of}, "mergePatches": [{"patchData": patch.to_string()}]})
    };
    // A volume of that name may be gone, or somebody else's.
    let unbound = json!({"spec": {"volumeName": null}});
    // An annotation would bring back a status, such as the address a service says it has.
    let no_status = json!({"metadata": {"annotations": {"velero.io/restore-status": null}}});
    // That patch leaves empty annotations where there were none, and Velero would report each unchanged object as
    // different from its backup. Velero compares conditions with the object as it was before any patch.
    let mut none_added = patch("**", &json!({"metadata": {"annotations": null}}));
    none_added["conditions"]["matches"] = json!([{"path": "/metadata/annotations", "value": "null"}]);
    let refused = json!({"kind": "RefusedByNacre"});
    let mut rules = vec![patch("persistentvolumeclaims", &unbound), patch("**", &no_status), none_added];
    rules.extend(NEVER.iter().map(|of| patch(of, &refused)));
    if !policy.pods_come_back() {
        rules.push(patch("pods", &refused));
    }
    json!({"version": "v1", "resourceModifierRules": rules})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KEY, name, rules};
    use crate::config_map::{config_map, single};
    use crate::policy::{FromTenantStorage, TenantPods};

    #[test]
    fn claims_let_go_of_their_volumes_and_pods_pass_only_where_the_policy_lets_them() {
        let closed = FromTenantStorage::default();
        let open = FromTenantStorage { pods: TenantPods::Baseline, ..FromTenantStorage::default() };
        assert_ne!(name(&closed), name(&open));
        let of_pods = |policy| rules(policy).to_string().contains(r#""conditions":{"groupResource":"pods"}"#);
        assert!(of_pods(&closed) && !of_pods(&open));
        let map = config_map("velero", name(&closed), single(KEY, rules(&closed).to_string()));
        assert_eq!(map.data.map(|data| data.len()), Some(1), "Velero takes one key and no other");
        assert_eq!(
            rules(&closed)["resourceModifierRules"][0]["mergePatches"][0]["patchData"],
            r#"{"spec":{"volumeName":null}}"#
        );
    }

    #[test]
    fn annotations_are_removed_only_from_what_had_none() {
        let rules = rules(&FromTenantStorage::default());
        let conditions: Vec<_> = rules["resourceModifierRules"].as_array().unwrap().iter().collect();
        let status = conditions.iter().position(|rule| rule.to_string().contains("restore-status")).unwrap();
        assert!(conditions[status]["conditions"].get("matches").is_none(), "whatever its value is");
        let tidied = &conditions[status + 1];
        assert_eq!(
            tidied["conditions"]["matches"],
            json!([{"path": "/metadata/annotations", "value": "null"}]),
            "a text in Velero's type"
        );
        assert_eq!(tidied["mergePatches"][0]["patchData"], r#"{"metadata":{"annotations":null}}"#);
    }
}

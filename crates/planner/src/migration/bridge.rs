//! The bridge: temporary roles that keep what `admin` and `edit` could do while an upgrade takes it from KubeVirt's own.
//!
//! There are two, because `edit` never could delete a whole collection: one role for both would give it more than it had. They carry
//! no `managed-by` label, since KubeVirt's operator deletes whatever carries its own and is not on its list.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::core::ObjectMeta;

use super::roles::{AGGREGATE, lost_by_admin, lost_by_edit};

/// What seed 002 calls it; keeps `admin`.
pub const NAME: &str = "kubevirt.io:upgrademigrate";
/// Keeps `edit`.
pub const EDIT_NAME: &str = "kubevirt.io:upgrademigrate-edit";

/// Both of them.
pub fn roles() -> [ClusterRole; 2] {
    [
        bridge(EDIT_NAME, "edit", lost_by_edit()),
        bridge(NAME, "admin", lost_by_admin()),
    ]
}

fn bridge(name: &str, role: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(format!("{AGGREGATE}{role}"), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        rules: Some(rules),
        aggregation_rule: None,
    }
}

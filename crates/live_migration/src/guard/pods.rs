//! Pods that machines run in. Deleting or evicting the right one ends or starts a migration without any right to migrate.

use k8s_openapi::{
    api::admissionregistration::v1::ValidatingAdmissionPolicy,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

use super::cel::{MAY_DELETE_PODS, MAY_EVICT};
use planner::vap::{
    Draft,
    cel::{LEAVING, at},
};

/// Set by KubeVirt on the pod a migration goes to.
const TARGET: &str = "kubevirt.io/migrationJobUID";

/// G4: evicting a machine makes KubeVirt migrate it ahead of all others, so that is for drainers. An eviction shows only the name of
/// the pod, but KubeVirt gives no other names.
pub(super) fn evictions() -> ValidatingAdmissionPolicy {
    Draft::over("nacre-migration-evictions", &["CREATE"], &[("", &["pods/eviction"])])
        .only_if("a-machine", "request.name.startsWith('virt-launcher-')")
        .with(LEAVING.0, LEAVING.1)
        .demand(
            format!("variables.leaving || {MAY_EVICT}"),
            "evicting a machine's pod starts a migration of the highest priority: that takes the right to evict pods in all namespaces",
        )
        .done()
}

/// G8: the pod a migration goes to is for those who may delete pods anywhere, such as KubeVirt, nodes and Kubernetes' own controllers.
pub(super) fn targets() -> ValidatingAdmissionPolicy {
    let labelled = LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: TARGET.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        }]),
        match_labels: None,
    };
    let value = |map: &str| format!("('{TARGET}' in variables.{map} ? variables.{map}['{TARGET}'] : '')");
    Draft::over("nacre-migration-target-pods", &["UPDATE", "DELETE"], &[("", &["pods"])])
        .labelled(labelled)
        .with(LEAVING.0, LEAVING.1)
        .with("labels", at("object", &["metadata", "labels"], "{}"))
        .with("old_labels", at("oldObject", &["metadata", "labels"], "{}"))
        .demand(
            format!("request.operation != 'DELETE' || variables.leaving || {MAY_DELETE_PODS}"),
            "a migration has gone to this pod: stop or restart the machine instead of deleting it",
        )
        .demand(
            format!(
                "request.operation != 'UPDATE' || {} == {} || {MAY_DELETE_PODS}",
                value("labels"),
                value("old_labels")
            ),
            "the label that ties this pod to a migration is KubeVirt's",
        )
        .done()
}

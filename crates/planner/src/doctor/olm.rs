//! The roles that OLM makes for owners of namespaces: for each CRD that an operator brings, one for each of `admin`, `edit`
//! and `view`. OLM puts back whatever somebody changes in them, their labels included.

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt as _;
use serde_json::json;

/// What the label begins with by which an operator group selects such a role. The kind and the user's role follow.
const AGGREGATE: &str = "olm.opgroup.permissions/aggregate-to-";
/// Set to `false`, Kubernetes does not put the aggregation rule of its own roles back when an API server starts.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The label that only this role of OLM's has, and OLM's role for the CRD itself; nothing for a role that OLM did not make.
pub(super) fn label(role: &ClusterRole) -> Option<&str> {
    let found = role.labels().iter().find(|(key, value)| key.starts_with(AGGREGATE) && *value == "true");
    found.map(|(key, _)| key.as_str())
}

/// The command after which a role of Kubernetes' no longer includes these of OLM's, whatever OLM does.
pub(super) fn leave_out(of: &ClusterRole, roles: &[&ClusterRole]) -> String {
    let mut rule = of.aggregation_rule.clone().unwrap_or_default();
    for selector in rule.cluster_role_selectors.iter_mut().flatten() {
        let without = roles.iter().filter_map(|role| label(role)).map(|label| LabelSelectorRequirement {
            key: label.to_owned(),
            operator: "DoesNotExist".to_owned(),
            values: None,
        });
        selector.match_expressions.get_or_insert_default().extend(without);
    }
    let patch = json!({"metadata": {"annotations": {AUTOUPDATE: "false"}}, "aggregationRule": rule});
    format!("kubectl patch clusterrole {} --type=merge -p '{patch}'", of.name_any())
}

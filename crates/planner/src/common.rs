//! Rules that hold for backups and restores alike.

use api::labels;
use k8s_openapi::api::core::v1::{ConfigMap, TypedLocalObjectReference};

use crate::Refusal;
use crate::ownership::label;

/// Refuses a hook whose selector of namespaces names another than the own one.
pub(crate) fn hook_elsewhere(
    path: &str,
    included: Option<&[String]>,
    excluded: Option<&[String]>,
    namespace: &str,
) -> Option<Refusal> {
    let named = [("includedNamespaces", included), ("excludedNamespaces", excluded)];
    let elsewhere = |names: Option<&[String]>| names.into_iter().flatten().any(|name| name != namespace);
    let (list, _) = named.into_iter().find(|(_, names)| elsewhere(*names))?;
    let message = format!("may only name {namespace:?}, the namespace of this object; leave the field out");
    Some(Refusal::new(format!("{path}.{list}"), message))
}

/// Refuses a ConfigMap of the administrators that is not marked for tenants. The same words whether it is missing or just
/// not marked: names in there are nobody's business.
pub(crate) fn config_map_not_for_tenants(
    field: String,
    named: Option<&TypedLocalObjectReference>,
    found: Option<&ConfigMap>,
) -> Option<Refusal> {
    let usable = found.and_then(|map| label(&map.metadata, labels::TENANT_USABLE)) == Some("true");
    let fine = named?.kind.eq_ignore_ascii_case("configmap") && usable;
    let message =
        "must be a ConfigMap that the administrators have marked for tenants; ask them for its name";
    (!fine).then(|| Refusal::new(field, message))
}

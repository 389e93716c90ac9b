//! Words and phrases that the policies share.

/// Whether the caller is infrastructure.
pub(super) const INFRASTRUCTURE: &str = "authorizer.group('kubevirt.io').resource('virtualmachineinstancemigrations').check('administer').allowed()";
/// Whether the caller could bind the right to migrate anywhere.
pub(super) const MAY_BIND: &str = "authorizer.group('rbac.authorization.k8s.io').resource('clusterroles')\
                                   .name('kubevirt.io:migrate').check('bind').allowed()";
/// Whether the caller may evict any pod.
pub(super) const MAY_EVICT: &str =
    "authorizer.group('').resource('pods').subresource('eviction').check('create').allowed()";
/// Whether the caller may delete any pod.
pub(super) const MAY_DELETE_PODS: &str = "authorizer.group('').resource('pods').check('delete').allowed()";

/// Whether the namespace is going away, when nothing in it is worth defending and nothing may hold it up. This is known to validations,
/// but not to match conditions: there the namespace is always null.
pub(super) const LEAVING: (&str, &str) =
    ("leaving", "namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)");

/// A field deep in an object, or a default if any step of the way is missing or null.
pub(super) fn at(object: &str, path: &[&str], default: &str) -> String {
    let mut way = object.to_owned();
    let mut steps = vec![format!("{object} != null")];
    for field in path {
        steps.push(format!("has({way}.{field})"));
        way = format!("{way}.{field}");
        steps.push(format!("dyn({way}) != null"));
    }
    format!("{} ? {way} : {default}", steps.join(" && "))
}

/// Whether every reserved key of the one map is in the other with the same value.
pub(super) fn carried_over(from: &str, to: &str, reserved: &str) -> String {
    format!("{from}.all(key, !({reserved}) || (key in {to} && {to}[key] == {from}[key]))")
}

/// A list of words.
pub(super) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    format!("[{}]", quoted.join(", "))
}

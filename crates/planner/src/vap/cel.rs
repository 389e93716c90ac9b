//! CEL expressions that policies share.

/// Whether the namespace is being deleted, when nothing in it needs protection and nothing may block it. This is known
/// to validations, but not to match conditions: there the namespace is always null.
pub const LEAVING: (&str, &str) =
    ("leaving", "namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)");

/// A field deep in an object, or a default if any step of the way is missing or null.
pub fn at(object: &str, path: &[&str], default: &str) -> String {
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
pub fn carried_over(from: &str, to: &str, reserved: &str) -> String {
    format!("{from}.all(key, !({reserved}) || (key in {to} && {to}[key] == {from}[key]))")
}

/// A list of words.
pub fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    format!("[{}]", quoted.join(", "))
}

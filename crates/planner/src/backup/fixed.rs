//! Fields of a backup that the administrators set, for whoever may not read the policy: a dry run warns of them.

use serde_json::Value;

use crate::Policy;

/// What stands between the field and its value.
const SET: &str = ": the administrators set this to ";
const PATH: &str = "spec.backupSpec.";
/// The API server cuts longer warnings.
const LONGEST: usize = 150;

/// A warning for each field that the policy sets.
pub fn warnings(policy: &Policy) -> Vec<String> {
    let enforced = serde_json::to_value(&policy.backup.enforce).unwrap_or_default();
    let fields = enforced.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let warning = |(field, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let cut: String = value.chars().take(LONGEST).collect();
        let more = if cut.len() < value.len() { " and more" } else { "" };
        format!("{PATH}{field}{SET}{cut}{more}")
    };
    fields.map(warning).collect()
}

/// The field and its value in such a warning; none in any other.
pub fn read(warning: &str) -> Option<(&str, &str)> {
    warning.strip_prefix(PATH)?.split_once(SET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::examine;

    #[test]
    fn what_is_written_can_be_read() {
        let text = "backup: { enforce: { ttl: 48h, snapshotMoveData: true, includedResources: [a, b] } }";
        let policies = examine(text).policies.unwrap();
        let written = warnings(policies.base());
        assert_eq!(
            written.iter().filter_map(|warning| read(warning)).collect::<Vec<_>>(),
            [("includedResources", r#"["a","b"]"#), ("snapshotMoveData", "true"), ("ttl", "48h")]
        );
        assert!(warnings(&Policy::default()).is_empty());
        assert_eq!(read("spec.backupSpec.ttl: too long"), None);
        let long = format!("backup: {{ enforce: {{ datamover: {} }} }}", "é".repeat(300));
        let long = warnings(examine(&long).policies.unwrap().base()).remove(0);
        assert!(long.ends_with("é and more") && long.chars().count() < 256, "{long}");
    }
}

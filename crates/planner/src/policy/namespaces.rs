//! Which namespaces may make requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cluster's own namespaces. They are closed whatever the policy says: a list of an administrator's own is meant
/// to close more, not to open these.
const SYSTEM: [&str; 2] = ["kube-*", "openshift-*"];

/// Which namespaces may make requests. A star stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespacePolicy {
    /// At least one of these must fit the namespace's name.
    pub included: Vec<String>,
    /// None of these may fit it.
    pub excluded: Vec<String>,
}

impl Default for NamespacePolicy {
    fn default() -> Self {
        Self { included: vec!["*".to_owned()], excluded: SYSTEM.map(str::to_owned).to_vec() }
    }
}

impl NamespacePolicy {
    /// Whether a namespace of this name may make requests.
    pub fn allows(&self, namespace: &str) -> bool {
        self.why_closed(namespace, "").is_none()
    }

    /// Why a namespace of this name may not make requests, as the end of a sentence; none if it may. The administrators'
    /// namespace never may.
    pub fn why_closed(&self, namespace: &str, admin_namespace: &str) -> Option<&'static str> {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, namespace));
        if namespace == admin_namespace {
            Some("it is Velero's own; use a namespace of your own")
        } else if SYSTEM.iter().any(|pattern| matches(pattern, namespace)) {
            Some("it is one of the cluster's own (kube-*, openshift-*); use a namespace of your own")
        } else if !fits(&self.included) || fits(&self.excluded) {
            Some("the administrators' policy leaves it out")
        } else {
            None
        }
    }
}

/// Whether `text` fits `pattern`, where a star stands for any run of characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{NamespacePolicy, matches};

    #[test]
    fn system_namespaces_are_left_out_by_default() {
        let policy = NamespacePolicy::default();
        assert!(policy.allows("shop"));
        assert!(!policy.allows("kube-system"));
        assert!(!policy.allows("openshift-adp"));
        assert!(policy.allows("my-kube-shop"));
    }

    #[test]
    fn a_list_of_ones_own_does_not_open_them() {
        let policy = NamespacePolicy { included: vec!["*".to_owned()], excluded: vec!["test-*".to_owned()] };
        assert!(policy.allows("shop"));
        assert!(!policy.allows("test-1"));
        assert!(!policy.allows("kube-system"));
        let named = NamespacePolicy { included: vec!["kube-system".to_owned()], excluded: Vec::new() };
        assert!(!named.allows("kube-system"));
    }

    #[test]
    fn a_closed_namespace_says_who_closed_it() {
        let policy = NamespacePolicy { included: vec!["*".to_owned()], excluded: vec!["test-*".to_owned()] };
        let why = |namespace| policy.why_closed(namespace, "velero").unwrap_or_default();
        assert_eq!(why("shop"), "");
        assert!(why("velero").starts_with("it is Velero's own"), "{}", why("velero"));
        assert!(why("kube-system").contains("kube-*") && !why("kube-system").contains("policy"));
        assert_eq!(why("test-1"), "the administrators' policy leaves it out");
    }

    #[test]
    fn a_star_stands_for_any_run() {
        assert!(matches("team-*-prod", "team-a-b-prod"));
        assert!(!matches("team-*-prod", "team-prod"));
        assert!(matches("*", ""));
        assert!(matches("shop", "shop") && !matches("shop", "shops") && !matches("shop", "sho"));
        assert!(matches("a*a", "aa") && !matches("a*a", "a"));
    }
}

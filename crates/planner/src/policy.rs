//! What an administrator allows. Where it is read from is not this module's business.

use api::Duration;
use api::velero::{BackupSpec, RestoreSpec};

/// What an administrator allows; whatever is not said is not limited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Of backups.
    pub backup: BackupPolicy,
    /// Of restores.
    pub restore: RestorePolicy,
    /// Which namespaces may ask for anything at all.
    pub namespaces: NamespacePolicy,
}

/// What is allowed of backups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackupPolicy {
    /// Filled in where the user says nothing.
    pub defaults: BackupSpec,
    /// Filled in where the user says nothing, and refused where the user says otherwise.
    pub enforce: BackupSpec,
    /// The shortest and the longest time a backup may be kept.
    pub ttl: Bounds,
    /// How many backups a namespace may have in Velero at a time.
    pub max_per_namespace: Option<usize>,
    /// How many of them may be unfinished.
    pub max_active_per_namespace: Option<usize>,
    /// Whether specs may have hooks.
    pub forbid_hooks: bool,
}

/// What is allowed of restores.
#[derive(Clone, Debug, PartialEq)]
pub struct RestorePolicy {
    /// Filled in where the user says nothing, and refused where the user says otherwise.
    pub enforce: RestoreSpec,
    /// Whether specs may have hooks.
    pub forbid_hooks: bool,
    /// What never comes back from the cluster's own storage, as group-resources.
    pub excluded_from_platform_storage: Vec<String>,
}

/// The shortest and the longest that is allowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The shortest.
    pub min: Option<Duration>,
    /// The longest.
    pub max: Option<Duration>,
}

/// Which namespaces may ask for anything at all. A star stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacePolicy {
    /// At least one of these must fit.
    pub included: Vec<String>,
    /// None of these may fit.
    pub excluded: Vec<String>,
}

impl Default for RestorePolicy {
    fn default() -> Self {
        Self {
            enforce: RestoreSpec::default(),
            forbid_hooks: false,
            // Guard rails that namespace owners may only read must not come back older than they are.
            excluded_from_platform_storage: vec!["resourcequotas".to_owned(), "limitranges".to_owned()],
        }
    }
}

impl Default for NamespacePolicy {
    fn default() -> Self {
        Self { included: vec!["*".to_owned()], excluded: vec!["kube-*".to_owned(), "openshift-*".to_owned()] }
    }
}

impl NamespacePolicy {
    /// Whether a namespace of this name may ask.
    pub fn allows(&self, namespace: &str) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, namespace));
        fits(&self.included) && !fits(&self.excluded)
    }
}

/// Whether `text` fits `pattern`, where a star stands for any run of characters.
fn matches(pattern: &str, text: &str) -> bool {
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
    fn a_star_stands_for_any_run() {
        assert!(matches("team-*-prod", "team-a-b-prod"));
        assert!(!matches("team-*-prod", "team-prod"));
        assert!(matches("*", ""));
        assert!(matches("shop", "shop") && !matches("shop", "shops") && !matches("shop", "sho"));
        assert!(matches("a*a", "aa") && !matches("a*a", "a"));
    }
}

//! Tables of keys, each with what becomes of it and why: the code reads them, and so does the administrators' guide.

/// How a key is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHandling {
    /// Checked, and passed on to Velero.
    Kept,
    /// Allowed, but not passed on to Velero.
    Ignored,
    /// Refused.
    Refused,
}

/// One key of a credential file or of a location's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// As it is spelled.
    pub key: &'static str,
    /// How it is handled.
    pub verdict: KeyHandling,
    /// What it does, as the end of a sentence that begins with the key; after a semicolon, what to use instead.
    pub why: &'static str,
}

impl Rule {
    /// Why the key is refused and what to do instead, as the end of a sentence.
    pub(super) fn advice(&self) -> String {
        if self.why.contains(';') { self.why.to_owned() } else { format!("{}; take it out", self.why) }
    }
}

pub(super) const fn allowed_key(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: KeyHandling::Kept, why }
}

pub(super) const fn ignored_key(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: KeyHandling::Ignored, why }
}

pub(super) const fn refused(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: KeyHandling::Refused, why }
}

/// The rule about a key, if there is one.
pub(super) fn find(table: &'static [Rule], key: &str) -> Option<&'static Rule> {
    table.iter().find(|rule| rule.key == key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::location::{config, credentials};

    #[test]
    fn no_key_has_two_rules_and_every_rule_a_reason() {
        for (name, table) in credentials::TABLES.iter().chain(config::TABLES) {
            let keys: BTreeSet<_> = table.iter().map(|rule| rule.key).collect();
            assert_eq!(keys.len(), table.len(), "{name}");
            for rule in *table {
                assert!(rule.why.len() > 10 && !rule.why.ends_with('.'), "{name}: {}", rule.key);
            }
        }
    }
}

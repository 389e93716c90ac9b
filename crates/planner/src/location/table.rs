//! Tables of keys, each with what becomes of it and why: the code reads them, and so does the administrators' guide.

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is checked and handed to Velero.
    Kept,
    /// It may stand there, and is left out of what Velero gets.
    Dropped,
    /// Whoever writes it is told to take it out.
    Refused,
}

/// One key of a credential file or of a location's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// As it is spelled.
    pub key: &'static str,
    /// What becomes of it.
    pub verdict: Verdict,
    /// What it does, as the end of a sentence that begins with the key; after a semicolon, what to use instead.
    pub why: &'static str,
}

impl Rule {
    /// Why the key is refused and what to do instead, as the end of a sentence.
    pub(super) fn advice(&self) -> String {
        if self.why.contains(';') { self.why.to_owned() } else { format!("{}; take it out", self.why) }
    }
}

pub(super) const fn kept(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: Verdict::Kept, why }
}

pub(super) const fn dropped(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: Verdict::Dropped, why }
}

pub(super) const fn refused(key: &'static str, why: &'static str) -> Rule {
    Rule { key, verdict: Verdict::Refused, why }
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

//! Why a credential is refused, without any of its values.

use std::fmt;

use super::super::table::Rule;

/// Why a credential is refused: where, which key, and what is wrong with it. Never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRefusal {
    /// The line, counted from one.
    pub line: Option<usize>,
    /// The key, if it is certainly not a misplaced value.
    pub key: Option<String>,
    /// What is wrong and what would do, as the end of a sentence.
    pub why: String,
}

impl CredentialRefusal {
    /// Refuses the file as a whole.
    pub(super) fn whole(why: impl Into<String>) -> Self {
        Self { line: None, key: None, why: why.into() }
    }

    /// Refuses a line that is not about a key.
    pub(super) fn line(line: usize, why: impl Into<String>) -> Self {
        Self { line: Some(line), key: None, why: why.into() }
    }

    /// Refuses a key that is known.
    pub(super) fn key(line: Option<usize>, key: &str, why: impl Into<String>) -> Self {
        Self { line, key: Some(key.to_owned()), why: why.into() }
    }

    /// Refuses a key for what the table says of it.
    pub(super) fn ruled(line: Option<usize>, rule: &Rule) -> Self {
        Self::key(line, rule.key, rule.advice())
    }

    /// Refuses an unknown key. It is named only if it looks like a key: a line that lacks its key begins with the
    /// secret, and a secret often ends in an equals sign.
    pub(super) fn unknown(line: Option<usize>, key: &str) -> Self {
        let letters = key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase())
            || key.bytes().all(|b| b == b'_' || b.is_ascii_uppercase());
        let reported = letters && key.contains('_') && key.len() <= 40;
        if reported {
            return Self::key(line, key, "is not a key that nacre knows; take it out");
        }
        Self { line, key: None, why: "holds a key that nacre does not know; take it out".to_owned() }
    }
}

impl fmt::Display for CredentialRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.key) {
            (Some(line), Some(key)) => write!(f, "line {line}: {key} {}", self.why),
            (Some(line), None) => write!(f, "line {line} {}", self.why),
            (None, Some(key)) => write!(f, "{key} {}", self.why),
            (None, None) => write!(f, "the file {}", self.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CredentialRefusal;

    #[test]
    fn a_secret_in_the_place_of_a_key_is_not_told() {
        for secret in ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "hunter", "MINIO", "a_b-c", "with_digit_1"]
        {
            assert_eq!(CredentialRefusal::unknown(Some(1), secret).key, None, "{secret}");
        }
        let typo = CredentialRefusal::unknown(Some(3), "aws_secret_key");
        assert_eq!(typo.to_string(), "line 3: aws_secret_key is not a key that nacre knows; take it out");
    }
}

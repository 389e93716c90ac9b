//! Problems of a policy: position, field, what is wrong, and what would be accepted.

use std::fmt;

/// Where in a text something is, counted from 1 as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// Whether a policy with this problem is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Invalid.
    Error,
    /// Valid, but probably not what was meant.
    Warning,
}

/// Which of the two sources contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The ConfigMap, or a file that shall become one.
    ConfigMap,
    /// The DataProtectionApplication.
    DataProtectionApplication,
}

/// One thing that is wrong with a policy: where, what, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The source that contains it.
    pub source: Source,
    /// Where in the text, if it is in a text.
    pub position: Option<Position>,
    /// The field, as a path from the top.
    pub path: String,
    /// Whether the policy can be used in spite of it.
    pub severity: Severity,
    /// What is wrong and what would do.
    pub message: String,
}

impl Problem {
    /// Whether the policy cannot be used because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigMap => "ConfigMap",
            Self::DataProtectionApplication => "DataProtectionApplication",
        })
    }
}

/// As compilers do it: `3:5: warning: backup.ttl: what is wrong`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column }) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

//! Refusals.

use std::fmt;

/// Why a request is refused: the field, what is wrong with it, and what would be accepted. Never the value of a
/// secret, never another tenant's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field, as a path from the top of the object.
    pub field: String,
    /// What is wrong and what would do.
    pub message: String,
}

impl Refusal {
    /// Refuses because of this field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The request alone would do; what the administrators add to it does not go with it.
    #[must_use]
    pub(crate) fn together(self) -> Self {
        Self { message: format!("together with what the administrators add: {}", self.message), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

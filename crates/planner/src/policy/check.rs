//! For people who write policies: what is wrong with one, and what one looks like.

use super::problem::Problem;
use super::{Policy, yaml};

/// All that is wrong with a policy, in the order of the text; nothing if it is fine. What the cluster's
/// DataProtectionApplication says is not looked at.
pub fn check(text: &str) -> Vec<Problem> {
    yaml::parse(text).1
}

/// A policy as it would be written. Reading it gives the same policy.
pub fn render(policy: &Policy) -> String {
    serde_saphyr::to_string(policy)
        .unwrap_or_else(|error| format!("# this policy cannot be shown: {error}\n"))
}

//! What happens to requests whose requester lacks permissions.

use std::time::Duration as Wait;

use api::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;
use super::problem::Severity::Error;
use super::rules::{Finding, finding};

/// What happens to requests whose requester lacks permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequesterPolicy {
    /// Whether permissions of requesters are checked.
    pub mode: RequesterMode,
    /// The same for requests of which nobody recorded who asked, and never stricter than mode: older ones, and those made
    /// while nacre's webhook was down on clusters before Kubernetes 1.36.
    pub unrecorded: RequesterMode,
    /// What happens to a request of which the requester may not have all.
    pub not_permitted: NotPermitted,
    /// How long a record of who asked is good for; 0 means without limit.
    pub max_age: Duration,
    /// Whether Roles and RoleBindings come back from the administrators' storage for everybody.
    pub roles_from_platform_storage: bool,
    /// Further extra fields of users that are recorded, by their keys, for authorizers that decide by them. Whoever may
    /// read a request can read them.
    pub extra: Vec<String>,
}

/// Whether permissions of requesters are checked, from strict to lenient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequesterMode {
    /// What a requester may not have is left out or refused.
    #[default]
    Enforce,
    /// It is only reported.
    Warn,
    /// Nothing is checked.
    Ignore,
}

/// What happens to a request of which the requester may not have all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NotPermitted {
    /// What the requester may not have is left out, and named.
    #[default]
    LeaveOut,
    /// The request is refused.
    Refuse,
}

/// Who may have the data of a backup deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeleteBy {
    /// Whoever may delete the NonAdminBackup.
    #[default]
    Anyone,
    /// Of those, only who asked for the backup.
    Own,
}

impl Default for RequesterPolicy {
    fn default() -> Self {
        Self {
            mode: RequesterMode::default(),
            // Nothing that worked before stops working.
            unrecorded: RequesterMode::Ignore,
            not_permitted: NotPermitted::default(),
            max_age: Duration::from("2160h"),
            roles_from_platform_storage: false,
            extra: Vec::new(),
        }
    }
}

impl RequesterPolicy {
    /// How long a record of who asked is good for; none without limit.
    pub fn max_age(&self) -> Option<Wait> {
        self.max_age.to_std().filter(|limit| !limit.is_zero())
    }
}

/// The most keys of extra fields: each is looked up whenever somebody asks.
const MOST_KEYS: usize = 20;

/// What makes no sense in what a policy says about requesters.
pub(super) fn problems(policy: &Policy) -> Vec<Finding> {
    let extra = &policy.requester.extra;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._/".contains(c);
    let odd = |key: &&String| key.is_empty() || !key.chars().all(plain);
    let odd = extra.iter().find(odd).map(|key| {
        format!(
            "has {key:?}; a key is of small letters, digits, dashes, dots and slashes, as in example.com/team"
        )
    });
    let many =
        (extra.len() > MOST_KEYS).then(|| format!("has {} keys; {MOST_KEYS} are the most", extra.len()));
    odd.into_iter().chain(many).map(|message| finding(Error, "requester.extra", message)).collect()
}

//! What happens to requests whose requester lacks permissions.

use std::time::Duration as Wait;

use api::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        }
    }
}

impl RequesterPolicy {
    /// How long a record of who asked is good for; none without limit.
    pub fn max_age(&self) -> Option<Wait> {
        self.max_age.to_std().filter(|limit| !limit.is_zero())
    }
}

//! Refusals, and whether a request that is not accepted is refused or only waits.

use std::fmt;

use api::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::policy::AtLimit;

/// What has to happen before a request that is not accepted can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealedBy {
    /// Somebody has to change the request, or the administrators their policy: it is refused.
    Spec,
    /// Another object has to appear or change; the request then starts by itself.
    OtherObject,
    /// A limit has to be free again; the request then starts by itself.
    Limit,
    /// The API server has to accept a write that nacre retries.
    Retry,
}

impl HealedBy {
    /// Whether the request waits and starts by itself; otherwise it is refused.
    pub const fn is_waiting(self) -> bool {
        !matches!(self, Self::Spec)
    }
}

/// What would heal a request with this condition; none if the condition reports nothing wrong, or something final.
///
/// This is the one place that answers "waiting or refused?", for the controller, the Velero view and the CLI. The CLI
/// has nothing but the status. Where the condition's reason alone does not decide, because released clients know only
/// one reason for both, the fixed end of the message does: `Refusal` writes that end, and nobody else.
pub fn healed_by(condition: &Condition) -> Option<HealedBy> {
    if condition.status != "False" {
        return None;
    }
    match (condition.type_.as_str(), condition.reason.as_str()) {
        (condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED)
        | (condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR)
        | (condition::ACCEPTED, condition::HAND_OVER_FAILED) => Some(HealedBy::Retry),
        (condition::ACCEPTED, condition::VELERO_BACKUP_NOT_FOUND | condition::VELERO_RESTORE_NOT_FOUND) => {
            None
        }
        (condition::ACCEPTED, condition::NAMESPACE_LIMIT_REACHED) => {
            let refused = Frees::ALL.iter().any(|frees| condition.message.ends_with(frees.then_again()));
            Some(if refused { HealedBy::Spec } else { HealedBy::Limit })
        }
        // Roles and bindings are objects too.
        (
            condition::ACCEPTED,
            condition::POLICY_UNAVAILABLE
            | condition::NAMESPACE_NOT_SEEN
            | condition::REQUESTER_NOT_PERMITTED,
        ) => Some(HealedBy::OtherObject),
        (condition::ACCEPTED, _) => Some(by_message(&condition.message)),
        _ => Some(HealedBy::Spec),
    }
}

/// The same from a refusal's message. A name that a tenant chose is never at its end.
fn by_message(message: &str) -> HealedBy {
    let starts = |noun: &str| {
        message
            .rsplit_once("; ")
            .is_some_and(|(_, end)| StartsWhen::ALL.iter().any(|when| when.of(noun) == end))
    };
    if starts(BACKUP) || starts(RESTORE) || message.ends_with(GOES_ON) {
        HealedBy::OtherObject
    } else if Frees::ALL.iter().any(|frees| message.ends_with(frees.by_itself())) {
        HealedBy::Limit
    } else {
        HealedBy::Spec
    }
}

/// The noun of a backup in its own messages.
pub(crate) const BACKUP: &str = "backup";
/// The noun of a restore in its own messages.
pub(crate) const RESTORE: &str = "restore";
/// The end of the message of a location that waits for another object.
const GOES_ON: &str = ", and the location goes on by itself";

/// What makes a limit of a namespace allow a request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frees {
    /// Another one is deleted.
    Deletion,
    /// Another one is finished.
    End,
    /// The next day, in UTC.
    NextDay,
}

impl Frees {
    const ALL: [Self; 3] = [Self::Deletion, Self::End, Self::NextDay];

    /// How the message ends.
    pub(crate) const fn end(self, then: AtLimit) -> &'static str {
        match then {
            AtLimit::Wait => self.by_itself(),
            AtLimit::Refuse => self.then_again(),
        }
    }

    /// The end of the message of a request that waits for it.
    const fn by_itself(self) -> &'static str {
        match self {
            Self::Deletion => "; delete one to make room",
            Self::End => "; this one starts when one of them is done",
            Self::NextDay => "; this one starts after midnight UTC",
        }
    }

    /// The end of the message of a request that is refused.
    const fn then_again(self) -> &'static str {
        match self {
            Self::Deletion => "; delete one, then create this one again",
            Self::End => "; create this one again when one of them is done",
            Self::NextDay => "; create this one again after midnight UTC",
        }
    }
}

/// How the message ends of a backup or restore that waits for another object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartsWhen {
    /// When Velero can reach it.
    Can,
    /// When Velero has it, or has reported it.
    Has,
    /// When it is what the message says it is not.
    Is,
    /// When it is there and ready.
    IsReady,
}

impl StartsWhen {
    const ALL: [Self; 4] = [Self::Can, Self::Has, Self::Is, Self::IsReady];

    fn of(self, noun: &str) -> String {
        let when = match self {
            Self::Can => "it can",
            Self::Has => "it has",
            Self::Is => "it is",
            Self::IsReady => "it is ready",
        };
        format!("the {noun} starts when {when}")
    }
}

/// Why a request is refused: the field, what is wrong with it, and what would be accepted. Never the value of a
/// secret, never another tenant's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field, as a path from the top of the object.
    pub field: String,
    /// What is wrong and what would do.
    pub message: String,
    /// Set only here, with the message that goes with it.
    healed_by: HealedBy,
}

impl Refusal {
    /// Refuses because of this field, until it or the policy is changed.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), healed_by: HealedBy::Spec }
    }

    /// Lets a backup or restore wait for the object that this field names.
    pub(crate) fn until(
        field: impl Into<String>,
        message: impl fmt::Display,
        noun: &str,
        when: StartsWhen,
    ) -> Self {
        let message = format!("{message}; {}", when.of(noun));
        Self { healed_by: HealedBy::OtherObject, ..Self::new(field, message) }
    }

    /// Lets a location wait for the object that this field names.
    pub(crate) fn goes_on(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { healed_by: HealedBy::OtherObject, ..Self::new(field, format!("{message}{GOES_ON}")) }
    }

    /// Lets a request wait until one object less counts for a limit.
    pub(crate) fn over_limit(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::at_limit(field, message, Frees::Deletion, AtLimit::Wait)
    }

    /// Lets a request wait until a limit allows it, or refuses it.
    pub(crate) fn at_limit(
        field: impl Into<String>,
        message: impl fmt::Display,
        frees: Frees,
        then: AtLimit,
    ) -> Self {
        let healed_by = match then {
            AtLimit::Wait => HealedBy::Limit,
            AtLimit::Refuse => HealedBy::Spec,
        };
        Self { healed_by, ..Self::new(field, format!("{message}{}", frees.end(then))) }
    }

    /// What would heal it.
    pub const fn healed_by(&self) -> HealedBy {
        self.healed_by
    }

    /// The request alone would do; what the administrators add to it does not go with it.
    #[must_use]
    pub(crate) fn together(self) -> Self {
        Self { message: format!("together with what the administrators add: {}", self.message), ..self }
    }

    /// The same refusal of a spec that is a part of another object: its fields have another path there.
    #[must_use]
    pub(crate) fn moved(self, path: &str, to: &str) -> Self {
        Self { field: self.field.replacen(path, to, 1), ..self }
    }

    /// The message of the condition that reports it, from which `healed_by` reads the same answer again.
    pub(crate) fn condition_message(&self) -> String {
        let message = self.to_string();
        debug_assert_eq!(by_message(&message), self.healed_by, "{message}");
        message
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;

//! Cancelling volume operations that cannot end.

use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use serde_json::json;

use super::operation::Operation;
use super::stuck::{Check, Owner, check};
use crate::policy::VolumePolicy;
use crate::state::State;
use crate::{Action, Event, Plan, RejectedWrite};

/// How long Velero may take to obey before nacre writes the final phase. In phase Accepted Velero takes five minutes.
const OBEYS_WITHIN: Duration = Duration::from_mins(6);
/// The same once a node agent has begun to cancel it: that takes seconds, unless the pod that moves the data missed it.
const CANCELS_WITHIN: Duration = Duration::from_mins(1);
/// How long to wait between two looks at an operation that Velero should be cancelling.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How the message of a cancelled operation begins.
pub(crate) const BY_NACRE: &str = "cancelled by nacre: ";
/// The reason of the Event.
const CANCELLED: &str = "VolumeCancelled";

/// Who can cancel a volume operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Velero {
    /// Whether it is known that no node agent runs.
    pub without_agent: bool,
    /// Velero's version, for example `v1.18.3`; none if it is unknown.
    pub version: Option<String>,
}

impl Velero {
    /// As it was last seen.
    pub fn of(view: &State) -> Self {
        Self { without_agent: view.node_agent_is_missing(), version: view.velero_version() }
    }

    /// Whether Velero knows `spec.cancel` and the phase `Canceled` of such an operation: before 1.17 PodVolumeBackups and
    /// PodVolumeRestores have neither. None if Velero's version is unknown.
    fn can_cancel(&self, kind: Kind) -> Option<bool> {
        if !matches!(kind, Kind::PodVolumeBackup | Kind::PodVolumeRestore) {
            return Some(true);
        }
        let (major, rest) = self.version.as_deref()?.trim_start_matches('v').split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?) >= (1, 17))
    }
}

/// What is to be done about the volume operations of one Velero Backup or Restore.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cancelling {
    /// The writes, and why.
    pub actions: Vec<(Action, String)>,
    /// When to look again at the latest.
    pub look_again: Option<Duration>,
}

impl Cancelling {
    /// Adds the writes to a plan, at its end: one that is rejected must not keep the status from being written. While
    /// the API server rejects them, they are left out of every second plan.
    pub(crate) fn add_to(self, mut plan: Plan, rejected_write: Option<&RejectedWrite>) -> Plan {
        let volume = |kind| {
            matches!(
                kind,
                Kind::PodVolumeBackup | Kind::PodVolumeRestore | Kind::DataUpload | Kind::DataDownload
            )
        };
        if !rejected_write.is_some_and(|rejected_write| volume(rejected_write.kind)) {
            for (action, why) in self.actions {
                let note = format!("{} {}: {why}", action.key().kind.name(), action.key().name);
                plan = plan.then(action).with_event(Event::warning(CANCELLED, note));
            }
        }
        match self.look_again {
            Some(after) => plan.requeue_after(after),
            None => plan,
        }
    }
}

/// Cancels what cannot end.
pub fn cancel(
    operations: &[Operation],
    owner: &Owner,
    limits: &VolumePolicy,
    velero: &Velero,
    now: Timestamp,
) -> Cancelling {
    let (mut actions, mut soonest) = (Vec::new(), None::<Duration>);
    let mut look_again = |after: Duration| soonest = Some(soonest.map_or(after, |other| other.min(after)));
    for operation in operations {
        match check(operation, owner, limits, now) {
            Check::Over => {}
            Check::GoesOn(after) => after.into_iter().for_each(&mut look_again),
            Check::Stuck(stuck) => {
                let why = format!("{BY_NACRE}{}", stuck.why());
                actions.extend(write(operation, &why, velero, now).map(|action| (action, why)));
                look_again(LOOK_AGAIN);
            }
        }
    }
    Cancelling { actions, look_again: soonest }
}

/// The write that ends an operation, if there is one to do now. Velero's CRDs for volumes have no status subresource,
/// so one write takes both, and Velero keeps the message.
fn write(operation: &Operation, message: &str, velero: &Velero, now: Timestamp) -> Option<Action> {
    let kind = operation.target.kind;
    let can_cancel = velero.can_cancel(kind);
    // The API server drops a field that the CRD does not have, and keeps the message of the same write.
    let by_nacre = |message: &String| message.starts_with(BY_NACRE);
    let was_dropped = !operation.is_cancelling && operation.message.as_ref().is_some_and(by_nacre);
    let too_old = can_cancel.map_or(was_dropped, |can_cancel| !can_cancel);
    let obeys = || {
        let asked = operation.cancelling_since.unwrap_or(now);
        let limit = if operation.phase == "Canceling" { CANCELS_WITHIN } else { OBEYS_WITHIN };
        Duration::try_from(now.duration_since(asked)).unwrap_or_default() < limit
    };
    if velero.without_agent || too_old || (operation.is_cancelling && !obeys()) {
        // Every version knows this one.
        let phase = if can_cancel == Some(true) { "Canceled" } else { "Failed" };
        let status = json!({"phase": phase, "message": message, "completionTimestamp": now_in_seconds(now)});
        let body = if too_old {
            json!({ "status": status })
        } else {
            json!({"spec": {"cancel": true}, "status": status})
        };
        return Some(Action::Patch(operation.target.clone(), body));
    }
    (!operation.is_cancelling).then(|| {
        let body = json!({"spec": {"cancel": true}, "status": {"message": message}});
        Action::Patch(operation.target.clone(), body)
    })
}

/// Kubernetes writes times in whole seconds.
pub(crate) fn now_in_seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

//! What the statuses of all kinds share, and the Events of backups and restores.

use api::velero::{BackupStatus, RestoreStatus};
use api::{NonAdminBackupStatus, NonAdminRestoreStatus, QueueInfo, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use serde_json::{Value, json};

use crate::queue::{self, Stage, stage};
use crate::{Action, Event, Target, merge};

/// The status patch, if the status changes.
pub(crate) fn status<S: Serialize>(target: Target, found: Option<&S>, wanted: &S) -> Option<Action> {
    let value = |status: &S| serde_json::to_value(status).unwrap_or(Value::Null);
    let found = found.map_or_else(|| json!({}), value);
    let change = merge::diff(&found, &value(wanted))?;
    Some(Action::PatchStatus(target, json!({ "status": change })))
}

/// A status with a queue position.
pub(crate) trait Placed: Clone + PartialEq {
    /// The place.
    fn queue_info(&mut self) -> &mut Option<QueueInfo>;
    /// The conditions, of which one is about the place.
    fn conditions(&mut self) -> &mut Vec<Condition>;
}

impl Placed for NonAdminBackupStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

impl Placed for NonAdminRestoreStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

/// Whether only the queue position changed, and not to "next", "running" or "done".
pub(crate) fn only_position_changed<S: Placed>(found: &S, wanted: &S) -> bool {
    let (mut found, mut wanted) = (found.clone(), wanted.clone());
    let places = (found.queue_info().take(), wanted.queue_info().take());
    let waits = |info: Option<QueueInfo>| info.is_some_and(|info| info.estimated_queue_position > 1);
    let reason = |status: &mut S| {
        let turn = condition::get(status.conditions(), condition::WAITING_FOR_TURN);
        let reason = turn.map(|turn| turn.reason.clone());
        condition::remove(status.conditions(), condition::WAITING_FOR_TURN);
        reason
    };
    if reason(&mut found) != reason(&mut wanted) {
        return false;
    }
    waits(places.0) && waits(places.1) && found == wanted
}

/// The queue position to show, which never rises.
pub(crate) fn position(shown: Option<&QueueInfo>, position: i64) -> QueueInfo {
    let shown = shown.map(|info| info.estimated_queue_position);
    QueueInfo { estimated_queue_position: queue::never_rising(shown, position), ..QueueInfo::default() }
}

/// The status fields that Velero's Backup and Restore share.
pub(crate) trait VeleroStatus: Clone + PartialEq {
    /// Its stage or phase.
    fn phase(&self) -> Option<&str>;
    /// When it ended.
    fn ended(&self) -> Option<&Time>;
    /// The times in it.
    fn times(&mut self) -> Vec<&mut Option<Time>>;
    /// Velero's failure messages.
    fn reasons(&self) -> Vec<&str>;
}

macro_rules! velero_status {
    ($status:ty, $($time:ident),+) => {
        impl VeleroStatus for $status {
            fn phase(&self) -> Option<&str> {
                self.phase.as_deref()
            }

            fn ended(&self) -> Option<&Time> {
                self.completion_timestamp.as_ref()
            }

            fn times(&mut self) -> Vec<&mut Option<Time>> {
                vec![$(&mut self.$time),+]
            }

            fn reasons(&self) -> Vec<&str> {
                let errors = self.validation_errors.iter().flatten().map(String::as_str);
                self.failure_reason.as_deref().into_iter().chain(errors).collect()
            }
        }
    };
}

velero_status!(BackupStatus, expiration, start_timestamp, completion_timestamp);
velero_status!(RestoreStatus, start_timestamp, completion_timestamp);

/// Keeps the old status if only timestamps changed: Velero rewrites them, and that alone is not worth a write.
pub(crate) fn ignore_time_only_changes<S: VeleroStatus>(before: Option<S>, now: Option<&S>) -> Option<S> {
    let now = now?.clone();
    let Some(mut before) = before else { return Some(now) };
    let mut alike = now.clone();
    for (new, old) in alike.times().into_iter().zip(before.times()) {
        if new.is_some() && old.is_some() {
            new.clone_from(old);
        }
    }
    Some(if alike == before { before } else { now })
}

/// The reasons of the Events of a request's lifecycle in Velero.
pub(crate) struct EventReasons {
    pub(crate) what: &'static str,
    pub(crate) scheduled: &'static str,
    pub(crate) started: &'static str,
    pub(crate) completed: &'static str,
    pub(crate) failed: &'static str,
}

impl EventReasons {
    /// The Velero object was created.
    pub(crate) fn handed_over(&self, name: &str, requester: Option<&str>) -> Event {
        let by = requester.map_or_else(String::new, |user| format!(", asked for by {user:?}"));
        Event::normal(self.scheduled, format!("Velero was given the {} as {name}{by}", self.what))
    }

    /// The Event for a change of Velero's phase, if there is one.
    pub(crate) fn news<S: VeleroStatus>(&self, before: Option<&S>, now: Option<&S>) -> Option<Event> {
        let stage = |velero_status: &S| Some(stage(velero_status.phase()?, velero_status.ended().is_some()));
        let (before, now) = (before.and_then(stage), now?);
        let (what, phase, stage) = (self.what, now.phase()?, stage(now)?);
        let had_begun = matches!(before, Some(Stage::Running | Stage::Finalizing));
        match stage {
            _ if before == Some(stage) => None,
            Stage::Running | Stage::Finalizing if !had_begun => {
                Some(Event::normal(self.started, format!("Velero has started the {what}")))
            }
            Stage::Waiting | Stage::Running | Stage::Finalizing => None,
            Stage::Finished if phase == "Completed" => {
                Some(Event::normal(self.completed, format!("the {what} is complete")))
            }
            Stage::Finished if phase == "Deleting" => None,
            Stage::Finished => {
                let mut note = format!("Velero ended the {what} as {phase}");
                for (at, reason) in now.reasons().into_iter().enumerate() {
                    note.push_str(if at == 0 { ": " } else { "; " });
                    note.push_str(reason);
                }
                Some(Event::warning(self.failed, note))
            }
        }
    }
}

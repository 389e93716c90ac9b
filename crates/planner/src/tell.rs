//! What the statuses of all kinds share, and the stories of backups and restores.

use api::velero::{BackupStatus, RestoreStatus};
use api::{NonAdminBackupStatus, NonAdminRestoreStatus, QueueInfo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde_json::{Value, json};

use crate::queue::{self, Stage, stage};
use crate::{Action, Event, Target, merge};

/// The write that makes a status so, if it is not already.
pub(crate) fn status<S: Serialize>(target: Target, found: Option<&S>, wanted: &S) -> Option<Action> {
    let value = |status: &S| serde_json::to_value(status).unwrap_or(Value::Null);
    let found = found.map_or_else(|| json!({}), value);
    let change = merge::diff(&found, &value(wanted))?;
    Some(Action::PatchStatus(target, json!({ "status": change })))
}

/// A status with a place in a queue.
pub(crate) trait Placed: Clone + PartialEq {
    /// The place.
    fn queue_info(&mut self) -> &mut Option<QueueInfo>;
}

impl Placed for NonAdminBackupStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }
}

impl Placed for NonAdminRestoreStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }
}

/// Whether nothing is new but that others ahead of it have come or gone. Being next, running or done is always news.
pub(crate) fn only_waits_elsewhere<S: Placed>(found: &S, wanted: &S) -> bool {
    let (mut found, mut wanted) = (found.clone(), wanted.clone());
    let places = (found.queue_info().take(), wanted.queue_info().take());
    let waits = |info: Option<QueueInfo>| info.is_some_and(|info| info.estimated_queue_position > 1);
    waits(places.0) && waits(places.1) && found == wanted
}

/// The place to show where another may have been shown before.
pub(crate) fn position(shown: Option<QueueInfo>, position: i64) -> QueueInfo {
    let shown = shown.map(|info| info.estimated_queue_position);
    QueueInfo { estimated_queue_position: queue::kept(shown, position) }
}

/// What Velero says of a Backup and of a Restore alike.
pub(crate) trait Said: Clone + PartialEq {
    /// Where it stands.
    fn phase(&self) -> Option<&str>;
    /// When it ended.
    fn ended(&self) -> Option<&Time>;
    /// The times in it.
    fn times(&mut self) -> Vec<&mut Option<Time>>;
    /// Why it ended badly, in Velero's words.
    fn reasons(&self) -> Vec<&str>;
}

macro_rules! said {
    ($status:ty, $($time:ident),+) => {
        impl Said for $status {
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

said!(BackupStatus, expiration, start_timestamp, completion_timestamp);
said!(RestoreStatus, start_timestamp, completion_timestamp);

/// Velero rewrites times; a change of those alone is not worth a write.
pub(crate) fn steady<S: Said>(before: Option<S>, now: Option<&S>) -> Option<S> {
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

/// The words in which Events tell what becomes of a request at Velero.
pub(crate) struct Story {
    pub(crate) what: &'static str,
    pub(crate) scheduled: &'static str,
    pub(crate) started: &'static str,
    pub(crate) completed: &'static str,
    pub(crate) failed: &'static str,
}

impl Story {
    /// Velero has it now.
    pub(crate) fn handed_over(&self, name: &str) -> Event {
        Event::normal(self.scheduled, format!("Velero was given the {} as {name}", self.what))
    }

    /// What Velero says now and did not say before.
    pub(crate) fn news<S: Said>(&self, before: Option<&S>, now: Option<&S>) -> Option<Event> {
        let stage = |said: &S| Some(stage(said.phase()?, said.ended().is_some()));
        let (before, now) = (before.and_then(stage), now?);
        let (what, phase, stage) = (self.what, now.phase()?, stage(now)?);
        let had_begun = matches!(before, Some(Stage::Running | Stage::Aside));
        match stage {
            _ if before == Some(stage) => None,
            Stage::Running | Stage::Aside if !had_begun => {
                Some(Event::normal(self.started, format!("Velero has started the {what}")))
            }
            Stage::Waiting | Stage::Running | Stage::Aside => None,
            Stage::Over if phase == "Completed" => {
                Some(Event::normal(self.completed, format!("the {what} is complete")))
            }
            Stage::Over if phase == "Deleting" => None,
            Stage::Over => {
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

//! Where a backup or a restore stands, in words. What holds for both is said once.

use api::{
    NonAdminBackup, NonAdminRestore, Phase,
    condition::{self, HAND_OVER_FAILED, NAMESPACE_LIMIT_REACHED, POLICY_UNAVAILABLE},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::ObjectMeta;
use planner::{
    last_good,
    queue::{Stage, stage},
    restore::STARTS_BY_ITSELF,
};

use crate::{
    output::Outcome,
    style,
    table::Cell,
    words::{count, span},
};

/// A backup or a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Backup,
    Restore,
}

impl What {
    /// As it stands on the command line and in sentences.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Restore => "restore",
        }
    }
}

/// What is known of a backup or restore, whichever it is.
#[derive(Clone, Debug)]
pub(crate) struct Story<'a> {
    pub(crate) what: What,
    pub(crate) meta: &'a ObjectMeta,
    pub(crate) phase: Option<Phase>,
    pub(crate) conditions: &'a [Condition],
    /// Its place in Velero's queue: 0 when over, 1 when running or next.
    pub(crate) position: Option<i64>,
    /// Somebody asked for it to go, with its data or without.
    pub(crate) leaving: bool,
    pub(crate) velero: Velero<'a>,
}

/// What Velero says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Velero<'a> {
    pub(crate) phase: &'a str,
    pub(crate) done: Option<i64>,
    pub(crate) total: Option<i64>,
    /// Nothing was backed up or restored.
    pub(crate) empty: bool,
    pub(crate) warnings: i64,
    pub(crate) errors: i64,
    pub(crate) failure: Option<&'a str>,
    pub(crate) validation_errors: &'a [String],
    pub(crate) started: Option<Timestamp>,
    pub(crate) completed: Option<Timestamp>,
    pub(crate) expires: Option<Timestamp>,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State<'a> {
    /// nacre has not looked at it yet.
    New,
    /// Refused, and why. It is looked at again when what it depends on changes.
    Refused(&'a str),
    /// Fine, but it has to wait for room or for the administrators.
    Waiting(&'a str),
    /// Velero had it and has it no more.
    Gone(&'a str),
    /// Velero has it, with so many ahead.
    Queued(i64),
    /// Velero is at work.
    Running,
    /// Velero waits for volume data, or ties up loose ends.
    Finishing,
    /// It is over.
    Over(End),
    /// It is on its way out.
    Leaving(&'a str),
}

/// How Velero ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// Completed, with nothing done: Velero calls that a success too.
    Empty,
    PartiallyFailed,
    Failed,
}

fn moment(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

impl<'a> From<&'a NonAdminBackup> for Story<'a> {
    fn from(backup: &'a NonAdminBackup) -> Self {
        let status = backup.status.as_ref();
        let said = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        let progress = said.and_then(|said| said.progress.as_ref());
        Self {
            what: What::Backup,
            meta: &backup.metadata,
            phase: status.and_then(|status| status.phase),
            conditions: status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
            position: status.and_then(|status| Some(status.queue_info?.estimated_queue_position)),
            leaving: backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true),
            velero: said.map_or_else(Velero::default, |said| Velero {
                phase: said.phase.as_deref().unwrap_or_default(),
                done: progress.and_then(|progress| progress.items_backed_up),
                total: progress.and_then(|progress| progress.total_items),
                empty: last_good::is_empty(said),
                warnings: said.warnings.unwrap_or_default(),
                errors: said.errors.unwrap_or_default(),
                failure: said.failure_reason.as_deref(),
                validation_errors: said.validation_errors.as_deref().unwrap_or_default(),
                started: moment(said.start_timestamp.as_ref()),
                completed: moment(said.completion_timestamp.as_ref()),
                expires: moment(said.expiration.as_ref()),
            }),
        }
    }
}

impl<'a> From<&'a NonAdminRestore> for Story<'a> {
    fn from(restore: &'a NonAdminRestore) -> Self {
        let status = restore.status.as_ref();
        let said = status.and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
        let progress = said.and_then(|said| said.progress.as_ref());
        Self {
            what: What::Restore,
            meta: &restore.metadata,
            phase: status.and_then(|status| status.phase),
            conditions: status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
            position: status.and_then(|status| Some(status.queue_info?.estimated_queue_position)),
            leaving: restore.metadata.deletion_timestamp.is_some(),
            velero: said.map_or_else(Velero::default, |said| Velero {
                phase: said.phase.as_deref().unwrap_or_default(),
                done: progress.and_then(|progress| progress.items_restored),
                total: progress.and_then(|progress| progress.total_items),
                // Velero omits a count of zero.
                empty: progress.and_then(|progress| progress.items_restored).unwrap_or_default() <= 0,
                warnings: said.warnings.unwrap_or_default(),
                errors: said.errors.unwrap_or_default(),
                failure: said.failure_reason.as_deref(),
                validation_errors: said.validation_errors.as_deref().unwrap_or_default(),
                started: moment(said.start_timestamp.as_ref()),
                completed: moment(said.completion_timestamp.as_ref()),
                expires: None,
            }),
        }
    }
}

impl<'a> Story<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// Where it stands.
    pub(crate) fn state(&self) -> State<'a> {
        if self.leaving || self.phase == Some(Phase::Deleting) {
            let deleting = condition::get(self.conditions, condition::DELETING);
            return State::Leaving(deleting.map_or("", |deleting| deleting.message.as_str()));
        }
        match self.phase {
            None | Some(Phase::New) => State::New,
            Some(Phase::BackingOff) => self.refused(),
            Some(Phase::Created | Phase::Deleting) => self.at_velero(),
        }
    }

    fn refused(&self) -> State<'a> {
        let Some(accepted) = condition::get(self.conditions, condition::ACCEPTED) else {
            return State::Refused("");
        };
        match accepted.reason.as_str() {
            NAMESPACE_LIMIT_REACHED | POLICY_UNAVAILABLE | HAND_OVER_FAILED => {
                State::Waiting(&accepted.message)
            }
            condition::VELERO_BACKUP_NOT_FOUND | condition::VELERO_RESTORE_NOT_FOUND => {
                State::Gone(&accepted.message)
            }
            _ if accepted.message.contains(STARTS_BY_ITSELF) => State::Waiting(&accepted.message),
            _ => State::Refused(&accepted.message),
        }
    }

    fn at_velero(&self) -> State<'a> {
        let Velero { phase, completed, .. } = &self.velero;
        match (stage(phase, completed.is_some()), *phase) {
            (Stage::Waiting, _) => State::Queued(self.position.unwrap_or(1).max(1) - 1),
            (Stage::Running, "InProgress") => State::Running,
            (Stage::Running | Stage::Aside, _) => State::Finishing,
            (Stage::Over, "Completed") if self.velero.empty => State::Over(End::Empty),
            (Stage::Over, "Completed") => State::Over(End::Completed),
            (Stage::Over, "PartiallyFailed") => State::Over(End::PartiallyFailed),
            (Stage::Over, "Deleting") => State::Leaving("Velero is deleting it"),
            (Stage::Over, _) => State::Over(End::Failed),
        }
    }

    /// One word for a table: Velero's own where Velero has a word for it.
    pub(crate) fn word(&self) -> &'a str {
        match self.state() {
            State::New => "New",
            State::Refused(_) => "Refused",
            State::Waiting(_) => "Waiting",
            State::Gone(_) => "Gone",
            State::Queued(_) => "Queued",
            State::Running | State::Finishing | State::Over(_) => self.velero.phase,
            State::Leaving(_) => "Deleting",
        }
    }

    /// The same, in colour.
    pub(crate) fn cell(&self) -> Cell {
        let style = match self.state() {
            State::Over(End::Completed) => style::GOOD,
            State::Over(End::Empty | End::PartiallyFailed) | State::Waiting(_) => style::ODD,
            State::Over(End::Failed) | State::Refused(_) | State::Gone(_) => style::BAD,
            State::New | State::Queued(_) | State::Running | State::Finishing => style::BUSY,
            State::Leaving(_) => style::QUIET,
        };
        Cell::painted(style, self.word())
    }

    /// Items done of all there are, if Velero has counted them.
    pub(crate) fn items(&self) -> Option<String> {
        let total = self.velero.total?;
        Some(format!("{}/{total}", self.velero.done.unwrap_or_default()))
    }

    /// A sentence, without its name.
    pub(crate) fn sentence(&self) -> String {
        let noun = self.what.noun();
        let velero = &self.velero;
        match self.state() {
            State::New => "nacre has not looked at it yet".to_owned(),
            State::Refused(why) => format!("refused: {why}"),
            State::Waiting(why) => format!("waiting: {why}"),
            State::Gone(why) | State::Leaving(why) if !why.is_empty() => why.to_owned(),
            State::Gone(_) => format!("Velero does not have the {noun} any more"),
            State::Leaving(_) => "being deleted".to_owned(),
            State::Queued(0) => "next in Velero's queue".to_owned(),
            State::Queued(ahead) => format!("in Velero's queue, {ahead} ahead of it"),
            State::Running => match (velero.done, velero.total) {
                (done, Some(total)) => format!("{} of {}", done.unwrap_or_default(), count(total, "item")),
                _ => "Velero has started".to_owned(),
            },
            State::Finishing if velero.phase.starts_with("WaitingForPlugin") => {
                "the items are done, volume data is still on its way".to_owned()
            }
            State::Finishing => "Velero is finishing".to_owned(),
            State::Over(End::Completed) => {
                let items =
                    velero.total.map_or_else(String::new, |total| format!(", {}", count(total, "item")));
                let taken = velero.started.zip(velero.completed).map_or_else(String::new, |(from, to)| {
                    format!(" in {}", span(to.as_second() - from.as_second()))
                });
                format!("complete{items}{taken}{}", trouble(velero))
            }
            State::Over(End::Empty) => {
                let done = if self.what == What::Backup { "backed up" } else { "restored" };
                format!("nothing was {done}: 0 items{}", trouble(velero))
            }
            State::Over(End::PartiallyFailed) => format!("done only in part{}", trouble(velero)),
            State::Over(End::Failed) if velero.phase == "Failed" => format!("failed{}", self.reasons()),
            State::Over(End::Failed) => format!("failed as {}{}", velero.phase, self.reasons()),
        }
    }

    /// Word and sentence on one line.
    pub(crate) fn headline(&self) -> String {
        match self.state() {
            State::Refused(why) | State::Waiting(why) => format!("{} - {why}", self.word()),
            _ => format!("{} - {}", self.word(), self.sentence()),
        }
    }

    /// Velero's own words on why it ended badly, ready to follow a sentence.
    pub(crate) fn reasons(&self) -> String {
        let errors = self.velero.validation_errors.iter().map(String::as_str);
        let reasons: Vec<&str> = self.velero.failure.into_iter().chain(errors).collect();
        if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
    }

    /// What its owner can do next, as commands and short sentences.
    pub(crate) fn next(&self) -> Vec<String> {
        let (noun, name) = (self.what.noun(), self.name());
        let see = |verb: &str| format!("kubectl nacre {noun} {verb} {name}");
        match (self.state(), self.what) {
            (State::New, _) => vec![
                see("wait"),
                "if nothing happens for a minute, ask the administrators whether nacre runs".to_owned(),
            ],
            (State::Waiting(_) | State::Queued(_) | State::Running | State::Finishing, _) => {
                vec![see("wait")]
            }
            (State::Refused(_), _) => vec![
                format!(
                    "correct what was refused and make a new {noun}, or mend what it names: it is looked at again by itself"
                ),
                format!("kubectl nacre explain {noun} {name}"),
                see("delete"),
            ],
            (State::Gone(_), _) => vec![see("delete"), format!("kubectl nacre {noun} create")],
            (State::Over(End::Completed), What::Backup) => {
                vec![format!("kubectl nacre restore create --from-backup {name}")]
            }
            (State::Over(End::Completed), What::Restore) => Vec::new(),
            (State::Over(End::Empty), What::Backup) => vec![
                format!("{}   (shows which filters were in effect)", see("describe")),
                "kubectl nacre backup create --wait   (everything in the namespace)".to_owned(),
            ],
            (State::Over(End::Empty), What::Restore) => vec![
                format!("{}   (shows which backup and which filters were in effect)", see("describe")),
                "kubectl nacre backup get   (shows how many items each backup holds)".to_owned(),
            ],
            (State::Over(End::PartiallyFailed), What::Backup) => vec![
                see("logs"),
                format!("{} --details", see("describe")),
                format!("kubectl nacre restore create --from-backup {name}   (brings back what is in it)"),
            ],
            (State::Over(_), _) => vec![see("logs"), format!("{} --details", see("describe"))],
            (State::Leaving(_), _) => vec![format!("{} --wait --yes", see("delete"))],
        }
    }

    /// How a wait for it ends; none if it goes on.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.state() {
            State::Over(End::Completed) => Some(Outcome::Good),
            State::Over(End::Empty | End::PartiallyFailed) => Some(Outcome::Attention),
            State::Over(End::Failed) | State::Refused(_) | State::Gone(_) | State::Leaving(_) => {
                Some(Outcome::Failed)
            }
            State::New | State::Waiting(_) | State::Queued(_) | State::Running | State::Finishing => None,
        }
    }
}

fn trouble(velero: &Velero<'_>) -> String {
    let told = [(velero.errors, "error"), (velero.warnings, "warning")];
    let told: Vec<String> = told
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| count(number, noun))
        .collect();
    if told.is_empty() { String::new() } else { format!(", with {}", told.join(" and ")) }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A backup with this status.
    pub(crate) fn backup(status: &Value) -> NonAdminBackup {
        let object = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "daily", "namespace": "shop", "generation": 1, "creationTimestamp": "2026-11-15T12:00:00Z"},
            "spec": {"backupSpec": {}}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    /// A status in which Velero has this phase.
    pub(crate) fn at_velero(said: &Value) -> Value {
        json!({"phase": "Created", "queueInfo": {"estimatedQueuePosition": 3}, "veleroBackup": {"name": "shop-daily-uid", "status": said}})
    }

    /// A status that refuses.
    pub(crate) fn refused(reason: &str, message: &str) -> Value {
        json!({"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False", "reason": reason,
            "message": message, "lastTransitionTime": "2026-11-15T12:00:01Z"}]})
    }

    fn told(status: &Value) -> String {
        let backup = backup(status);
        let story = Story::from(&backup);
        format!("{} | {} | {:?}", story.word(), story.sentence(), story.outcome())
    }

    #[test]
    fn every_state_has_a_word_a_sentence_and_an_outcome() {
        let states = [
            json!({}),
            refused("InvalidBackupSpec", "spec.backupSpec.ttl: too long"),
            refused("NamespaceLimitReached", "metadata.namespace: 3 are running"),
            refused("InvalidRestoreSpec", "it is not finished; the restore starts when it is"),
            refused("VeleroBackupNotFound", "the Velero Backup is gone"),
            at_velero(&json!({})),
            at_velero(&json!({"phase": "InProgress"})),
            at_velero(&json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 7}})),
            at_velero(&json!({"phase": "WaitingForPluginOperations"})),
            at_velero(&json!({"phase": "Finalizing"})),
            at_velero(
                &json!({"phase": "Completed", "progress": {"totalItems": 1, "itemsBackedUp": 1}, "warnings": 2}),
            ),
            at_velero(&json!({"phase": "Completed", "progress": {}, "warnings": 2})),
            at_velero(&json!({"phase": "PartiallyFailed", "errors": 1, "warnings": 2})),
            at_velero(&json!({"phase": "Failed", "failureReason": "no space"})),
            at_velero(&json!({"phase": "FailedValidation", "validationErrors": ["one", "two"]})),
            at_velero(&json!({"phase": "Deleting"})),
            json!({"phase": "Deleting"}),
        ];
        insta::assert_snapshot!(states.each_ref().map(told).join("\n"), @r"
        New | nacre has not looked at it yet | None
        Refused | refused: spec.backupSpec.ttl: too long | Some(Failed)
        Waiting | waiting: metadata.namespace: 3 are running | None
        Waiting | waiting: it is not finished; the restore starts when it is | None
        Gone | the Velero Backup is gone | Some(Failed)
        Queued | in Velero's queue, 2 ahead of it | None
        InProgress | Velero has started | None
        InProgress | 7 of 42 items | None
        WaitingForPluginOperations | the items are done, volume data is still on its way | None
        Finalizing | Velero is finishing | None
        Completed | complete, 1 item, with 2 warnings | Some(Good)
        Completed | nothing was backed up: 0 items, with 2 warnings | Some(Attention)
        PartiallyFailed | done only in part, with 1 error and 2 warnings | Some(Attention)
        Failed | failed: no space | Some(Failed)
        FailedValidation | failed as FailedValidation: one; two | Some(Failed)
        Deleting | Velero is deleting it | Some(Failed)
        Deleting | being deleted | Some(Failed)
        ");
    }

    #[test]
    fn a_restore_that_restored_nothing_is_no_success() {
        let restore = |items: &Value| -> NonAdminRestore {
            let said = json!({"phase": "Completed", "progress": {"itemsRestored": items}});
            serde_json::from_value(
                json!({"metadata": {"name": "back"}, "spec": {"restoreSpec": {"backupName": "daily"}},
                "status": {"phase": "Created", "veleroRestore": {"status": said}}}),
            )
            .unwrap()
        };
        let (nothing, something) = (restore(&Value::Null), restore(&json!(1)));
        let story = Story::from(&nothing);
        assert_eq!(
            (story.sentence().as_str(), story.outcome()),
            ("nothing was restored: 0 items", Some(Outcome::Attention))
        );
        assert_eq!(Story::from(&something).outcome(), Some(Outcome::Good));
    }

    #[test]
    fn nobody_ahead_means_next() {
        let mut status = at_velero(&json!({"phase": "Queued"}));
        status["queueInfo"]["estimatedQueuePosition"] = json!(1);
        assert_eq!(told(&status), "Queued | next in Velero's queue | None");
    }
}

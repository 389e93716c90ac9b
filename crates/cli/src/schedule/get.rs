//! `schedule get`: lists schedules.

use anyhow::Result;
use api::{NonAdminSchedule, Phase, condition};
use jiff::Timestamp;

use super::kept;
use crate::{
    connect::Session,
    list::{Found, ListArgs},
    output::{Format, Outcome},
    table::Table,
    text::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule get
  kubectl nacre schedule get nightly -o yaml
  kubectl nacre schedule get -A -o wide

LAST-GOOD is the age of the last good backup: complete, with the data of every claim, and not expired.")]
pub(super) struct Get {
    #[command(flatten)]
    which: ListArgs,
}

pub(super) async fn run(session: &Session, args: &Get) -> Result<Outcome> {
    args.which.show(session, "schedules", table).await
}

/// How a schedule is doing, in one word.
pub(crate) fn word(schedule: &NonAdminSchedule) -> &'static str {
    match schedule.status.as_ref().and_then(|status| status.phase) {
        Some(Phase::BackingOff) => "Refused",
        Some(Phase::Created) if schedule.spec.paused == Some(true) => "Paused",
        Some(Phase::Created) if to_confirm(schedule) => "Unconfirmed",
        Some(Phase::Created) => "Enabled",
        _ => "New",
    }
}

/// Whether somebody has to confirm the schedule, soon or already.
fn to_confirm(schedule: &NonAdminSchedule) -> bool {
    let conditions = schedule.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    condition::get(conditions, condition::REQUESTER_CONFIRMED).is_some_and(|found| found.status == "False")
}

pub(crate) fn table(found: &Found<NonAdminSchedule>, format: Format, all: bool, now: Timestamp) -> Table {
    let headings = ["NAME", "SCHEDULE", "STATUS", "NEXT-RUN", "LAST-RUN", "LAST-GOOD", "AGE"];
    let mut table = Table::with_wide(&headings, &["TIME-ZONE", "KEEPS", "LAST-BACKUP"], format);
    let items = found.newest_last();
    for (schedule, unreadable) in &items {
        let status = schedule.status.clone().unwrap_or_default();
        let last = status.last_backup.as_ref();
        table.row_with_wide(
            [
                schedule.metadata.name.clone().into(),
                schedule.spec.schedule.clone().into(),
                if unreadable.is_some() { "Unreadable" } else { word(schedule) }.into(),
                status.next_run.as_ref().map(|next| format!("in {}", age(now, next.0))).into(),
                last.and_then(|last| last.phase.clone()).into(),
                status.last_good_time.as_ref().map(|good| age(good.0, now)).into(),
                schedule.metadata.creation_timestamp.as_ref().map(|time| age(time.0, now)).into(),
            ],
            [
                schedule.spec.time_zone.clone().into(),
                kept(schedule).into(),
                last.map(|last| last.name.clone()).into(),
            ],
        );
    }
    table.by_namespace(all, items.iter().map(|(schedule, _)| &schedule.metadata))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedule_that_has_to_be_confirmed_is_shown_as_such() {
        let schedule = |status: &str| -> NonAdminSchedule {
            let condition = json!({"type": "RequesterConfirmed", "status": status, "reason": "ConfirmationDue",
                "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"});
            let spec = json!({"schedule": "0 2 * * *", "template": {"backupSpec": {}}});
            let status = json!({"phase": "Created", "conditions": [condition]});
            serde_json::from_value(json!({"metadata": {"name": "nightly"}, "spec": spec, "status": status}))
                .unwrap()
        };
        assert_eq!((word(&schedule("True")), word(&schedule("False"))), ("Enabled", "Unconfirmed"));
    }

    #[test]
    fn a_glance_shows_the_next_run_and_the_last_good_backup() {
        let schedule = json!({
            "metadata": {"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}, "retention": {"keepDaily": 7, "keepWithin": "2d"}},
            "status": {"phase": "Created", "nextRun": "2026-11-16T02:00:00Z", "lastGoodTime": "2026-11-15T02:10:00Z",
                "lastBackup": {"name": "nightly-20261115020000", "phase": "Completed"}},
        });
        let found = Found::of(vec![(serde_json::from_value(schedule).unwrap(), None)]);
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        let shown = table(&found, Format::Wide, false, now).to_string();
        insta::assert_snapshot!(anstream::adapter::strip_str(&shown).to_string(), @r"
        NAME      SCHEDULE    STATUS    NEXT-RUN   LAST-RUN    LAST-GOOD   AGE   TIME-ZONE   KEEPS                LAST-BACKUP
        nightly   0 2 * * *   Enabled   in 13h     Completed   10h         14d   -           7 daily, within 2d   nightly-20261115020000
        ");
    }
}

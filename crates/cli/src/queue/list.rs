//! `queue list`: what runs and what waits, in order.

use anyhow::{Context as _, Result};
use api::velero::{Backup, Restore};
use api::{NonAdminBackup, NonAdminRestore, labels};
use jiff::Timestamp;
use planner::queue::{Queued as _, Stage};

use super::order::{Entry, State, entries, is_held_back};
use crate::{
    connect::Session,
    list,
    output::{Format, Outcome, print, remark},
    style,
    table::{Cell, Table},
    text::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre queue list
  kubectl nacre queue list -n shop                     only those of this namespace; positions count all
  kubectl nacre queue list -o json

Backups and restores have queues of their own. STATE is Running or Queued for what Velero has, in Velero's order;
Promoted, Waiting or Held for what nacre is yet to give to Velero. What has no namespace was asked of Velero itself.
What waits for a limit, a location or the policy is not in the queue: see kubectl nacre backup get -A.")]
pub(super) struct List {}

pub(super) async fn run(session: &Session, _: &List, given: Option<&str>) -> Result<Outcome> {
    let rows = read(session, given).await?;
    if rows.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        remark("Nothing runs or waits.");
        return Ok(Outcome::Good);
    }
    let names = || rows.iter().map(name).collect();
    print(session.format, &rows, || table(&rows, Timestamp::now()).to_string(), names)?;
    Ok(Outcome::Good)
}

/// The queue, also as a table.
pub(crate) async fn look(session: &Session) -> Result<(Vec<Entry>, Table)> {
    let rows = read(session, None).await?;
    let table = table(&rows, Timestamp::now());
    Ok((rows, table))
}

/// What runs and what waits, in order.
async fn read(session: &Session, given: Option<&str>) -> Result<Vec<Entry>> {
    let (veleros_backups, veleros_restores) =
        (session.in_velero_namespace::<Backup>(), session.in_velero_namespace::<Restore>());
    // Most of what there is has ended, and is not kept.
    let (backups, restores) = tokio::try_join!(
        list::in_parts_of(&veleros_backups, |backup| backup.stage() != Stage::Finished),
        list::in_parts_of(&veleros_restores, |restore| restore.stage() != Stage::Finished),
    )
    .context("the queue is for administrators, who can read Velero's objects")?;
    let (asked_backups, asked_restores) = tokio::try_join!(
        list::everywhere(session, |backup: NonAdminBackup| is_held_back(&backup).then_some(backup)),
        list::everywhere(session, |restore: NonAdminRestore| is_held_back(&restore).then_some(restore)),
    )?;
    let mut rows = entries("backup", (labels::NAB_NAMESPACE, labels::NAB_NAME), &backups, &asked_backups);
    rows.extend(entries("restore", (labels::NAR_NAMESPACE, labels::NAR_NAME), &restores, &asked_restores));
    rows.retain(|row| given.is_none_or(|given| row.namespace.as_deref() == Some(given)));
    Ok(rows)
}

/// As `promote` takes it.
fn name(row: &Entry) -> String {
    match &row.namespace {
        Some(namespace) => format!("{}/{namespace}/{}", row.kind, row.name),
        None => format!("{}/{}", row.kind, row.name),
    }
}

fn table(rows: &[Entry], now: Timestamp) -> Table {
    let mut table = Table::new(&["KIND", "POSITION", "NAMESPACE", "NAME", "STATE", "SINCE"]);
    for row in rows {
        let state = match row.state {
            State::Running => Cell::painted(style::GOOD, row.state.word()),
            _ => row.state.word().into(),
        };
        table.row([
            row.kind.into(),
            row.position.map(|position| position.to_string()).into(),
            row.namespace.as_deref().into(),
            row.name.as_str().into(),
            state,
            row.since.map(|since| age(since, now)).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn velero(name: &str, at: u8, phase: &str, tenant: Option<(&str, &str)>) -> Backup {
        let annotations =
            tenant.map(|(namespace, name)| json!({labels::NAB_NAMESPACE: namespace, labels::NAB_NAME: name}));
        serde_json::from_value(json!({"apiVersion": "velero.io/v1", "kind": "Backup",
            "metadata": {"name": name, "creationTimestamp": format!("2026-11-17T08:00:{at:02}Z"), "annotations": annotations},
            "spec": {}, "status": {"phase": phase}}))
        .unwrap()
    }

    fn asked(place: &str, at: u8, position: Option<i64>, queue: Option<&str>, phase: &str) -> NonAdminBackup {
        let (namespace, name) = place.split_once('/').unwrap();
        let queue = queue.map(|value| json!({labels::QUEUE: value}));
        let position = position.map(|position| json!({"estimatedQueuePosition": position}));
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": namespace, "annotations": queue,
                "creationTimestamp": format!("2026-11-17T08:01:{at:02}Z")},
            "spec": {"backupSpec": {}}, "status": {"phase": phase, "queueInfo": position}}))
        .unwrap()
    }

    #[test]
    fn what_velero_has_comes_first_then_what_nacre_gives_it_next() {
        let veleros = [
            velero("shop-a-1", 2, "New", Some(("shop", "a"))),
            velero("nightly", 1, "InProgress", None),
            velero("shop-old-1", 0, "Completed", Some(("shop", "old"))),
        ];
        let requests = [
            asked("shop/b", 1, Some(5), None, "New"),
            asked("farm/x", 9, Some(3), None, "New"),
            asked("mill/held", 0, None, Some("hold"), "New"),
            asked("mill/urgent", 30, Some(9), Some("front"), "New"),
            asked("mill/refused", 0, None, None, "BackingOff"),
            asked("shop/c", 2, Some(5), None, "New"),
        ];
        let rows = entries("backup", (labels::NAB_NAMESPACE, labels::NAB_NAME), &veleros, &requests);
        let shown = table(&rows, "2026-11-17T08:02:00Z".parse().unwrap()).to_string();
        insta::assert_snapshot!(anstream::adapter::strip_str(&shown).to_string(), @r"
        KIND     POSITION   NAMESPACE   NAME      STATE      SINCE
        backup   1          -           nightly   Running    119s
        backup   2          shop        a         Queued     118s
        backup   3          mill        urgent    Promoted   30s
        backup   4          farm        x         Waiting    51s
        backup   5          shop        b         Waiting    59s
        backup   6          shop        c         Waiting    58s
        backup   -          mill        held      Held       60s
        ");
        assert_eq!(name(&rows[1]), "backup/shop/a");
    }
}

//! Taking one step after the other. Everything that is known about a replacement is in the cluster.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use api::{NonAdminBackup, NonAdminRestore};
use kube::api::DeleteParams;
use planner::replace::{
    Record,
    step::{Step, is_refused, next_step, stands},
    way_back,
};
use tokio::time::Instant;

use super::cluster::{self, Seen, StoredRecord};
use crate::{
    connect::Session,
    interrupt::interrupted,
    live::{self, ShowsProgress},
    output::{Outcome, lines, remark, say},
    style,
    text::printable,
};

/// How often the namespace is read while something is waited for.
const POLL: Duration = Duration::from_secs(1);

/// Takes steps until there are none left.
pub(super) async fn until_done(
    session: &Session,
    mut kept: StoredRecord,
    timeout: Option<Duration>,
) -> Result<Outcome> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut last = String::new();
    // Requests that were shown to their end.
    let mut followed = BTreeSet::new();
    loop {
        let seen = cluster::see(session, &kept.record).await?;
        let ended = match next_step(&seen.observed(&kept.record)) {
            Step::CreateSafetyBackup => {
                remark("taking the safety backup");
                cluster::create_safety_backup(session, &kept.record).await?;
                None
            }
            Step::WaitForSafetyBackup(how) => {
                let name = kept.record.safety_backup.clone().unwrap_or_default();
                if followed.insert(name.clone()) {
                    follow::<NonAdminBackup>(session, &name, deadline).await?
                } else {
                    pause(&mut last, &format!("backup {name}: {how}"), deadline).await
                }
            }
            Step::RecordChecked => {
                kept.checked(session).await?;
                None
            }
            Step::Remove(removals) => {
                for removal in &removals {
                    cluster::remove(session, removal).await?;
                }
                None
            }
            Step::WaitForRemoval(what) => {
                pause(&mut last, &format!("waiting until these are gone: {}", what.join("; ")), deadline)
                    .await
            }
            Step::CreateRestore => {
                remark(format_args!("restoring from {}", kept.record.backup));
                cluster::create_restore(session, &kept.record).await?;
                None
            }
            Step::WaitForRestore(how) => {
                let name = kept.record.restore.clone();
                if followed.insert(name.clone()) {
                    follow::<NonAdminRestore>(session, &name, deadline).await?
                } else {
                    pause(&mut last, &format!("restore {name}: {how}"), deadline).await
                }
            }
            Step::WaitForWorkloads(names) => {
                pause(
                    &mut last,
                    &format!("waiting until these are available: {}", names.join(", ")),
                    deadline,
                )
                .await
            }
            Step::Stop(why) => return stop(session, &kept, &why).await,
            Step::Done(open) => return done(session, &kept, &open).await,
            Step::Failed(why) => return failed(session, &kept, &seen, &why).await,
        };
        if let Some(outcome) = ended {
            remark("nothing is lost: the same command goes on from here");
            return Ok(outcome);
        }
    }
}

/// Says where a replacement stands, and does nothing.
pub(super) async fn report(session: &Session, kept: &StoredRecord) -> Result<Outcome> {
    let seen = cluster::see(session, &kept.record).await?;
    let observed = seen.observed(&kept.record);
    say(&lines(stands(&observed)))?;
    Ok(Outcome::Attention)
}

/// Waits for a request and shows how it goes; none if it is over.
async fn follow<K: ShowsProgress>(
    session: &Session,
    name: &str,
    deadline: Option<Instant>,
) -> Result<Option<Outcome>> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let (outcome, _) = live::follow::<K>(session, name, left).await?;
    Ok(matches!(outcome, Outcome::Late | Outcome::Interrupted).then_some(outcome))
}

/// Waits a moment; the outcome if the wait ends here.
async fn pause(last: &mut String, words: &str, deadline: Option<Instant>) -> Option<Outcome> {
    if last != words {
        words.clone_into(last);
        remark(printable(words));
    }
    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        return Some(Outcome::Late);
    }
    tokio::select! {
        () = tokio::time::sleep(POLL) => None,
        () = interrupted() => Some(Outcome::Interrupted),
    }
}

async fn stop(session: &Session, kept: &StoredRecord, why: &str) -> Result<Outcome> {
    kept.forget(session).await?;
    remark(format_args!("{} {}; nothing was removed", style::bad("stopped:"), printable(why)));
    Ok(Outcome::Failed)
}

async fn done(session: &Session, kept: &StoredRecord, open: &[String]) -> Result<Outcome> {
    kept.forget(session).await?;
    let Record { backup, restore, safety_backup, .. } = &kept.record;
    let names: Vec<String> = kept.record.all_claims().into_iter().map(|claim| claim.name).collect();
    let words = format!("the data of {} is back as in {backup}", names.join(", "));
    say(&format!("restore {restore}: {}\n", style::paint(style::GOOD, words)))?;
    for line in open {
        remark(format_args!("{} {}", style::paint(style::WARNING, "but:"), printable(line)));
    }
    if let Some(safety) = safety_backup {
        remark(format_args!(
            "what was there before is in backup {safety}; `kubectl nacre backup delete {safety}` removes it"
        ));
    }
    Ok(Outcome::attention_if(!open.is_empty()))
}

async fn failed(session: &Session, kept: &StoredRecord, seen: &Seen, why: &str) -> Result<Outcome> {
    kept.forget(session).await?;
    remark(format_args!("{} {}", style::bad("failed:"), printable(why)));
    remark("where it stands:");
    for line in stands(&seen.observed(&kept.record)) {
        remark(format_args!("  {line}"));
    }
    if is_refused(&seen.observed(&kept.record)) {
        withdraw(session, &kept.record.restore).await;
    }
    remark("to get back what was there before:");
    remark(format_args!("  {}", way_back(&kept.record, &session.namespace)));
    Ok(Outcome::Failed)
}

/// Deletes a restore that was refused: it would begin if the administrators changed the policy.
async fn withdraw(session: &Session, restore: &str) {
    let deleted = session.api::<NonAdminRestore>().delete(restore, &DeleteParams::default()).await;
    match deleted {
        Ok(_) => remark(format_args!("restore {restore}, which never began, was deleted")),
        Err(error) => remark(format_args!(
            "restore {restore} would begin if the policy changed; delete it: kubectl nacre restore delete {restore} ({error})"
        )),
    }
}

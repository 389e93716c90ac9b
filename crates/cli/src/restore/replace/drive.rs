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
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// What one step came to.
pub(crate) enum Taken {
    /// Something was done, and what there is to say about it.
    Did(Option<String>),
    /// Something has to happen first, which another step looks for.
    Waits(On, String),
    /// There are no more steps.
    Ended(Ended),
}

/// What is waited for.
pub(crate) enum On {
    Backup(String),
    Restore(String),
    Objects,
}

/// How a replacement ended, in words.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// The answer, if there is one.
    pub(crate) answer: Option<String>,
    pub(crate) remarks: Vec<String>,
}

/// Takes the next step.
pub(crate) async fn step(session: &Session, kept: &mut StoredRecord) -> Result<Taken> {
    let seen = cluster::see(session, &kept.record).await?;
    let record = &kept.record;
    Ok(match next_step(&seen.observed(record)) {
        Step::CreateSafetyBackup => {
            cluster::create_safety_backup(session, record).await?;
            Taken::Did(Some("taking the safety backup".to_owned()))
        }
        Step::WaitForSafetyBackup(how) => {
            let name = record.safety_backup.clone().unwrap_or_default();
            let words = format!("backup {name}: {how}");
            Taken::Waits(On::Backup(name), words)
        }
        Step::RecordChecked => {
            kept.checked(session).await?;
            Taken::Did(None)
        }
        Step::Remove(removals) => {
            for removal in &removals {
                cluster::remove(session, removal).await?;
            }
            Taken::Did(None)
        }
        Step::WaitForRemoval(what) => {
            Taken::Waits(On::Objects, format!("waiting until these are gone: {}", what.join("; ")))
        }
        Step::CreateRestore => {
            cluster::create_restore(session, record).await?;
            Taken::Did(Some(format!("restoring from {}", record.backup)))
        }
        Step::WaitForRestore(how) => {
            let words = format!("restore {}: {how}", record.restore);
            Taken::Waits(On::Restore(record.restore.clone()), words)
        }
        Step::WaitForWorkloads(names) => {
            let words = format!("waiting until these are available: {}", names.join(", "));
            Taken::Waits(On::Objects, words)
        }
        Step::Stop(why) => Taken::Ended(stop(session, kept, &why).await?),
        Step::Done(open) => Taken::Ended(done(session, kept, &open).await?),
        Step::Failed(why) => Taken::Ended(failed(session, kept, &seen, &why).await?),
    })
}

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
        let ended = match step(session, &mut kept).await? {
            Taken::Did(words) => {
                words.into_iter().for_each(remark);
                None
            }
            Taken::Waits(On::Backup(name), _) if followed.insert(name.clone()) => {
                follow::<NonAdminBackup>(session, &name, deadline).await?
            }
            Taken::Waits(On::Restore(name), _) if followed.insert(name.clone()) => {
                follow::<NonAdminRestore>(session, &name, deadline).await?
            }
            Taken::Waits(_, words) => pause(&mut last, &words, deadline).await,
            Taken::Ended(Ended { outcome, answer, remarks }) => {
                answer.map_or(Ok(()), |answer| say(&format!("{answer}\n")))?;
                remarks.into_iter().for_each(remark);
                return Ok(outcome);
            }
        };
        if let Some(outcome) = ended {
            remark("nothing is lost: the same command goes on from here");
            return Ok(outcome);
        }
    }
}

/// Where a replacement stands.
pub(crate) async fn standing(session: &Session, kept: &StoredRecord) -> Result<Vec<String>> {
    let seen = cluster::see(session, &kept.record).await?;
    Ok(stands(&seen.observed(&kept.record)))
}

/// Says where a replacement stands, and does nothing.
pub(super) async fn report(session: &Session, kept: &StoredRecord) -> Result<Outcome> {
    say(&lines(standing(session, kept).await?))?;
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

async fn stop(session: &Session, kept: &StoredRecord, why: &str) -> Result<Ended> {
    kept.forget(session).await?;
    let remark = format!("{} {}; nothing was removed", style::bad("stopped:"), printable(why));
    Ok(Ended { outcome: Outcome::Failed, answer: None, remarks: vec![remark] })
}

async fn done(session: &Session, kept: &StoredRecord, open: &[String]) -> Result<Ended> {
    kept.forget(session).await?;
    let Record { backup, restore, safety_backup, .. } = &kept.record;
    let names: Vec<String> = kept.record.all_claims().into_iter().map(|claim| claim.name).collect();
    let words = format!("the data of {} is back as in {backup}", names.join(", "));
    let but = |line: &String| format!("{} {}", style::paint(style::WARNING, "but:"), printable(line));
    let before = safety_backup.iter().map(|safety| {
        format!(
            "what was there before is in backup {safety}; `kubectl nacre backup delete {safety}` removes it"
        )
    });
    Ok(Ended {
        outcome: Outcome::attention_if(!open.is_empty()),
        answer: Some(format!("restore {restore}: {}", style::paint(style::GOOD, words))),
        remarks: open.iter().map(but).chain(before).collect(),
    })
}

async fn failed(session: &Session, kept: &StoredRecord, seen: &Seen, why: &str) -> Result<Ended> {
    kept.forget(session).await?;
    let observed = seen.observed(&kept.record);
    let mut remarks =
        vec![format!("{} {}", style::bad("failed:"), printable(why)), "where it stands:".to_owned()];
    remarks.extend(stands(&observed).into_iter().map(|line| format!("  {line}")));
    if is_refused(&observed) {
        remarks.push(withdraw(session, &kept.record.restore).await);
    }
    remarks.push("to get back what was there before:".to_owned());
    remarks.push(format!("  {}", way_back(&kept.record, &session.namespace)));
    Ok(Ended { outcome: Outcome::Failed, answer: None, remarks })
}

/// Deletes a restore that was refused: it would begin if the administrators changed the policy.
async fn withdraw(session: &Session, restore: &str) -> String {
    let deleted = session.api::<NonAdminRestore>().delete(restore, &DeleteParams::default()).await;
    match deleted {
        Ok(_) => format!("restore {restore}, which never began, was deleted"),
        Err(error) => format!(
            "restore {restore} would begin if the policy changed; delete it: kubectl nacre restore delete {restore} ({error})"
        ),
    }
}

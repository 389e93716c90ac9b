//! What a schedule will have made and kept after some time, if every run goes well.
//!
//! Backups go when the retention does not keep them any more, and when they expire. The last good one does neither.

use api::NonAdminSchedule;
use jiff::{SignedDuration, Timestamp};

use super::due::Times;
use super::retention::{Finished, Quality, last_good, not_kept};
use super::{effective, name, run};
use crate::Policy;

/// What there will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The backups that there will be, oldest first.
    pub kept: Vec<Finished>,
    /// The backups that will have gone, in the order in which they go, and when each goes.
    pub gone: Vec<(Finished, Timestamp)>,
}

/// The most runs that are looked at: more than any calendar shows.
const MOST: usize = 5_000;

/// What there will be after so many days, beginning with what is there.
pub fn preview(
    schedule: &NonAdminSchedule,
    times: &Times,
    policy: &Policy,
    there: Vec<Finished>,
    now: Timestamp,
    days: u32,
) -> Preview {
    let of = schedule.metadata.name.as_deref().unwrap_or_default();
    let end = now.checked_add(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::MAX);
    let retention = effective(schedule, policy);
    let ttl = run::ttl(schedule, policy);
    let expires = |time: Timestamp| ttl.and_then(|ttl| time.checked_add(ttl).ok());
    let mut preview = Preview { kept: there, gone: Vec::new() };
    let mut last = now;
    for _ in 0..MOST {
        let Some(due) = times.next(last).filter(|due| due.start <= end) else { break };
        preview.expire(due.start);
        let (time, expires) = (due.start, expires(due.start));
        preview.kept.push(Finished { name: name(of, due.due), time, quality: Quality::Good, expires });
        if let Some(retention) = &retention {
            let away: Vec<String> = not_kept(&preview.kept, retention, times.cron.zone())
                .into_iter()
                .map(str::to_owned)
                .collect();
            let (gone, kept) = preview.kept.into_iter().partition(|run| away.contains(&run.name));
            preview.kept = kept;
            let gone: Vec<Finished> = gone;
            preview.gone.extend(gone.into_iter().map(|run| (run, due.start)));
        }
        last = due.due;
    }
    preview.expire(end);
    preview.kept.sort_by_key(|run| (run.time, run.name.clone()));
    preview.gone.sort_by_key(|(run, goes)| (*goes, run.time, run.name.clone()));
    preview
}

impl Preview {
    /// Until this time Velero deletes what has expired; nacre moves the expiration of the last good one.
    fn expire(&mut self, now: Timestamp) {
        let last = last_good(&self.kept).map(|last| last.name.clone());
        let is_over =
            |run: &Finished| run.expires.filter(|at| *at <= now && last.as_ref() != Some(&run.name));
        let (over, kept) = std::mem::take(&mut self.kept).into_iter().partition(|run| is_over(run).is_some());
        self.kept = kept;
        let over: Vec<Finished> = over;
        self.gone.extend(over.into_iter().filter_map(|run| run.expires.map(|at| (run, at))));
    }
}

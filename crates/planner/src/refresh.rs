//! Updates the queue positions and the estimated start times in the status of waiting requests, with a budget.

use api::velero::{Backup, Restore};
use api::{Kind, NonAdminBackup, NonAdminRestore, QueueInfo};
use jiff::Timestamp;

use crate::Key;
use crate::queue::{Queue, Queued, Stage, never_rising, position};
use crate::state::State;
use crate::turns::{self, Estimate, Turns};

/// Maximum number of positions to publish per second.
const BUDGET: usize = 10;
/// Up to this many waiting requests, each position is kept exact.
const FEW: usize = 20;
/// Changes of the queue per second above which position updates are delayed.
const LARGE_BACKLOG: u64 = 40;
/// How many seconds position updates may be delayed.
const MAX_SKIPPED_ROUNDS: u32 = 30;

/// Decides each second which positions to publish.
#[derive(Clone, Debug, Default)]
pub struct Publisher {
    /// The number of queue changes at which every shown position was correct.
    settled_at: Option<u64>,
    /// The number of queue changes one second ago.
    seen: u64,
    skipped_rounds: u32,
    /// When the first of the shown estimates is over, as of when every shown position was correct.
    estimates_until: Option<Timestamp>,
}

/// The load in the current second.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// How often the queues have changed so far.
    changes: u64,
    /// How many Velero objects wait or run.
    queued: usize,
    /// How many objects are ready to be decided about.
    ready: usize,
}

impl Publisher {
    /// The requests whose position is to be published in this second: those that are most out of date, within the
    /// budget. While many requests come in, decisions about them go first. `ready` is the length of the work queue.
    pub fn next(&mut self, view: &State, ready: usize, now: Timestamp) -> Vec<Key> {
        let queues = [view.backup_queue(), view.restore_queue()];
        let turns = [Kind::NonAdminBackup, Kind::NonAdminRestore].map(|kind| view.turns(kind));
        let load = Load {
            changes: queues.iter().map(|queue| queue.changes()).chain(turns.map(Turns::changes)).sum(),
            queued: queues
                .iter()
                .map(|queue| queue.queue_length())
                .chain(turns.map(Turns::number_waiting))
                .sum(),
            ready,
        };
        if self.estimates_until.is_some_and(|until| until < now) {
            // Nothing happened for longer than was expected: that is news as well.
            (self.settled_at, self.estimates_until) = (None, None);
        }
        if !self.is_due(load) {
            return Vec::new();
        }
        let (keys, until) = out_of_date(view, BUDGET, now);
        self.estimates_until = until;
        if keys.is_empty() {
            self.settled_at = Some(load.changes);
        }
        keys
    }

    fn is_due(&mut self, Load { changes, queued, ready }: Load) -> bool {
        let new = changes.saturating_sub(self.seen);
        self.seen = changes;
        if self.settled_at == Some(changes) {
            return false;
        }
        let is_busy = queued > FEW && (new > LARGE_BACKLOG || ready > 0);
        if is_busy && self.skipped_rounds < MAX_SKIPPED_ROUNDS {
            self.skipped_rounds += 1;
            return false;
        }
        self.skipped_rounds = 0;
        true
    }
}

/// The requests whose shown position is most out of date, at most so many, and when the first estimate of the others is
/// over. Looking costs one pass over the queue, so it is done now and then and only while positions change, never for each
/// event.
fn out_of_date(view: &State, most: usize, now: Timestamp) -> (Vec<Key>, Option<Timestamp>) {
    let backups = wrong(view.backup_queue(), |name| {
        let stage = view.admin::<Backup>(name)?.stage();
        let keys = view.backups_of(name).into_iter();
        Some((stage, keys.filter_map(|key| Some((position_of(&shown_backup(view, &key)?), key))).collect()))
    });
    let restores = wrong(view.restore_queue(), |name| {
        let stage = view.admin::<Restore>(name)?.stage();
        let keys = view.restores_of(name).into_iter();
        Some((stage, keys.filter_map(|key| Some((position_of(&shown_restore(view, &key)?), key))).collect()))
    });
    let waiting = [(Kind::NonAdminBackup, shown_backup as Shown), (Kind::NonAdminRestore, shown_restore)];
    let mut until = None;
    let waiting: Vec<_> = waiting
        .into_iter()
        .flat_map(|(kind, shown)| wrong_while_waiting(view, kind, shown, now, &mut until))
        .collect();
    let mut all: Vec<_> = backups.chain(restores).chain(waiting).collect();
    all.sort_by_key(|(off, _)| std::cmp::Reverse(*off));
    all.truncate(most);
    (all.into_iter().map(|(_, key)| key).collect(), until)
}

/// Each request in a queue that shows a position it no longer has, and by how much it is off.
fn wrong(
    queue: &Queue,
    look: impl Fn(&str) -> Option<(Stage, Vec<(i64, Key)>)>,
) -> impl Iterator<Item = (u64, Key)> {
    queue.names().enumerate().filter_map(move |(ahead, name)| Some((ahead, look(name)?))).flat_map(
        |(ahead, (stage, shown))| {
            let right = position(stage, ahead);
            shown
                .into_iter()
                .filter(move |(shown, _)| *shown != never_rising(Some(*shown), right))
                .map(move |(shown, key)| (shown.abs_diff(right), key))
        },
    )
}

/// What a request shows.
type Shown = fn(&State, &Key) -> Option<QueueInfo>;

/// The same of those that Velero does not have yet. Their position may rise.
fn wrong_while_waiting(
    view: &State,
    kind: Kind,
    shown: Shown,
    now: Timestamp,
    until: &mut Option<Timestamp>,
) -> Vec<(u64, Key)> {
    let mut wrong = Vec::new();
    for (waiter, place) in view.turns(kind).places(view.capacity(kind), now) {
        let key = &waiter.arrival.1;
        let Some(shown) = shown(view, key) else { continue };
        if let Some(off) = turns::off(place, &shown, now) {
            wrong.push((off, key.clone()));
        } else {
            let latest = Estimate::shown(&shown).map(|shown| shown.latest);
            *until = latest.into_iter().chain(*until).min();
        }
    }
    wrong
}

fn shown_backup(view: &State, key: &Key) -> Option<QueueInfo> {
    view.get::<NonAdminBackup>(&key.namespace, &key.name)?.status.as_ref()?.queue_info.clone()
}

fn shown_restore(view: &State, key: &Key) -> Option<QueueInfo> {
    view.get::<NonAdminRestore>(&key.namespace, &key.name)?.status.as_ref()?.queue_info.clone()
}

fn position_of(info: &QueueInfo) -> i64 {
    info.estimated_queue_position
}

#[cfg(test)]
mod tests {
    use super::{FEW, LARGE_BACKLOG, Load, MAX_SKIPPED_ROUNDS, Publisher};

    const QUIET: Load = Load { changes: 1, queued: FEW, ready: 0 };

    #[test]
    fn a_short_queue_is_kept_exact_whatever_happens() {
        let mut publisher = Publisher::default();
        assert!(publisher.is_due(QUIET));
        assert!(publisher.is_due(Load { changes: 1000, ready: 1000, ..QUIET }));
    }

    #[test]
    fn nothing_is_looked_at_until_the_queue_changes() {
        let mut publisher = Publisher { settled_at: Some(7), ..Publisher::default() };
        assert!(!publisher.is_due(Load { changes: 7, ..QUIET }));
        assert!(publisher.is_due(Load { changes: 8, ..QUIET }));
    }

    #[test]
    fn while_many_come_in_positions_are_delayed_but_not_for_ever() {
        let many = Load { queued: FEW + 1, ..QUIET };
        let loads: [fn(u64) -> Load; 2] = [
            |round| Load { changes: (round + 1) * (LARGE_BACKLOG + 1), queued: FEW + 1, ready: 0 },
            |round| Load { changes: round + 1, queued: FEW + 1, ready: 1 },
        ];
        for load in loads {
            let mut publisher = Publisher::default();
            for turn in 0..2 {
                let rounds = u64::from(MAX_SKIPPED_ROUNDS);
                let start = turn * (rounds + 1);
                for round in start..start + rounds {
                    assert!(!publisher.is_due(load(round)), "{round}");
                }
                assert!(publisher.is_due(load(start + rounds)), "{turn}");
            }
        }
        // A long queue that changes slowly is not delayed, and exactly as many changes as that are slow.
        let mut publisher = Publisher::default();
        assert!(publisher.is_due(Load { changes: LARGE_BACKLOG, ..many }));
        assert!(publisher.is_due(Load { changes: 2 * LARGE_BACKLOG, ..many }));
        assert!(!publisher.is_due(Load { changes: 3 * LARGE_BACKLOG + 1, ..many }));
    }
}

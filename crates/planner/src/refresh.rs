//! Updates the queue positions in the status of waiting requests, with a budget.

use api::QueueInfo;

use crate::Key;
use crate::queue::{Queue, Queued, Stage, never_rising, position};
use crate::state::State;

/// The requests whose shown position is most out of date, at most so many. Looking costs one pass over the queue,
/// so it is done now and then and only while positions change, never for each event.
pub fn out_of_date(view: &State, most: usize) -> Vec<Key> {
    let backups = wrong(view.backup_queue(), |name| {
        let stage = view.velero_backup(name)?.stage();
        let keys = view.backups_of(name).into_iter();
        Some((stage, keys.filter_map(|key| Some((shown_backup(view, &key)?, key))).collect()))
    });
    let restores = wrong(view.restore_queue(), |name| {
        let stage = view.velero_restore(name)?.stage();
        let keys = view.restores_of(name).into_iter();
        Some((stage, keys.filter_map(|key| Some((shown_restore(view, &key)?, key))).collect()))
    });
    let mut all: Vec<_> = backups.chain(restores).collect();
    all.sort_by_key(|(off, _)| std::cmp::Reverse(*off));
    all.truncate(most);
    all.into_iter().map(|(_, key)| key).collect()
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

fn shown_backup(view: &State, key: &Key) -> Option<i64> {
    shown(view.backup(&key.namespace, &key.name)?.object.status.as_ref()?.queue_info)
}

fn shown_restore(view: &State, key: &Key) -> Option<i64> {
    shown(view.restore(&key.namespace, &key.name)?.object.status.as_ref()?.queue_info)
}

fn shown(info: Option<QueueInfo>) -> Option<i64> {
    info.map(|info| info.estimated_queue_position)
}

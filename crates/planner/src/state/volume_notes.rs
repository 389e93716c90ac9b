//! When volume operations last changed. Velero's objects do not say so, so this is kept in memory: after a restart it
//! counts from the first time the object is seen.

use std::collections::BTreeSet;

use api::NodeAgent;
use api::velero::{VolumeOperation, VolumeProgress};
use jiff::Timestamp;

use super::{State, WatchedKind};
use crate::Key;

/// What was last seen of a volume operation that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeNote {
    uid: Option<String>,
    /// The Velero Backup or Restore it belongs to.
    owners: Vec<String>,
    phase: String,
    progress: VolumeProgress,
    /// When phase or progress last changed.
    pub changed: Timestamp,
    /// Since when it is being cancelled.
    pub cancelling_since: Option<Timestamp>,
}

impl State {
    /// When this volume operation last changed; none if it is over or unknown.
    pub fn volume_note(&self, key: &Key) -> Option<&VolumeNote> {
        self.volume_notes.get(key)
    }

    /// The requests with volume operations that are not over.
    pub(crate) fn with_volumes_at_work(&self) -> Vec<Key> {
        let owners: BTreeSet<_> = self.volume_notes.values().flat_map(|note| &note.owners).collect();
        owners
            .into_iter()
            .flat_map(|name| [self.backups_of(name), self.restores_of(name)])
            .flatten()
            .collect()
    }

    /// Notes a change of the node agents: when the last one ended.
    pub(super) fn index_node_agent(&mut self, _: Option<&NodeAgent>, _: Option<&NodeAgent>) {
        let left = (!self.node_agent_runs()).then_some(self.now);
        self.node_agent_left = left.map(|now| self.node_agent_left.unwrap_or(now));
    }

    /// Notes a change of a volume operation, which belongs to these.
    pub(super) fn note_volume<K: WatchedKind + VolumeOperation>(
        &mut self,
        key: &Key,
        after: Option<&K>,
        owners: Vec<String>,
    ) {
        let Some(object) = after.filter(|object| !object.is_over()) else {
            self.volume_notes.remove(key);
            return;
        };
        let before = self.volume_notes.remove(key).filter(|note| note.uid == object.meta().uid);
        let (phase, progress) = (object.phase().to_owned(), object.progress());
        let same = before.as_ref().filter(|note| note.phase == phase && note.progress == progress);
        let cancelling_since = before.as_ref().and_then(|note| note.cancelling_since);
        let note = VolumeNote {
            uid: object.meta().uid.clone(),
            owners,
            changed: same.map_or(self.now, |note| note.changed),
            cancelling_since: object.is_cancelling().then(|| cancelling_since.unwrap_or(self.now)),
            phase,
            progress,
        };
        self.volume_notes.insert(key.clone(), note);
    }
}

//! The unfinished Velero objects of one kind, in the order Velero takes them.

use std::collections::HashMap;

use api::velero::{Backup, Restore};
use indexset::BTreeSet;
use jiff::Timestamp;
use kube::core::ObjectMeta;

/// Sort key: a time, a number among those with the same time, and the name.
type QueueKey = (Timestamp, u64, String);

/// An ordered index of what waits or runs in Velero, kept current object by object. A position costs O(log n);
/// nothing is ever listed.
///
/// Velero processes objects in the order of its watch, and so does this index: a new object goes to the end, whatever
/// its name and creationTimestamp. So no object is ever overtaken. Objects from the initial list are ordered by age.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    keys: BTreeSet<QueueKey>,
    entries: HashMap<String, Entry>,
    changes: u64,
}

/// An entry of the queue.
#[derive(Clone, Debug)]
struct Entry {
    /// When it was made: another object of the same name has another time.
    made: Timestamp,
    key: QueueKey,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From a list, in no particular order.
    List,
    /// From a watch event.
    Watch,
}

impl Queue {
    /// Updates an object. Returns whether the order changed.
    pub fn note(&mut self, object: &impl Queued, source: Source) -> bool {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        match (object.stage(), &meta.creation_timestamp) {
            (Stage::Waiting | Stage::Running, Some(made)) => {
                // For objects that Velero has not changed yet, the resourceVersion is the order of creation.
                let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
                self.enter(name, made.0, (source == Source::List).then(|| version.unwrap_or(0)))
            }
            _ => self.leave(name),
        }
    }

    /// Removes an object. Returns whether the order changed.
    pub fn gone(&mut self, object: &impl Queued) -> bool {
        self.leave(object.meta().name.as_deref().unwrap_or_default())
    }

    /// Adds an entry at the end, or by age if it comes from a list.
    fn enter(&mut self, name: &str, made: Timestamp, listed: Option<u64>) -> bool {
        if self.entries.get(name).is_some_and(|entry| entry.made == made) {
            return false;
        }
        self.leave(name);
        let (time, number) = match (listed, self.keys.last()) {
            (Some(version), _) => (made, version),
            (None, Some((last, number, _))) if made <= *last => (*last, number.saturating_add(1)),
            (None, _) => (made, 0),
        };
        let key = (time, number, name.to_owned());
        self.changes += 1;
        self.entries.insert(name.to_owned(), Entry { made, key: key.clone() });
        self.keys.insert(key)
    }

    fn leave(&mut self, name: &str) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.changes += 1;
        self.keys.remove(&entry.key)
    }

    /// How often the order has changed so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The position to show for an object.
    pub fn position(&self, object: &impl Queued) -> i64 {
        let name = object.meta().name.as_deref().unwrap_or_default();
        position(object.stage(), self.ahead(name).unwrap_or_else(|| self.queue_length()))
    }

    /// How many are ahead of this one, if it is in the queue.
    fn ahead(&self, name: &str) -> Option<usize> {
        self.entries.get(name).map(|entry| self.keys.rank(&entry.key))
    }

    /// How many wait or run.
    pub fn queue_length(&self) -> usize {
        self.entries.len()
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(_, _, name)| name.as_str())
    }
}

/// The stage of a Velero object in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not started.
    Waiting,
    /// Running; the next one waits for it.
    Running,
    /// Waiting for plugin operations or finalizing; the next one does not wait for it.
    Finalizing,
    /// Finished, successfully or not.
    Finished,
}

/// A kind that Velero processes in order: Backup or Restore.
pub trait Queued {
    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// Velero's phase; empty if Velero has not processed it yet.
    fn phase(&self) -> &str;
    /// When Velero started it.
    fn started(&self) -> Option<Timestamp>;
    /// When Velero ended it.
    fn ended(&self) -> Option<Timestamp>;
    /// Whether plugins worked for it in the background, as data movers do: then it ends long after Velero's worker was done.
    fn has_operations(&self) -> bool;

    /// Its stage or phase.
    fn stage(&self) -> Stage {
        stage(self.phase(), self.ended().is_some())
    }
}

impl Queued for Backup {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn phase(&self) -> &str {
        self.phase()
    }

    fn started(&self) -> Option<Timestamp> {
        Some(self.status.as_ref()?.start_timestamp.as_ref()?.0)
    }

    fn ended(&self) -> Option<Timestamp> {
        Some(self.status.as_ref()?.completion_timestamp.as_ref()?.0)
    }

    fn has_operations(&self) -> bool {
        let attempted = self.status.as_ref().and_then(|status| status.backup_item_operations_attempted);
        attempted.is_some_and(|attempted| attempted > 0)
    }
}

impl Queued for Restore {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn phase(&self) -> &str {
        self.phase()
    }

    fn started(&self) -> Option<Timestamp> {
        Some(self.status.as_ref()?.start_timestamp.as_ref()?.0)
    }

    fn ended(&self) -> Option<Timestamp> {
        Some(self.status.as_ref()?.completion_timestamp.as_ref()?.0)
    }

    fn has_operations(&self) -> bool {
        let attempted = self.status.as_ref().and_then(|status| status.restore_item_operations_attempted);
        attempted.is_some_and(|attempted| attempted > 0)
    }
}

/// Reads Velero's phase of a Backup or Restore.
pub fn stage(phase: &str, completed: bool) -> Stage {
    match phase {
        "FailedValidation" | "Completed" | "PartiallyFailed" | "Failed" | "Deleting" => Stage::Finished,
        _ if completed => Stage::Finished,
        "InProgress" => Stage::Running,
        // Velero starts the next one meanwhile.
        "WaitingForPluginOperations"
        | "WaitingForPluginOperationsPartiallyFailed"
        | "Finalizing"
        | "FinalizingPartiallyFailed" => Stage::Finalizing,
        _ => Stage::Waiting,
    }
}

/// The position to show: 0 when over, 1 when running or next, else one more than what is ahead.
pub(crate) fn position(stage: Stage, ahead: usize) -> i64 {
    match stage {
        Stage::Finished => 0,
        Stage::Running | Stage::Finalizing => 1,
        Stage::Waiting => i64::try_from(ahead).unwrap_or(i64::MAX - 1) + 1,
    }
}

/// The position to show after this one was shown: it never rises. After a restart, objects created in the same second
/// may be ordered differently, which must not move a request back.
pub(crate) fn never_rising(shown: Option<i64>, position: i64) -> i64 {
    shown.filter(|shown| (1..position).contains(shown)).unwrap_or(position)
}

#[cfg(test)]
mod tests {
    use api::velero::{Backup, Restore};
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Queue, Queued as _, Stage, never_rising, position, stage};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn in_a_list_the_older_comes_first_and_then_whatever_was_made_first() {
        let mut queue = Queue::default();
        for (name, made, version) in [("a", 2, 30), ("b", 1, 10), ("c", 2, 20)] {
            assert!(queue.enter(name, at(made), Some(version)));
        }
        assert!(!queue.enter("a", at(2), Some(31)), "nothing changed");
        assert_eq!(queue.names().collect::<Vec<_>>(), ["b", "c", "a"]);
        assert_eq!(queue.ahead("a"), Some(2));
        assert!(queue.leave("b"));
        assert_eq!(queue.ahead("a"), Some(1));
        assert_eq!(queue.queue_length(), 2);
        assert!(!queue.leave("b"), "it is gone already");
        assert_eq!(queue.changes(), 4, "three came and one went");
    }

    #[test]
    fn whoever_comes_later_stands_behind() {
        let mut queue = Queue::default();
        queue.enter("m", at(5), Some(7));
        for (name, made) in [("z", 6), ("a", 6), ("late", 5)] {
            queue.enter(name, at(made), None);
        }
        assert_eq!(queue.names().collect::<Vec<_>>(), ["m", "z", "a", "late"]);
        queue.enter("z", at(7), None);
        assert_eq!(queue.names().last(), Some("z"), "another object of that name");
        queue.enter("missed", at(6), Some(9));
        assert_eq!(queue.names().collect::<Vec<_>>(), ["m", "a", "late", "missed", "z"], "as a list says");
    }

    #[test]
    fn whatever_has_ended_is_over_in_whatever_words() {
        let ended = json!({"phase": "SomethingNew", "completionTimestamp": "2026-01-01T00:00:00Z"});
        let backup = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {}, "spec": {}, "status": ended});
        assert_eq!(serde_json::from_value::<Backup>(backup).unwrap().stage(), Stage::Finished);
        let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore", "metadata": {}, "spec": {}, "status": ended});
        assert_eq!(serde_json::from_value::<Restore>(restore).unwrap().stage(), Stage::Finished);
    }

    #[test]
    fn only_what_velero_still_has_to_do_counts() {
        assert_eq!(stage("", false), Stage::Waiting);
        assert_eq!(stage("Queued", false), Stage::Waiting);
        assert_eq!(stage("FailedValidation", false), Stage::Finished, "it never gets a completion time");
        assert_eq!(stage("WaitingForPluginOperations", false), Stage::Finalizing);
        assert_eq!(stage("Finalizing", false), Stage::Finalizing, "the next one has begun");
        assert_eq!(stage("SomethingNew", true), Stage::Finished);
        assert_eq!(position(Stage::Waiting, 0), 1);
        assert_eq!(position(Stage::Waiting, 4), 5);
        assert_eq!(position(Stage::Running, 4), 1);
        assert_eq!(position(Stage::Finished, 4), 0);
    }

    #[test]
    fn what_was_shown_is_only_lowered() {
        assert_eq!(never_rising(None, 5), 5);
        assert_eq!(never_rising(Some(7), 5), 5);
        assert_eq!(never_rising(Some(4), 5), 4);
        assert_eq!(never_rising(Some(0), 5), 5, "it was over, says somebody who cannot know");
        assert_eq!(never_rising(Some(-5), 5), 5);
    }

    proptest! {
        #[test]
        fn a_position_is_what_counting_would_give_and_never_rises(
            steps in prop::collection::vec((0u8..20, 0i64..5, any::<bool>()), 0..200)
        ) {
            let mut queue = Queue::default();
            let mut plain: Vec<(String, i64)> = Vec::new();
            for (name, made, leaves) in steps {
                let name = format!("b{name}");
                let before: Vec<_> = plain.iter().map(|(name, _)| queue.ahead(name)).collect();
                let was = plain.clone();
                if leaves {
                    queue.leave(&name);
                    plain.retain(|(other, _)| *other != name);
                } else if queue.enter(&name, at(made), None) {
                    plain.retain(|(other, _)| *other != name);
                    plain.push((name.clone(), made));
                }
                for ((other, _), before) in was.iter().zip(before).filter(|((other, _), _)| *other != name) {
                    prop_assert!(queue.ahead(other) <= before, "{other} was overtaken by {name}");
                }
            }
            for (counted, (name, _)) in plain.iter().enumerate() {
                prop_assert_eq!(queue.ahead(name), Some(counted));
            }
            prop_assert_eq!(queue.queue_length(), plain.len());
        }
    }
}

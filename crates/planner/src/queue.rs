//! The unfinished Velero objects of one kind, in the order Velero takes them.

use std::collections::HashMap;

use api::velero::{Backup, Restore};
use indexset::BTreeSet;
use jiff::Timestamp;
use kube::core::ObjectMeta;

/// Who comes before whom: the older first, and of two made in the same second the one whose name sorts first.
type Place = (Timestamp, String);

/// An ordered index of what waits or runs in Velero, kept current object by object. A position costs O(log n);
/// nothing is ever listed.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    places: BTreeSet<Place>,
    made: HashMap<String, Timestamp>,
    changes: u64,
}

impl Queue {
    /// Notes an object that is not finished. Returns whether the order changed.
    pub fn enter(&mut self, name: &str, made: Timestamp) -> bool {
        if self.made.get(name) == Some(&made) {
            return false;
        }
        self.leave(name);
        self.changes += 1;
        self.made.insert(name.to_owned(), made);
        self.places.insert((made, name.to_owned()))
    }

    /// Notes that an object is finished or gone. Returns whether the order changed.
    pub fn leave(&mut self, name: &str) -> bool {
        let Some(made) = self.made.remove(name) else { return false };
        self.changes += 1;
        self.places.remove(&(made, name.to_owned()))
    }

    /// How often the order has changed so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes what has become of an object. Returns whether the order changed.
    pub fn note(&mut self, object: &impl Queued, gone: bool) -> bool {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        match (gone, object.stage(), &meta.creation_timestamp) {
            (false, Stage::Waiting | Stage::Running, Some(made)) => self.enter(name, made.0),
            _ => self.leave(name),
        }
    }

    /// The position to show for an object, or for one of this name that is made now.
    pub fn position(&self, object: Option<&impl Queued>, name: &str, now: Timestamp) -> i64 {
        let Some(object) = object else { return position(Stage::Waiting, self.ahead(name, now)) };
        let meta = object.meta();
        let made = meta.creation_timestamp.as_ref().map_or(now, |time| time.0);
        position(object.stage(), self.ahead(meta.name.as_deref().unwrap_or_default(), made))
    }

    /// How many are ahead of this one, which need not be in the queue itself yet.
    pub fn ahead(&self, name: &str, made: Timestamp) -> usize {
        self.places.rank(&(made, name.to_owned()))
    }

    /// How many wait or run.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// Whether nothing waits or runs.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|(_, name)| name.as_str())
    }
}

/// Where an object of Velero's stands, as far as the queue is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has yet to start.
    Waiting,
    /// It runs, and others wait for it.
    Running,
    /// It waits for plugins in the background, and nobody waits for it.
    Aside,
    /// It is over, well or badly.
    Over,
}

/// Something Velero takes in turn: a Backup or a Restore.
pub trait Queued {
    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// Velero's phase; empty before Velero has looked at it.
    fn phase(&self) -> &str;
    /// Whether Velero has written down when it ended.
    fn completed(&self) -> bool;

    /// Where it stands.
    fn stage(&self) -> Stage {
        stage(self.phase(), self.completed())
    }
}

impl Queued for Backup {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn phase(&self) -> &str {
        self.phase()
    }

    fn completed(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some())
    }
}

impl Queued for Restore {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn phase(&self) -> &str {
        self.phase()
    }

    fn completed(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some())
    }
}

/// Reads Velero's phase of a Backup or Restore.
pub fn stage(phase: &str, completed: bool) -> Stage {
    match phase {
        "FailedValidation" | "Completed" | "PartiallyFailed" | "Failed" | "Deleting" => Stage::Over,
        _ if completed => Stage::Over,
        "WaitingForPluginOperations" | "WaitingForPluginOperationsPartiallyFailed" => Stage::Aside,
        "InProgress" | "Finalizing" | "FinalizingPartiallyFailed" => Stage::Running,
        _ => Stage::Waiting,
    }
}

/// The position to show: 0 when over, 1 when running or next, else one more than what is ahead.
pub(crate) fn position(stage: Stage, ahead: usize) -> i64 {
    match stage {
        Stage::Over => 0,
        Stage::Running | Stage::Aside => 1,
        Stage::Waiting => i64::try_from(ahead).unwrap_or(i64::MAX - 1) + 1,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::{Queue, Stage, position, stage};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_older_comes_first_and_names_break_ties() {
        let mut queue = Queue::default();
        for (name, made) in [("c", 2), ("b", 1), ("a", 2)] {
            assert!(queue.enter(name, at(made)));
        }
        assert!(!queue.enter("a", at(2)), "nothing changed");
        assert_eq!(queue.names().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(queue.ahead("c", at(2)), 2);
        assert_eq!(queue.ahead("new", at(9)), 3);
        assert!(queue.leave("b"));
        assert_eq!(queue.ahead("c", at(2)), 1);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn only_what_velero_still_has_to_do_counts() {
        assert_eq!(stage("", false), Stage::Waiting);
        assert_eq!(stage("Queued", false), Stage::Waiting);
        assert_eq!(stage("FailedValidation", false), Stage::Over, "it never gets a completion time");
        assert_eq!(stage("WaitingForPluginOperations", false), Stage::Aside);
        assert_eq!(stage("SomethingNew", true), Stage::Over);
        assert_eq!(position(Stage::Waiting, 0), 1);
        assert_eq!(position(Stage::Waiting, 4), 5);
        assert_eq!(position(Stage::Running, 4), 1);
        assert_eq!(position(Stage::Over, 4), 0);
    }

    proptest! {
        #[test]
        fn a_position_is_what_counting_would_give(steps in prop::collection::vec((0u8..20, 0i64..5, any::<bool>()), 0..200)) {
            let mut queue = Queue::default();
            let mut plain = std::collections::BTreeMap::new();
            for (name, made, leaves) in steps {
                let name = format!("b{name}");
                if leaves {
                    queue.leave(&name);
                    plain.remove(&name);
                } else {
                    queue.enter(&name, at(made));
                    plain.insert(name, at(made));
                }
            }
            for (name, made) in &plain {
                let counted = plain.iter().filter(|(other, at)| (**at, other.as_str()) < (*made, name.as_str())).count();
                prop_assert_eq!(queue.ahead(name, *made), counted);
            }
            prop_assert_eq!(queue.len(), plain.len());
        }
    }
}

//! The unfinished Velero objects of one kind, in the order Velero takes them.

use std::collections::HashMap;

use api::velero::{Backup, Restore};
use indexset::BTreeSet;
use jiff::Timestamp;
use kube::core::ObjectMeta;

/// Where somebody stands: a time, and a number among those with the same time.
type Place = (Timestamp, u64, String);

/// An ordered index of what waits or runs in Velero, kept current object by object. A position costs O(log n);
/// nothing is ever listed.
///
/// Velero takes things in the order in which it hears of them, and so does this: whoever comes later stands behind
/// everybody who is there, whatever its name and to whichever second Kubernetes rounds its time. So nobody is ever
/// overtaken. What is found in a list, when nacre starts, is put in order by age instead.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    places: BTreeSet<Place>,
    stands: HashMap<String, Stand>,
    changes: u64,
}

/// Somebody in the queue.
#[derive(Clone, Debug)]
struct Stand {
    /// When it was made: another object of the same name has another time.
    made: Timestamp,
    place: Place,
}

/// How an object became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was in a list, among others older and younger.
    InAList,
    /// It has just happened.
    JustNow,
}

impl Queue {
    /// Notes what has become of an object. Returns whether the order changed.
    pub fn note(&mut self, object: &impl Queued, heard: Heard) -> bool {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        match (object.stage(), &meta.creation_timestamp) {
            (Stage::Waiting | Stage::Running, Some(made)) => {
                // Of what Velero has yet to touch, this is the order in which it was made.
                let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
                self.enter(name, made.0, (heard == Heard::InAList).then(|| version.unwrap_or(0)))
            }
            _ => self.leave(name),
        }
    }

    /// Notes that an object is gone. Returns whether the order changed.
    pub fn gone(&mut self, object: &impl Queued) -> bool {
        self.leave(object.meta().name.as_deref().unwrap_or_default())
    }

    /// Puts somebody at the end, or where a list says.
    fn enter(&mut self, name: &str, made: Timestamp, listed: Option<u64>) -> bool {
        if self.stands.get(name).is_some_and(|stand| stand.made == made) {
            return false;
        }
        self.leave(name);
        let (time, number) = match (listed, self.places.last()) {
            (Some(version), _) => (made, version),
            (None, Some((last, number, _))) if made <= *last => (*last, number.saturating_add(1)),
            (None, _) => (made, 0),
        };
        let place = (time, number, name.to_owned());
        self.changes += 1;
        self.stands.insert(name.to_owned(), Stand { made, place: place.clone() });
        self.places.insert(place)
    }

    fn leave(&mut self, name: &str) -> bool {
        let Some(stand) = self.stands.remove(name) else { return false };
        self.changes += 1;
        self.places.remove(&stand.place)
    }

    /// How often the order has changed so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The position to show for an object.
    pub fn position(&self, object: &impl Queued) -> i64 {
        let name = object.meta().name.as_deref().unwrap_or_default();
        position(object.stage(), self.ahead(name).unwrap_or_else(|| self.in_line()))
    }

    /// How many are ahead of this one, if it is in the queue.
    fn ahead(&self, name: &str) -> Option<usize> {
        self.stands.get(name).map(|stand| self.places.rank(&stand.place))
    }

    /// How many wait or run.
    pub fn in_line(&self) -> usize {
        self.stands.len()
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|(_, _, name)| name.as_str())
    }
}

/// Where an object of Velero's stands, as far as the queue is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has yet to start.
    Waiting,
    /// It runs, and others wait for it.
    Running,
    /// It waits for plugins in the background, or is given its last touch, and nobody waits for it.
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
        "InProgress" => Stage::Running,
        // Velero takes up the next one meanwhile.
        "WaitingForPluginOperations"
        | "WaitingForPluginOperationsPartiallyFailed"
        | "Finalizing"
        | "FinalizingPartiallyFailed" => Stage::Aside,
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

/// What to show where this was shown before: a position is a promise, and is only ever lowered. A restart that puts
/// those of one second in another order than before is no reason to send anybody back.
pub(crate) fn kept(shown: Option<i64>, position: i64) -> i64 {
    shown.filter(|shown| (1..position).contains(shown)).unwrap_or(position)
}

#[cfg(test)]
mod tests {
    use api::velero::{Backup, Restore};
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Queue, Queued as _, Stage, kept, position, stage};

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
        assert_eq!(queue.in_line(), 2);
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
        assert_eq!(serde_json::from_value::<Backup>(backup).unwrap().stage(), Stage::Over);
        let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore", "metadata": {}, "spec": {}, "status": ended});
        assert_eq!(serde_json::from_value::<Restore>(restore).unwrap().stage(), Stage::Over);
    }

    #[test]
    fn only_what_velero_still_has_to_do_counts() {
        assert_eq!(stage("", false), Stage::Waiting);
        assert_eq!(stage("Queued", false), Stage::Waiting);
        assert_eq!(stage("FailedValidation", false), Stage::Over, "it never gets a completion time");
        assert_eq!(stage("WaitingForPluginOperations", false), Stage::Aside);
        assert_eq!(stage("Finalizing", false), Stage::Aside, "the next one has begun");
        assert_eq!(stage("SomethingNew", true), Stage::Over);
        assert_eq!(position(Stage::Waiting, 0), 1);
        assert_eq!(position(Stage::Waiting, 4), 5);
        assert_eq!(position(Stage::Running, 4), 1);
        assert_eq!(position(Stage::Over, 4), 0);
    }

    #[test]
    fn what_was_shown_is_only_lowered() {
        assert_eq!(kept(None, 5), 5);
        assert_eq!(kept(Some(7), 5), 5);
        assert_eq!(kept(Some(4), 5), 4);
        assert_eq!(kept(Some(0), 5), 5, "it was over, says somebody who cannot know");
        assert_eq!(kept(Some(-5), 5), 5);
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
            prop_assert_eq!(queue.in_line(), plain.len());
        }
    }
}

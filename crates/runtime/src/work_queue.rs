//! Which object to decide about next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use planner::Key;

/// Objects to decide about: each is in the queue at most once, and is worked on by one worker at a time.
///
/// Times are the uptime of the process, given by the caller: there is no clock here.
#[derive(Clone, Debug, Default)]
pub struct WorkQueue {
    ready: VecDeque<Key>,
    /// The keys in `ready`.
    queued: HashSet<Key>,
    running: HashSet<Key>,
    /// Enqueued while a worker processed it: processed once more afterwards.
    again: HashSet<Key>,
    timers: BTreeSet<(Duration, Key)>,
    due: BTreeMap<Key, Duration>,
    failures: HashMap<Key, u32>,
}

impl WorkQueue {
    /// Enqueues these keys.
    pub fn enqueue(&mut self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if self.running.contains(&key) {
                self.again.insert(key);
            } else if self.queued.insert(key.clone()) {
                self.ready.push_back(key);
            }
        }
    }

    /// Sets the timer of an object, or clears it: what was decided last replaces what was decided before. No delay at all
    /// means to decide again soon.
    pub fn set_timer(&mut self, key: &Key, delay: Option<Duration>, uptime: Duration) {
        if let Some(due) = self.due.remove(key) {
            self.timers.remove(&(due, key.clone()));
        }
        match delay {
            None => {}
            Some(Duration::ZERO) => self.enqueue([key.clone()]),
            Some(delay) => {
                let due = uptime.saturating_add(delay);
                self.due.insert(key.clone(), due);
                self.timers.insert((due, key.clone()));
            }
        }
    }

    /// Wakes every object whose timer is due.
    pub fn on_time(&mut self, uptime: Duration) {
        while let Some(first) = self.timers.first().filter(|(at, _)| *at <= uptime).cloned() {
            self.timers.remove(&first);
            self.due.remove(&first.1);
            self.enqueue([first.1]);
        }
    }

    /// The next object to decide about. Whoever takes it must call [`WorkQueue::done`].
    pub fn next(&mut self, uptime: Duration) -> Option<Key> {
        self.on_time(uptime);
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// Takes this object out of turn. Returns whether it was ready.
    pub fn take(&mut self, key: &Key) -> bool {
        let ready = self.queued.remove(key);
        if ready {
            self.ready.retain(|other| other != key);
            self.running.insert(key.clone());
        }
        ready
    }

    /// A worker is done with an object. Returns how often in a row it has failed.
    pub fn done(&mut self, key: &Key, well: bool) -> u32 {
        self.running.remove(key);
        if self.again.remove(key) {
            self.enqueue([key.clone()]);
        }
        if well {
            self.failures.remove(key);
            return 0;
        }
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// The objects that are ready to be decided about, in order.
    pub fn ready(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.ready.iter()
    }

    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The timers, by object.
    pub fn timers(&self) -> &BTreeMap<Key, Duration> {
        &self.due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::Kind;
    use planner::Key;

    use super::WorkQueue;

    const START: Duration = Duration::from_secs(100);

    fn key(name: &str) -> Key {
        Key::new(Kind::NonAdminBackup, "shop", name)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_object_is_in_the_queue_once_and_worked_on_once_at_a_time() {
        let mut work = WorkQueue::default();
        work.enqueue([key("a"), key("b"), key("a")]);
        assert_eq!(work.next(START), Some(key("a")));
        work.enqueue([key("a")]);
        assert_eq!(work.next(START), Some(key("b")));
        assert_eq!((work.next(START), work.ready().len()), (None, 0), "a is being worked on");
        assert_eq!(work.done(&key("a"), true), 0);
        assert_eq!(work.next(START), Some(key("a")), "woken meanwhile");
        work.done(&key("a"), true);
        assert_eq!(work.next(START), None);
    }

    #[test]
    fn the_latest_decision_sets_the_timer() {
        let mut work = WorkQueue::default();
        work.set_timer(&key("a"), Some(seconds(3)), START);
        work.set_timer(&key("a"), Some(seconds(10)), START);
        assert_eq!((work.next_timer(), work.timers().len()), (Some(START + seconds(10)), 1));
        assert_eq!(work.next(START + seconds(9)), None);
        assert_eq!(work.next(START + seconds(10)), Some(key("a")));
        work.done(&key("a"), true);
        assert_eq!((work.next(START + seconds(60)), work.next_timer()), (None, None));

        work.set_timer(&key("a"), Some(seconds(3)), START);
        work.set_timer(&key("a"), None, START);
        assert_eq!(work.next(START + seconds(60)), None, "it is settled");
        work.set_timer(&key("a"), Some(Duration::ZERO), START);
        assert_eq!(work.next(START), Some(key("a")), "no delay is soon");
    }

    #[test]
    fn an_object_can_be_taken_out_of_turn() {
        let mut work = WorkQueue::default();
        work.enqueue([key("a"), key("b")]);
        assert!(work.take(&key("b")) && !work.take(&key("b")));
        assert_eq!((work.next(START), work.next(START)), (Some(key("a")), None));
    }

    #[test]
    fn failures_are_counted_until_it_goes_well() {
        let mut work = WorkQueue::default();
        assert_eq!(work.done(&key("a"), false), 1);
        assert_eq!(work.done(&key("a"), false), 2);
        assert_eq!(work.done(&key("a"), true), 0);
        assert_eq!(work.done(&key("a"), false), 1);
    }
}

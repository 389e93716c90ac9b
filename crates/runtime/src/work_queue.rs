//! Which object to decide about next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use planner::Key;

/// Objects to decide about: each is in the queue at most once, and is worked on by one worker at a time.
///
/// Times are the uptime of the process, given by the caller: there is no clock here.
#[derive(Clone, Debug, Default)]
pub struct WorkQueue {
    ready: Ready,
    /// The keys in `ready`.
    queued: HashSet<Key>,
    running: HashSet<Key>,
    /// Enqueued while a worker processed it: processed once more afterwards.
    again: HashSet<Key>,
    timers: BTreeSet<(Duration, Key)>,
    due: BTreeMap<Key, Duration>,
    failures: HashMap<Key, u32>,
}

/// When an object goes into the queue again, even if nothing changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requeue {
    /// Not before something it depends on changes.
    #[default]
    OnChange,
    /// Now: behind those that are ready.
    Now,
    /// After this time.
    After(Duration),
}

impl Requeue {
    /// How long to wait, for whoever has a loop of their own; none to wait for a change.
    pub fn delay(self) -> Option<Duration> {
        match self {
            Self::OnChange => None,
            Self::Now => Some(Duration::ZERO),
            Self::After(delay) => Some(delay),
        }
    }
}

/// What is ready, a line for each namespace. The lines take turns: however much one tenant has changed, or keeps
/// changing, another tenant's object waits for one object of each namespace.
#[derive(Clone, Debug, Default)]
struct Ready {
    lines: HashMap<String, VecDeque<Key>>,
    /// The namespaces with somebody in line, in the order of their turns.
    turns: VecDeque<String>,
}

impl Ready {
    fn push(&mut self, key: Key) {
        let line = self.lines.entry(key.namespace.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(key.namespace.clone());
        }
        line.push_back(key);
    }

    fn pop(&mut self) -> Option<Key> {
        let namespace = self.turns.pop_front()?;
        let line = self.lines.get_mut(&namespace)?;
        let key = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        key
    }

    fn remove(&mut self, key: &Key) {
        let Some(line) = self.lines.get_mut(&key.namespace) else { return };
        line.retain(|other| other != key);
        if line.is_empty() {
            self.lines.remove(&key.namespace);
            self.turns.retain(|namespace| *namespace != key.namespace);
        }
    }
}

impl WorkQueue {
    /// Enqueues these keys.
    pub fn enqueue(&mut self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if self.running.contains(&key) {
                self.again.insert(key);
            } else if self.queued.insert(key.clone()) {
                self.ready.push(key);
            }
        }
    }

    /// Enqueues an object now, sets its timer, or clears it: what was decided last replaces what was decided before.
    pub fn requeue(&mut self, key: &Key, when: Requeue, uptime: Duration) {
        if let Some(due) = self.due.remove(key) {
            self.timers.remove(&(due, key.clone()));
        }
        match when {
            Requeue::OnChange => {}
            Requeue::Now => self.enqueue([key.clone()]),
            Requeue::After(delay) => {
                let due = uptime.saturating_add(delay);
                self.due.insert(key.clone(), due);
                self.timers.insert((due, key.clone()));
                self.on_time(uptime);
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
        let key = self.ready.pop()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// Takes this object out of turn. Returns whether it was ready.
    pub fn take(&mut self, key: &Key) -> bool {
        let ready = self.queued.remove(key);
        if ready {
            self.ready.remove(key);
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

    /// The objects that are ready to be decided about, namespace by namespace.
    pub fn ready(&self) -> impl Iterator<Item = &Key> {
        self.ready.turns.iter().filter_map(|namespace| self.ready.lines.get(namespace)).flatten()
    }

    /// How many are ready.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Whether none is ready.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
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

    use super::{Requeue, WorkQueue};

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
        assert_eq!((work.next(START), work.len()), (None, 0), "a is being worked on");
        assert_eq!(work.done(&key("a"), true), 0);
        assert_eq!(work.next(START), Some(key("a")), "woken meanwhile");
        work.done(&key("a"), true);
        assert_eq!(work.next(START), None);
    }

    /// F3: one tenant changes thousands of objects again and again, so that everybody else waits
    /// planted: one line for all
    #[test]
    fn f3_a_storm_of_one_tenant_does_not_hold_up_another() {
        let storm =
            |namespace: &str, number: usize| Key::new(Kind::NonAdminBackup, namespace, &format!("b{number}"));
        // After how many turns the last one who came has theirs, while a storm goes on in this namespace.
        let waits = |storms: &str, others: [&Key; 3]| {
            let mut work = WorkQueue::default();
            work.enqueue((0..10_000).map(|number| storm(storms, number)));
            work.enqueue(others.map(Key::clone));
            let mut order = Vec::new();
            while order.last() != Some(others[2]) {
                let next = work.next(START).unwrap();
                work.done(&next, true);
                // It goes on and on.
                work.enqueue([storm(storms, order.len())]);
                order.push(next);
            }
            (order, work.len())
        };
        let office = Key::new(Kind::NonAdminRestore, "office", "c");
        let (order, in_line) = waits("storm", [&key("a"), &key("b"), &office]);
        assert_eq!(order, [storm("storm", 0), key("a"), office]);
        assert_eq!(in_line, 10_000 + 1, "each is in line once");
        // The planted weakness is one line for all of them: what the storm changed comes first.
        let last = key("last");
        assert_eq!(waits("shop", [&key("a"), &key("b"), &last]).0.len(), 10_000 + 3);
    }

    #[test]
    fn the_latest_decision_sets_the_timer() {
        let mut work = WorkQueue::default();
        work.requeue(&key("a"), Requeue::After(seconds(3)), START);
        work.requeue(&key("a"), Requeue::After(seconds(10)), START);
        assert_eq!((work.next_timer(), work.timers().len()), (Some(START + seconds(10)), 1));
        assert_eq!(work.next(START + seconds(9)), None);
        assert_eq!(work.next(START + seconds(10)), Some(key("a")));
        work.done(&key("a"), true);
        assert_eq!((work.next(START + seconds(60)), work.next_timer()), (None, None));

        work.requeue(&key("a"), Requeue::After(seconds(3)), START);
        work.requeue(&key("a"), Requeue::OnChange, START);
        assert_eq!(work.next(START + seconds(60)), None, "it is settled");
        work.requeue(&key("a"), Requeue::After(seconds(3)), START);
        work.requeue(&key("a"), Requeue::Now, START);
        assert_eq!((work.len(), work.next_timer()), (1, None), "it is ready, without a timer");
        assert_eq!(work.next(START), Some(key("a")));
    }

    #[test]
    fn a_timer_that_is_due_when_it_is_set_does_not_wait_for_the_next_look_at_the_clock() {
        let mut work = WorkQueue::default();
        work.requeue(&key("a"), Requeue::After(Duration::ZERO), START);
        assert_eq!((work.len(), work.next_timer(), work.timers().len()), (1, None, 0));
        assert_eq!(work.next(START), Some(key("a")));
    }

    #[test]
    fn a_loop_without_a_queue_waits_for_the_same_time() {
        let delays = [Requeue::OnChange, Requeue::Now, Requeue::After(seconds(3))].map(Requeue::delay);
        assert_eq!(delays, [None, Some(Duration::ZERO), Some(seconds(3))]);
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

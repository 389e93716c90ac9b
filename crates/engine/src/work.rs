//! What to decide about next.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planner::Key;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A queue of objects to decide about: each stands in it at most once and is worked on by one worker at a time.
#[derive(Debug, Default)]
pub struct Work {
    state: Mutex<Pending>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    ready: VecDeque<Key>,
    /// The keys in `ready`.
    queued: HashSet<Key>,
    running: HashSet<Key>,
    /// Woken while a worker was at it: decided about once more afterwards.
    again: HashSet<Key>,
    later: BTreeSet<(Instant, Key)>,
    due: HashMap<Key, Instant>,
    failures: HashMap<Key, u32>,
}

impl Work {
    /// Decide about these soon.
    pub fn wake(&self, keys: impl IntoIterator<Item = Key>) {
        let mut state = self.lock();
        for key in keys {
            state.wake(key);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Decide about this after a while; the earliest wish counts.
    pub fn wake_in(&self, key: Key, delay: Duration) {
        let at = Instant::now() + delay;
        let mut state = self.lock();
        if state.due.get(&key).is_some_and(|due| *due <= at) {
            return;
        }
        if let Some(due) = state.due.insert(key.clone(), at) {
            state.later.remove(&(due, key.clone()));
        }
        state.later.insert((at, key));
        drop(state);
        self.changed.notify_one();
    }

    /// The next object to decide about. Whoever takes it must say [`Work::done`].
    pub async fn next(&self) -> Key {
        loop {
            let (key, due) = self.lock().take(Instant::now());
            if let Some(key) = key {
                // Another worker may be waiting for what is still there.
                self.changed.notify_one();
                return key;
            }
            let changed = self.changed.notified();
            match due {
                Some(due) => tokio::select! { () = changed => {}, () = sleep_until(due) => {} },
                None => changed.await,
            }
        }
    }

    /// A worker is through with this one. Returns how often in a row it has failed.
    pub fn done(&self, key: &Key, well: bool) -> u32 {
        let mut state = self.lock();
        state.running.remove(key);
        if state.again.remove(key) {
            state.wake(key.clone());
        }
        if well {
            state.failures.remove(key);
            drop(state);
            self.changed.notify_one();
            return 0;
        }
        let failures = state.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// How many wait for a worker now.
    pub fn waiting(&self) -> usize {
        self.lock().ready.len()
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // Nothing panics while holding it; and if something did, the queue would still be sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn wake(&mut self, key: Key) {
        if self.running.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// The next key, and if there is none, when one becomes due.
    fn take(&mut self, now: Instant) -> (Option<Key>, Option<Instant>) {
        while let Some((at, key)) = self.later.pop_first() {
            if at > now {
                self.later.insert((at, key));
                break;
            }
            self.due.remove(&key);
            self.wake(key);
        }
        let key = self.ready.pop_front();
        if let Some(key) = &key {
            self.queued.remove(key);
            self.running.insert(key.clone());
        }
        (key, self.later.first().map(|(at, _)| *at))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::Kind;
    use planner::Key;

    use super::Work;

    fn key(name: &str) -> Key {
        Key::new(Kind::NonAdminBackup, "shop", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_stands_once_and_is_worked_on_once_at_a_time() {
        let work = Work::default();
        work.wake([key("a"), key("b"), key("a")]);
        assert_eq!(work.next().await, key("a"));
        work.wake([key("a")]);
        assert_eq!(work.next().await, key("b"));
        assert_eq!(work.waiting(), 0, "a is being worked on");
        assert_eq!(work.done(&key("a"), true), 0);
        assert_eq!(work.next().await, key("a"), "woken meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_wish_counts() {
        let work = Work::default();
        let start = tokio::time::Instant::now();
        work.wake_in(key("a"), Duration::from_secs(10));
        work.wake_in(key("a"), Duration::from_secs(3));
        work.wake_in(key("a"), Duration::from_secs(7));
        assert_eq!(work.next().await, key("a"));
        assert_eq!(start.elapsed().as_secs(), 3);
        work.done(&key("a"), true);
        let nothing = tokio::time::timeout(Duration::from_mins(1), work.next()).await;
        assert!(nothing.is_err(), "the later wishes were for the same thing");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_counted_until_it_goes_well() {
        let work = Work::default();
        work.wake([key("a")]);
        let taken = work.next().await;
        assert_eq!(work.done(&taken, false), 1);
        assert_eq!(work.done(&taken, false), 2);
        assert_eq!(work.done(&taken, true), 0);
        assert_eq!(work.done(&taken, false), 1);
    }
}

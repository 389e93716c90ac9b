//! The runtime, shared by watches, workers and the webhook.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use planner::requester::Ask;
use planner::state::Moment;
use planner::{Key, State};
use runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::degraded::Degraded;

/// The runtime behind a lock, with a clock. A decision holds it for microseconds.
#[derive(Debug)]
pub struct Cluster {
    runtime: RwLock<Runtime>,
    started: Instant,
    /// Something became ready, or a timer was set.
    changed: Notify,
    /// A decision asked for a fact.
    asked: Notify,
    degraded: Arc<Degraded>,
}

/// A look at the cluster as it was last seen.
pub struct Look<'a>(RwLockReadGuard<'a, Runtime>);

impl Deref for Look<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl Look<'_> {
    /// How many objects wait to be decided about.
    pub fn waiting(&self) -> usize {
        self.0.work.len()
    }
}

impl Cluster {
    /// Nothing seen yet.
    pub fn new(admin_namespace: &str) -> Self {
        Self {
            runtime: RwLock::new(Runtime::new(admin_namespace)),
            started: Instant::now(),
            changed: Notify::new(),
            asked: Notify::new(),
            degraded: Arc::default(),
        }
    }

    /// What is disabled in this cluster, and why.
    pub fn degraded(&self) -> &Arc<Degraded> {
        &self.degraded
    }

    /// A look at everything as of now, for as long as it is held.
    pub fn look(&self) -> Look<'_> {
        let mut runtime = self.lock();
        runtime.state.set_now(Timestamp::now());
        Look(RwLockWriteGuard::downgrade(runtime))
    }

    /// Changes something, and wakes the requests it affects.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State) -> Vec<Key>) {
        self.drive(|runtime, now| {
            runtime.state.set_now(now.clock);
            let affected = change(&mut runtime.state);
            runtime.work.enqueue(affected);
        });
    }

    /// Does something with the runtime, at this moment.
    pub(crate) fn drive<T>(&self, act: impl FnOnce(&mut Runtime, Moment) -> T) -> T {
        let now = Moment { clock: Timestamp::now(), uptime: self.started.elapsed() };
        let mut runtime = self.lock();
        let reads = runtime.state.policy_reads();
        let done = act(&mut runtime, now);
        if runtime.state.policy_reads() != reads {
            report_policy(&runtime.state);
        }
        if runtime.state.has_asks() {
            self.asked.notify_one();
        }
        drop(runtime);
        self.changed.notify_one();
        done
    }

    /// What decisions ask for, once they do. Whoever takes it must answer, or give it back.
    pub(crate) async fn asks(&self) -> Vec<Ask> {
        loop {
            let asked = self.asked.notified();
            let asks = self.lock().state.take_asks();
            if !asks.is_empty() {
                return asks;
            }
            asked.await;
        }
    }

    /// Enqueues these keys.
    pub fn enqueue(&self, keys: Vec<Key>) {
        self.drive(|runtime, _| runtime.work.enqueue(keys));
    }

    /// These requests may publish their queue position; they are decided about soon.
    pub fn publish_positions(&self, keys: Vec<Key>) {
        self.drive(|runtime, _| runtime.publish_positions(keys));
    }

    /// The decision about an object panicked: it is retried later and later, and does not stop the others.
    pub fn back_off(&self, key: &Key) {
        self.drive(|runtime, now| runtime.abandon(key, now));
    }

    /// Takes the hosts by which the API server is reached.
    pub fn reached_at(&self, hosts: &[String]) {
        self.drive(|runtime, _| runtime.state.set_api_server(hosts));
    }

    /// Takes whether Velero is for tenants alone.
    pub fn set_dedicated(&self, dedicated: bool) {
        self.drive(|runtime, _| runtime.state.set_dedicated(dedicated));
    }

    /// Everything was listed once: the policy can be read.
    pub fn read_policy(&self) {
        self.drive(|runtime, now| {
            runtime.state.set_now(now.clock);
            runtime.state.read_policy();
        });
    }

    /// Drops a policy that vanished and whose time is over.
    pub fn end_vanished_policy(&self) {
        self.change(State::end_vanished_policy);
    }

    /// The next object to decide about. Whoever takes it must finish it.
    pub async fn next(&self) -> Key {
        loop {
            let changed = self.changed.notified();
            let (key, due) = {
                let mut runtime = self.lock();
                (runtime.next(self.started.elapsed()), runtime.work.next_timer())
            };
            if let Some(key) = key {
                // Another worker may wait for the remaining keys.
                self.changed.notify_one();
                return key;
            }
            match due {
                Some(due) => {
                    tokio::select! { () = changed => {}, () = sleep_until(self.started + due) => {} }
                }
                None => changed.await,
            }
        }
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Runtime> {
        // A panic while writing leaves single objects stale at worst, which the next event fixes.
        self.runtime.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report_policy(state: &State) {
    for vanished in state.policy_vanished() {
        warn!("policy: {vanished}");
    }
    for problem in state.policy_problems() {
        warn!("policy: {problem}");
    }
    info!(problems = state.policy_problems().len(), in_effect = state.policy_in_effect(), "policy read");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::Kind;
    use planner::Key;
    use runtime::Requeue;
    use tokio::time::timeout;

    use super::Cluster;

    #[tokio::test(start_paused = true)]
    async fn a_worker_waits_for_what_is_woken_and_for_timers() {
        let cluster = Cluster::new("velero");
        let key = Key::new(Kind::NonAdminBackup, "shop", "daily");
        cluster.enqueue(vec![key.clone()]);
        assert_eq!(cluster.next().await, key);
        let started = tokio::time::Instant::now();
        cluster.drive(|runtime, now| {
            runtime.work.done(&key, true);
            runtime.work.requeue(&key, Requeue::After(Duration::from_secs(3)), now.uptime);
        });
        assert_eq!(cluster.next().await, key);
        assert_eq!(started.elapsed().as_secs(), 3);
        assert!(timeout(Duration::from_mins(1), cluster.next()).await.is_err(), "nothing else is due");
    }
}

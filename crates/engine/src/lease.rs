//! Leader election: executes what `planner::election` decides.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::core::ObjectMeta;
use planner::election::{Election, Next, Store};
use planner::install::LEASE_SECRET;
use planner::lease::{Record, Times};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::error::status;
use crate::leadership::{LeaderStatus, Leadership};
use crate::lease_store::Stores;

/// The Lease, and the identity of this process.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Where the Secret is that takes its place if this process may not use Leases; none if nothing does.
    pub secret_namespace: Option<String>,
    /// The holder identity of this process; unique, also over restarts.
    pub me: String,
    /// Durations of leader election.
    pub times: Times,
}

/// The holder identity: the namespace of the installation, the host or pod, and a random part.
pub fn identity(namespace: &str, host: &str) -> String {
    format!("{namespace}/{host}_{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Takes part in leader election until shutdown, waits until no write is in flight, and releases the Lease. The client
/// must not be behind the leader check: acquiring the Lease is what opens it.
pub async fn run_election(client: Client, lease_config: LeaseConfig, leadership: Leadership) {
    let has_secret = lease_config.secret_namespace.is_some();
    let mut run = Run {
        stores: Stores::new(client, &lease_config),
        election: Election::new(&lease_config.me, lease_config.times, has_secret),
        lease: Known::default(),
        secret: Known::default(),
        looked: None,
        forbidden: String::new(),
        began: Instant::now(),
        lease_config,
        leadership,
    };
    run.until_finished().await;
    run.release().await;
}

struct Run {
    stores: Stores,
    lease_config: LeaseConfig,
    leadership: Leadership,
    election: Election,
    lease: Known,
    secret: Known,
    /// The wall clock at the start of this process's own, as it was when a look at the Secret began.
    looked: Option<SystemTime>,
    /// Why the Lease may not be used.
    forbidden: String,
    /// Start of this process's own clock.
    began: Instant,
}

/// What is known of one record.
#[derive(Default)]
struct Known {
    /// As last read or written.
    lease: Option<Lease>,
    /// The wall clock at the start of this process's own, as it was when the last write began.
    written: Option<SystemTime>,
}

impl Run {
    async fn until_finished(&mut self) {
        loop {
            match self.election.step(self.began.elapsed()) {
                Next::Wait(pause) => tokio::select! {
                    () = self.leadership.finished() => return,
                    () = sleep(pause) => {}
                },
                Next::Look(store) => self.look(store).await,
                Next::Write(store) => self.write(store).await,
                Next::RemoveSecret => self.remove().await,
            }
        }
    }

    fn known(&mut self, store: Store) -> &mut Known {
        match store {
            Store::Lease => &mut self.lease,
            Store::Secret => &mut self.secret,
        }
    }

    async fn look(&mut self, store: Store) {
        let (sent, start) = self.clocks();
        match self.limited(self.stores.get(store)).await {
            Ok(found) => {
                self.election.saw(store, sent, self.began.elapsed(), found.as_ref().map(record));
                if store == Store::Secret {
                    self.looked = Some(start);
                }
                self.known(store).lease = found;
                self.publish();
            }
            Err(error) => self.failed(store, &error),
        }
    }

    async fn write(&mut self, store: Store) {
        let (sent, start) = self.clocks();
        let found = self.known(store).lease.clone();
        let wanted = claim(found.as_ref(), &self.lease_config, Timestamp::now());
        match self.limited(self.stores.put(store, found.as_ref(), &wanted)).await {
            Ok(written) => {
                self.election.wrote(store, sent, self.began.elapsed(), record(&written));
                *self.known(store) = Known { lease: Some(written), written: Some(start) };
                self.publish();
            }
            // Another process wrote first, or it is gone.
            Err(LeaseError::Api(error)) if is_conflict(&error, found.is_some()) => {
                debug!(%error, "lease: changed by another process; reading it again");
                self.election.beaten(store, self.began.elapsed());
            }
            Err(error) => self.failed(store, &error),
        }
    }

    async fn remove(&mut self) {
        let (sent, start) = self.clocks();
        let Some(found) = self.secret.lease.clone() else { return };
        match self.limited(self.stores.remove(&found)).await {
            Ok(()) => {
                self.election.removed(sent, self.began.elapsed());
                self.secret = Known::default();
                self.looked = Some(start);
                self.publish();
            }
            Err(LeaseError::Api(error)) if is_conflict(&error, true) => {
                self.election.beaten(Store::Secret, self.began.elapsed());
            }
            Err(error) => self.failed(Store::Secret, &error),
        }
    }

    /// This process's own clock, and what the wall clock was at its start. Both are read before a request is sent: others may
    /// count from that moment.
    fn clocks(&self) -> (Duration, SystemTime) {
        let (sent, wall) = (self.began.elapsed(), SystemTime::now());
        (sent, wall.checked_sub(sent).unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Makes known whether this process is leader.
    fn publish(&mut self) {
        let now = self.began.elapsed();
        let Some((store, end)) = self.election.term().filter(|(_, end)| now < *end) else {
            let me = &self.lease_config.me;
            let standby = match self.election.holder() {
                Some(holder) if holder != me => LeaderStatus::Standby(holder.to_owned()),
                _ if self.election.is_ours(Store::Secret) => LeaderStatus::Unknown(
                    "this process holds the lease, and waits until nobody else can be leader".to_owned(),
                ),
                _ => return,
            };
            self.leadership.become_standby(standby);
            return;
        };
        let starts = match store {
            Store::Lease => [self.lease.written, self.looked],
            Store::Secret => [self.secret.written, None],
        };
        let Some(start) = starts.into_iter().flatten().min() else { return };
        let leading = match (store, &self.lease_config.secret_namespace) {
            (Store::Secret, Some(namespace)) => LeaderStatus::LeadingBySecret(format!(
                "in Secret {namespace}/{LEASE_SECRET}, since Leases may not be used: {}",
                self.forbidden
            )),
            _ => LeaderStatus::Leading,
        };
        self.leadership.lead_until(self.began + end, start + end, leading);
    }

    fn failed(&mut self, store: Store, lease_error: &LeaseError) {
        let now = self.began.elapsed();
        if let LeaseError::Api(error) = lease_error
            && let Some(status) = status(error).filter(|status| status.code == 403)
        {
            debug!(%lease_error, "lease: not permitted");
            if store == Store::Lease {
                self.forbidden.clone_from(&status.message);
            }
            // Where the Lease is forbidden, the Secret may do.
            if store == Store::Secret || self.lease_config.secret_namespace.is_none() {
                self.leadership.explain(format!("the lease cannot be acquired: {lease_error}"));
            }
            self.election.refused(store, now);
            return;
        }
        let LeaseConfig { namespace, name, .. } = &self.lease_config;
        warn!(%lease_error, "lease {namespace}/{name}: request failed; retrying");
        self.leadership.explain(format!("the lease {namespace}/{name} cannot be acquired: {lease_error}"));
        self.election.failed(store, now);
    }

    /// Releases what is held, so that the next leader need not wait for its expiry.
    async fn release(&mut self) {
        let [lease, secret] =
            [Store::Lease, Store::Secret].map(|store| self.election.is_ours(store).then_some(store));
        let mut released = Ok(());
        if let (Some(_), Some(found)) = (secret, self.secret.lease.take()) {
            released = self.limited(self.stores.remove(&found)).await;
        }
        if let (Some(store), Some(mut lease)) = (lease, self.lease.lease.take()) {
            let found = lease.clone();
            if let Some(spec) = &mut lease.spec {
                spec.holder_identity = None;
                spec.renew_time = Some(later_than(spec.renew_time.as_ref(), Timestamp::now()));
            }
            let written = self.limited(self.stores.put(store, Some(&found), &lease)).await;
            released = released.and_then(|()| written.map(drop));
        }
        match released {
            Ok(()) => debug!("lease: released"),
            Err(lease_error) => warn!(%lease_error, "lease: could not be released; it will expire"),
        }
    }

    /// Limits a request to a third of the lease, which leaves time for two retries before it expires.
    async fn limited<T>(
        &self,
        asking: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LeaseError> {
        match timeout(self.lease_config.times.acts() / 3, asking).await {
            Ok(answer) => answer.map_err(LeaseError::Api),
            Err(_) => Err(LeaseError::NoAnswer),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LeaseError {
    #[error(transparent)]
    Api(kube::Error),
    #[error("the API server did not answer in time")]
    NoAnswer,
}

/// Whether what was to be changed has changed or is gone.
fn is_conflict(error: &kube::Error, existed: bool) -> bool {
    status(error).is_some_and(|status| status.code == 409 || (status.code == 404 && existed))
}

pub(crate) fn record(lease: &Lease) -> Record {
    let spec = lease.spec.as_ref();
    let promised = spec.and_then(|spec| spec.lease_duration_seconds);
    Record {
        holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
        promised: promised.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// The Lease with this process as holder.
fn claim(found: Option<&Lease>, lease_config: &LeaseConfig, now: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(lease_config.name.clone()),
        namespace: Some(lease_config.namespace.clone()),
        ..ObjectMeta::default()
    };
    let mut lease = found.cloned().unwrap_or_else(|| Lease { metadata, ..Lease::default() });
    let before = lease.spec.take().unwrap_or_default();
    let renewed = later_than(before.renew_time.as_ref(), now);
    let same = before.holder_identity.as_ref() == Some(&lease_config.me);
    let changes = before.lease_transitions.unwrap_or_default();
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(lease_config.me.clone()),
        lease_duration_seconds: Some(lease_config.times.promise()),
        acquire_time: before.acquire_time.clone().filter(|_| same).or_else(|| Some(renewed.clone())),
        lease_transitions: Some(if same || found.is_none() { changes } else { changes.saturating_add(1) }),
        renew_time: Some(renewed),
        ..before
    });
    lease
}

/// A write without a change is not stored, and standbys would not see the renewal. So renewTime always increases.
fn later_than(before: Option<&MicroTime>, now: Timestamp) -> MicroTime {
    let moved = before.and_then(|before| before.0.checked_add(SignedDuration::from_micros(1)).ok());
    MicroTime(moved.map_or(now, |moved| moved.max(now)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use planner::lease::Times;

    use super::{LeaseConfig, claim, identity, record};

    fn lease_config(me: &str) -> LeaseConfig {
        let second = Duration::from_secs(1);
        let times = Times { duration: 10 * second, renew: 3 * second, retry: second };
        let (namespace, name) = ("kube-system".into(), "nacre".into());
        LeaseConfig { namespace, name, secret_namespace: None, me: me.into(), times }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_renewal_always_changes_the_lease_even_if_the_clock_goes_back() {
        let first = claim(None, &lease_config("one"), at(1000));
        let again = claim(Some(&first), &lease_config("one"), at(10));
        assert_ne!(first, again);
        let (first, again) = (first.spec.unwrap(), again.spec.unwrap());
        assert_eq!(first.acquire_time, again.acquire_time);
        assert_eq!((first.lease_transitions, again.lease_transitions), (Some(0), Some(0)));
    }

    #[test]
    fn a_change_of_hands_is_counted() {
        let first = claim(None, &lease_config("one"), at(1000));
        let second = claim(Some(&first), &lease_config("two"), at(1001));
        assert_eq!(record(&second).holder, "two");
        assert_eq!(record(&second).promised, Some(Duration::from_secs(10)));
        let spec = second.spec.unwrap();
        assert_eq!(spec.lease_transitions, Some(1));
        assert_eq!(spec.acquire_time.unwrap().0, at(1001));
    }

    #[test]
    fn no_two_runs_have_the_same_name() {
        let name = identity("velero", "host");
        assert!(name.starts_with("velero/host_"));
        assert_ne!(name, identity("velero", "host"));
    }
}

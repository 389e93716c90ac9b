//! Leader election: executes what `planner::lease` decides.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::lease::{Candidate, Record, Step, Times};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::error::status;
use crate::leadership::{LeaderStatus, Leadership};

/// Retry period while a permission is missing.
const NO_RIGHT: Duration = Duration::from_mins(1);

/// The Lease, and the identity of this process.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
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
    let leases = Api::<Lease>::namespaced(client, &lease_config.namespace);
    let candidate = Candidate::new(lease_config.me.clone(), lease_config.times);
    let mut run =
        Run { leases, candidate, lease: None, held: false, began: Instant::now(), lease_config, leadership };
    run.until_finished().await;
    run.release().await;
}

struct Run {
    leases: Api<Lease>,
    lease_config: LeaseConfig,
    leadership: Leadership,
    candidate: Candidate,
    /// As last read or written.
    lease: Option<Lease>,
    /// Whether this process was ever leader.
    held: bool,
    /// Start of this process's own clock.
    began: Instant,
}

impl Run {
    async fn until_finished(&mut self) {
        loop {
            match self.candidate.step(self.began.elapsed()) {
                Step::Wait(pause) => tokio::select! {
                    () = self.leadership.finished() => return,
                    () = sleep(pause) => {}
                },
                Step::Look => self.look().await,
                Step::Write => self.write().await,
            }
        }
    }

    async fn look(&mut self) {
        match self.limited(self.leases.get_opt(&self.lease_config.name)).await {
            Ok(found) => {
                self.candidate.saw(self.began.elapsed(), found.as_ref().map(record));
                self.lease = found;
                if let Some(holder) = self.candidate.holder().filter(|holder| *holder != self.lease_config.me)
                {
                    self.leadership.become_standby(LeaderStatus::Standby(holder.to_owned()));
                }
            }
            Err(error) => self.failed(error).await,
        }
    }

    async fn write(&mut self) {
        // Both clocks are read before the request is sent: standbys may count from that moment.
        let (sent, wall) = (self.began.elapsed(), SystemTime::now());
        let wanted = claim(self.lease.as_ref(), &self.lease_config, Timestamp::now());
        let params = PostParams::default();
        let new = self.lease.is_none();
        let answer = if new {
            self.limited(self.leases.create(&params, &wanted)).await
        } else {
            self.limited(self.leases.replace(&self.lease_config.name, &params, &wanted)).await
        };
        match answer {
            Ok(written) => {
                self.candidate.wrote(sent, record(&written));
                self.lease = Some(written);
                self.held = true;
                if let Some(end) = self.candidate.acts_until() {
                    self.leadership.lead_until(self.began + end, wall + self.lease_config.times.acts());
                }
            }
            // Another process wrote first, or the Lease is gone.
            Err(LeaseError::Api(error))
                if status(&error)
                    .is_some_and(|status| status.code == 409 || (status.code == 404 && !new)) =>
            {
                debug!(%error, "lease: changed by another process; reading it again");
                self.candidate.beaten(self.began.elapsed());
            }
            Err(error) => self.failed(error).await,
        }
    }

    async fn failed(&mut self, lease_error: LeaseError) {
        if let LeaseError::Api(error) = &lease_error
            && !self.held
            && let Some(status) = status(error).filter(|status| status.code == 403)
        {
            // A role without permission for leases, such as OADP's own.
            self.leadership.lead_without_lease(status.message.clone());
            tokio::select! {
                () = self.leadership.finished() => {}
                () = sleep(NO_RIGHT) => {}
            }
            self.candidate.beaten(self.began.elapsed());
            return;
        }
        let LeaseConfig { namespace, name, .. } = &self.lease_config;
        warn!(%lease_error, "lease {namespace}/{name}: request failed; retrying");
        self.leadership.explain(format!("the lease {namespace}/{name} cannot be acquired: {lease_error}"));
        self.candidate.failed(self.began.elapsed());
    }

    /// Releases the Lease, so that the next leader need not wait for its expiry.
    async fn release(&mut self) {
        let ours = self.candidate.holder() == Some(&self.lease_config.me);
        let Some(mut lease) = self.lease.take().filter(|_| ours) else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.renew_time = Some(later_than(spec.renew_time.as_ref(), Timestamp::now()));
        }
        match self.limited(self.leases.replace(&self.lease_config.name, &PostParams::default(), &lease)).await
        {
            Ok(_) => debug!("lease: released"),
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
        LeaseConfig { namespace: "kube-system".into(), name: "nacre".into(), me: me.into(), times }
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

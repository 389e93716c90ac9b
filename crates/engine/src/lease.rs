//! Holding the Lease: what `planner::lease` decides, carried out.

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
use crate::leadership::{Leadership, Standing};

/// How often to ask again for a right that nobody gave.
const NO_RIGHT: Duration = Duration::from_mins(1);

/// Which Lease, and who would hold it.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where the Lease is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Who we are: nobody else, at no time, has the same name.
    pub me: String,
    /// How long things take.
    pub times: Times,
}

/// A name for this run of the program: where it is installed, on which host or in which pod it runs, and something that
/// no other run has.
pub fn identity(namespace: &str, host: &str) -> String {
    format!("{namespace}/{host}_{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Takes part in who leads until the process is told to stop and has nothing on its way any more; then hands the Lease
/// back. The client must not be behind the gate, since holding on is what opens it.
pub async fn campaign(client: Client, seat: Seat, leadership: Leadership) {
    let leases = Api::<Lease>::namespaced(client, &seat.namespace);
    let candidate = Candidate::new(seat.me.clone(), seat.times);
    let mut run =
        Run { leases, candidate, lease: None, held: false, began: Instant::now(), seat, leadership };
    run.until_finished().await;
    run.hand_back().await;
}

struct Run {
    leases: Api<Lease>,
    seat: Seat,
    leadership: Leadership,
    candidate: Candidate,
    /// As last read or written.
    lease: Option<Lease>,
    /// Whether we have ever held it.
    held: bool,
    /// Where our own clock counts from.
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
        match self.limited(self.leases.get_opt(&self.seat.name)).await {
            Ok(found) => {
                self.candidate.saw(self.began.elapsed(), found.as_ref().map(record));
                self.lease = found;
                if let Some(holder) = self.candidate.holder().filter(|holder| *holder != self.seat.me) {
                    self.leadership.stand_by(Standing::Behind(holder.to_owned()));
                }
            }
            Err(error) => self.failed(error).await,
        }
    }

    async fn write(&mut self) {
        // Both before the question is asked: from then on the others may count, if it comes through.
        let (sent, wall) = (self.began.elapsed(), SystemTime::now());
        let wanted = claim(self.lease.as_ref(), &self.seat, Timestamp::now());
        let params = PostParams::default();
        let new = self.lease.is_none();
        let answer = if new {
            self.limited(self.leases.create(&params, &wanted)).await
        } else {
            self.limited(self.leases.replace(&self.seat.name, &params, &wanted)).await
        };
        match answer {
            Ok(written) => {
                self.candidate.wrote(sent, record(&written));
                self.lease = Some(written);
                self.held = true;
                if let Some(end) = self.candidate.acts_until() {
                    self.leadership.lead_until(self.began + end, wall + self.seat.times.acts());
                }
            }
            // Somebody else was faster, or it is gone.
            Err(Trouble::Api(error))
                if status(&error)
                    .is_some_and(|status| status.code == 409 || (status.code == 404 && !new)) =>
            {
                debug!(%error, "somebody else wrote the lease");
                self.candidate.beaten(self.began.elapsed());
            }
            Err(error) => self.failed(error).await,
        }
    }

    async fn failed(&mut self, trouble: Trouble) {
        if let Trouble::Api(error) = &trouble
            && !self.held
            && let Some(status) = status(error).filter(|status| status.code == 403)
        {
            // A role without leases, such as OADP's own.
            self.leadership.lead_without(status.message.clone());
            tokio::select! {
                () = self.leadership.finished() => {}
                () = sleep(NO_RIGHT) => {}
            }
            self.candidate.beaten(self.began.elapsed());
            return;
        }
        let Seat { namespace, name, .. } = &self.seat;
        warn!(%trouble, "the lease {namespace}/{name}; it is tried again");
        self.leadership.explain(format!("the lease {namespace}/{name} cannot be had: {trouble}"));
        self.candidate.failed(self.began.elapsed());
    }

    /// So that whoever comes next need not wait for it to run out.
    async fn hand_back(&mut self) {
        let ours = self.candidate.holder() == Some(&self.seat.me);
        let Some(mut lease) = self.lease.take().filter(|_| ours) else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.renew_time = Some(later_than(spec.renew_time.as_ref(), Timestamp::now()));
        }
        match self.limited(self.leases.replace(&self.seat.name, &PostParams::default(), &lease)).await {
            Ok(_) => debug!("the lease is handed back"),
            Err(trouble) => warn!(%trouble, "the lease was not handed back; it runs out by itself"),
        }
    }

    /// An answer that takes so long that there is just time to ask twice more before the lease runs out.
    async fn limited<T>(&self, asking: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Trouble> {
        match timeout(self.seat.times.acts() / 3, asking).await {
            Ok(answer) => answer.map_err(Trouble::Api),
            Err(_) => Err(Trouble::NoAnswer),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
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

/// The Lease with our name in it.
fn claim(found: Option<&Lease>, seat: &Seat, now: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(seat.name.clone()),
        namespace: Some(seat.namespace.clone()),
        ..ObjectMeta::default()
    };
    let mut lease = found.cloned().unwrap_or_else(|| Lease { metadata, ..Lease::default() });
    let before = lease.spec.take().unwrap_or_default();
    let renewed = later_than(before.renew_time.as_ref(), now);
    let same = before.holder_identity.as_ref() == Some(&seat.me);
    let changes = before.lease_transitions.unwrap_or_default();
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(seat.me.clone()),
        lease_duration_seconds: Some(seat.times.promise()),
        acquire_time: before.acquire_time.clone().filter(|_| same).or_else(|| Some(renewed.clone())),
        lease_transitions: Some(if same || found.is_none() { changes } else { changes.saturating_add(1) }),
        renew_time: Some(renewed),
        ..before
    });
    lease
}

/// A write that changes nothing is none, and nobody would see that the holder lives: whatever the clock says, the time
/// moves.
fn later_than(before: Option<&MicroTime>, now: Timestamp) -> MicroTime {
    let moved = before.and_then(|before| before.0.checked_add(SignedDuration::from_micros(1)).ok());
    MicroTime(moved.map_or(now, |moved| moved.max(now)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use planner::lease::Times;

    use super::{Seat, claim, identity, record};

    fn seat(me: &str) -> Seat {
        let second = Duration::from_secs(1);
        let times = Times { duration: 10 * second, renew: 3 * second, retry: second };
        Seat { namespace: "kube-system".into(), name: "nacre".into(), me: me.into(), times }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_renewal_always_changes_the_lease_even_if_the_clock_goes_back() {
        let first = claim(None, &seat("one"), at(1000));
        let again = claim(Some(&first), &seat("one"), at(10));
        assert_ne!(first, again);
        let (first, again) = (first.spec.unwrap(), again.spec.unwrap());
        assert_eq!(first.acquire_time, again.acquire_time);
        assert_eq!((first.lease_transitions, again.lease_transitions), (Some(0), Some(0)));
    }

    #[test]
    fn a_change_of_hands_is_counted() {
        let first = claim(None, &seat("one"), at(1000));
        let second = claim(Some(&first), &seat("two"), at(1001));
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

//! Leader election: one active controller per cluster, by a Lease that all replicas use.
//!
//! Clocks of different machines are never compared. A holder promises in the Lease for how long it writes after each
//! renewal, and counts from before it sent that renewal. Everybody else counts from after they saw it, and takes the
//! Lease only once it has stood unchanged for as long as was promised: so they always count less time than the holder
//! does. Each write names the version it replaces, so of two that take it at once the API server lets one through.
//!
//! All times here are measured by one process's own clock from a moment of its choice.

use std::time::Duration;

use api::labels;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How long a holder may be silent, and how often everybody looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long the Lease lasts after a renewal.
    pub duration: Duration,
    /// How often its holder renews it.
    pub renew: Duration,
    /// How often to look while somebody else holds it, and how soon to try again after a failure.
    pub retry: Duration,
}

/// The Lease as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty if it was released.
    pub holder: String,
    /// For how long its holder writes without renewing it, as the holder says.
    pub promised: Option<Duration>,
    /// Changes with every write to it, and is only ever compared for equality.
    pub version: String,
}

/// The record in a Secret that takes the place of the Lease, as if it were one: see [`crate::election`].
pub fn in_secret(metadata: ObjectMeta) -> Lease {
    let record = metadata.annotations.as_ref().and_then(|all| all.get(labels::LEASE));
    let spec = record.and_then(|record| serde_json::from_str(record).ok());
    Lease { metadata, spec }
}

/// Everything the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The Lease, if there is one.
    pub record: Option<&'a Record>,
    /// How long it is known to have stood like this.
    pub unchanged_for: Duration,
    /// Who decides.
    pub me: &'a str,
    /// How long things take.
    pub times: Times,
}

/// The next step about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Write our name into it, for the first time or again.
    Write,
    /// Look again after a while.
    Wait(Duration),
}

/// Decides what to do about the Lease, as it was read just now.
pub fn decide(seen: &Observed<'_>) -> Choice {
    let Some(record) = seen.record else { return Choice::Write };
    if record.holder.is_empty() || record.holder == seen.me {
        return Choice::Write;
    }
    let left = record.promised.unwrap_or(seen.times.duration).saturating_sub(seen.unchanged_for);
    if left.is_zero() { Choice::Write } else { Choice::Wait(left.min(seen.times.retry)) }
}

impl Times {
    /// How long a holder writes after it began to renew. The rest of what it promises is for writes that are still on their
    /// way, and for clocks that do not run alike.
    pub fn acts(&self) -> Duration {
        self.duration / 10 * 9
    }

    /// What is promised to everybody else; a Lease counts in whole seconds.
    pub fn promise(&self) -> i32 {
        let whole = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        i32::try_from(whole).unwrap_or(i32::MAX)
    }

    /// What is wrong with them, if anything.
    pub fn problem(&self) -> Option<String> {
        let Self { duration, renew, retry } = *self;
        if duration < Duration::from_secs(1) {
            return Some(format!("a lease of {duration:?} is too short; at least 1s"));
        }
        if renew.is_zero() || retry.is_zero() {
            return Some("the periods to renew and to retry a lease must be longer than 0".to_owned());
        }
        let most = duration / 2;
        (renew + retry > most).then(|| {
            format!(
                "a lease of {duration:?} that is renewed every {renew:?} and retried every {retry:?} would be lost by a \
                 single failure; together these must be at most {most:?}"
            )
        })
    }
}

/// What to do next about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read it.
    Look,
    /// Write our name into what was read or written last.
    Write,
    /// Nothing, for a while.
    Wait(Duration),
}

/// A candidate, and what it knows.
#[derive(Clone, Debug)]
pub struct Candidate {
    me: String,
    times: Times,
    /// The Lease as last read or written; none if there is none, or nothing is known.
    record: Option<Record>,
    /// When this version of it was seen first.
    since: Duration,
    /// Whether what is known is enough to decide on.
    informed: bool,
    /// When to do something next.
    next: Duration,
    /// When its leadership ends.
    acts_until: Option<Duration>,
}

impl Candidate {
    /// One that knows nothing yet. `me` must be nobody else's name, not even that of an earlier run.
    pub fn new(me: String, times: Times) -> Self {
        Self {
            me,
            times,
            record: None,
            since: Duration::ZERO,
            informed: false,
            next: Duration::ZERO,
            acts_until: None,
        }
    }

    /// What to do next.
    pub fn step(&mut self, now: Duration) -> Step {
        if let Some(left) = self.next.checked_sub(now).filter(|left| !left.is_zero()) {
            return Step::Wait(left);
        }
        if !self.informed {
            return Step::Look;
        }
        match decide(&self.observed(now)) {
            Choice::Write => Step::Write,
            Choice::Wait(pause) => {
                self.informed = false;
                self.next = now + pause;
                Step::Wait(pause)
            }
        }
    }

    /// It was read; `now` is when the answer was there.
    pub fn saw(&mut self, now: Duration, record: Option<Record>) {
        let version = |record: &Option<Record>| record.as_ref().map(|record| record.version.clone());
        if version(&record) != version(&self.record) {
            self.since = now;
        }
        if record.as_ref().is_none_or(|record| record.holder != self.me) {
            // Whoever is named there now may act already.
            self.acts_until = None;
        }
        self.record = record;
        self.informed = true;
        self.next = now;
    }

    /// Our name was written into it; `sent` is when that was begun.
    pub fn wrote(&mut self, sent: Duration, record: Record) {
        self.since = sent;
        self.record = Some(record);
        self.informed = true;
        self.next = sent + self.times.renew;
        self.acts_until = Some(sent + self.times.acts());
    }

    /// Somebody else was faster: what was known is out of date.
    pub fn beaten(&mut self, now: Duration) {
        self.informed = false;
        self.next = now;
    }

    /// There was no answer, or none that helps. Whether a write came through is found out by reading.
    pub fn failed(&mut self, now: Duration) {
        self.informed = false;
        self.next = now + self.times.retry;
    }

    /// Until when this candidate is leader, if it is.
    pub fn acts_until(&self) -> Option<Duration> {
        self.acts_until
    }

    /// What was read or written last.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Whether somebody else is named there and may still be leader.
    pub(crate) fn is_live_elsewhere(&self, now: Duration) -> bool {
        decide(&self.observed(now)) != Choice::Write
    }

    fn observed(&self, now: Duration) -> Observed<'_> {
        Observed {
            record: self.record.as_ref(),
            unchanged_for: now.saturating_sub(self.since),
            me: &self.me,
            times: self.times,
        }
    }

    /// The version a write replaces; none if the Lease is to be made.
    pub fn version(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.version.as_str())
    }

    /// Who holds it as far as is known; none if nobody does.
    pub fn holder(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.holder.as_str()).filter(|holder| !holder.is_empty())
    }
}

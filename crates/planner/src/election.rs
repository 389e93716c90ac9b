//! Leader election where not everybody may use Leases: OADP's role for the Go controller has none, but Secrets.
//!
//! Whoever may not use the Lease keeps the same record in a Secret in Velero's namespace. So while a permission comes or
//! goes, some processes may go by one and some by the other. Two rules keep them from being leader at the same time:
//!
//! - Whoever holds the Lease is leader only while the Secret is not there. It looks every [`LOOK`], and a look is good for
//!   less than [`GRACE`]. A record of somebody else that has run out is removed, by its version, before it counts as gone.
//! - Whoever writes the Secret for the first time is leader only after [`GRACE`]. By then a holder of the Lease has seen it.
//!
//! Whoever goes by the Secret asks for the Lease again every [`AGAIN`], and prefers it.
//!
//! As in [`crate::lease`], all times are of one process's own clock, and each write names the version it replaces.

use std::time::Duration;

use crate::lease::{Candidate, Record, Step, Times};

/// How long a new record in the Secret stands before its holder is leader.
pub const GRACE: Duration = Duration::from_secs(10);
/// How often the holder of the Lease looks at the Secret.
const LOOK: Duration = Duration::from_secs(3);
/// How long a look at the Secret is good for; the rest of [`GRACE`] is for clocks that do not run alike.
const LOOK_IS_GOOD: Duration = Duration::from_secs(9);
/// How soon to ask again for what was forbidden.
const AGAIN: Duration = Duration::from_secs(20);

/// Where the record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// The Lease.
    Lease,
    /// The Secret, for those who may not use the Lease.
    Secret,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read the record there.
    Look(Store),
    /// Write our name into what was read or written there last.
    Write(Store),
    /// Remove the Secret in the version that was read or written last.
    RemoveSecret,
    /// Nothing, for a while.
    Wait(Duration),
}

/// One process in the election, and what it knows.
#[derive(Clone, Debug)]
pub struct Election {
    me: String,
    /// How soon to try again after a failure.
    retry: Duration,
    lease: Candidate,
    secret: Candidate,
    /// Which of them this process goes by.
    store: Store,
    /// Whether the Secret counts at all.
    has_secret: bool,
    /// Nothing is done before.
    idle_until: Duration,
    /// When to ask for the Lease again, going by the Secret.
    next_try: Duration,
    /// When to look at the Secret again, going by the Lease.
    next_look: Duration,
    /// When the last look began that found nobody else in the Secret.
    free_since: Option<Duration>,
    /// When our record in the Secret was there for the first time.
    claimed: Option<Duration>,
    /// By what we are leader, and until when.
    term: Option<(Store, Duration)>,
}

/// What the Secret means for whoever goes by the Lease.
enum Guard {
    /// Nobody else is named there.
    Free,
    /// What is there is of no use any more, and goes.
    Stale,
    /// Somebody else may be leader.
    Taken,
}

impl Election {
    /// One that knows nothing yet; with or without a Secret for when the Lease is forbidden. `me` must be nobody else's
    /// name, not even that of an earlier run.
    pub fn new(me: &str, times: Times, has_secret: bool) -> Self {
        Self {
            me: me.to_owned(),
            retry: times.retry,
            lease: Candidate::new(me.to_owned(), times),
            secret: Candidate::new(me.to_owned(), times),
            store: Store::Lease,
            has_secret,
            idle_until: Duration::ZERO,
            next_try: Duration::ZERO,
            next_look: Duration::ZERO,
            free_since: None,
            claimed: None,
            term: None,
        }
    }

    /// What to do next.
    pub fn step(&mut self, now: Duration) -> Next {
        if now < self.idle_until {
            return Next::Wait(self.idle_until.saturating_sub(now));
        }
        match self.store {
            Store::Lease => self.by_lease(now),
            Store::Secret if now >= self.next_try => Next::Look(Store::Lease),
            Store::Secret => {
                next(Store::Secret, self.secret.step(now), Some(self.next_try.saturating_sub(now)))
            }
        }
    }

    fn by_lease(&mut self, now: Duration) -> Next {
        let step = self.lease.step(now);
        // Whoever waits for the Lease need not know of the Secret.
        if !self.has_secret || (step != Step::Write && !self.holds_lease(now)) {
            return next(Store::Lease, step, None);
        }
        if now >= self.next_look {
            return Next::Look(Store::Secret);
        }
        let until_look = self.next_look.saturating_sub(now);
        match self.guard(now) {
            Guard::Free => next(Store::Lease, step, Some(until_look)),
            Guard::Stale => Next::RemoveSecret,
            Guard::Taken => Next::Wait(until_look),
        }
    }

    fn holds_lease(&self, now: Duration) -> bool {
        self.lease.acts_until().is_some_and(|end| now < end)
    }

    fn guard(&self, now: Duration) -> Guard {
        match self.secret.record() {
            None => Guard::Free,
            // Our own protects us until the Lease does.
            Some(record) if record.holder == self.me && !self.holds_lease(now) => Guard::Free,
            Some(_) if self.secret.is_live_elsewhere(now) => Guard::Taken,
            Some(_) => Guard::Stale,
        }
    }

    /// A record was read; `sent` is when that was begun, and `now` when the answer was there.
    pub fn saw(&mut self, store: Store, sent: Duration, now: Duration, record: Option<Record>) {
        let ours = record.as_ref().is_some_and(|record| record.holder == self.me);
        match store {
            Store::Lease => {
                self.lease.saw(now, record);
                if self.store == Store::Secret {
                    self.store = Store::Lease;
                    self.next_look = now;
                }
            }
            Store::Secret => {
                let free = record.is_none() || ours;
                if record.is_none() && self.names_another(Store::Secret) {
                    // Whoever was named there may go by the Lease now.
                    self.next_try = now;
                }
                self.secret.saw(now, record);
                self.next_look = now + LOOK;
                self.free_since = free.then_some(sent);
                if !ours {
                    self.claimed = None;
                }
            }
        }
        if !ours && self.term.is_some_and(|(by, _)| by == store) {
            // Whoever is named there now may be leader already.
            self.term = None;
        }
        self.settle(now);
    }

    /// Our name was written; `sent` is when that was begun, and `now` when the answer was there.
    pub fn wrote(&mut self, store: Store, sent: Duration, now: Duration, record: Record) {
        match store {
            Store::Lease => self.lease.wrote(sent, record),
            Store::Secret => {
                self.secret.wrote(sent, record);
                self.claimed.get_or_insert(now);
            }
        }
        self.settle(now);
    }

    /// The Secret was removed.
    pub fn removed(&mut self, sent: Duration, now: Duration) {
        self.saw(Store::Secret, sent, now, None);
    }

    /// Somebody else was faster: what was known is out of date.
    pub fn beaten(&mut self, store: Store, now: Duration) {
        match (store, self.store) {
            (Store::Secret, Store::Lease) => self.next_look = now,
            (Store::Secret, Store::Secret) => self.secret.beaten(now),
            (Store::Lease, _) => self.lease.beaten(now),
        }
    }

    /// There was no answer, or none that helps.
    pub fn failed(&mut self, store: Store, now: Duration) {
        match (store, self.store) {
            (Store::Lease, Store::Lease) => self.lease.failed(now),
            (Store::Secret, Store::Secret) => self.secret.failed(now),
            (Store::Lease, Store::Secret) => self.next_try = now + AGAIN,
            (Store::Secret, Store::Lease) => self.next_look = now + self.retry,
        }
    }

    /// It is forbidden.
    pub fn refused(&mut self, store: Store, now: Duration) {
        match (store, self.store) {
            // It may be an API server that has just started: what is held is held.
            (Store::Lease, Store::Lease) if self.holds_lease(now) => self.failed(store, now),
            (Store::Lease, Store::Lease) if !self.has_secret => self.idle_until = now + AGAIN,
            (Store::Lease, Store::Lease) => {
                self.secret.beaten(now);
                self.store = Store::Secret;
                self.next_try = now + AGAIN;
            }
            (Store::Lease, Store::Secret) => self.next_try = now + AGAIN,
            // With such a role nobody goes by the Secret.
            (Store::Secret, Store::Lease) => self.saw(store, now, now, None),
            (Store::Secret, Store::Secret) => {
                self.store = Store::Lease;
                self.idle_until = now + AGAIN;
            }
        }
    }

    fn settle(&mut self, now: Duration) {
        let end = match self.store {
            Store::Lease if !self.has_secret => self.lease.acts_until(),
            Store::Lease => {
                let free_until = self.free_since.map(|since| since + LOOK_IS_GOOD);
                self.lease.acts_until().zip(free_until).map(|(held, free)| held.min(free))
            }
            Store::Secret => {
                let is_old = self.claimed.is_some_and(|claimed| now >= claimed + GRACE);
                self.secret.acts_until().filter(|_| is_old)
            }
        };
        if let Some(end) = end {
            self.term = Some((self.store, end));
        }
    }

    /// By what this process is leader, and until when.
    pub fn term(&self) -> Option<(Store, Duration)> {
        self.term
    }

    /// Who is named where this process looks, as far as is known.
    pub fn holder(&self) -> Option<&str> {
        let in_secret = self.secret.holder().filter(|holder| *holder != self.me);
        match self.store {
            Store::Lease => in_secret.or_else(|| self.lease.holder()),
            Store::Secret => self.secret.holder(),
        }
    }

    /// Whether the last record there was another's.
    fn names_another(&self, store: Store) -> bool {
        self.last_holder(store).is_some_and(|holder| holder != self.me)
    }

    /// Whether our name was the last in a record.
    pub fn is_ours(&self, store: Store) -> bool {
        self.last_holder(store) == Some(&self.me)
    }

    fn last_holder(&self, store: Store) -> Option<&str> {
        match store {
            Store::Lease => self.lease.holder(),
            Store::Secret => self.secret.holder(),
        }
    }

    /// The version a write replaces; none if the record is to be made.
    pub fn version(&self, store: Store) -> Option<&str> {
        match store {
            Store::Lease => self.lease.version(),
            Store::Secret => self.secret.version(),
        }
    }
}

fn next(store: Store, step: Step, at_most: Option<Duration>) -> Next {
    match step {
        Step::Look => Next::Look(store),
        Step::Write => Next::Write(store),
        Step::Wait(pause) => Next::Wait(at_most.map_or(pause, |most| pause.min(most))),
    }
}

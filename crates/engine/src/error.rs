//! Which failures are worth retrying, and when.

use std::time::Duration;

use kube::core::Status;
use thiserror::Error;

use crate::leadership::NotLeading;

/// Why a plan was not carried out to its end.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub struct Failure {
    /// What was tried.
    pub what: String,
    /// What the API server or the network said.
    #[source]
    pub source: kube::Error,
}

/// When to decide again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// At once: what we knew was out of date, and now it is not; or we did not lead, and whoever decides waits for that.
    Now,
    /// When the server said.
    After(Duration),
    /// Later and later.
    BackOff,
    /// When something changes.
    WhenItChanges,
}

impl Failure {
    /// The API server's answer, if it answered.
    pub fn status(&self) -> Option<&Status> {
        status(&self.source)
    }

    /// When to decide again.
    pub fn retry(&self) -> Retry {
        if let kube::Error::Service(error) = &self.source
            && error.is::<NotLeading>()
        {
            return Retry::Now;
        }
        let Some(status) = self.status() else { return Retry::BackOff };
        match status.code {
            404 => Retry::WhenItChanges,
            409 => Retry::Now,
            429 => Retry::After(asked(status)),
            _ => Retry::BackOff,
        }
    }
}

/// The API server's answer, if it answered.
pub(crate) fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The longest that a server's wish to wait is honoured.
const LONGEST_WAIT: u32 = 30;

fn asked(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(1, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds.clamp(1, LONGEST_WAIT)))
}

impl Retry {
    /// How long to wait, after so many failures in a row; none to wait for a change.
    pub fn delay(self, failures: u32) -> Option<Duration> {
        match self {
            Self::Now if failures <= 3 => Some(Duration::ZERO),
            Self::Now | Self::BackOff => Some(back_off(failures)),
            Self::After(wait) => Some(wait),
            Self::WhenItChanges => None,
        }
    }
}

/// From a tenth of a second, doubling, to a minute.
fn back_off(failures: u32) -> Duration {
    let doubled = Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(failures.min(16)));
    doubled.min(Duration::from_mins(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::core::Status;

    use super::{Failure, Retry};

    fn failure(code: u16) -> Failure {
        let status = Status::failure("no", "Reason").with_code(code);
        Failure { what: "create".into(), source: kube::Error::Api(status.boxed()) }
    }

    #[test]
    fn a_conflict_is_looked_at_again_at_once_but_not_for_ever() {
        assert_eq!(failure(409).retry(), Retry::Now);
        assert_eq!(Retry::Now.delay(1), Some(Duration::ZERO));
        assert!(Retry::Now.delay(4).unwrap() > Duration::from_secs(1));
    }

    #[test]
    fn the_rest_waits() {
        assert_eq!(failure(429).retry(), Retry::After(Duration::from_secs(1)));
        assert_eq!(failure(404).retry().delay(1), None);
        assert_eq!(failure(500).retry().delay(30), Some(Duration::from_mins(1)));
        assert_eq!(failure(403).retry(), Retry::BackOff);
    }
}

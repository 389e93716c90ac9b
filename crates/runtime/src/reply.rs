//! What the API server answered, and which failures are worth retrying.

use std::time::Duration;

use planner::state::Rejection;

use crate::work_queue::Requeue;

/// What became of a request.
#[derive(Debug)]
pub enum Reply<'a, O> {
    /// The object as it is now. After a delete: it is being deleted, and finalizers keep it.
    Object(&'a O),
    /// It is deleted.
    Gone,
    /// It was not carried out, or nobody knows whether it was.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The API server answered with an error.
    Rejected(Rejection),
    /// There was no answer.
    NoReply,
    /// It was not sent: this process is not the leader.
    NotLeading,
}

/// When to reconcile again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// At once: what we knew was out of date, and now it is not; or we were not the leader, and whoever decides waits
    /// for that.
    Now,
    /// After the time the server asked for.
    After(Duration),
    /// With exponential backoff.
    BackOff,
    /// Only when the object changes.
    WhenItChanges,
}

/// The longest wait that a server can ask for.
const LONGEST_WAIT: u32 = 30;

impl Failure {
    /// The HTTP status code, if the API server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Rejected(rejection) => Some(rejection.code),
            Self::NoReply | Self::NotLeading => None,
        }
    }

    /// When to reconcile again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotLeading => Retry::Now,
            Self::NoReply => Retry::BackOff,
            Self::Rejected(rejection) => match rejection.code {
                404 => Retry::WhenItChanges,
                409 => Retry::Now,
                429 => {
                    let seconds = rejection.retry_after.unwrap_or(1).clamp(1, LONGEST_WAIT);
                    Retry::After(Duration::from_secs(u64::from(seconds)))
                }
                _ => Retry::BackOff,
            },
        }
    }
}

impl Retry {
    /// The same after this many failures in a row: even what is retried at once waits when it goes on failing.
    pub fn after(self, failures: u32) -> Requeue {
        match self {
            Self::Now if failures <= 3 => Requeue::Now,
            Self::Now | Self::BackOff => Requeue::After(back_off(failures)),
            Self::After(wait) => Requeue::After(wait),
            Self::WhenItChanges => Requeue::OnChange,
        }
    }
}

/// Exponential backoff from 100 ms to one minute.
fn back_off(failures: u32) -> Duration {
    let doubled = Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(failures.min(16)));
    doubled.min(Duration::from_mins(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use planner::state::Rejection;

    use super::{Failure, Requeue, Retry};

    fn rejected(code: u16, retry_after: Option<u32>) -> Retry {
        Failure::Rejected(Rejection { code, message: "no".into(), retry_after }).retry()
    }

    #[test]
    fn a_conflict_is_decided_again_at_once_but_not_for_ever() {
        assert_eq!(rejected(409, None), Retry::Now);
        assert_eq!(Retry::Now.after(1), Requeue::Now);
        assert_eq!(Retry::Now.after(3), Requeue::Now);
        assert_eq!(Retry::Now.after(4), Requeue::After(Duration::from_millis(1600)));
        assert_eq!(Failure::NotLeading.retry(), Retry::Now);
    }

    #[test]
    fn the_rest_waits() {
        assert_eq!(rejected(429, None), Retry::After(Duration::from_secs(1)));
        assert_eq!(rejected(429, Some(7)), Retry::After(Duration::from_secs(7)));
        assert_eq!(rejected(429, Some(3600)), Retry::After(Duration::from_secs(30)));
        assert_eq!(rejected(404, None).after(1), Requeue::OnChange);
        assert_eq!(rejected(500, None).after(30), Requeue::After(Duration::from_mins(1)));
        assert_eq!(rejected(403, None), Retry::BackOff);
        assert_eq!(Failure::NoReply.retry().after(1), Requeue::After(Duration::from_millis(200)));
    }
}

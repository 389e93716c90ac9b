//! Why the execution of a plan failed.

use kube::core::Status;
use planner::state::Rejection;
use runtime::Retry;
use thiserror::Error;

use crate::leadership::NotLeading;

/// Why the execution of a plan failed.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub struct Failure {
    /// The request that failed.
    pub what: String,
    /// The error of the API server or the network.
    #[source]
    pub source: kube::Error,
}

impl Failure {
    /// The API server's response, if there was one.
    pub fn status(&self) -> Option<&Status> {
        status(&self.source)
    }

    /// What kind of failure it is: the runtime knows what follows from each.
    pub(crate) fn kind(&self) -> runtime::Failure {
        match (self.status(), &self.source) {
            (Some(status), _) => runtime::Failure::Rejected(Rejection {
                code: status.code,
                message: status.message.clone(),
                retry_after: status.details.as_ref().map(|details| details.retry_after_seconds),
            }),
            (None, kube::Error::Service(error)) if error.is::<NotLeading>() => runtime::Failure::NotLeading,
            _ => runtime::Failure::NoReply,
        }
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        self.kind().retry()
    }
}

/// The API server's response, if there was one.
pub(crate) fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

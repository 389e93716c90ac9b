//! Why the execution of a plan failed.

use std::error::Error as StdError;
use std::fmt;

use kube::core::Status;
use planner::state::Rejection;
use runtime::Retry;
use thiserror::Error;

use crate::leadership::NotLeading;

/// Why the execution of a plan failed.
#[derive(Debug, Error)]
#[error("{what}")]
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

/// An error with everything that caused it, on one line. An error's own text does not repeat its source, so whoever
/// prints one prints this.
pub fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl fmt::Display + 'a {
    fmt::from_fn(move |out| {
        let mut last = error.to_string();
        out.write_str(&last)?;
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Errors of other crates may hold the text of what caused them.
            if !last.contains(&text) {
                write!(out, ": {text}")?;
                last = text;
            }
            source = cause.source();
        }
        Ok(())
    })
}

/// The API server's response, if there was one.
pub(crate) fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Failure {
        let source = kube::Error::Service("connection refused".into());
        Failure { what: "create Backup velero/a".to_owned(), source }
    }

    #[test]
    fn an_error_does_not_repeat_its_source() {
        let failure = refused();
        assert_eq!(failure.to_string(), "create Backup velero/a");
        assert!(failure.source().is_some());
    }

    #[test]
    fn every_cause_is_printed_once() {
        let printed = chain(&refused()).to_string();
        assert!(printed.starts_with("create Backup velero/a: "), "{printed}");
        assert_eq!(printed.matches("connection refused").count(), 1, "{printed}");
    }
}

//! Reads periodically what changes rarely, and what decisions need only in some clusters. A watch would cost more.

use std::sync::Arc;
use std::time::Duration;

use planner::{Key, State};
use tokio::time::sleep;
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;

/// Between two looks whether it is needed.
const SECOND: Duration = Duration::from_secs(1);

/// What is read, and what becomes of it.
pub(crate) struct Poll<Value> {
    /// For the log.
    pub what: &'static str,
    /// Name of the disabled feature if it may not be read.
    pub disabled: &'static str,
    /// How long what was read is good for.
    pub period: Duration,
    /// Whether anything depends on it yet.
    pub is_needed: fn(&State) -> bool,
    /// Takes what was read, and the default where it may not be read. Returns what it affects.
    pub set: fn(&mut State, Value) -> Vec<Key>,
}

impl<Value: Default> Poll<Value> {
    /// Reads it once it is needed, and periodically again.
    pub(crate) async fn run<Read: Future<Output = kube::Result<Value>>>(
        self,
        cluster: Arc<Cluster>,
        read: impl Fn() -> Read,
    ) {
        loop {
            while !(self.is_needed)(&cluster.look()) {
                sleep(SECOND).await;
            }
            match read().await {
                Ok(value) => {
                    cluster.degraded().enable(self.disabled);
                    cluster.change(|state| (self.set)(state, value));
                }
                Err(error) => {
                    debug!(%error, "{} could not be read; retrying", self.what);
                    if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                        cluster.degraded().disable(self.disabled, &answer.message);
                        cluster.change(|state| (self.set)(state, Value::default()));
                    }
                }
            }
            sleep(self.period).await;
        }
    }
}

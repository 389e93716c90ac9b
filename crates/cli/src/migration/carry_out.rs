//! Carrying out plans, by the same engine as the controller.

use std::sync::Arc;

use anyhow::Result;
use engine::{Cluster, Executor, Retry, Work};
use kube::Client;
use planner::{Key, Plan, Policy, migration::settings};

/// Whether everything was done, or what was seen has changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// All of it.
    Yes,
    /// Look again and decide anew.
    Stale,
}

/// Carries out the actions of a plan in their order.
pub(super) async fn carry_out(client: &Client, plan: &Plan) -> Result<Done> {
    // A command looks afresh each time, so there is nothing to remember and nobody to wake.
    let cluster = Arc::new(Cluster::new(settings::NAMESPACE, Policy::default()));
    let executor = Executor::new(client.clone(), cluster, Arc::new(Work::default()));
    let about = Key {
        kind: api::Kind::ConfigMap,
        namespace: settings::NAMESPACE.to_owned(),
        name: settings::NAME.to_owned(),
    };
    match executor.execute(&about, plan).await {
        Ok(()) => Ok(Done::Yes),
        Err(failure) if matches!(failure.retry(), Retry::Now | Retry::WhenItChanges) => Ok(Done::Stale),
        Err(failure) => Err(failure.into()),
    }
}

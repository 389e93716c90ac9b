//! Reading and writing by the engine, in the terms of a command.

use anyhow::{Context as _, Result, bail};
use engine::{Retry, live_migration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use planner::{Plan, rbac::Rbac};

/// Whether everything was done, or what was seen has changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// All of it.
    Yes,
    /// Read again and decide again.
    Stale,
}

/// Carries out the actions of a plan in their order.
pub(super) async fn execute_plan(client: &Client, plan: &Plan) -> Result<Done> {
    match live_migration::execute_plan(client, plan).await {
        Ok(()) => Ok(Done::Yes),
        Err(failure) if matches!(failure.retry(), Retry::Now | Retry::WhenItChanges) => Ok(Done::Stale),
        Err(failure) => Err(failure.into()),
    }
}

/// The CRD that shows that KubeVirt is installed.
const MIGRATIONS: &str = "virtualmachineinstancemigrations.kubevirt.io";

/// Refuses where there is no KubeVirt. Whoever may not look at CRDs is believed.
pub(super) async fn kubevirt(client: &Client) -> Result<()> {
    match Api::<CustomResourceDefinition>::all(client.clone()).get_metadata(MIGRATIONS).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => bail!(
            "there is no KubeVirt on this cluster (no CRD {MIGRATIONS}), so there is nothing to migrate: nothing was changed"
        ),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        answer => answer.map(drop).context("looking for KubeVirt"),
    }
}

/// All of RBAC.
pub(super) async fn rbac(client: &Client) -> Result<Rbac> {
    live_migration::rbac(client).await.context("reading roles and bindings")
}

/// Whether the API server said that the caller may not ask.
pub(super) fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 403)
}

//! Reads whether the admission policies around tenants' restores are installed: they decide whether pods come back from
//! tenants' own storage by default. They change rarely, so they are read periodically, not watched.

use std::sync::Arc;
use std::time::Duration;

use kube::core::DynamicObject;
use kube::{Api, Client};
use planner::admission::{around_restores, is_in_force};
use tokio::time::sleep;
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;

/// How long what was read is good for.
const PERIOD: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
/// Name of the disabled feature if the policies may not be read.
const UNKNOWN: &str = "no pods come back from tenants' own storage unless restore.fromTenantStorage.pods is baseline, since \
                       nacre's admission policies may not be read";

/// Reads the policies once a tenant has storage of its own, and periodically again. Every replica does, since the webhook
/// warns of volumes that would not come back.
pub async fn poll_fence(client: Client, namespace: String, cluster: Arc<Cluster>) {
    loop {
        while !cluster.look().has_locations() {
            sleep(SECOND).await;
        }
        match is_fenced(&client, &namespace).await {
            Ok(fenced) => {
                cluster.degraded().enable(UNKNOWN);
                cluster.change(|state| state.set_pods_are_fenced(fenced));
            }
            Err(error) => {
                debug!(%error, "the admission policies could not be read; retrying");
                if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                    cluster.degraded().disable(UNKNOWN, &answer.message);
                    cluster.change(|state| state.set_pods_are_fenced(false));
                }
            }
        }
        sleep(PERIOD).await;
    }
}

/// Whether every admission policy around tenants' restores is installed as this version of nacre has it.
pub async fn is_fenced(client: &Client, namespace: &str) -> kube::Result<bool> {
    for wanted in around_restores(namespace) {
        let policies = Api::<DynamicObject>::all_with(client.clone(), &wanted.kind.resource());
        let found = policies.get_opt(wanted.name()).await?;
        let found = found.and_then(|found| serde_json::to_value(found).ok());
        if !found.is_some_and(|found| is_in_force(&wanted, &found)) {
            return Ok(false);
        }
    }
    Ok(true)
}

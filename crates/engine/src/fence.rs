//! Reads whether the admission policies around tenants' restores are installed: they decide whether pods come back from
//! tenants' own storage by default. They change rarely, so they are read periodically, not watched.

use std::sync::Arc;
use std::time::Duration;

use kube::core::DynamicObject;
use kube::{Api, Client};
use planner::State;
use planner::admission::{around_restores, is_in_force};

use crate::cluster::Cluster;
use crate::poll::Poll;

/// Reads the policies once a tenant has storage of its own. Every replica does, since the webhook warns of volumes that
/// would not come back.
pub async fn poll_fence(client: Client, namespace: String, cluster: Arc<Cluster>) {
    let poll = Poll {
        what: "the admission policies",
        disabled: "no pods come back from tenants' own storage unless restore.fromTenantStorage.pods is baseline, since \
                   nacre's admission policies may not be read",
        period: Duration::from_mins(1),
        is_needed: State::has_locations,
        set: State::set_pods_are_fenced,
    };
    poll.run(cluster, || is_fenced(&client, &namespace)).await;
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

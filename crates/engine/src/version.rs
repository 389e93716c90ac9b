//! Asks Velero for its version: how Velero imports backups from a bucket, and what a volume policy can say, depend on it.

use std::sync::Arc;
use std::time::Duration;

use api::velero::ServerStatusRequest;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tokio::time::sleep;
use tracing::{debug, info};

use crate::cluster::Cluster;
use crate::degraded::{Degraded, is_missing_permission};
use crate::error::status;
use crate::leadership::Leadership;

/// Number of tries before Velero counts as not answering.
const ANSWER_TRIES: u32 = 30;
/// Pause after Velero did not answer.
const NO_ANSWER: Duration = Duration::from_mins(10);
/// How long an answer is valid: Velero may be upgraded.
const ANSWERED: Duration = Duration::from_hours(1);
const SECOND: Duration = Duration::from_secs(1);
/// Name of the disabled feature if Velero may not be asked.
const UNKNOWN: &str = "backups are not looked for in tenants' storage unless the policy says import: on, since Velero may not be asked for its version";

/// Asks Velero for its version once a tenant has a location or volumes can be saved file by file, and periodically again.
pub async fn poll_velero_version(
    client: Client,
    namespace: String,
    cluster: Arc<Cluster>,
    leadership: Leadership,
) {
    let requests: Api<ServerStatusRequest> = Api::namespaced(client, &namespace);
    loop {
        while !needs_version(&cluster) {
            sleep(SECOND).await;
        }
        leadership.until_leader().await;
        let Some(version) = ask(&requests, cluster.degraded()).await else {
            if !leadership.is_leader() {
                // The request was not created.
                continue;
            }
            sleep(NO_ANSWER).await;
            continue;
        };
        if cluster.look().velero_version().as_ref() != Some(&version) {
            info!(version, "Velero reported its version");
        }
        cluster.change(|state| state.set_velero_version(&version));
        sleep(ANSWERED).await;
    }
}

/// Whether anything depends on the version: imports from tenants' storage, and nacre's volume policy.
fn needs_version(cluster: &Cluster) -> bool {
    let look = cluster.look();
    look.has_locations() || look.node_agent_runs()
}

async fn ask(requests: &Api<ServerStatusRequest>, degraded: &Degraded) -> Option<String> {
    let metadata = ObjectMeta { generate_name: Some("nacre-".to_owned()), ..ObjectMeta::default() };
    let request = ServerStatusRequest { metadata, ..ServerStatusRequest::default() };
    let made = match requests.create(&PostParams::default(), &request).await {
        Ok(made) => made,
        Err(error) => {
            debug!(%error, "Velero: version request failed; retrying");
            if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                degraded.disable(UNKNOWN, &answer.message);
            }
            return None;
        }
    };
    degraded.enable(UNKNOWN);
    let name = made.metadata.name.unwrap_or_default();
    let mut version = None;
    for _ in 0..ANSWER_TRIES {
        sleep(SECOND).await;
        let found = requests.get_opt(&name).await.ok().flatten();
        version = found.and_then(|found| found.status?.server_version).filter(|version| !version.is_empty());
        if version.is_some() {
            break;
        }
    }
    // Velero deletes answered requests by itself, only later.
    let _ = requests.delete(&name, &DeleteParams::default()).await;
    version
}

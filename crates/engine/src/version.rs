//! Asking Velero which version it is: what it does with what it finds in a bucket depends on it.

use std::sync::Arc;
use std::time::Duration;

use api::velero::ServerStatusRequest;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tokio::time::sleep;
use tracing::{debug, info};

use crate::cluster::Cluster;
use crate::error::status;
use crate::lacking::{Lacking, is_missing_right};
use crate::leadership::Leadership;

/// How long Velero may take to answer.
const PATIENCE: u32 = 30;
/// How long to leave it alone when nobody answered.
const NO_ANSWER: Duration = Duration::from_mins(10);
/// How long an answer is believed: Velero may be upgraded.
const ANSWERED: Duration = Duration::from_hours(1);
const SECOND: Duration = Duration::from_secs(1);
/// What is off where it may not be asked.
const UNKNOWN: &str = "backups are not looked for in tenants' storage unless the policy says import: on, since Velero may not be asked for its version";

/// Asks Velero for its version, once there is a tenant's location, and now and then again.
pub async fn ask_velero(client: Client, namespace: String, cluster: Arc<Cluster>, leadership: Leadership) {
    let requests: Api<ServerStatusRequest> = Api::namespaced(client, &namespace);
    loop {
        while !cluster.look().has_locations() {
            sleep(SECOND).await;
        }
        leadership.granted().await;
        let Some(version) = ask(&requests, cluster.lacking()).await else {
            if !leadership.leads() {
                // It was not asked at all.
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

async fn ask(requests: &Api<ServerStatusRequest>, lacking: &Lacking) -> Option<String> {
    let metadata = ObjectMeta { generate_name: Some("nacre-".to_owned()), ..ObjectMeta::default() };
    let request = ServerStatusRequest { metadata, ..ServerStatusRequest::default() };
    let made = match requests.create(&PostParams::default(), &request).await {
        Ok(made) => made,
        Err(error) => {
            debug!(%error, "Velero could not be asked for its version");
            if let Some(answer) = status(&error).filter(|status| is_missing_right(status)) {
                lacking.off(UNKNOWN, &answer.message);
            }
            return None;
        }
    };
    lacking.on(UNKNOWN);
    let name = made.metadata.name.unwrap_or_default();
    let mut version = None;
    for _ in 0..PATIENCE {
        sleep(SECOND).await;
        let found = requests.get_opt(&name).await.ok().flatten();
        version = found.and_then(|found| found.status?.server_version).filter(|version| !version.is_empty());
        if version.is_some() {
            break;
        }
    }
    // Velero removes what it has answered by itself, only later.
    let _ = requests.delete(&name, &DeleteParams::default()).await;
    version
}

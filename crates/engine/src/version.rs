//! Asking Velero which version it is: what it does with what it finds in a bucket depends on it.

use std::sync::Arc;
use std::time::Duration;

use api::velero::ServerStatusRequest;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::view::View;
use tokio::time::sleep;
use tracing::{debug, info};

use crate::cluster::Cluster;
use crate::error::status;
use crate::lacking::{Lacking, is_missing_right};
use crate::leadership::Leadership;
use crate::work::Work;

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
pub async fn ask_velero(
    client: Client,
    namespace: String,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    leadership: Leadership,
) {
    let requests: Api<ServerStatusRequest> = Api::namespaced(client, &namespace);
    loop {
        while cluster.look().locations.is_empty() {
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
        work.wake(cluster.change(|state| {
            let news = state.velero_version.as_ref() != Some(&version);
            if news {
                info!(version, "Velero told its version");
                state.velero_version = Some(version);
            }
            if news { state.locations() } else { Vec::new() }
        }));
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

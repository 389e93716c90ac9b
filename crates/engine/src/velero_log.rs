//! Reads Velero's log for what it could not import from tenants' storage. Nothing else is kept of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};
use planner::imports::Reader;
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;
use crate::leadership::Leadership;

/// The pods of Velero's server, as its own installer and OADP label them.
const SELECTOR: &str = "deploy=velero";
/// The container in them.
const CONTAINER: &str = "velero";
/// Pause between two looks.
const PERIOD: Duration = Duration::from_secs(30);
/// How much of what was read before is read again: the API server counts in whole seconds of its own clock.
const OVERLAP: Duration = Duration::from_secs(5);
/// What is older is not asked for.
const LONGEST: Duration = Duration::from_mins(5);
/// How much of the log is read at a time. Velero writes a few hundred lines for each backup.
const MOST: i64 = 4 << 20;
/// Name of the disabled feature if it may not be read.
const DISABLED: &str =
    "locations do not show which backups in them were refused, since Velero's log may not be read";

/// Reads it while this process is leader, once a tenant has storage of its own.
pub async fn watch_velero_log(
    client: Client,
    namespace: String,
    cluster: Arc<Cluster>,
    leadership: Leadership,
) {
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let reader = Reader::new(&namespace);
    let mut last: Option<Instant> = None;
    loop {
        leadership.until_leader().await;
        if cluster.look().has_locations() {
            let began = Instant::now();
            let since = last.map_or(PERIOD, |last| last.elapsed()).min(LONGEST) + OVERLAP;
            // What was written in a pause that was too long is missed.
            let missed = last.is_none_or(|last| last.elapsed() > LONGEST);
            match look(&pods, since).await {
                Ok(Some(logs)) => {
                    cluster.degraded().enable(DISABLED);
                    cluster.change(|state| {
                        if missed {
                            state.velero_log_not_read();
                        }
                        let imports =
                            logs.iter().flat_map(|log| log.lines()).filter_map(|line| reader.read(line));
                        imports.for_each(|import| state.note_refused_import(&import));
                        state.velero_log_read()
                    });
                    last = Some(began);
                }
                // Velero is no pod here, or its pod is not there yet.
                Ok(None) => {}
                Err(error) => {
                    debug!(%error, "Velero's log could not be read; retrying");
                    if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                        cluster.degraded().disable(DISABLED, &answer.message);
                    }
                }
            }
        }
        sleep(PERIOD).await;
    }
}

/// What Velero's server has logged lately, pod by pod; none if there is no such pod.
async fn look(pods: &Api<Pod>, since: Duration) -> kube::Result<Option<Vec<String>>> {
    let found = pods.list_metadata(&ListParams::default().labels(SELECTOR)).await?;
    let params = LogParams {
        container: Some(CONTAINER.to_owned()),
        since_seconds: i64::try_from(since.as_secs()).ok(),
        limit_bytes: Some(MOST),
        ..LogParams::default()
    };
    let mut logs = Vec::new();
    for pod in &found.items {
        match pods.logs(&pod.name_any(), &params).await {
            Ok(log) => logs.push(log),
            // It is starting, or gone.
            Err(error) if status(&error).is_some_and(|status| matches!(status.code, 400 | 404)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((!logs.is_empty()).then_some(logs))
}

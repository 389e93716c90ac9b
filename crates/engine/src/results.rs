//! Reads the errors and warnings that Velero reported, and the lists of objects in backups, from the administrators' storage
//! alone. Which file, and what of it a tenant sees, is decided by `planner::results`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::velero::{BackupStorageLocation, DownloadRequest, DownloadRequestSpec};
use api::{DownloadTarget, Kind, labels};
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::Key;
use planner::results::{self, Results, ResultsFile};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, warn};

use crate::cluster::Cluster;
use crate::error::chain;
use crate::leadership::Leadership;
use crate::link::{Link, Trust};

/// The largest file that is read, compressed or not.
const MOST_BYTES: usize = 4 << 20;
/// How long reading one file may take, with Velero's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks for Velero's answer.
const LOOK: Duration = Duration::from_millis(500);
/// How often one file is tried before the request says that it could not be read.
const TRIES: u32 = 3;
/// Pause between two tries.
const AGAIN: Duration = Duration::from_secs(10);

/// Reads what requests say is unread while this process is leader, one file at a time, and enqueues the requests.
pub async fn read_results(client: Client, cluster: Arc<Cluster>, leadership: Leadership) {
    let requests: Api<DownloadRequest> = Api::namespaced(client, cluster.look().admin_namespace());
    let mut tried: BTreeMap<Key, (u32, Instant)> = BTreeMap::new();
    let mut served = String::new();
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        leadership.until_leader().await;
        let unread = cluster.look().unread_results(&served);
        tried.retain(|key, _| unread.contains(key));
        let is_due = |key: &&Key| tried.get(*key).is_none_or(|(_, last)| last.elapsed() >= AGAIN);
        let Some(key) = unread.iter().find(is_due) else { continue };
        served.clone_from(&key.namespace);
        let file = results::file(&cluster.look(), key);
        let Some(file) = file else {
            cluster.change(|state| state.forget_results(key));
            continue;
        };
        let read = timeout(PATIENCE, read(&requests, &cluster, key, &file, PATIENCE / 2)).await;
        let count = tried.get(key).map_or(1, |(count, _)| count + 1);
        let results = match read {
            Ok(Ok(results)) => results,
            failed => {
                let why = failed
                    .map_or_else(|_| "it took too long".to_owned(), |read| read.err().unwrap_or_default());
                debug!(namespace = key.namespace, name = key.name, why, "Velero's results could not be read");
                if count < TRIES {
                    tried.insert(key.clone(), (count, Instant::now()));
                    continue;
                }
                warn!(
                    namespace = key.namespace,
                    name = key.name,
                    why,
                    "Velero's results could not be read; giving up"
                );
                Results::NotReadable
            }
        };
        cluster.change(|state| state.set_results(key, results));
    }
}

/// Asks Velero for a link, and reads the file, both within `patience`. The request is deleted whatever happens; Velero
/// would do so later.
async fn read(
    requests: &Api<DownloadRequest>,
    cluster: &Cluster,
    key: &Key,
    file: &ResultsFile,
    patience: Duration,
) -> Result<Results, String> {
    let made = requests.create(&PostParams::default(), &request(file)).await;
    let name = made.map_err(|error| chain(&error).to_string())?.metadata.name.unwrap_or_default();
    let text = timeout(patience, fetch(requests, &name, file)).await;
    let _ = requests.delete(&name, &DeleteParams::default()).await;
    let text = text.map_err(|_| "Velero or the storage did not answer".to_owned())??;
    let look = cluster.look();
    let read = if key.kind == Kind::NonAdminDownloadRequest {
        results::read_objects(&text, &key.namespace).map(|read| Results::Objects(Arc::new(read)))
    } else {
        let read = results::read(&text, &key.namespace, |name| look.namespace(name).is_some());
        read.map(|read| Results::Read(Arc::new(read)))
    };
    read.map_err(|_| "the file is not what Velero writes".to_owned())
}

fn request(file: &ResultsFile) -> DownloadRequest {
    let managed = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned());
    DownloadRequest {
        metadata: ObjectMeta {
            generate_name: Some("nacre-results-".to_owned()),
            labels: Some(BTreeMap::from([managed])),
            ..ObjectMeta::default()
        },
        spec: DownloadRequestSpec {
            target: DownloadTarget { kind: file.kind.to_owned(), name: file.velero.clone() },
        },
        status: None,
    }
}

/// Waits for the link, and follows it. A request that is gone meanwhile has no link.
async fn fetch(requests: &Api<DownloadRequest>, name: &str, file: &ResultsFile) -> Result<Vec<u8>, String> {
    let url = loop {
        let found = requests.get(name).await.map_err(|error| chain(&error).to_string())?;
        if let Some(url) = found.status.and_then(|status| status.download_url) {
            break url;
        }
        sleep(LOOK).await;
    };
    let link = Link::new(&url).map_err(|error| error.to_string())?;
    let trust = file.location.as_deref().map_or(Trust::PublicAnd(None), trust);
    link.read_compressed(&trust, MOST_BYTES).await.map_err(|error| error.to_string())
}

/// What the administrators say about the certificate of their storage.
fn trust(location: &BackupStorageLocation) -> Trust {
    let config = location.spec.config.as_ref();
    if config.and_then(|config| config.get("insecureSkipTLSVerify")).is_some_and(|value| value == "true") {
        return Trust::Any;
    }
    let encoded = location.spec.object_storage.ca_cert.clone();
    let pem = encoded.and_then(|encoded| serde_json::from_value::<ByteString>(encoded.into()).ok());
    Trust::PublicAnd(pem.map(|ByteString(pem)| pem))
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;

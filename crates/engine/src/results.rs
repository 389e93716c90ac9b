//! Reads the errors and warnings that Velero reported, the lists of objects in backups, and logs, from the administrators'
//! storage alone. Which file, and what of it a tenant sees, is decided by `planner::results`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::velero::{BackupStorageLocation, DownloadRequest, DownloadRequestSpec};
use api::{DownloadTarget, LogLines, labels};
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::Key;
use planner::results::{self, Content, NotResults, OwnLines, Results, ResultsFile};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, warn};

use crate::cluster::Cluster;
use crate::error::chain;
use crate::leadership::Leadership;
use crate::link::{Link, LinkError, Trust, inflated, inflated_lines};

/// The largest file that is read, compressed or not.
const MOST_BYTES: usize = 4 << 20;
/// The largest log, uncompressed. It is never in memory as a whole.
const MOST_LOG_BYTES: usize = 64 << 20;
/// The longest line of a log that is looked at.
const LONGEST_LINE: usize = 64 << 10;
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

/// Asks Velero for a link, and fetches the file, both within `patience`; a log is then read within as much. The request is deleted whatever happens; Velero
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
    let compressed = timeout(patience, fetch(requests, &name, file)).await;
    let _ = requests.delete(&name, &DeleteParams::default()).await;
    let compressed = compressed.map_err(|_| "Velero or the storage did not answer".to_owned())??;
    let namespace = &key.namespace;
    let read = match file.content() {
        Content::Log => {
            log(cluster, namespace, file, compressed, patience).await?.map(|log| Results::Log(Arc::new(log)))
        }
        Content::Objects => {
            let read = results::read_objects(&text(&compressed)?, namespace);
            read.map(|read| Results::Objects(Arc::new(read)))
        }
        Content::Results => {
            let text = text(&compressed)?;
            let look = cluster.look();
            let read = results::read(&text, namespace, |name| look.namespace(name).is_some());
            read.map(|read| Results::Read(Arc::new(read)))
        }
    };
    read.map_err(|_| "the file is not what Velero writes".to_owned())
}

fn text(compressed: &[u8]) -> Result<Vec<u8>, String> {
    inflated(compressed, MOST_BYTES).map_err(|error| error.to_string())
}

/// What a log says about a namespace, if it is read within `patience`. It may have hundreds of thousands of lines, so it is
/// read where nothing else waits; nobody could stop it there, so it looks at the clock itself.
async fn log(
    cluster: &Cluster,
    namespace: &str,
    file: &ResultsFile,
    compressed: Vec<u8>,
    patience: Duration,
) -> Result<Result<LogLines, NotResults>, String> {
    let (namespaces, velero) = {
        let look = cluster.look();
        let namespaces: BTreeSet<String> = look.namespace_names().into_iter().collect();
        (namespaces, file.velero_objects(look.admin_namespace()))
    };
    let namespace = namespace.to_owned();
    let until = Instant::now() + patience;
    let read = move || {
        let mut own = OwnLines::new(&namespace, &velero, |name| namespaces.contains(name));
        let take = |line: &[u8]| {
            own.add(line);
            Instant::now() < until
        };
        let too_long = inflated_lines(&compressed, MOST_LOG_BYTES, LONGEST_LINE, take)?;
        own.leave_out(too_long);
        Ok::<_, LinkError>(own.finish())
    };
    let read = spawn_blocking(read).await.map_err(|error| error.to_string())?;
    read.map_err(|error| error.to_string())
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
    link.read(&trust, MOST_BYTES).await.map_err(|error| error.to_string())
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

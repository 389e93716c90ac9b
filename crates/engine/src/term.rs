//! What a new leader finds out before it decides. A standby's cache may be behind what the leader before it did last, and
//! the watch events of that arrive later: so it asks how far the API server is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use runtime::MADE_ONCE_FOR;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::cluster::Cluster;
use crate::error::status;
use crate::leadership::Leadership;

/// Pause between two tries. Until one succeeds nothing is decided.
const PAUSE: Duration = Duration::from_millis(500);

/// Begins each term of this process as leader: tasks that wait for [`Leadership::until_term_begun`] go on after that.
pub async fn begin_terms(client: Client, cluster: Arc<Cluster>, leadership: Leadership) {
    loop {
        let term = leadership.until_new_term().await;
        match newest_versions(&client).await {
            Ok(newest) => {
                debug!(term, ?newest, "term begun");
                cluster.drive(|runtime, _| runtime.becomes_leader(newest));
                leadership.begin_term(term);
            }
            Err(error) => {
                warn!(%error, "leader: the newest versions of requests could not be read; retrying");
                sleep(PAUSE).await;
            }
        }
    }
}

/// By kind, the newest version that the API server has.
async fn newest_versions(client: &Client) -> kube::Result<BTreeMap<Kind, u64>> {
    let mut newest = BTreeMap::new();
    for kind in MADE_ONCE_FOR {
        let requests = Api::<DynamicObject>::all_with(client.clone(), &kind.resource());
        // Without a version in the question the answer is the newest, never one out of a cache.
        let version = match requests.list_metadata(&ListParams::default().limit(1)).await {
            Ok(found) => found.metadata.resource_version.and_then(|version| version.parse().ok()),
            // There is no such kind in this cluster.
            Err(error) if status(&error).is_some_and(|status| status.code == 404) => continue,
            Err(error) if status(&error).is_some_and(|status| status.code == 403) => None,
            Err(error) => return Err(error),
        };
        // What cannot be compared is fetched.
        newest.insert(kind, version.unwrap_or(u64::MAX));
    }
    Ok(newest)
}

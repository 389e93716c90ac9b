//! Reads tenants' credentials. nacre is not permitted to list or watch Secrets, so each Secret that a location names is
//! fetched periodically. Only the named key is kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::HiddenSecret;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::{Api, Client};
use planner::state::SecretKey;
use planner::view::Credential;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;
use crate::leadership::Leadership;

/// Period while a credential is missing or invalid.
const SHORT_INTERVAL: Duration = Duration::from_secs(10);
/// Period otherwise: a rotated key is noticed after at most this time.
const LONG_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of reads per second.
const BUDGET: usize = 25;
/// How many at a time.
const AT_A_TIME: usize = 4;
/// Name of the missing permission.
const GET: &str = "get secrets";

/// Reads the credentials that locations name while this process is leader, and enqueues the affected objects.
pub async fn watch_credentials(client: Client, cluster: Arc<Cluster>, leadership: Leadership) {
    let mut looked: HashMap<SecretKey, Instant> = HashMap::new();
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        leadership.until_leader().await;
        let wanted = cluster.look().named_credentials();
        if looked.len() > wanted.len() {
            looked.retain(|name, _| wanted.contains_key(name));
            cluster.change(|state| {
                state.retain_credentials(|name| wanted.contains_key(name));
                Vec::new()
            });
        }
        let mut due: Vec<_> = wanted
            .into_iter()
            .map(|(name, urgent)| {
                (looked.get(&name).copied(), if urgent { SHORT_INTERVAL } else { LONG_INTERVAL }, name)
            })
            .filter(|(last, wait, _)| last.is_none_or(|last| last.elapsed() >= *wait))
            .collect();
        due.sort();
        due.truncate(BUDGET);
        looked.extend(due.iter().map(|(_, _, name)| (name.clone(), Instant::now())));
        let fetches = due.into_iter().map(|(_, _, name)| fetch(client.clone(), &cluster, name));
        let mut looks = stream::iter(fetches).buffer_unordered(AT_A_TIME);
        while let Some((name, found)) = looks.next().await {
            if let Some(found) = found {
                cluster.change(|state| state.set_credential(&name, found));
            }
        }
    }
}

/// Does something with a credential known that no location may name yet. What was fetched for this alone is forgotten
/// afterwards: whoever asks about many names must not fill the memory.
pub async fn with_credential<T>(
    client: &Client,
    cluster: &Cluster,
    name: &SecretKey,
    act: impl FnOnce() -> T,
) -> T {
    let known = cluster.look().credential(&name.namespace, &name.secret, &name.key);
    if known != Credential::Unseen {
        return act();
    }
    if let (_, Some(found)) = fetch(client.clone(), cluster, name.clone()).await {
        cluster.change(|state| state.set_credential(name, found));
    }
    let done = act();
    cluster.change(|state| {
        state.retain_credentials(|other| other != name);
        Vec::new()
    });
    done
}

/// The Secret's content, or that it is missing; none if the read failed.
async fn fetch(client: Client, cluster: &Cluster, name: SecretKey) -> (SecretKey, Option<Credential>) {
    let api: Api<HiddenSecret> = Api::namespaced(client, &name.namespace);
    let found = match api.get_opt(&name.secret).await {
        Ok(secret) => {
            cluster.degraded().enable(GET);
            let value = secret.and_then(|mut secret| secret.data.remove(&name.key)).map(Arc::new);
            Some(value.map_or_else(|| Credential::Missing(Timestamp::now()), Credential::Found))
        }
        Err(error) if status(&error).is_some_and(is_missing_permission) => {
            cluster.degraded().disable(GET, &error.to_string());
            Some(Credential::Withheld)
        }
        Err(error) => {
            debug!(%error, namespace = name.namespace, name = name.secret, "credential Secret could not be read; retrying");
            None
        }
    };
    (name, found)
}

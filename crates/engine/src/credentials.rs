//! Looking at tenants' credentials. Nobody may watch or list the Secrets of a cluster on their behalf, so each that a
//! location names is fetched now and then, and all but the key that is needed is dropped on the spot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::{HiddenSecret, Kind, NonAdminBackupStorageLocation, Phase};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::{Api, Client};
use planner::view::Credential;
use planner::{Key, location};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use crate::cluster::{Cluster, State};
use crate::error::status;
use crate::lacking::is_missing_right;
use crate::leadership::Leadership;
use crate::work::Work;

/// How often to look while a credential is missing or refused.
const OFTEN: Duration = Duration::from_secs(10);
/// How often to look otherwise: this is how long a rotation takes to be noticed.
const SELDOM: Duration = Duration::from_secs(30);
/// How many are looked at a second, in all; so looks at many spread out by themselves.
const BUDGET: usize = 25;
/// How many at a time.
const AT_A_TIME: usize = 4;
/// What it is called when it may not be done.
const GET: &str = "get secrets";

/// One key of one Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    namespace: String,
    secret: String,
    key: String,
}

impl Named {
    pub(crate) fn new(namespace: &str, secret: &str, key: &str) -> Self {
        Self { namespace: namespace.to_owned(), secret: secret.to_owned(), key: key.to_owned() }
    }

    /// What a location names, if it can be looked at.
    fn by(location: &NonAdminBackupStorageLocation) -> Option<Self> {
        let (secret, key) = location::named_key(&location.spec.backup_storage_location_spec)?;
        Some(Self::new(location.metadata.namespace.as_deref()?, secret, key))
    }
}

/// Looks after the credentials that locations name while this process leads, and wakes whom a change concerns.
pub async fn look_after_credentials(
    client: Client,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    leadership: Leadership,
) {
    let mut looked: HashMap<Named, Instant> = HashMap::new();
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        leadership.granted().await;
        let wanted = wanted(&cluster.look());
        if looked.len() > wanted.len() {
            looked.retain(|name, _| wanted.contains_key(name));
            cluster.change(|state| {
                state.credentials.retain(|name, _| wanted.contains_key(name));
                Vec::new()
            });
        }
        let mut due: Vec<_> = wanted
            .into_iter()
            .map(|(name, urgent)| (looked.get(&name).copied(), if urgent { OFTEN } else { SELDOM }, name))
            .filter(|(last, wait, _)| last.is_none_or(|last| last.elapsed() >= *wait))
            .collect();
        due.sort();
        due.truncate(BUDGET);
        looked.extend(due.iter().map(|(_, _, name)| (name.clone(), Instant::now())));
        let fetches = due.into_iter().map(|(_, _, name)| fetch(client.clone(), &cluster, name));
        let mut looks = stream::iter(fetches).buffer_unordered(AT_A_TIME);
        while let Some((name, found)) = looks.next().await {
            if let Some(found) = found {
                work.wake(cluster.change(|state| note(state, &name, found)));
            }
        }
    }
}

/// The credentials that locations name, and whether one of them waits for it.
fn wanted(state: &State) -> HashMap<Named, bool> {
    let mut wanted: HashMap<Named, bool> = HashMap::new();
    for seen in state.locations.all().filter(|seen| seen.object.metadata.deletion_timestamp.is_none()) {
        if let Some(name) = Named::by(&seen.object) {
            let phase = seen.object.status.as_ref().and_then(|status| status.phase);
            *wanted.entry(name).or_default() |= phase != Some(Phase::Created);
        }
    }
    wanted
}

/// What is there, if that could be found out.
async fn fetch(client: Client, cluster: &Cluster, name: Named) -> (Named, Option<Credential>) {
    let api: Api<HiddenSecret> = Api::namespaced(client, &name.namespace);
    let found = match api.get_opt(&name.secret).await {
        Ok(secret) => {
            cluster.lacking().on(GET);
            let value = secret.and_then(|mut secret| secret.data.remove(&name.key)).map(Arc::new);
            Some(value.map_or_else(|| Credential::Missing(Timestamp::now()), Credential::Found))
        }
        Err(error) if status(&error).is_some_and(is_missing_right) => {
            cluster.lacking().off(GET, &error.to_string());
            Some(Credential::Withheld)
        }
        Err(error) => {
            debug!(%error, namespace = name.namespace, name = name.secret, "a credential could not be looked at");
            None
        }
    };
    (name, found)
}

fn note(state: &mut State, name: &Named, found: Credential) -> Vec<Key> {
    let known = match (state.credentials.get(name), &found) {
        // Since when it is missing is known, and what was seen before is not forgotten.
        (Some(Credential::Missing(_)), Credential::Missing(_)) | (Some(_), Credential::Withheld) => true,
        (before, found) => before == Some(found),
    };
    if known {
        return Vec::new();
    }
    state.credentials.insert(name.clone(), found);
    let naming = state.locations.within(&name.namespace).map(|seen| &seen.object);
    let naming = naming.filter(|location| Named::by(location).as_ref() == Some(name));
    naming.map(|location| Key::of(Kind::NonAdminBackupStorageLocation, &location.metadata)).collect()
}

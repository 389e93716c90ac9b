//! Reads what usage is computed from, with the caller's own permissions.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result};
use api::velero::{Backup, BackupStorageLocation, DataUpload, PodVolumeBackup, Restore};
use api::{NonAdminBackup, NonAdminRestore};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Resource, core::NamespaceResourceScope};
use planner::{
    State,
    policy::load,
    state::{Moment, RawObject, Update, WatchedKind},
    usage::{RECORD, of_requests},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{Limits, Row};
use crate::{
    allowed::{self, Source},
    connect::Session,
    list::{self, Readable},
};

/// The namespace of the session, from what its owners can read.
pub(super) async fn own(session: &Session, now: Timestamp) -> Result<Row> {
    let limits = async {
        let namespace = allowed::namespace(session).await;
        allowed::read(session, &namespace, None).await
    };
    let (backups, restores, allowed) =
        tokio::try_join!(requests::<NonAdminBackup>(session), requests::<NonAdminRestore>(session), limits)?;
    let limits = match (allowed.source, allowed.policy) {
        (Source::Unreadable, _) | (_, None) => None,
        (_, Some(policy)) => Some(Limits::from(policy.as_ref())),
    };
    Ok(Row { namespace: session.namespace.clone(), usage: of_requests(&backups, &restores, now), limits })
}

async fn requests<K: Readable>(session: &Session) -> Result<Vec<K>> {
    let found = list::all::<K>(session, Some(&session.namespace), None, false).await?;
    Ok(found.items.into_iter().map(|(object, _)| object).collect())
}

/// All namespaces, from Velero's objects, by the rules of the controller.
pub(super) async fn all(session: &Session, now: Timestamp) -> Result<Vec<Row>> {
    let mut state = State::new(&session.velero_namespace);
    let spaces: Api<Namespace> = Api::all(session.client.clone());
    let spaces = list::in_parts(&spaces).await.context(FOR_ADMINISTRATORS)?;
    put(&mut state, &spaces, now);
    fill::<BackupStorageLocation>(session, &mut state, now).await?;
    fill::<Backup>(session, &mut state, now).await?;
    fill::<Restore>(session, &mut state, now).await?;
    fill::<PodVolumeBackup>(session, &mut state, now).await?;
    fill::<DataUpload>(session, &mut state, now).await?;
    let record = session.in_velero_namespace::<ConfigMap>().get_opt(RECORD).await?;
    put(&mut state, record.as_slice(), now);
    state.set_now(now);
    let policies = load(None, &allowed::from_cluster(session).await?).policies;
    let row = |(namespace, usage)| {
        let space = spaces.iter().find(|space| space.metadata.name.as_deref() == Some(namespace));
        let labels = space.and_then(|space| space.metadata.labels.clone()).unwrap_or_default();
        let policy = policies.as_ref().map(|policies| policies.for_namespace(namespace, &labels));
        Row {
            namespace: String::from(namespace),
            usage,
            limits: policy.map(|policy| Limits::from(policy.as_ref())),
        }
    };
    Ok(state.all_usage().iter().map(|(namespace, usage)| row((namespace.as_str(), *usage))).collect())
}

const FOR_ADMINISTRATORS: &str = "-A is for administrators, who can read all namespaces and Velero's objects; leave it out to see your own";

/// Reads the objects of one kind in Velero's namespace. A kind that is not installed has none.
async fn fill<K>(session: &Session, state: &mut State, now: Timestamp) -> Result<()>
where
    K: WatchedKind
        + Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    match list::in_parts(&session.in_velero_namespace::<K>()).await {
        Ok(found) => put(state, &found, now),
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(error).context(FOR_ADMINISTRATORS),
    }
    Ok(())
}

/// Adds objects as a watch would report them.
fn put<K: WatchedKind + Serialize>(state: &mut State, objects: &[K], now: Timestamp) {
    let now = Moment { clock: now, uptime: Duration::ZERO };
    for object in objects {
        let text = json!(object).to_string();
        state.update(K::KIND, Update::Observed(&RawObject::new(&text)), now);
    }
}

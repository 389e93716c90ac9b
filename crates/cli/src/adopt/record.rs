//! The record of adoptions: a ConfigMap in Velero's namespace, from a namespace's name to its uid, and who adopted.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    api::{Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use planner::sync::{ADOPTIONS, adopter_key};
use serde_json::json;

use crate::connect::Session;

/// An adoption.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// The uid of the namespace.
    pub(super) uid: &'a str,
    /// Who gave it; none if the API server does not say who the caller is.
    pub(super) by: Option<&'a str>,
}

/// What was handed over: uids by names of namespaces, and who did so.
pub(super) async fn read(session: &Session) -> Result<BTreeMap<String, String>> {
    let map = session.in_velero_namespace::<ConfigMap>().get_opt(ADOPTIONS).await?;
    Ok(map.and_then(|map| map.data).unwrap_or_default())
}

/// Writes down whom the namespace's backups go to and who gave them, or that they go to nobody. Other namespaces' lines
/// stay as they are.
pub(super) async fn write(session: &Session, namespace: &str, given: Option<Given<'_>>) -> Result<()> {
    let maps = session.in_velero_namespace::<ConfigMap>();
    let (uid, by) = (given.map(|given| given.uid), given.and_then(|given| given.by));
    let change = json!({"data": {namespace: uid, adopter_key(namespace): by}});
    let params = PatchParams { field_manager: Some("kubectl-nacre".to_owned()), ..PatchParams::default() };
    let patch = async || maps.patch(ADOPTIONS, &params, &Patch::Merge(&change)).await;
    let first = match (patch().await, uid) {
        (Err(kube::Error::Api(status)), Some(uid)) if status.is_not_found() => {
            let mut data = BTreeMap::from([(namespace.to_owned(), uid.to_owned())]);
            data.extend(by.map(|by| (adopter_key(namespace), by.to_owned())));
            let map = ConfigMap {
                metadata: ObjectMeta { name: Some(ADOPTIONS.to_owned()), ..ObjectMeta::default() },
                data: Some(data),
                ..ConfigMap::default()
            };
            match maps.create(&PostParams::default(), &map).await {
                // Somebody else was faster with another namespace.
                Err(kube::Error::Api(status)) if status.is_already_exists() => patch().await,
                made => made,
            }
        }
        (first, _) => first,
    };
    first.map(drop).with_context(|| format!("writing ConfigMap {ADOPTIONS}"))
}

//! Asking the cluster for names, as little as will do.

use api::Kind;
use http::{Request, header::ACCEPT};
use serde_json::Value;

use crate::{
    connect::{Connection, Session},
    resources::{self, Served},
};

/// Rows without the objects behind them: of a thousand backups some 100 KB instead of megabytes.
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
/// Who has more will not look through them.
const MOST: usize = 1000;

/// The contexts of the kubeconfig.
pub(super) fn contexts(connection: &Connection) -> Vec<String> {
    let contexts = connection.kubeconfig().map(|config| config.contexts).unwrap_or_default();
    contexts.into_iter().map(|context| context.name).collect()
}

/// The namespaces of the contexts, for those who may not list any.
pub(super) fn namespaces(connection: &Connection) -> Vec<String> {
    let contexts = connection.kubeconfig().map(|config| config.contexts).unwrap_or_default();
    let mut names: Vec<String> =
        contexts.into_iter().filter_map(|context| context.context?.namespace).collect();
    names.sort();
    names.dedup();
    names
}

/// The names of all objects of a kind.
pub(super) async fn objects(session: &Session, kind: Kind, namespace: &str) -> Option<Vec<String>> {
    let group = if kind.group().is_empty() { "api" } else { "apis" };
    let place = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    let path =
        format!("/{group}/{}/{place}{}?includeObject=None&limit={MOST}", kind.api_version(), kind.plural());
    let table = read(session, &path, TABLE).await?;
    let rows = table["rows"].as_array()?.iter();
    Some(rows.filter_map(|row| row["cells"][0].as_str()).map(str::to_owned).collect())
}

/// `secret=`, and once that is there `secret=key`; of the values nothing is kept.
pub(super) async fn keys(session: &Session, word: &str) -> Option<Vec<String>> {
    let Some((secret, _)) = word.split_once('=') else {
        let names = objects(session, Kind::Secret, &session.namespace).await?;
        return Some(names.into_iter().map(|name| format!("{name}=")).collect());
    };
    let api = session.api::<api::HiddenSecret>();
    let found = api.get(secret).await.ok()?;
    Some(found.data.keys().map(|key| format!("{secret}={key}")).collect())
}

/// Every kind that lives in namespaces and can be listed, as Velero's filters spell it.
pub(super) async fn resources(session: &Session) -> Option<Vec<String>> {
    let served = resources::served(session).await?;
    let mut names: Vec<String> = served.iter().filter(|one| one.is_for_backups()).map(Served::name).collect();
    names.sort();
    Some(names)
}

async fn read(session: &Session, path: &str, accept: &str) -> Option<Value> {
    let request = Request::get(path).header(ACCEPT, accept).body(Vec::new()).ok()?;
    serde_json::from_str(&session.client.request_text(request).await.ok()?).ok()
}

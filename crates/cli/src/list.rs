//! Reading one kind: all of them, or those that were named, whatever state they are in.

use std::fmt::Debug;

use anyhow::{Context as _, Result, bail};
use http::Request;
use jiff::Timestamp;
use kube::{Resource, core::NamespaceResourceScope};
use planner::view::read;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    connect::Session,
    object_name::ObjectName,
    output::{Format, Outcome, print, remark},
    table::Table,
};

/// Which objects to read.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Names; all objects if absent.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<ObjectName>,

    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "names"])]
    pub(crate) all_namespaces: bool,

    /// Label selector, as in kubectl: app=shop,tier!=test.
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
}

/// What the API server answers with: sound objects as they are, and the text for programs.
pub(crate) struct Found<K> {
    /// Each object, and why it could not be read if it could not; empty if all that was wanted is the text.
    pub(crate) items: Vec<(K, Option<String>)>,
    /// The same as kubectl would print it.
    raw: Vec<Value>,
    /// Whether exactly one was asked for by name.
    single: bool,
}

#[derive(Deserialize)]
struct List<K> {
    items: Vec<K>,
    #[serde(default)]
    metadata: ListMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    #[serde(rename = "continue")]
    token: Option<String>,
    #[serde(rename = "remainingItemCount")]
    remaining: Option<u64>,
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
}

/// A kind that lives in a namespace and can be read even if it is odd.
pub(crate) trait Readable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + DeserializeOwned
    + Serialize
    + Default
    + Clone
    + Debug
{
}

impl<K> Readable for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + DeserializeOwned
        + Serialize
        + Default
        + Clone
        + Debug
{
}

impl ListArgs {
    /// Reads what was asked for. With `raw`, what came is also kept as it came.
    async fn read<K: Readable>(&self, session: &Session, raw: bool) -> Result<Found<K>> {
        if self.names.is_empty() {
            let namespace = (!self.all_namespaces).then_some(session.namespace.as_str());
            return all(session, namespace, self.selector.as_deref(), raw).await;
        }
        let mut found = Found { items: Vec::new(), raw: Vec::new(), single: self.names.len() == 1 };
        for name in &self.names {
            let request = get::<K>(&session.namespace, name.of::<K>()?)?;
            let text = session.client.request_text(request).await?;
            let mut value: Value = serde_json::from_str(&text)?;
            without_managers(&mut value);
            found.items.push(read(&value));
            found.raw.push(value);
        }
        Ok(found)
    }
}

impl ListArgs {
    /// `get`: reads what was asked for and prints it, as a table for people.
    pub(crate) async fn show<K: Readable>(
        &self,
        session: &Session,
        plural: &str,
        table: impl FnOnce(&Found<K>, Format, bool, Timestamp) -> Table,
    ) -> Result<Outcome> {
        let raw = matches!(session.format, Format::Json | Format::Yaml);
        let found = self.read(session, raw).await?;
        if found.items.is_empty() && !raw {
            remark(self.nothing(session, plural));
            return Ok(Outcome::Good);
        }
        let table = || table(&found, session.format, self.all_namespaces, Timestamp::now()).to_string();
        print(session.format, &found, table, || found.names())?;
        Ok(Outcome::Good)
    }

    /// That there is none, as kubectl says it.
    fn nothing(&self, session: &Session, plural: &str) -> String {
        if self.all_namespaces {
            format!("No {plural} found.")
        } else {
            format!("No {plural} found in namespace {}.", session.namespace)
        }
    }
}

/// Reads one object by name, whatever state it is in.
pub(crate) async fn one<K: Readable>(session: &Session, name: &str) -> Result<(K, Option<String>)> {
    let text = session.client.request_text(get::<K>(&session.namespace, name)?).await?;
    Ok(read(&serde_json::from_str(&text)?))
}

/// Reads all objects of a kind.
pub(crate) async fn all<K: Readable>(
    session: &Session,
    namespace: Option<&str>,
    selector: Option<&str>,
    raw: bool,
) -> Result<Found<K>> {
    picked(session, namespace, selector, raw, Some).await
}

/// Reads all objects of a kind in all namespaces, and keeps what is needed of them: there may be a hundred thousand, and
/// only one part of them is in memory as a whole.
pub(crate) async fn everywhere<K: Readable>(
    session: &Session,
    needed: impl Fn(K) -> Option<K>,
) -> Result<Vec<K>> {
    let found = picked(session, None, None, false, needed).await?;
    Ok(found.items.into_iter().map(|(object, _)| object).collect())
}

async fn picked<K: Readable>(
    session: &Session,
    namespace: Option<&str>,
    selector: Option<&str>,
    raw: bool,
    needed: impl Fn(K) -> Option<K>,
) -> Result<Found<K>> {
    let mut found = Found::of(Vec::new());
    let mut limit = Some(AT_ONCE);
    let mut from: Option<String> = None;
    loop {
        let text = match part_of::<K>(session, namespace, selector, limit, from.as_deref()).await {
            // It took so long that the API server has forgotten where it was: once more, in one go.
            Err(kube::Error::Api(status)) if status.code == 410 && from.is_some() => {
                (found, limit, from) = (Found::of(Vec::new()), None, None);
                continue;
            }
            text => text?,
        };
        let (part, next) = read_part::<K>(&text, raw)?;
        let items = part.items.into_iter();
        found.items.extend(items.filter_map(|(object, unreadable)| Some((needed(object)?, unreadable))));
        if raw {
            found.raw.extend(part.raw);
        }
        from = next;
        if from.is_none() {
            return Ok(found);
        }
    }
}

/// How many objects are read at a time, as kubectl does.
const AT_ONCE: u32 = 500;

/// The text of a part of a list.
async fn part_of<K: Readable>(
    session: &Session,
    namespace: Option<&str>,
    selector: Option<&str>,
    limit: Option<u32>,
    from: Option<&str>,
) -> kube::Result<String> {
    let limit = limit.map(|limit| limit.to_string());
    let parameters = [("labelSelector", selector), ("limit", limit.as_deref()), ("continue", from)];
    let parameters = parameters.into_iter().filter_map(|(name, value)| {
        Some(format!("{name}={}", value?.bytes().map(percent).collect::<String>()))
    });
    let uri = format!("{}?{}", K::url_path(&(), namespace), parameters.collect::<Vec<_>>().join("&"));
    let request = Request::get(uri.trim_end_matches('?')).body(Vec::new());
    session.client.request_text(request.map_err(kube::Error::HttpError)?).await
}

/// Objects, and where the list goes on.
fn read_part<K: Readable>(text: &str, raw: bool) -> Result<(Found<K>, Option<String>)> {
    let next = |meta: ListMeta| meta.token.filter(|token| !token.is_empty());
    if !raw && let Ok(list) = serde_json::from_str::<List<K>>(text) {
        let items = list.items.into_iter().map(|item| (item, None)).collect();
        return Ok((Found::of(items), next(list.metadata)));
    }
    // One of them cannot be read, or programs want them all as they are.
    let mut list: List<Value> = serde_json::from_str(text).context("the API server's list")?;
    for item in &mut list.items {
        item["apiVersion"] = json!(K::api_version(&()));
        item["kind"] = json!(K::kind(&()));
        without_managers(item);
    }
    // Nobody looks into what is passed on as it is.
    let items = if raw { Vec::new() } else { list.items.iter().map(read).collect() };
    Ok((Found { items, raw: list.items, single: false }, next(list.metadata)))
}

/// Everything that a client lists, read in parts.
pub(crate) async fn in_parts<K>(api: &kube::Api<K>) -> kube::Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    in_parts_of(api, |_| true).await
}

/// The same of those that are wanted; the others are not kept.
pub(crate) async fn in_parts_of<K>(api: &kube::Api<K>, wanted: impl Fn(&K) -> bool) -> kube::Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut all = Vec::new();
    let mut params = kube::api::ListParams::default().limit(AT_ONCE);
    loop {
        let part = match api.list(&params).await {
            // It took so long that the API server has forgotten where it was: once more, in one go.
            Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                let whole = api.list(&kube::api::ListParams::default()).await?.items;
                return Ok(whole.into_iter().filter(|object| wanted(object)).collect());
            }
            part => part?,
        };
        all.extend(part.items.into_iter().filter(|object| wanted(object)));
        match part.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// How much is read of a list that is needed as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// So many objects at a time.
    pub(crate) at_once: u32,
    /// No more objects than these.
    pub(crate) most: u64,
    /// No more text than this, however few objects it is.
    pub(crate) bytes: usize,
}

/// All objects of a kind in the namespace, and the version of the list; none if there is more than this.
pub(crate) async fn up_to<K: Readable>(
    session: &Session,
    reads: Reads,
) -> Result<Option<(Found<K>, String)>> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    let mut from = None;
    loop {
        let page = page::<K>(session, reads.at_once, from.as_deref()).await?;
        let read = u64::try_from(all.len() + page.found.items.len()).unwrap_or(u64::MAX);
        bytes += page.bytes;
        if read + page.remaining > reads.most || bytes > reads.bytes {
            return Ok(None);
        }
        all.extend(page.found.items);
        from = page.next;
        if from.is_none() {
            return Ok(Some((Found::of(all), page.version)));
        }
    }
}

/// One page of a kind, in the API server's order, which is that of names.
pub(crate) struct ListPage<K> {
    pub(crate) found: Found<K>,
    /// Where the next page begins; none if this is the last.
    pub(crate) next: Option<String>,
    /// How many come after it, as far as the API server says so.
    pub(crate) remaining: u64,
    /// The version of the list: a watch that begins there misses nothing.
    pub(crate) version: String,
    /// How long the API server's answer was.
    bytes: usize,
}

/// Reads so many objects of a kind, from where the page before ended.
pub(crate) async fn page<K: Readable>(
    session: &Session,
    limit: u32,
    from: Option<&str>,
) -> Result<ListPage<K>> {
    let text = part_of::<K>(session, Some(&session.namespace), None, Some(limit), from).await?;
    let list: List<Value> = serde_json::from_str(&text).context("the API server's list")?;
    let next = list.metadata.token.filter(|token| !token.is_empty());
    let remaining = list.metadata.remaining.unwrap_or_else(|| u64::from(next.is_some()));
    let version = list.metadata.version.unwrap_or_default();
    let found = Found::of(list.items.iter().map(read).collect());
    Ok(ListPage { found, next, remaining, version, bytes: text.len() })
}

/// Who set which field is nobody's question here, and often longer than the object; kubectl leaves it out too.
fn without_managers(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
}

fn get<K: Readable>(namespace: &str, name: &str) -> Result<Request<Vec<u8>>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("{name:?} is not the name of an object: small letters, digits, dashes and dots make one");
    }
    Ok(Request::get(format!("{}/{name}", K::url_path(&(), Some(namespace)))).body(Vec::new())?)
}

/// As little as possible is left as it is, so that nothing has another meaning in a URL.
fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

/// As kubectl prints it: the object itself if one was named, else a list.
impl<K> Serialize for Found<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.single, self.raw.as_slice()) {
            (true, [one]) => one.serialize(serializer),
            (_, items) => json!({"apiVersion": "v1", "kind": "List", "items": items}).serialize(serializer),
        }
    }
}

impl<K: Readable> Found<K> {
    /// What was read elsewhere.
    pub(crate) fn of(items: Vec<(K, Option<String>)>) -> Self {
        Self { items, raw: Vec::new(), single: false }
    }

    /// Puts the newest first, as a time line has it.
    pub(crate) fn newest_first(&mut self) {
        self.items.sort_by_cached_key(|(object, _)| std::cmp::Reverse(age_and_name(object)));
    }

    /// The newest last, as a log would have it.
    pub(crate) fn newest_last(&self) -> Vec<&(K, Option<String>)> {
        let mut items: Vec<_> = self.items.iter().collect();
        items.sort_by_cached_key(|(object, _)| age_and_name(object));
        items
    }

    /// `plural.group/name`, as `kubectl get -o name` has it.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.items.iter().map(|(object, _)| object);
        items.map(|object| qualified::<K>(object.meta().name.as_deref().unwrap_or_default())).collect()
    }
}

/// What objects are ordered by.
fn age_and_name<K: Readable>(object: &K) -> (Option<Timestamp>, Option<String>, Option<String>) {
    let meta = object.meta();
    (meta.creation_timestamp.as_ref().map(|time| time.0), meta.namespace.clone(), meta.name.clone())
}

/// `kind.group/name`, as `kubectl get -o name` has it.
pub(crate) fn qualified<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("{}.{}/{name}", K::kind(&()).to_lowercase(), K::group(&()))
}

#[cfg(test)]
mod tests {
    use api::NonAdminBackup;

    use super::*;

    #[test]
    fn an_odd_object_keeps_what_can_be_read() {
        let odd = json!({"metadata": {"name": "a"}, "spec": {"backupSpec": {"tll": "1h"}}, "status": {"phase": "BackingOff"}});
        let (object, why) = read::<NonAdminBackup>(&odd);
        assert_eq!(object.metadata.name.as_deref(), Some("a"));
        assert!(object.status.is_some() && why.is_some_and(|why| why.contains("tll")));
    }

    #[test]
    fn a_name_stays_within_its_path_segment() {
        assert!(get::<NonAdminBackup>("shop", "../secrets/x").is_err());
        assert!(get::<NonAdminBackup>("shop", "daily").is_ok());
        assert_eq!("a=b,c".bytes().map(percent).collect::<String>(), "a%3Db%2Cc");
    }
}

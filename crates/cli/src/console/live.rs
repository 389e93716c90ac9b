//! Live progress: a watch of the API server's, passed on as Server-Sent Events.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, NonAdminSchedule};
use axum::{
    extract::{Path, Query, State},
    response::sse::{Event, KeepAlive, KeepAliveStream, Sse},
};
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use kube::{
    Api,
    api::{ListParams, WatchEvent, WatchParams},
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{WatchStreamExt as _, watcher},
};
use planner::view;
use serde::Deserialize;
use serde_json::json;

use super::{
    pages::{Failed, object_name},
    person::{Person, is_rejected},
    serve::Console,
};
use crate::{
    connect::Session,
    list::Readable,
    live::{ShowsProgress, is_final},
    restore::replace::StoredRecord,
};

/// How long one connection lives. The browser connects again, and is asked again who it is.
const LONGEST: Duration = Duration::from_mins(10);

/// How often the API server is asked whether it still accepts the person: a watch that runs goes on without that.
const ASK: Duration = Duration::from_secs(20);

/// How long to wait after a watch has failed.
const PAUSE: Duration = Duration::from_secs(5);

/// A stream that is a response.
type Events = Sse<KeepAliveStream<BoxStream<'static, Result<Event, Infallible>>>>;

/// From which versions on, by kind: those of the lists that a page shows.
#[derive(Deserialize)]
pub(super) struct Versions {
    nonadminbackups: Option<String>,
    nonadminrestores: Option<String>,
    nonadminschedules: Option<String>,
    nonadminbackupstoragelocations: Option<String>,
}

/// What changes in a namespace.
pub(super) async fn namespace(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Versions>,
) -> Result<Events, Failed> {
    let session = person.at(&namespace)?;
    // These pages show nothing else.
    if from.nonadminschedules.is_some() {
        return Ok(events(&person, changes::<NonAdminSchedule>(&session, from.nonadminschedules)));
    }
    if from.nonadminbackupstoragelocations.is_some() {
        let version = from.nonadminbackupstoragelocations;
        return Ok(events(&person, changes::<NonAdminBackupStorageLocation>(&session, version)));
    }
    let backups = changes::<NonAdminBackup>(&session, from.nonadminbackups);
    let restores = changes::<NonAdminRestore>(&session, from.nonadminrestores);
    Ok(events(&person, stream::select(backups, restores)))
}

/// How a backup goes on.
pub(super) async fn backup(person: Person, Path(path): Path<(String, String)>) -> Result<Events, Failed> {
    progress::<NonAdminBackup>(&person, path)
}

/// How a restore goes on.
pub(super) async fn restore(person: Person, Path(path): Path<(String, String)>) -> Result<Events, Failed> {
    progress::<NonAdminRestore>(&person, path)
}

/// How a location goes on: whether it is approved, and reached.
pub(super) async fn location(person: Person, Path(path): Path<(String, String)>) -> Result<Events, Failed> {
    progress::<NonAdminBackupStorageLocation>(&person, path)
}

/// How a replacement goes on that this console works on.
pub(super) async fn replacement(
    person: Person,
    State(console): State<Arc<Console>>,
    Path((namespace, backup)): Path<(String, String)>,
) -> Result<Events, Failed> {
    let session = person.at(&namespace)?;
    // Whoever may not look at the namespace learns nothing.
    StoredRecord::find(&session, object_name(&backup)?).await?;
    let changed = console.replacements.changes(&namespace, &backup);
    Ok(events(&person, changed.map(|()| changed_event())))
}

fn changed_event() -> Event {
    Event::default().event("changed").data("{}")
}

/// A stream that ends by itself has nothing more to report: the browser does not connect again. One that ends with the
/// person's session is not over: the page looks again, and says that, or goes on with the token that a proxy has now.
fn events(person: &Person, stream: impl Stream<Item = Event> + Send + 'static) -> Events {
    let is_signed_out = Arc::new(AtomicBool::new(false));
    let (session, life, ended) = (person.session.clone(), person.life.clone(), is_signed_out.clone());
    let signed_out = async move {
        tokio::select! {
            () = life.over() => {}
            () = rejected(&session) => {}
        }
        ended.store(true, Relaxed);
    };
    let last = stream::once(async move {
        if is_signed_out.load(Relaxed) { changed_event() } else { Event::default().event("over").data("{}") }
    });
    let limited = stream.take_until(signed_out).chain(last).take_until(tokio::time::sleep(LONGEST)).map(Ok);
    Sse::new(limited.boxed()).keep_alive(KeepAlive::default())
}

/// Waits until the API server does not accept the person any more.
async fn rejected(session: &Session) {
    loop {
        tokio::time::sleep(ASK).await;
        if is_rejected(session).await {
            return;
        }
    }
}

/// An event for each change after this version, or from now on. Nothing of what is there already is read.
fn changes<K: Readable + Send + Sync + 'static>(
    session: &Session,
    version: Option<String>,
) -> impl Stream<Item = Event> + Send + 'static {
    let version =
        version.filter(|version| version.bytes().all(|byte| byte.is_ascii_digit()) && !version.is_empty());
    let api: Api<K> = Api::namespaced(session.client.clone(), &session.namespace);
    let changes = Changes { api, version, events: None };
    stream::unfold(changes, async |mut changes| changes.next().await.map(|event| (event, changes)))
}

struct Changes<K> {
    api: Api<K>,
    /// Where the watch goes on; none if that is not known.
    version: Option<String>,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta<K>>>>>,
}

impl<K: Readable + Send + Sync + 'static> Changes<K> {
    /// The next change; none if the person may not see them.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let seen = match &mut self.events {
                None => self.begin().await.map(|()| None),
                Some(events) => match events.next().await {
                    // The API server ends a watch after some minutes.
                    None => {
                        self.events = None;
                        continue;
                    }
                    Some(Ok(WatchEvent::Error(status))) => Err(kube::Error::Api(status)),
                    Some(seen) => seen.map(Some),
                },
            };
            match seen {
                // A watch that has begun. Errors of one are errors here.
                Ok(None | Some(WatchEvent::Error(_))) => {}
                Ok(Some(WatchEvent::Bookmark(mark))) => self.version = Some(mark.metadata.resource_version),
                Ok(Some(
                    WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object),
                )) => {
                    self.version = object.metadata.resource_version;
                    return Some(changed_event());
                }
                Err(kube::Error::Api(status)) if [401, 403, 404].contains(&status.code) => return None,
                Err(error) => {
                    self.events = None;
                    // What happened since is not known any more: the page looks again.
                    if matches!(&error, kube::Error::Api(status) if status.code == 410) {
                        self.version = None;
                        return Some(changed_event());
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn begin(&mut self) -> kube::Result<()> {
        let version = match self.version.clone() {
            Some(version) => version,
            // One object is enough to learn the version of the list.
            None => self
                .api
                .list_metadata(&ListParams::default().limit(1))
                .await?
                .metadata
                .resource_version
                .unwrap_or_default(),
        };
        self.version = Some(version.clone());
        self.events = Some(self.api.watch_metadata(&WatchParams::default(), &version).await?.boxed());
        Ok(())
    }
}

fn progress<K: ShowsProgress + Send + Sync + 'static>(
    person: &Person,
    (namespace, name): (String, String),
) -> Result<Events, Failed> {
    let session = person.at(&namespace)?;
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(session.client.clone(), &session.namespace, &kind);
    let states = watcher::watch_object(api, &name).default_backoff();
    let ends = states.take_while(|found| std::future::ready(!found.as_ref().is_err_and(is_final)));
    let mut last = String::new();
    let told = ends.filter_map(move |found| {
        let object = found.ok().map(|object| object.and_then(|object| serde_json::to_value(object).ok()));
        std::future::ready(object.map(|object| next::<K>(object, &mut last)))
    });
    Ok(events(person, told))
}

/// The event for what was seen, if it is news.
fn next<K: ShowsProgress>(object: Option<serde_json::Value>, last: &mut String) -> Event {
    let Some(object) = object else { return changed_event() };
    let moment = view::read::<K>(&object).0.moment();
    // A new word, such as Completed, changes more on the page than a number does.
    let new_word = *last != moment.word && !last.is_empty();
    last.clone_from(&moment.word);
    if new_word || moment.outcome.is_some() {
        return changed_event();
    }
    let (done, total) = moment.amount.unwrap_or_default();
    let data = json!({"sentence": moment.sentence, "done": done, "total": total});
    Event::default().event("progress").data(data.to_string())
}

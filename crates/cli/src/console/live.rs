//! Live progress: a watch of the API server's, passed on as Server-Sent Events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use axum::{
    extract::{Path, State},
    response::sse::{Event, KeepAlive, KeepAliveStream, Sse},
};
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use kube::{
    Api,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{WatchStreamExt as _, watcher},
};
use planner::view;
use serde_json::json;

use super::{
    pages::{Failed, object_name},
    person::Person,
    serve::Console,
};
use crate::{
    connect::Session,
    live::{ShowsProgress, is_final},
    restore::replace::StoredRecord,
};

/// How long one connection lives. The browser connects again, and is asked again who it is.
const LONGEST: Duration = Duration::from_mins(10);

/// A stream that is a response.
type Events = Sse<KeepAliveStream<BoxStream<'static, Result<Event, Infallible>>>>;

/// What changes in a namespace.
pub(super) async fn namespace(person: Person, Path(namespace): Path<String>) -> Result<Events, Failed> {
    let session = person.at(&namespace)?;
    let changed = stream::select(changes::<NonAdminBackup>(&session), changes::<NonAdminRestore>(&session));
    Ok(events(changed))
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
    Ok(events(changed.map(|()| Event::default().event("changed").data("{}"))))
}

fn events(stream: impl Stream<Item = Event> + Send + 'static) -> Events {
    let limited = stream.take_until(tokio::time::sleep(LONGEST)).map(Ok);
    Sse::new(limited.boxed()).keep_alive(KeepAlive::default())
}

/// An event for each change; what is there already is none.
fn changes<K: ShowsProgress + Send + Sync + 'static>(
    session: &Session,
) -> impl Stream<Item = Event> + Send + 'static {
    let api: Api<PartialObjectMeta<K>> = Api::namespaced(session.client.clone(), &session.namespace);
    let states = watcher(api, watcher::Config::default()).default_backoff();
    let ends = states.take_while(|found| std::future::ready(!found.as_ref().is_err_and(is_final)));
    ends.filter_map(|found| {
        let changed = matches!(found, Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_)));
        std::future::ready(changed.then(|| Event::default().event("changed").data("{}")))
    })
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
    Ok(events(told))
}

/// The event for what was seen, if it is news.
fn next<K: ShowsProgress>(object: Option<serde_json::Value>, last: &mut String) -> Event {
    let Some(object) = object else { return Event::default().event("changed").data("{}") };
    let moment = view::read::<K>(&object).0.moment();
    // A new word, such as Completed, changes more on the page than a number does.
    let new_word = *last != moment.word && !last.is_empty();
    last.clone_from(&moment.word);
    if new_word || moment.outcome.is_some() {
        return Event::default().event("changed").data("{}");
    }
    let (done, total) = moment.amount.unwrap_or_default();
    let data = json!({"sentence": moment.sentence, "done": done, "total": total});
    Event::default().event("progress").data(data.to_string())
}

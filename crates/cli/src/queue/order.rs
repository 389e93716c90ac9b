//! The order in which Velero and nacre work: first what Velero has, in Velero's order, then what nacre holds back.

use api::{NonAdminBackup, NonAdminRestore, Phase, labels};
use jiff::Timestamp;
use kube::core::ObjectMeta;
use planner::ownership::{annotation, label};
use planner::queue::{Queue, Queued, Source, Stage};
use serde::Serialize;

use super::mark::Mark;

/// One that runs or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) kind: &'static str,
    /// The tenant's namespace; none for what an administrator asked Velero for.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// Its place among those of its kind, from 1; none if it is held.
    pub(super) position: Option<usize>,
    pub(crate) state: State,
    /// When it was asked for.
    pub(super) since: Option<Timestamp>,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum State {
    /// Velero works on it.
    Running,
    /// Velero has it and has not begun.
    Queued,
    /// nacre gives it to Velero next, since an administrator moved it to the front.
    Promoted,
    /// nacre gives it to Velero when it is its turn.
    Waiting,
    /// An administrator holds it.
    Held,
}

impl State {
    /// What an administrator can change about it.
    pub(crate) const fn marks(self) -> &'static [Mark] {
        match self {
            Self::Running | Self::Queued => &[],
            Self::Promoted => &[Mark::None, Mark::Hold],
            Self::Waiting => &[Mark::Front, Mark::Hold],
            Self::Held => &[Mark::None, Mark::Front],
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Queued => "Queued",
            Self::Promoted => "Promoted",
            Self::Waiting => "Waiting",
            Self::Held => "Held",
        }
    }
}

/// A request of a tenant, as far as the queue is concerned.
pub(super) trait Waits {
    fn meta(&self) -> &ObjectMeta;
    /// How far nacre is with it, whether Velero has it, and the position that nacre shows.
    fn facts(&self) -> (Option<Phase>, bool, Option<i64>);
}

impl Waits for NonAdminBackup {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn facts(&self) -> (Option<Phase>, bool, Option<i64>) {
        let Some(status) = &self.status else { return (None, false, None) };
        let shown = status.queue_info.as_ref().map(|info| info.estimated_queue_position);
        (status.phase, status.velero_backup.is_some(), shown)
    }
}

impl Waits for NonAdminRestore {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn facts(&self) -> (Option<Phase>, bool, Option<i64>) {
        let Some(status) = &self.status else { return (None, false, None) };
        let shown = status.queue_info.as_ref().map(|info| info.estimated_queue_position);
        (status.phase, status.velero_restore.is_some(), shown)
    }
}

/// Whether nacre is yet to give it to Velero, and will do so by itself.
pub(super) fn is_held_back(request: &impl Waits) -> bool {
    let (phase, at_velero, _) = request.facts();
    let meta = request.meta();
    !at_velero
        && matches!(phase, None | Some(Phase::New))
        && meta.deletion_timestamp.is_none()
        && label(meta, labels::SYNCED_FROM).is_none()
}

/// The annotations of a Velero object that name the request it was made for: namespace and name.
pub(super) type Origin = (&'static str, &'static str);

/// All of one kind, in order.
pub(super) fn entries<V: Queued, R: Waits>(
    kind: &'static str,
    origin: Origin,
    velero: &[V],
    requests: &[R],
) -> Vec<Entry> {
    let mut all = at_velero(kind, origin, velero);
    all.extend(at_nacre(kind, requests));
    let turns = all.iter_mut().filter(|entry| entry.state != State::Held);
    turns.enumerate().for_each(|(at, entry)| entry.position = Some(at + 1));
    all
}

fn at_velero<V: Queued>(kind: &'static str, origin: Origin, velero: &[V]) -> Vec<Entry> {
    let mut queue = Queue::default();
    for object in velero {
        queue.note(object, Source::List);
    }
    let named = |name: &str| velero.iter().find(|object| object.meta().name.as_deref() == Some(name));
    let entry = |object: &V| {
        let meta = object.meta();
        let namespace = annotation(meta, origin.0).map(str::to_owned);
        let name = annotation(meta, origin.1).or(meta.name.as_deref()).unwrap_or_default().to_owned();
        let state = if object.stage() == Stage::Running { State::Running } else { State::Queued };
        Entry { kind, namespace, name, position: None, state, since: since(meta) }
    };
    let mut all: Vec<Entry> = queue.names().filter_map(named).map(entry).collect();
    // With several workers, more than the first one runs.
    all.sort_by_key(|entry| entry.state);
    all
}

/// What waits in nacre. Positions in statuses may be some seconds old; among equals the older one is first.
fn at_nacre<R: Waits>(kind: &'static str, requests: &[R]) -> Vec<Entry> {
    let mut waiting: Vec<_> = requests
        .iter()
        .filter(|request| is_held_back(*request))
        .map(|request| {
            let meta = request.meta();
            let state = match annotation(meta, labels::QUEUE) {
                Some(labels::QUEUE_FRONT) => State::Promoted,
                Some(labels::QUEUE_HOLD) => State::Held,
                _ => State::Waiting,
            };
            let name = meta.name.clone().unwrap_or_default();
            let shown = request.facts().2.filter(|shown| *shown > 0).unwrap_or(i64::MAX);
            let entry = Entry {
                kind,
                namespace: meta.namespace.clone(),
                name,
                position: None,
                state,
                since: since(meta),
            };
            (shown, entry)
        })
        .collect();
    waiting.sort_by(|(one_shown, one), (other_shown, other)| {
        let key = |shown: i64, entry: &Entry| {
            (entry.state, shown, entry.since, entry.namespace.clone(), entry.name.clone())
        };
        key(*one_shown, one).cmp(&key(*other_shown, other))
    });
    waiting.into_iter().map(|(_, entry)| entry).collect()
}

fn since(meta: &ObjectMeta) -> Option<Timestamp> {
    meta.creation_timestamp.as_ref().map(|time| time.0)
}

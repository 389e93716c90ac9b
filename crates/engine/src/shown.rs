//! What there is of Velero's kinds in tenants' namespaces: looked at only while somebody is to see it there, and kept
//! apart from Velero's own, which it must never be taken for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use api::velero::{DataDownload, DataUpload, PodVolumeBackup, PodVolumeRestore};
use futures::{StreamExt, pin_mut};
use kube::core::{DynamicObject, ObjectMeta};
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client, Resource};
use planner::copies::{self, RECORD, WATCHED};
use planner::view::View;
use planner::{Key, Plan, Target};
use serde::Serialize;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::client::everything;
use crate::cluster::{Cluster, State};
use crate::execute::Executor;
use crate::guard::Told;
use crate::leadership::Leadership;
use crate::store::{Change, Store};
use crate::watch::{LONGEST_PAUSE, Progress, closed};
use crate::work::Work;

/// How often to see whether somebody is to see Velero's objects: an administrator labels a namespace now and then.
const LOOK: Duration = Duration::from_secs(1);

/// What does not work where a namespace is labelled and nacre was not given the rights.
const UNSHOWN: &str = "Velero's objects are not shown in tenants' namespaces";

/// What there is of Velero's kinds in tenants' namespaces.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    stores: BTreeMap<Kind, Store<DynamicObject>>,
    /// Whether all of it was seen.
    known: bool,
    /// The namespaces whose owners are to see it.
    viewed: BTreeSet<String>,
}

impl Shown {
    pub(crate) fn known(&self) -> bool {
        self.known
    }

    pub(crate) fn viewed(&self) -> impl Iterator<Item = &String> {
        self.viewed.iter()
    }

    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.stores.get(&kind)?.get(namespace, name).map(|seen| seen.object.clone())
    }

    pub(crate) fn within(&self, namespace: &str) -> Vec<Key> {
        let stores = self.stores.iter();
        let keys = stores.flat_map(|(kind, store)| {
            store.within(namespace).map(|seen| Key::of(*kind, &seen.object.metadata)).collect::<Vec<_>>()
        });
        keys.collect()
    }

    pub(crate) fn all(&self) -> Vec<Key> {
        let stores = self.stores.iter();
        stores
            .flat_map(|(kind, store)| store.all().map(|seen| Key::of(*kind, &seen.object.metadata)))
            .collect()
    }

    fn store(&mut self, kind: Kind) -> &mut Store<DynamicObject> {
        self.stores.entry(kind).or_default()
    }
}

impl State {
    /// Whether an object is of Velero's kinds but in a tenant's namespace.
    pub(crate) fn is_shown(&self, kind: Kind, namespace: &str) -> bool {
        WATCHED.contains(&kind) && namespace != self.admin_namespace()
    }

    /// Notes whether owners of this namespace are to see Velero's objects.
    pub(crate) fn review(&mut self, namespace: &str) {
        // While nobody can tell, it stays as it is.
        match copies::viewed(self, namespace) {
            Some(true) => _ = self.shown.viewed.insert(namespace.to_owned()),
            Some(false) => _ = self.shown.viewed.remove(namespace),
            None => {}
        }
    }

    /// The latest that is known of an object in a tenant's namespace.
    pub(crate) fn shown_meta(&self, target: &Target) -> Option<ObjectMeta> {
        let found = self.shown.get(target.kind, &target.namespace, &target.name)?;
        (found.metadata.uid.as_ref() == Some(&target.uid)).then(|| found.metadata.clone())
    }

    /// Takes the API server's answer to a write of ours in a tenant's namespace.
    pub(crate) fn wrote_shown(&mut self, kind: Kind, object: &Told) -> Vec<Key> {
        let change = self.shown.store(kind).wrote(object.meta(), || object.read_any());
        self.follow_shown(kind, change)
    }

    /// Takes from an answer to a delete of ours in a tenant's namespace that the object is gone.
    pub(crate) fn deleted_shown(&mut self, target: &Target) -> Vec<Key> {
        let meta = ObjectMeta {
            name: Some(target.name.clone()),
            namespace: Some(target.namespace.clone()),
            uid: Some(target.uid.clone()),
            ..ObjectMeta::default()
        };
        let change = self.shown.store(target.kind).deleted(&meta);
        self.follow_shown(target.kind, change)
    }

    fn follow_shown(&self, kind: Kind, change: Option<Change<DynamicObject>>) -> Vec<Key> {
        let Some((before, after)) = change.filter(|_| self.shown.known) else { return Vec::new() };
        copies::shown(self, kind, before.as_deref(), after.as_ref().map(|seen| &*seen.object))
    }

    fn take_shown(&mut self, kind: Kind, event: Event<Told>) -> Vec<Key> {
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                let change = self.shown.store(kind).told(object.meta(), || object.read_any());
                self.follow_shown(kind, change)
            }
            Event::Delete(object) => {
                let change = self.shown.store(kind).told_gone(object.meta());
                self.follow_shown(kind, change)
            }
            Event::Init => {
                self.shown.store(kind).list_begins();
                Vec::new()
            }
            Event::InitDone => {
                let changes = self.shown.store(kind).list_ends();
                changes.into_iter().flat_map(|change| self.follow_shown(kind, Some(change))).collect()
            }
        }
    }

    /// What Velero does about a volume, as it is.
    pub(crate) fn whole_volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        match kind {
            Kind::PodVolumeBackup => self.admin::<PodVolumeBackup>(name).and_then(|found| whole(&*found)),
            Kind::PodVolumeRestore => self.admin::<PodVolumeRestore>(name).and_then(|found| whole(&*found)),
            Kind::DataUpload => self.admin::<DataUpload>(name).and_then(|found| whole(&*found)),
            Kind::DataDownload => self.admin::<DataDownload>(name).and_then(|found| whole(&*found)),
            _ => None,
        }
    }
}

fn whole(object: &impl Serialize) -> Option<DynamicObject> {
    serde_json::from_value(serde_json::to_value(object).ok()?).ok()
}

/// Looks after copies of Velero's objects in tenants' namespaces while there are to be any; until then it asks the API
/// server for nothing.
pub async fn show_velero(
    client: Client,
    executor: Executor,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    leadership: Leadership,
) {
    loop {
        leadership.granted().await;
        if copies::in_use(&*cluster.look()) {
            show(&client, &executor, &cluster, &work, &leadership).await;
            cluster.lacking().on(UNSHOWN);
            // What was seen is out of date as soon as nobody looks.
            cluster.change(|state| {
                let viewed = std::mem::take(&mut state.shown.viewed);
                state.shown = Shown { viewed, ..Shown::default() };
                Vec::new()
            });
        }
        sleep(LOOK).await;
    }
}

async fn show(
    client: &Client,
    executor: &Executor,
    cluster: &Arc<Cluster>,
    work: &Arc<Work>,
    leadership: &Leadership,
) {
    let mut watches = JoinSet::new();
    let mut progress = Vec::new();
    for kind in WATCHED {
        let (sender, receiver) = signal::channel(Progress::Listing);
        watches.spawn(watch_shown(client.clone(), kind, cluster.clone(), work.clone(), sender));
        progress.push(receiver);
    }
    info!("tenants are to see Velero's objects in their namespaces; looking at those");
    loop {
        let started = progress.iter().all(|progress| *progress.borrow() == Progress::Current);
        let (plan, over) = copies::record(&*cluster.look());
        let noted = started && note(executor, cluster, &plan).await;
        if noted && over {
            info!("nobody is to see Velero's objects any more, and no copies are left");
            return;
        }
        if noted && !cluster.look().shows_velero() {
            cluster.lacking().on(UNSHOWN);
            let keys = cluster.change(|state| {
                state.shown.known = true;
                copies::everything(state)
            });
            work.wake(keys);
        }
        // Whoever leads looks; the one who takes over begins anew.
        if !copies::in_use(&*cluster.look()) || !leadership.leads() {
            return;
        }
        sleep(LOOK).await;
    }
}

/// Notes beside Velero whether there may be copies. Without that note none is made.
async fn note(executor: &Executor, cluster: &Arc<Cluster>, plan: &Plan) -> bool {
    let about = Key::new(Kind::ConfigMap, cluster.look().admin_namespace(), RECORD);
    match executor.execute(&about, plan).await {
        Ok(()) => true,
        Err(failure) => {
            warn!(%failure, "it could not be noted whether there are copies of Velero's objects; it is tried again");
            false
        }
    }
}

async fn watch_shown(
    client: Client,
    kind: Kind,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    progress: signal::Sender<Progress>,
) {
    let api: Api<Told> = Api::all_with(client, &kind.resource());
    // Velero's own are watched already.
    let elsewhere = format!("metadata.namespace!={}", cluster.look().admin_namespace());
    let stream = watcher(api, everything().fields(&elsewhere));
    pin_mut!(stream);
    let mut pause = Duration::ZERO;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                pause = Duration::ZERO;
                let complete = matches!(event, Event::InitDone);
                work.wake(cluster.change(|state| state.take_shown(kind, event)));
                if complete {
                    progress.send_replace(Progress::Current);
                }
            }
            Err(error) => {
                pause = (pause * 2).clamp(Duration::from_millis(200), LONGEST_PAUSE);
                let shut = closed(&error).filter(|_| *progress.borrow() != Progress::Current);
                if let Some(reason) = shut {
                    cluster.lacking().off(UNSHOWN, &reason);
                    progress.send_replace(Progress::Closed);
                } else {
                    warn!(kind = kind.name(), %error, "the watch broke; it is tried again");
                }
                sleep(pause).await;
            }
        }
    }
}

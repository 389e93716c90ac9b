//! The objects of Velero's kinds in tenants' namespaces. They are watched only while the Velero view is in use, and kept
//! apart from Velero's own, which they must never be mistaken for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Kind;
use api::velero::{DataDownload, DataUpload, PodVolumeBackup, PodVolumeRestore};
use kube::core::{DynamicObject, ObjectMeta};
use serde::Serialize;

use super::store::{Change, Store};
use super::{Incoming, Moment, State, Update};
use crate::Key;
use crate::velero_view::{self, WATCHED};

/// The objects of Velero's kinds in tenants' namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct VeleroView {
    stores: BTreeMap<Kind, Store<DynamicObject>>,
    /// Whether all of them were listed.
    known: bool,
    /// The namespaces that show the view.
    pub(super) namespaces: BTreeSet<String>,
}

impl VeleroView {
    pub(super) fn known(&self) -> bool {
        self.known
    }

    pub(super) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.stores.get(&kind)?.get(namespace, name).map(|seen| seen.object)
    }

    pub(super) fn within(&self, namespace: &str) -> Vec<Key> {
        let stores = self.stores.iter();
        let keys = stores.flat_map(|(kind, store)| {
            store.within(namespace).map(|seen| Key::of(*kind, &seen.object.metadata)).collect::<Vec<_>>()
        });
        keys.collect()
    }

    pub(super) fn all(&self) -> Vec<Key> {
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
    /// Whether an object is of Velero's kinds and in a tenant namespace.
    pub fn is_in_velero_view(&self, kind: Kind, namespace: &str) -> bool {
        WATCHED.contains(&kind) && namespace != self.admin_namespace()
    }

    /// Everything in the view was listed. Returns what is decided about now.
    pub fn velero_view_listed(&mut self) -> Vec<Key> {
        self.velero_view.known = true;
        velero_view::everything(self)
    }

    /// Nobody watches the view any more: what was seen of it is forgotten.
    pub fn forget_velero_view(&mut self) {
        let namespaces = std::mem::take(&mut self.velero_view.namespaces);
        self.velero_view = VeleroView { namespaces, ..VeleroView::default() };
    }

    /// Notes whether this namespace shows the view.
    pub(super) fn review(&mut self, namespace: &str) {
        // While that is unknown, nothing changes.
        match velero_view::enabled_in(self, namespace) {
            Some(true) => _ = self.velero_view.namespaces.insert(namespace.to_owned()),
            Some(false) => _ = self.velero_view.namespaces.remove(namespace),
            None => {}
        }
    }

    /// The metadata of an object in the view as it was last seen or written.
    pub(super) fn velero_view_meta(&self, key: &Key) -> Option<ObjectMeta> {
        Some(self.velero_view.get(key.kind, &key.namespace, &key.name)?.metadata.clone())
    }

    /// Takes an update about an object of Velero's kinds in tenants' namespaces.
    pub fn update_velero_view<O: Incoming>(
        &mut self,
        kind: Kind,
        update: Update<'_, O>,
        now: Moment,
    ) -> Vec<Key> {
        self.now = now.clock;
        let store = self.velero_view.store(kind);
        let changes = match update {
            Update::Observed(object) => {
                store.observed(object.meta(), || object.read_any()).into_iter().collect()
            }
            Update::ObservedGone(object) => {
                store.observed_gone(object.meta(), now.uptime).into_iter().collect()
            }
            Update::ListBegins => {
                store.list_begins(now.uptime);
                Vec::new()
            }
            Update::ListEnds => store.list_ends(),
            Update::Wrote(object) => {
                store.wrote(object.meta(), now.uptime, || object.read_any()).into_iter().collect()
            }
            Update::Deleted(meta) => store.deleted(meta).into_iter().collect(),
        };
        changes.into_iter().flat_map(|change| self.affected_by_view(kind, change)).collect()
    }

    fn affected_by_view(&self, kind: Kind, (before, after): Change<DynamicObject>) -> Vec<Key> {
        if !self.velero_view.known {
            return Vec::new();
        }
        velero_view::affected_by_copy(self, kind, before.as_deref(), after.as_ref().map(|seen| &*seen.object))
    }

    /// What Velero does about a volume, as an object of any kind.
    pub(super) fn whole_volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
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

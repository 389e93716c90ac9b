//! The cache of one kind: its objects as last observed or written.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::packed::{Packed, Packer};
use crate::queue::Source;
use crate::view::Seen;

/// How long after the watch reported a deletion the reply to a write of ours may still arrive.
const LATE: Duration = Duration::from_mins(1);

/// How many objects of a kind that is packed stay decoded: those that changed last.
const DECODED: usize = 500;

/// Namespace and name.
type ObjectName = (String, String);

/// Objects by namespace and name. Our own writes are laid over what the watch has reported so far: whichever has the
/// higher resourceVersion counts, so no plan repeats a write just made, and the watch event of it changes nothing.
///
/// Times are the uptime of the process, given by the caller: there is no clock here.
#[derive(Clone, Debug)]
pub struct Store<K> {
    objects: BTreeMap<ObjectName, Entry<K>>,
    /// Uids we deleted and whose deletion the watch has yet to report.
    deleted: HashSet<String>,
    /// Uids whose deletion the watch reported recently, oldest first: the reply to a write of ours may arrive after
    /// that, and must not bring the object back.
    gone: (HashSet<String>, VecDeque<(Duration, String)>),
    /// When the list that is in progress began, and what it has returned so far.
    listing: Option<(Duration, HashSet<ObjectName>)>,
    /// For kinds of which there may be very many: what packs those that have not changed for long.
    packing: Option<Packing>,
}

/// What changed last, newest at the end, with its version.
#[derive(Clone, Debug, Default)]
struct Packing {
    recent: VecDeque<(ObjectName, u64)>,
    packer: Packer,
}

#[derive(Debug)]
struct Entry<K> {
    kept: Kept<K>,
    version: u64,
    /// When we wrote it, until the watch has reported it.
    written: Option<Duration>,
}

#[derive(Debug)]
enum Kept<K> {
    Decoded(Seen<K>),
    Packed(Packed),
}

impl<K> Clone for Entry<K> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone(), version: self.version, written: self.written }
    }
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Decoded(seen) => Self::Decoded(seen.clone()),
            Self::Packed(packed) => Self::Packed(packed.clone()),
        }
    }
}

impl<K: DeserializeOwned> Kept<K> {
    fn seen(&self) -> Seen<K> {
        match self {
            Self::Decoded(seen) => seen.clone(),
            Self::Packed(packed) => Seen { object: Arc::new(packed.unpack()), unreadable: None },
        }
    }
}

/// An object before and after a change.
pub(crate) type Change<K> = (Option<Arc<K>>, Option<Seen<K>>);

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            deleted: HashSet::new(),
            gone: Default::default(),
            listing: None,
            packing: None,
        }
    }
}

impl<K: Resource + Serialize + DeserializeOwned> Store<K> {
    /// A store for very many objects: those that have not changed for long are packed.
    pub(super) fn packing() -> Self {
        Self { packing: Some(Packing::default()), ..Self::default() }
    }

    /// One object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Seen<K>> {
        self.objects.get(&(namespace.to_owned(), name.to_owned())).map(|entry| entry.kept.seen())
    }

    /// Whether there is such an object.
    pub fn contains(&self, namespace: &str, name: &str) -> bool {
        self.objects.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// Whether the watch has yet to report what we last wrote. Once it has, it has reported everything of this kind that
    /// was stored before that write.
    pub fn is_unreported(&self, namespace: &str, name: &str) -> bool {
        let entry = self.objects.get(&(namespace.to_owned(), name.to_owned()));
        entry.is_some_and(|entry| entry.written.is_some())
    }

    /// The objects of one namespace, by name.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = Seen<K>> + use<'a, K> {
        let from = (namespace.to_owned(), String::new());
        let run = self.objects.range(from..).take_while(move |((found, _), _)| found == namespace);
        run.map(|(_, entry)| entry.kept.seen())
    }

    /// All objects. Each packed one is decoded: not for an event.
    pub fn all(&self) -> impl Iterator<Item = Seen<K>> {
        self.objects.values().map(|entry| entry.kept.seen())
    }

    /// The namespaces and names of all objects.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.objects.keys().map(|(namespace, name)| (namespace.as_str(), name.as_str()))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Takes a watch event, and decodes the object only if it is newer than what is known. None if it is not.
    pub(crate) fn observed(
        &mut self,
        meta: &ObjectMeta,
        read: impl FnOnce() -> Seen<K>,
    ) -> Option<Change<K>> {
        let place = object_name(meta);
        if let Some((_, shown)) = &mut self.listing {
            shown.insert(place.clone());
        }
        if meta.uid.as_ref().is_some_and(|uid| self.deleted.contains(uid)) {
            return None;
        }
        if let Some(entry) = self.objects.get_mut(&place)
            && entry.version >= version(meta)
        {
            entry.written = None;
            return None;
        }
        Some(self.put(place, version(meta), read(), None))
    }

    /// Takes the reply to a write of ours. None if the watch was faster.
    pub(crate) fn wrote(
        &mut self,
        meta: &ObjectMeta,
        uptime: Duration,
        read: impl FnOnce() -> Seen<K>,
    ) -> Option<Change<K>> {
        let place = object_name(meta);
        if meta.uid.as_ref().is_some_and(|uid| self.gone.0.contains(uid)) {
            return None;
        }
        let known = self.objects.get(&place).is_some_and(|entry| entry.version >= version(meta));
        (!known).then(|| self.put(place, version(meta), read(), Some(uptime)))
    }

    fn put(
        &mut self,
        place: ObjectName,
        version: u64,
        seen: Seen<K>,
        written: Option<Duration>,
    ) -> Change<K> {
        self.pack_oldest(&place, version);
        let kept = Kept::Decoded(seen.clone());
        let before = self.objects.insert(place, Entry { kept, version, written });
        (before.map(|entry| entry.kept.seen().object), Some(seen))
    }

    /// Notes that an object changes, and packs the one that has not changed for longest.
    fn pack_oldest(&mut self, place: &ObjectName, version: u64) {
        let Some(Packing { recent, packer }) = &mut self.packing else { return };
        recent.push_back((place.clone(), version));
        if recent.len() <= DECODED {
            return;
        }
        let Some((oldest, version)) = recent.pop_front() else { return };
        // If it has changed since, it is in the list once more.
        let entry = self.objects.get_mut(&oldest).filter(|entry| entry.version == version);
        if let Some(entry) = entry
            && let Kept::Decoded(Seen { object, unreadable: None }) = &entry.kept
            && let Some(packed) = packer.pack(&**object)
        {
            entry.kept = Kept::Packed(packed);
        }
    }

    /// Takes a watch event that says an object is gone. None if we knew, or if there is a newer one of that name.
    pub(crate) fn observed_gone(&mut self, meta: &ObjectMeta, uptime: Duration) -> Option<Change<K>> {
        let uid = meta.uid.clone().unwrap_or_default();
        self.deleted.remove(&uid);
        let (uids, order) = &mut self.gone;
        while let Some((_, old)) = order.pop_front_if(|(at, _)| uptime.saturating_sub(*at) > LATE) {
            uids.remove(&old);
        }
        uids.insert(uid.clone());
        order.push_back((uptime, uid));
        self.remove(meta)
    }

    /// Takes the reply to a delete of ours that says the object is gone.
    pub(crate) fn deleted(&mut self, meta: &ObjectMeta) -> Option<Change<K>> {
        // If the watch was faster, nothing more will be reported about it.
        self.deleted.extend(meta.uid.clone().filter(|uid| !self.gone.0.contains(uid)));
        self.remove(meta)
    }

    fn remove(&mut self, meta: &ObjectMeta) -> Option<Change<K>> {
        let place = object_name(meta);
        let entry = self.objects.get(&place)?;
        let found = entry.kept.seen().object;
        if found.meta().uid != meta.uid {
            return None;
        }
        self.objects.remove(&place);
        Some((Some(found), None))
    }

    /// Whether what becomes known now comes from a list or from a watch.
    pub(crate) fn source(&self) -> Source {
        if self.listing.is_some() { Source::List } else { Source::Watch }
    }

    /// A list begins.
    pub(crate) fn list_begins(&mut self, uptime: Duration) {
        self.listing = Some((uptime, HashSet::new()));
    }

    /// A list is complete: what it did not return is gone, unless we wrote it while the list was in progress. What we
    /// wrote before would be in it.
    pub(crate) fn list_ends(&mut self) -> Vec<Change<K>> {
        let Some((began, shown)) = self.listing.take() else { return Vec::new() };
        self.deleted.clear();
        let fresh = |entry: &Entry<K>| entry.written.is_some_and(|at| at >= began);
        let missing = self.objects.iter().filter(|(place, entry)| !shown.contains(*place) && !fresh(entry));
        let missing: Vec<_> = missing.map(|(place, _)| place.clone()).collect();
        let removed = missing.iter().filter_map(|place| self.objects.remove(place));
        removed.map(|entry| (Some(entry.kept.seen().object), None)).collect()
    }
}

fn object_name(meta: &ObjectMeta) -> ObjectName {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// resourceVersions increase; Kubernetes guarantees that they can be compared within one kind.
fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

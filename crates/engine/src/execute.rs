//! Carrying out a plan: one API call per action, in order, and no choices.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::params::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request;
use kube::core::{ObjectMeta, PartialObjectMeta, Status};
use kube::{Client, Resource};
use planner::{Action, Key, Object, Plan, Target};
use serde_json::{Value, json};

use crate::cluster::{Cluster, State};
use crate::error::{Failure, status};
use crate::guard::Told;
use crate::kept::Kept;
use crate::trouble;
use crate::work::Work;

/// Who set a field, as the API server notes it. It is an identity: renaming it would orphan what it owns.
pub(crate) const MANAGER: &str = "nacre";

/// Carries out plans, and remembers what the API server answered.
#[derive(Clone)]
pub struct Executor {
    client: Client,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    writes: Arc<Writes>,
    /// What a plan about an object tried to create or change without hearing whether it did.
    unsure: Arc<Mutex<HashMap<Key, Key>>>,
    /// Whether decisions rest on what is remembered, so that a conflict has to be looked at.
    remembers: bool,
}

/// How many writes were tried and how many of them met a conflict.
#[derive(Debug, Default)]
pub struct Writes {
    /// All of them.
    pub tried: AtomicU64,
    /// Those that met a conflict.
    pub conflicts: AtomicU64,
    /// All of them, by the namespace of the object that was decided about.
    by_namespace: Mutex<BTreeMap<String, u64>>,
}

impl Writes {
    fn count(&self, namespace: &str) {
        let mut counts = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(namespace) {
            Some(count) => *count += 1,
            None => drop(counts.insert(namespace.to_owned(), 1)),
        }
    }

    /// How many there were for each namespace; those that are gone are forgotten.
    pub fn by_namespace(&self, is_gone: impl Fn(&str) -> bool) -> BTreeMap<String, u64> {
        let mut counts = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|namespace, _| !is_gone(namespace));
        counts.clone()
    }
}

impl Executor {
    /// Writes with this client, remembers in this cluster, and wakes whom a write concerns.
    pub fn new(client: Client, cluster: Arc<Cluster>, work: Arc<Work>) -> Self {
        Self { client, cluster, work, writes: Arc::default(), unsure: Arc::default(), remembers: true }
    }

    /// Writes with this client for whoever reads everything afresh before each decision: there is nothing to remember, and
    /// nobody to wake.
    pub(crate) fn forgetful(client: Client, namespace: &str) -> Self {
        let cluster = Arc::new(Cluster::new(namespace));
        Self { remembers: false, ..Self::new(client, cluster, Arc::default()) }
    }

    /// What was written so far.
    pub fn writes(&self) -> Arc<Writes> {
        self.writes.clone()
    }

    /// To be called before deciding about an object. If the answer to a write got lost, what is there is looked at
    /// first: a decision that took it for not done could let go of what was made, or make it a second time.
    pub async fn make_sure(&self, about: &Key) -> Result<(), Failure> {
        let Some(written) = self.unsure().get(about).cloned() else { return Ok(()) };
        let Key { kind, namespace, name } = &written;
        match self.fetch(*kind, namespace, name).await {
            Ok(text) => {
                self.work.wake(self.remember(*kind, namespace, &text).into_iter().filter(|key| key != about));
            }
            Err(error) if code(&error) == Some(404) => {}
            Err(source) => {
                let what = format!("look for {} {namespace}/{name}", kind.name());
                return Err(Failure { what, source });
            }
        }
        self.unsure().remove(about);
        Ok(())
    }

    fn unsure(&self) -> MutexGuard<'_, HashMap<Key, Key>> {
        // Nothing panics while holding it.
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without an answer, or from a server in trouble: what was written may be done or not.
    fn doubt(&self, about: &Key, action: &Action, failure: &Failure) {
        if failure.status().is_some_and(|status| status.code < 500) {
            return;
        }
        let written = match action {
            Action::Create(object) => Key::new(object.kind, object.namespace(), object.name()),
            Action::Hold(target, _)
            | Action::Release(target, _)
            | Action::Patch(target, _)
            | Action::PatchStatus(target, _) => Key::new(target.kind, &target.namespace, &target.name),
            // Done a second time, these change nothing.
            Action::Apply(_) | Action::Delete(_) | Action::DeleteUnchanged(_) => return,
        };
        self.unsure().insert(about.clone(), written);
    }

    /// Carries out the actions in order and wakes whom they concern, but not the object the plan is about: that was
    /// decided about just now. The first that fails ends it: what follows may rest on it.
    pub async fn execute(&self, about: &Key, plan: &Plan) -> Result<(), Failure> {
        for action in &plan.actions {
            self.writes.count(&about.namespace);
            let mut concerned = match self.act(action).await {
                Ok(concerned) => concerned,
                Err(failure) => {
                    self.doubt(about, action, &failure);
                    trouble::note(&self.cluster, about, action, &failure);
                    return Err(failure);
                }
            };
            trouble::taken(&self.cluster, action);
            if !matches!(action, Action::Delete(_) | Action::DeleteUnchanged(_)) {
                concerned.retain(|key| key != about);
            }
            self.work.wake(concerned);
        }
        trouble::over(&self.cluster, about);
        Ok(())
    }

    async fn act(&self, action: &Action) -> Result<Vec<Key>, Failure> {
        match action {
            Action::Hold(target, finalizer) => self.set_finalizer(target, finalizer, true).await,
            Action::Release(target, finalizer) => {
                gone_is_fine(self.set_finalizer(target, finalizer, false).await)
            }
            Action::Create(object) => self.create(object).await,
            Action::Patch(target, body) => self.patch(&self.latest(target), None, body.clone()).await,
            Action::PatchStatus(target, body) => {
                self.patch(&self.latest(target), Some("status"), body.clone()).await
            }
            Action::Apply(object) => self.apply(object).await,
            Action::Delete(target) => self.delete(target).await,
            Action::DeleteUnchanged(target) => self.delete_unchanged(target).await,
        }
    }

    /// The list is replaced as a whole, so it must be the one of the version that is sent: others hold objects too.
    async fn set_finalizer(&self, target: &Target, finalizer: &str, on: bool) -> Result<Vec<Key>, Failure> {
        let latest = self.latest(target);
        let others = latest.finalizers.iter().map(String::as_str).filter(|held| *held != finalizer);
        let finalizers: Vec<_> = others.chain(on.then_some(finalizer)).collect();
        self.patch(&latest, None, json!({"metadata": {"finalizers": finalizers}})).await
    }

    /// Merges into exactly this object, as of this version.
    async fn patch(&self, target: &Target, part: Option<&str>, mut body: Value) -> Result<Vec<Key>, Failure> {
        body["metadata"]["uid"] = json!(target.uid);
        body["metadata"]["resourceVersion"] = json!(target.resource_version);
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let path = path(target.kind, &target.namespace);
        let request = match part {
            Some(part) => path.patch_subresource(part, &target.name, &params, &Patch::Merge(body)),
            None => path.patch(&target.name, &params, &Patch::Merge(body)),
        };
        let answer = self.send(request).await;
        let answer = self.refreshing(target.kind, &target.namespace, &target.name, answer).await;
        let text = answer.map_err(|source| failure("patch", target, source))?;
        Ok(self.remember(target.kind, &target.namespace, &text))
    }

    async fn create(&self, object: &Object) -> Result<Vec<Key>, Failure> {
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let (namespace, name) = (object.namespace(), object.name());
        // Our own types always become JSON.
        let body = serde_json::to_vec(&object.body).unwrap_or_default();
        let answer = self.send(path(object.kind, namespace).create(&params, body)).await;
        // One that exists already is looked at, and decided about anew: it need not be ours.
        let answer = self.refreshing(object.kind, namespace, name, answer).await;
        let what = || format!("create {} {namespace}/{name}", object.kind.name());
        let text = answer.map_err(|source| Failure { what: what(), source })?;
        Ok(self.remember(object.kind, namespace, &text))
    }

    /// What others set is left to them, but for fields that are ours: there is one who says how nacre is installed.
    async fn apply(&self, object: &Object) -> Result<Vec<Key>, Failure> {
        let params = PatchParams::apply(MANAGER).force();
        let (namespace, name) = (object.namespace(), object.name());
        let answer =
            self.send(path(object.kind, namespace).patch(name, &params, &Patch::Apply(&object.body))).await;
        let what = || format!("apply {} {namespace}/{name}", object.kind.name());
        let text = answer.map_err(|source| Failure { what: what(), source })?;
        Ok(self.remember(object.kind, namespace, &text))
    }

    async fn delete(&self, target: &Target) -> Result<Vec<Key>, Failure> {
        let exactly = Preconditions { uid: Some(target.uid.clone()), ..Preconditions::default() };
        let answer = self.send_delete(target, exactly).await;
        if let Err(error) = &answer
            && code(error) == Some(409)
            && self.is_replaced(target).await
        {
            return Ok(self.forget(target));
        }
        answer.map_err(|source| failure("delete", target, source))
    }

    /// Whether there is another one by the same name, or none: this one is no more. A server may also speak of a
    /// conflict for reasons of its own, and then it is still there.
    async fn is_replaced(&self, target: &Target) -> bool {
        let found = self.fetch(target.kind, &target.namespace, &target.name).await;
        let found = found.map(|text| serde_json::from_str::<PartialObjectMeta>(&text));
        match found {
            Ok(Ok(found)) => found.metadata.uid.as_ref() != Some(&target.uid),
            Ok(Err(_)) => false,
            Err(error) => code(&error) == Some(404),
        }
    }

    async fn delete_unchanged(&self, target: &Target) -> Result<Vec<Key>, Failure> {
        let as_seen = Preconditions {
            uid: Some(target.uid.clone()),
            resource_version: Some(target.resource_version.clone()),
        };
        let answer = self.send_delete(target, as_seen).await;
        answer.map_err(|source| failure("delete", target, source))
    }

    async fn send_delete(&self, target: &Target, only_if: Preconditions) -> Result<Vec<Key>, kube::Error> {
        let params = DeleteParams::background().preconditions(only_if);
        match self.send(path(target.kind, &target.namespace).delete(&target.name, &params)).await {
            Ok(text) if is_status(&text) => Ok(self.forget(target)),
            Ok(text) => Ok(self.remember(target.kind, &target.namespace, &text)),
            Err(error) if code(&error) == Some(404) => Ok(self.forget(target)),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.writes.tried.fetch_add(1, Ordering::Relaxed);
        self.client.request_text(request).await
    }

    async fn fetch(&self, kind: Kind, namespace: &str, name: &str) -> Result<String, kube::Error> {
        let request = path(kind, namespace).get(name, &GetParams::default());
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }

    /// After a conflict, fetches what is really there, so that the next decision is made on that.
    async fn refreshing(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        answer: Result<String, kube::Error>,
    ) -> Result<String, kube::Error> {
        if let Err(error) = &answer
            && code(error) == Some(409)
        {
            self.writes.conflicts.fetch_add(1, Ordering::Relaxed);
            if self.remembers
                && let Ok(text) = self.fetch(kind, namespace, name).await
            {
                // The watch will not tell what is known already, so everybody concerned is woken here.
                self.work.wake(self.remember(kind, namespace, &text));
            }
        }
        answer
    }

    /// An object as it was last seen or written: a plan of several writes to it goes on from its own.
    fn latest(&self, target: &Target) -> Target {
        let state = self.cluster.look();
        let latest = match target.kind {
            _ if state.is_shown(target.kind, &target.namespace) => state.shown_meta(target),
            Kind::NonAdminBackup => meta_of::<NonAdminBackup>(&state, target),
            Kind::NonAdminRestore => meta_of::<NonAdminRestore>(&state, target),
            Kind::NonAdminDownloadRequest => meta_of::<NonAdminDownloadRequest>(&state, target),
            Kind::NonAdminBackupStorageLocation => meta_of::<NonAdminBackupStorageLocation>(&state, target),
            Kind::NonAdminBackupStorageLocationRequest => {
                meta_of::<NonAdminBackupStorageLocationRequest>(&state, target)
            }
            _ => None,
        };
        latest.map_or_else(|| target.clone(), |meta| Target::of(target.kind, &meta))
    }

    fn remember(&self, kind: Kind, namespace: &str, text: &str) -> Vec<Key> {
        let told = Told::new(text);
        self.cluster.change(|state| match kind {
            _ if state.is_shown(kind, namespace) => state.wrote_shown(kind, &told),
            Kind::NonAdminBackup => state.wrote::<NonAdminBackup>(&told),
            Kind::NonAdminRestore => state.wrote::<NonAdminRestore>(&told),
            Kind::NonAdminDownloadRequest => state.wrote::<NonAdminDownloadRequest>(&told),
            Kind::DownloadRequest => state.wrote::<DownloadRequest>(&told),
            Kind::ConfigMap => state.wrote::<ConfigMap>(&told),
            Kind::Backup => state.wrote::<Backup>(&told),
            Kind::Restore => state.wrote::<Restore>(&told),
            Kind::DeleteBackupRequest => state.wrote::<DeleteBackupRequest>(&told),
            Kind::NonAdminBackupStorageLocation => state.wrote::<NonAdminBackupStorageLocation>(&told),
            Kind::NonAdminBackupStorageLocationRequest => {
                state.wrote::<NonAdminBackupStorageLocationRequest>(&told)
            }
            Kind::BackupStorageLocation => state.wrote::<BackupStorageLocation>(&told),
            Kind::Secret => state.wrote::<HiddenSecret>(&told),
            _ => Vec::new(),
        })
    }

    fn forget(&self, target: &Target) -> Vec<Key> {
        self.cluster.change(|state| match target.kind {
            _ if state.is_shown(target.kind, &target.namespace) => state.deleted_shown(target),
            Kind::ConfigMap => deleted::<ConfigMap>(state, target),
            Kind::NonAdminBackup => deleted::<NonAdminBackup>(state, target),
            Kind::NonAdminRestore => deleted::<NonAdminRestore>(state, target),
            Kind::NonAdminDownloadRequest => deleted::<NonAdminDownloadRequest>(state, target),
            Kind::DownloadRequest => deleted::<DownloadRequest>(state, target),
            Kind::Backup => deleted::<Backup>(state, target),
            Kind::Restore => deleted::<Restore>(state, target),
            Kind::DeleteBackupRequest => deleted::<DeleteBackupRequest>(state, target),
            Kind::NonAdminBackupStorageLocation => deleted::<NonAdminBackupStorageLocation>(state, target),
            Kind::NonAdminBackupStorageLocationRequest => {
                deleted::<NonAdminBackupStorageLocationRequest>(state, target)
            }
            Kind::BackupStorageLocation => deleted::<BackupStorageLocation>(state, target),
            Kind::Secret => deleted::<HiddenSecret>(state, target),
            _ => Vec::new(),
        })
    }
}

fn deleted<K: Kept>(state: &mut State, target: &Target) -> Vec<Key> {
    let meta = ObjectMeta {
        namespace: Some(target.namespace.clone()),
        name: Some(target.name.clone()),
        uid: Some(target.uid.clone()),
        ..ObjectMeta::default()
    };
    let change = K::store_mut(state).deleted(&meta);
    state.follow(change)
}

fn meta_of<K: Kept>(state: &State, target: &Target) -> Option<ObjectMeta> {
    let seen = K::store(state).get(&target.namespace, &target.name)?;
    (seen.object.meta().uid.as_ref() == Some(&target.uid)).then(|| seen.object.meta().clone())
}

pub(crate) fn path(kind: Kind, namespace: &str) -> Request {
    let resource = kind.resource();
    let namespace = (kind.namespaced() && !namespace.is_empty()).then_some(namespace);
    Request::new(kube::core::DynamicObject::url_path(&resource, namespace))
}

fn code(error: &kube::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

fn failure(verb: &str, target: &Target, source: kube::Error) -> Failure {
    Failure { what: format!("{verb} {} {}/{}", target.kind.name(), target.namespace, target.name), source }
}

fn gone_is_fine(result: Result<Vec<Key>, Failure>) -> Result<Vec<Key>, Failure> {
    match result {
        Err(failure) if code(&failure.source) == Some(404) => Ok(Vec::new()),
        other => other,
    }
}

/// Whether the answer to a delete says that the object is gone, rather than showing it on its way out.
fn is_status(text: &str) -> bool {
    serde_json::from_str::<Status>(text).is_ok_and(|status| status.is_success())
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;

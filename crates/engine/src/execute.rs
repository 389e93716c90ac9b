//! Carrying out a plan: one API call per action, in order, and no choices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::params::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request;
use kube::core::{ObjectMeta, Status};
use kube::{Client, Resource};
use planner::{Action, Key, Object, Plan, Target};
use serde_json::{Value, json};

use crate::cluster::{Cluster, State};
use crate::error::{Failure, status};
use crate::guard::Guarded;
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
        Self { client, cluster, work, writes: Arc::default() }
    }

    /// What was written so far.
    pub fn writes(&self) -> Arc<Writes> {
        self.writes.clone()
    }

    /// Carries out the actions in order and wakes whom they concern, but not the object the plan is about: that was
    /// decided about just now. The first that fails ends it: what follows may rest on it.
    pub async fn execute(&self, about: &Key, plan: &Plan) -> Result<(), Failure> {
        for action in &plan.actions {
            self.writes.count(&about.namespace);
            let mut concerned = match self.act(action).await {
                Ok(concerned) => concerned,
                Err(failure) => {
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
            Action::Hold(target, finalizer) => {
                let mut finalizers = target.finalizers.clone();
                finalizers.push((*finalizer).to_owned());
                self.set_finalizers(target, &finalizers).await
            }
            Action::Release(target, finalizer) => {
                let mut finalizers = target.finalizers.clone();
                finalizers.retain(|held| held != finalizer);
                gone_is_fine(self.set_finalizers(target, &finalizers).await)
            }
            Action::Create(object) => self.create(object).await,
            Action::Apply(object) => self.apply(object).await,
            Action::Patch(target, body) => self.patch(target, None, body.clone()).await,
            Action::PatchStatus(target, body) => self.patch(target, Some("status"), body.clone()).await,
            Action::Delete(target) => self.delete(target).await,
            Action::DeleteUnchanged(target) => self.delete_unchanged(target).await,
        }
    }

    async fn set_finalizers(&self, target: &Target, finalizers: &[String]) -> Result<Vec<Key>, Failure> {
        self.patch(target, None, json!({"metadata": {"finalizers": finalizers}})).await
    }

    /// Merges into exactly the object that was seen, as of our own latest write to it.
    async fn patch(&self, target: &Target, part: Option<&str>, mut body: Value) -> Result<Vec<Key>, Failure> {
        body["metadata"]["uid"] = json!(target.uid);
        body["metadata"]["resourceVersion"] = json!(self.latest_version(target));
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let path = path(target.kind, &target.namespace);
        let request = match part {
            Some(part) => path.patch_subresource(part, &target.name, &params, &Patch::Merge(body)),
            None => path.patch(&target.name, &params, &Patch::Merge(body)),
        };
        let answer = self.send(request).await;
        let answer = self.refreshing(target.kind, &target.namespace, &target.name, answer).await;
        let text = answer.map_err(|source| failure("patch", target, source))?;
        Ok(self.remember(target.kind, &text))
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
        Ok(self.remember(object.kind, &text))
    }

    /// What others set is left to them, but for fields that are ours: there is one who says how nacre is installed.
    async fn apply(&self, object: &Object) -> Result<Vec<Key>, Failure> {
        let params = PatchParams::apply(MANAGER).force();
        let (namespace, name) = (object.namespace(), object.name());
        let answer =
            self.send(path(object.kind, namespace).patch(name, &params, &Patch::Apply(&object.body))).await;
        let what = || format!("apply {} {namespace}/{name}", object.kind.name());
        let text = answer.map_err(|source| Failure { what: what(), source })?;
        Ok(self.remember(object.kind, &text))
    }

    async fn delete(&self, target: &Target) -> Result<Vec<Key>, Failure> {
        let exactly = Preconditions { uid: Some(target.uid.clone()), ..Preconditions::default() };
        match self.send_delete(target, exactly).await {
            // Another one by the same name: this one is no more.
            Err(error) if code(&error) == Some(409) => Ok(self.forget(target)),
            other => other.map_err(|source| failure("delete", target, source)),
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
            Ok(text) => Ok(self.remember(target.kind, &text)),
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
            let request =
                path(kind, namespace).get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
            if let Ok(text) = self.client.request_text(request).await {
                // Whoever asked decides again at once; the watch wakes the others.
                self.remember(kind, &text);
            }
        }
        answer
    }

    /// The resourceVersion of our own latest write to an object, else the one it had when it was seen.
    fn latest_version(&self, target: &Target) -> String {
        let state = self.cluster.look();
        let latest = match target.kind {
            Kind::NonAdminBackup => meta_of::<NonAdminBackup>(&state, target),
            Kind::NonAdminRestore => meta_of::<NonAdminRestore>(&state, target),
            Kind::NonAdminDownloadRequest => meta_of::<NonAdminDownloadRequest>(&state, target),
            Kind::NonAdminBackupStorageLocation => meta_of::<NonAdminBackupStorageLocation>(&state, target),
            Kind::NonAdminBackupStorageLocationRequest => {
                meta_of::<NonAdminBackupStorageLocationRequest>(&state, target)
            }
            _ => None,
        };
        latest.and_then(|meta| meta.resource_version).unwrap_or_else(|| target.resource_version.clone())
    }

    fn remember(&self, kind: Kind, text: &str) -> Vec<Key> {
        self.cluster.change(|state| match kind {
            Kind::NonAdminBackup => wrote::<NonAdminBackup>(state, text),
            Kind::NonAdminRestore => wrote::<NonAdminRestore>(state, text),
            Kind::NonAdminDownloadRequest => wrote::<NonAdminDownloadRequest>(state, text),
            Kind::DownloadRequest => wrote::<DownloadRequest>(state, text),
            Kind::ConfigMap => wrote::<ConfigMap>(state, text),
            Kind::Backup => wrote::<Backup>(state, text),
            Kind::Restore => wrote::<Restore>(state, text),
            Kind::DeleteBackupRequest => wrote::<DeleteBackupRequest>(state, text),
            Kind::NonAdminBackupStorageLocation => wrote::<NonAdminBackupStorageLocation>(state, text),
            Kind::NonAdminBackupStorageLocationRequest => {
                wrote::<NonAdminBackupStorageLocationRequest>(state, text)
            }
            Kind::BackupStorageLocation => wrote::<BackupStorageLocation>(state, text),
            Kind::Secret => wrote::<HiddenSecret>(state, text),
            _ => Vec::new(),
        })
    }

    fn forget(&self, target: &Target) -> Vec<Key> {
        self.cluster.change(|state| match target.kind {
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

fn wrote<K: Kept>(state: &mut State, text: &str) -> Vec<Key> {
    serde_json::from_str::<Guarded<K>>(text).map(|object| state.wrote(object)).unwrap_or_default()
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

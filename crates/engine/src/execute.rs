//! Carrying out plans: sends what the runtime asks for, and passes on what the API server answers. No choices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use api::Kind;
use kube::core::Status;
use kube::core::params::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request as Path;
use kube::{Client, Resource};
use planner::state::RawObject;
use planner::{Action, Key, Plan};
use runtime::{Flight, Outcome, Reply, Request};
use serde_json::json;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::Failure;

/// The field manager. It is an identity: renaming it would orphan the fields it owns.
pub const MANAGER: &str = "nacre";

/// Carries out plans, and keeps what the API server answered.
#[derive(Clone)]
pub struct Executor {
    client: Client,
    cluster: Arc<Cluster>,
    writes: Arc<Writes>,
}

/// Number of writes, and of conflicts among them.
#[derive(Debug, Default)]
pub struct Writes {
    /// All writes.
    pub tried: AtomicU64,
    /// Writes that were answered with a conflict (409).
    pub conflicts: AtomicU64,
    /// Writes by the namespace of the reconciled object.
    by_namespace: Mutex<BTreeMap<String, u64>>,
}

impl Writes {
    fn count(&self, namespace: &str) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        let mut counts = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(namespace) {
            Some(count) => *count += 1,
            None => drop(counts.insert(namespace.to_owned(), 1)),
        }
    }

    /// Writes by namespace; deleted namespaces are dropped.
    pub fn by_namespace(&self, is_gone: impl Fn(&str) -> bool) -> BTreeMap<String, u64> {
        let mut counts = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|namespace, _| !is_gone(namespace));
        counts.clone()
    }
}

impl Executor {
    /// Writes with this client, and keeps the replies in this cluster.
    pub fn new(client: Client, cluster: Arc<Cluster>) -> Self {
        Self { client, cluster, writes: Arc::default() }
    }

    /// Writes with this client for whoever reads everything before each decision: no cache is shared with anybody.
    pub(crate) fn uncached(client: Client, namespace: &str) -> Self {
        Self::new(client, Arc::new(Cluster::new(namespace)))
    }

    /// The write counters.
    pub fn writes(&self) -> Arc<Writes> {
        self.writes.clone()
    }

    /// Decides about an object, and carries the plan out. The failure, if any, is returned next to what became of it.
    pub async fn reconcile(&self, key: &Key) -> (Outcome, Option<Failure>) {
        let mut flight = self.cluster.drive(|runtime, now| runtime.begin(key, now));
        let failure = self.send_all(&mut flight).await;
        (self.cluster.drive(|runtime, now| runtime.finish(flight, now)), failure)
    }

    /// Carries out a plan that was made elsewhere. The first action that fails ends it: what follows may rest on it.
    pub async fn execute(&self, about: &Key, plan: &Plan) -> Result<(), Failure> {
        let mut flight = self.cluster.drive(|runtime, _| runtime.execute_plan(about, plan.clone()));
        self.send_all(&mut flight).await.map_or(Ok(()), Err)
    }

    /// Sends one request after the other until the flight is done. Returns why the last action failed, if it did.
    async fn send_all(&self, flight: &mut Flight) -> Option<Failure> {
        let mut failed = None;
        loop {
            // Looking at what is there may find nothing, and then the plan goes on: that is no failure.
            failed = failed.filter(|_| flight.has_failed());
            let request = self.cluster.drive(|runtime, _| runtime.request(flight));
            let Some(request) = request else { return failed };
            let writes = !matches!(request, Request::Fetch(_));
            if writes {
                self.writes.count(&flight.about.namespace);
            }
            let action = flight.action().filter(|_| writes).map(permission);
            match self.send(&request).await {
                Ok(Answer::Object(object)) => {
                    self.cluster.drive(|runtime, now| runtime.on_reply(flight, Reply::Object(&*object), now));
                }
                Ok(Answer::Gone) => {
                    self.cluster
                        .drive(|runtime, now| runtime.on_reply::<RawObject>(flight, Reply::Gone, now));
                }
                Err(source) => {
                    let failure = Failure { what: described(&request), source };
                    let reply = Reply::Failed(failure.kind());
                    if writes {
                        self.note(flight, action.as_deref(), &failure);
                    }
                    self.cluster.drive(|runtime, now| runtime.on_reply::<RawObject>(flight, reply, now));
                    // After a conflict the object is fetched: what failed is still the write.
                    failed = failed.or(Some(failure));
                    continue;
                }
            }
            if let Some(action) = &action {
                self.cluster.degraded().enable(action);
            }
        }
    }

    /// Counts conflicts, and reports permissions that are missing and fields that an old CRD does not know.
    fn note(&self, flight: &Flight, action: Option<&str>, failure: &Failure) {
        let Some(status) = failure.status() else { return };
        if status.code == 409 {
            self.writes.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        if let (true, Some(action)) = (is_missing_permission(status), action) {
            self.cluster.degraded().disable(action, &status.message);
        }
        if let (422, Some(Action::PatchStatus(target, _))) = (status.code, flight.action()) {
            let what = format!("{} are shown without some of Velero's status fields", target.kind.plural());
            let why =
                status.message.split_once(" is invalid: ").map_or(status.message.as_str(), |(_, why)| why);
            self.cluster.degraded().disable(&what, &format!("the CRD rejects them: {why}"));
        }
    }

    async fn send(&self, request: &Request) -> Result<Answer, kube::Error> {
        let merge = || PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let request = match request {
            Request::Fetch(key) => path(key.kind, &key.namespace).get(&key.name, &GetParams::default()),
            Request::Create(object) => {
                let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
                // Our own types always become JSON.
                let body = serde_json::to_vec(&object.body).unwrap_or_default();
                path(object.kind, object.namespace()).create(&params, body)
            }
            // What others set is left to them, except for fields that are ours.
            Request::Apply(object) => path(object.kind, object.namespace()).patch(
                object.name(),
                &PatchParams::apply(MANAGER).force(),
                &Patch::Apply(&object.body),
            ),
            Request::Patch { target, status, body } => {
                let mut body = body.clone();
                body["metadata"]["uid"] = json!(target.uid);
                body["metadata"]["resourceVersion"] = json!(target.resource_version);
                let path = path(target.kind, &target.namespace);
                if *status {
                    path.patch_subresource("status", &target.name, &merge(), &Patch::Merge(body))
                } else {
                    path.patch(&target.name, &merge(), &Patch::Merge(body))
                }
            }
            Request::Delete { target, unchanged } => {
                let only_if = Preconditions {
                    uid: Some(target.uid.clone()),
                    resource_version: unchanged.then(|| target.resource_version.clone()),
                };
                let params = DeleteParams::background().preconditions(only_if);
                return match self
                    .text(path(target.kind, &target.namespace).delete(&target.name, &params))
                    .await?
                {
                    text if is_success(&text) => Ok(Answer::Gone),
                    text => Ok(Answer::Object(Box::new(RawObject::new(&text)))),
                };
            }
        };
        Ok(Answer::Object(Box::new(RawObject::new(&self.text(request).await?))))
    }

    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<String, kube::Error> {
        self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await
    }
}

enum Answer {
    Object(Box<RawObject>),
    Gone,
}

pub(crate) fn path(kind: Kind, namespace: &str) -> Path {
    let resource = kind.resource();
    let namespace = (kind.namespaced() && !namespace.is_empty()).then_some(namespace);
    Path::new(kube::core::DynamicObject::url_path(&resource, namespace))
}

/// What was tried, for logs.
fn described(request: &Request) -> String {
    let (verb, kind, namespace, name) = match request {
        Request::Fetch(key) => ("get", key.kind, key.namespace.as_str(), key.name.as_str()),
        Request::Create(object) => ("create", object.kind, object.namespace(), object.name()),
        Request::Apply(object) => ("apply", object.kind, object.namespace(), object.name()),
        Request::Patch { target, status: false, .. } => {
            ("patch", target.kind, target.namespace.as_str(), target.name.as_str())
        }
        Request::Patch { target, .. } => {
            ("patch status of", target.kind, target.namespace.as_str(), target.name.as_str())
        }
        Request::Delete { target, .. } => {
            ("delete", target.kind, target.namespace.as_str(), target.name.as_str())
        }
    };
    format!("{verb} {} {namespace}/{name}", kind.name())
}

/// The permission that a write needs, as it is named in roles.
fn permission(action: &Action) -> String {
    let (verb, part) = match action {
        Action::Create(_) => ("create", ""),
        Action::Apply(_) | Action::AddFinalizer(..) | Action::RemoveFinalizer(..) | Action::Patch(..) => {
            ("patch", "")
        }
        Action::PatchStatus(..) => ("patch", "/status"),
        Action::Delete(_) | Action::DeleteUnchanged(_) => ("delete", ""),
    };
    format!("{verb} {}{part}", action.kind().plural())
}

/// Whether the answer to a delete says that the object is gone, rather than showing it with a deletion timestamp.
fn is_success(text: &str) -> bool {
    serde_json::from_str::<Status>(text).is_ok_and(|status| status.is_success())
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;

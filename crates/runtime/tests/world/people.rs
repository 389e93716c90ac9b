//! People in the world: who made a request, and what the authorizer lets them do.

use std::collections::{BTreeMap, BTreeSet};

use api::labels;
use planner::requester::{Ask, Attributes, Review};
use planner::served::Served;
use runtime::Runtime;
use serde_json::{Value, json};

use super::World;
use super::replay::Op;

/// What people may do, as `verb resource`, `verb resource/name` or `*`.
pub(super) type Permissions = BTreeMap<String, BTreeSet<String>>;

/// The resources that the cluster serves: enough to tell who may have what.
const SERVED: [(&str, &str); 12] = [
    ("", "configmaps"),
    ("", "secrets"),
    ("", "services"),
    ("", "endpoints"),
    ("", "events"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("apps", "deployments"),
    ("apps", "controllerrevisions"),
    ("discovery.k8s.io", "endpointslices"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

/// Reading and writing all that stock `edit` does, roughly.
pub(crate) const EDIT: &[&str] = &[
    "get configmaps",
    "list configmaps",
    "create configmaps",
    "get secrets",
    "list secrets",
    "create secrets",
    "get services",
    "list services",
    "create services",
    "get endpoints",
    "list endpoints",
    "get events",
    "list events",
    "get endpointslices.discovery.k8s.io",
    "list endpointslices.discovery.k8s.io",
    "get persistentvolumeclaims",
    "list persistentvolumeclaims",
    "create persistentvolumeclaims",
    "get pods",
    "list pods",
    "create pods",
    "create pods/exec",
    "get deployments.apps",
    "list deployments.apps",
    "create deployments.apps",
    "get controllerrevisions.apps",
    "list controllerrevisions.apps",
];

/// A request as the API server stores it when this user makes it.
pub(crate) fn asked_by(user: &str, mut request: Value) -> Value {
    let record = json!({"user": user, "uid": "", "groups": ["system:authenticated"], "scopes": []});
    request["metadata"]["annotations"][labels::REQUESTER] = json!(record.to_string());
    request
}

impl World {
    /// Gives a user exactly these permissions from now on.
    pub(crate) fn may(&mut self, user: &str, permissions: &[&str]) {
        let given: BTreeSet<String> = permissions.iter().map(|&one| one.to_owned()).collect();
        self.note(|| Op::May(user.to_owned(), given.clone()));
        self.permissions.insert(user.to_owned(), given);
    }

    /// How many reviews decisions have asked for.
    pub(crate) fn reviews(&self) -> usize {
        self.reviews
    }

    /// Answers what decisions have asked. Returns how many reviews that took.
    pub(super) fn answer_asks(&self, runtime: &mut Runtime) -> usize {
        runtime.state.set_now(self.now);
        let asks = runtime.state.take_asks();
        for ask in &asks {
            let affected = match ask {
                Ask::Served => runtime.state.set_served(served()),
                Ask::Review(review) => runtime.state.set_review(review, self.is_allowed(review)),
            };
            runtime.work.enqueue(affected);
        }
        asks.iter().filter(|ask| matches!(ask, Ask::Review(_))).count()
    }

    fn is_allowed(&self, Review { requester, attributes, .. }: &Review) -> bool {
        let Attributes { verb, group, resource, subresource, name } = attributes;
        let Some(may) = self.permissions.get(&requester.user) else { return false };
        let dot = if group.is_empty() { "" } else { "." };
        let kind = format!("{verb} {resource}{dot}{group}");
        let below = if subresource.is_empty() { name.as_str() } else { subresource };
        may.contains("*")
            || (subresource.is_empty() && may.contains(&kind))
            || (!below.is_empty() && may.contains(&format!("{kind}/{below}")))
    }
}

fn served() -> Vec<Served> {
    let one = |(group, plural): (&str, &str)| Served {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        aliases: vec![plural.trim_end_matches('s').to_owned()],
        namespaced: true,
        listable: true,
        writable: true,
        preferred: true,
        ..Served::default()
    };
    SERVED.map(one).to_vec()
}

//! A Velero for tenants alone, which is not cluster-admin.
//!
//! In the whole cluster it may read what it needs to run (`roles`). What it may do in a tenant's namespace is bound
//! there, by a RoleBinding that nacre creates and deletes as the policy opens and closes the namespace. So what a forged
//! backup holds for another place is refused by RBAC, and not by a filter.

mod roles;

use std::collections::BTreeMap;

use api::{Kind, labels};
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use kube::core::ObjectMeta;

use roles::IN_TENANT_NAMESPACES;
pub(crate) use roles::objects;

use crate::refusal::StartsWhen;
use crate::state::State;
use crate::{Action, Key, Object, Plan, Refusal, Target, rejected_write};

/// The service account that Velero and its node agent run as.
pub const VELERO_ACCOUNT: &str = "velero";
/// The RoleBinding in each tenant's namespace.
pub const BINDING: &str = "nacre-velero";
/// The flag without which Velero lists every kind it restores in the whole cluster, and waits for ever.
pub const NO_CACHE: &str = "--disable-informer-cache";

/// What Velero may do in a namespace, as far as nacre has to see to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VeleroAccess {
    /// Velero is cluster-admin.
    #[default]
    Everywhere,
    /// Velero is for tenants alone, and has its permissions in this namespace.
    Bound,
    /// Velero is for tenants alone, and its permissions in this namespace are missing.
    Missing,
}

impl VeleroAccess {
    pub(crate) fn gather(view: &State, namespace: &str) -> Self {
        match (view.is_dedicated(), view.velero_binding(namespace)) {
            (false, _) => Self::Everywhere,
            (true, Some(found)) if gives_access(&found, view.admin_namespace()) => Self::Bound,
            (true, _) => Self::Missing,
        }
    }

    /// A request waits until Velero can work on it: without its permissions Velero would fail it for good.
    pub(crate) fn refusal(self, noun: &str) -> Option<Refusal> {
        let message = "Velero does not have its permissions in this namespace yet";
        let wait = || Refusal::until("metadata.namespace", message, noun, StartsWhen::Has);
        (self == Self::Missing).then(wait)
    }
}

/// Decides whether Velero has its permissions in this namespace: it does while tenants may make requests there.
pub fn decide(view: &State, namespace: &str) -> Plan {
    let Some(space) = view.namespace(namespace).filter(|_| view.is_dedicated()) else { return Plan::done() };
    let Some(policy) = view.policy(namespace) else { return Plan::done() };
    let found = view.velero_binding(namespace);
    let closed = policy.namespaces.why_closed(namespace, view.admin_namespace()).is_some();
    let going = space.metadata.deletion_timestamp.is_some();
    match found {
        Some(found) if closed => delete(&found).because("it is no tenant's namespace"),
        // Objects cannot be created there any more, and what is there goes with it.
        _ if closed || going => Plan::done(),
        Some(found) if gives_access(&found, view.admin_namespace()) => Plan::done(),
        // The role of a RoleBinding cannot be changed.
        Some(found) => delete(&found).again_at_once().because("its RoleBinding for Velero was changed"),
        None if rejected_write::persistent(view, &Key::new(Kind::Namespace, "", namespace)).is_some() => {
            let wait = rejected_write::retry_after(None, view.now());
            Plan::done()
                .requeue_after(wait)
                .because("nacre may not give Velero its permissions in the namespace")
        }
        None => {
            let binding = binding(namespace, view.admin_namespace());
            let plan = Plan::done().then(Action::Create(Object::of(Kind::RoleBinding, &binding)));
            plan.because("Velero gets its permissions in the namespace")
        }
    }
}

fn delete(found: &RoleBinding) -> Plan {
    Plan::done().then(Action::Delete(Target::of(Kind::RoleBinding, &found.metadata)))
}

/// The key by which it is decided whether Velero has its permissions in a namespace.
pub(crate) fn key(view: &State, namespace: &str) -> Option<Key> {
    view.is_dedicated().then(|| Key::new(Kind::Namespace, "", namespace))
}

/// Which objects a change of a RoleBinding affects: its namespace, and the requests that wait for it.
pub fn affected(view: &State, before: Option<&RoleBinding>, after: Option<&RoleBinding>) -> Vec<Key> {
    let meta = after.or(before).map(|binding| &binding.metadata);
    let Some(namespace) = meta.and_then(|meta| meta.namespace.as_deref()) else { return Vec::new() };
    let waiting = [Kind::NonAdminBackup, Kind::NonAdminRestore].into_iter();
    let waiting = waiting.flat_map(|kind| view.backing_off_in(kind, namespace));
    waiting.chain(key(view, namespace)).collect()
}

/// Whether a RoleBinding gives Velero what it needs: a tenant may have changed it.
fn gives_access(found: &RoleBinding, admin_namespace: &str) -> bool {
    let wanted = binding("", admin_namespace);
    found.role_ref == wanted.role_ref && found.subjects == wanted.subjects
}

fn binding(namespace: &str, admin_namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: ObjectMeta {
            name: Some(BINDING.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([
                (labels::PART_OF.to_owned(), labels::PART_OF_VALUE.to_owned()),
                (labels::VELERO_ACCESS.to_owned(), "true".to_owned()),
            ])),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some(Kind::ClusterRole.group().to_owned()),
            kind: Kind::ClusterRole.name().to_owned(),
            name: IN_TENANT_NAMESPACES.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: VELERO_ACCOUNT.to_owned(),
            namespace: Some(admin_namespace.to_owned()),
            api_group: None,
        }]),
    }
}

//! Schedules that the administrators want namespaces to have.
//!
//! A namespace that has no schedule gets the one that the policy has for its labels. From then on it is the namespace's
//! own: its owners can change, pause or delete it. Deleted, it comes back, unless there is another schedule.

use std::collections::BTreeMap;

use api::{Kind, NonAdminSchedule, NonAdminScheduleSpec, ScheduleTemplate, labels};
use kube::core::ObjectMeta;

use crate::policy::DefaultSchedule;
use crate::state::State;
use crate::{Action, Key, Object, Plan};

/// Decides whether a namespace gets a schedule; none if there is no such namespace.
pub fn decide(view: &State, name: &str) -> Option<(ObjectMeta, Plan)> {
    let space = view.namespace(name)?;
    let done = |why: &'static str| Some((space.metadata.clone(), Plan::done().because(why)));
    let Some(policy) = view.policy(name) else { return done("the policy is not known yet") };
    let none = BTreeMap::new();
    let labels = space.metadata.labels.as_ref().unwrap_or(&none);
    let Some(default) = policy.schedules.defaults.iter().find(|default| default.fits(labels)) else {
        return done("the policy has no schedule for it");
    };
    let closed = name == view.admin_namespace() || !policy.namespaces.allows(name);
    if closed || space.metadata.deletion_timestamp.is_some() {
        return done("it cannot have schedules");
    }
    if !view.schedules_in(name).is_empty() {
        return done("it has a schedule");
    }
    let schedule = schedule(name, default);
    let plan = Plan::done().because("the policy has a schedule for it, and it has none");
    Some((space.metadata.clone(), plan.then(Action::Create(Object::of(Kind::NonAdminSchedule, &schedule)))))
}

fn schedule(namespace: &str, default: &DefaultSchedule) -> NonAdminSchedule {
    let DefaultSchedule { name, selector: _, schedule, time_zone, retention, backup_spec } = default.clone();
    NonAdminSchedule {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(labels::DEFAULT_SCHEDULE.to_owned(), name.clone())])),
            name: Some(name),
            ..ObjectMeta::default()
        },
        spec: NonAdminScheduleSpec {
            schedule,
            template: ScheduleTemplate { backup_spec },
            time_zone,
            retention,
            ..NonAdminScheduleSpec::default()
        },
        status: None,
    }
}

/// The key by which it is decided whether a namespace gets a schedule; none where the policy has none for anybody.
pub(crate) fn may_want(view: &State, namespace: &str) -> Option<Key> {
    let policy = view.policy(namespace)?;
    (!policy.schedules.defaults.is_empty()).then(|| Key::new(Kind::Namespace, "", namespace))
}

//! Schedules that the administrators want namespaces to have.
//!
//! A namespace that has no schedule gets the one that the policy has for its labels. From then on it is the namespace's
//! own: its owners can change, pause or delete it. Deleted, it comes back, unless there is another schedule. It follows
//! later changes of the policy, until its owners change what the policy says: a digest of that is kept with it.

use std::collections::BTreeMap;

use api::{Kind, NonAdminSchedule, NonAdminScheduleSpec, ScheduleTemplate, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::cron::hash;
use crate::ownership::{annotation, label};
use crate::policy::DefaultSchedule;
use crate::requester::BY_POLICY;
use crate::state::State;
use crate::{Action, Key, Object, Plan, Target, merge};

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
    let wanted = schedule(name, default);
    let own = view.list::<NonAdminSchedule>(name);
    if own.is_empty() {
        let plan = Plan::done().because("the policy has a schedule for it, and it has none");
        let create = Action::Create(Object::of(Kind::NonAdminSchedule, &wanted));
        return Some((space.metadata.clone(), plan.then(create)));
    }
    let by_policy = own.iter().find(|schedule| is_unchanged(schedule, &default.name));
    match by_policy.and_then(|schedule| follow(schedule, &wanted)) {
        None => done("it has a schedule"),
        Some(change) => {
            let plan = Plan::done().because("the policy has another schedule for it than before");
            Some((space.metadata.clone(), plan.then(change)))
        }
    }
}

/// Whether a schedule is the default of this name, and its owners have not changed what the policy says.
fn is_unchanged(schedule: &NonAdminSchedule, default: &str) -> bool {
    let meta = &schedule.metadata;
    meta.deletion_timestamp.is_none()
        && label(meta, labels::DEFAULT_SCHEDULE) == Some(default)
        && annotation(meta, labels::DEFAULT_DIGEST) == Some(digest(&schedule.spec).as_str())
}

/// What makes a schedule like the one that the policy has now. Whether it is paused stays as it is.
fn follow(found: &NonAdminSchedule, wanted: &NonAdminSchedule) -> Option<Action> {
    let spec = NonAdminScheduleSpec {
        schedule: wanted.spec.schedule.clone(),
        template: wanted.spec.template.clone(),
        time_zone: wanted.spec.time_zone.clone(),
        retention: wanted.spec.retention.clone(),
        ..found.spec.clone()
    };
    let value = |spec: &NonAdminScheduleSpec| serde_json::to_value(spec).unwrap_or_default();
    let change = merge::diff(&value(&found.spec), &value(&spec))?;
    let annotations = json!({labels::DEFAULT_DIGEST: digest(&wanted.spec)});
    let body = json!({"metadata": {"annotations": annotations}, "spec": change});
    Some(Action::Patch(Target::of(Kind::NonAdminSchedule, &found.metadata), body))
}

/// A short stand-in for what the policy says of a schedule. It only detects changes; no security depends on it.
fn digest(spec: &NonAdminScheduleSpec) -> String {
    let said = json!([spec.schedule, spec.time_zone, spec.retention, spec.template]);
    format!("{:016x}", hash(said.to_string().as_bytes()))
}

fn schedule(namespace: &str, default: &DefaultSchedule) -> NonAdminSchedule {
    let DefaultSchedule { name, selector: _, schedule, time_zone, retention, backup_spec } = default.clone();
    let spec = NonAdminScheduleSpec {
        schedule,
        template: ScheduleTemplate { backup_spec },
        time_zone,
        retention,
        ..NonAdminScheduleSpec::default()
    };
    NonAdminSchedule {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(labels::DEFAULT_SCHEDULE.to_owned(), name.clone())])),
            annotations: Some(BTreeMap::from([
                (labels::DEFAULT_DIGEST.to_owned(), digest(&spec)),
                (labels::REQUESTER.to_owned(), BY_POLICY.to_owned()),
            ])),
            name: Some(name),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

/// The key by which it is decided whether a namespace gets a schedule; none where the policy has none for anybody.
pub(crate) fn may_want(view: &State, namespace: &str) -> Option<Key> {
    let policy = view.policy(namespace)?;
    (!policy.schedules.defaults.is_empty()).then(|| Key::new(Kind::Namespace, "", namespace))
}

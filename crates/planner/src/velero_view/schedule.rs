//! The copy of a schedule. Velero's command line pauses and deletes a schedule by changing and deleting the object itself,
//! so these two are read from a copy, and from no other kind's: whether it is paused, if its owner changed that, and that
//! it is being deleted. The finalizer keeps the copy until nacre has seen the latter.

use api::velero::ScheduleSpec;
use api::{Kind, NonAdminSchedule, NonAdminScheduleSpec, labels};
use kube::core::{DynamicObject, ObjectMeta};
use serde_json::{Map, Value, json};

use super::desired::{DesiredCopy, body, value, with_own_labels};
use super::request::{TenantRequest, cleaned, judged, meta, without_uid};
use super::{Observed, target};
use crate::ownership::annotation;
use crate::state::State;
use crate::{Action, Key, Object, Plan, Target, schedule};

/// The fields that Velero's command line sends, of which ours has all but the last.
const KNOWN: [&str; 5] = ["schedule", "template", "paused", "skipImmediately", "useOwnerReferencesInBackup"];

/// What the copy of a schedule shows.
pub(super) fn desired(found: &NonAdminSchedule) -> DesiredCopy {
    if found.metadata.deletion_timestamp.is_some() {
        return DesiredCopy::Gone;
    }
    let paused = found.spec.paused == Some(true);
    let spec = ScheduleSpec {
        schedule: found.spec.schedule.clone(),
        template: found.spec.template.backup_spec.clone(),
        paused: Some(paused),
        skip_immediately: found.spec.skip_immediately,
    };
    let velero = found.status.as_ref().and_then(|status| status.velero_schedule.as_ref()?.status.clone());
    let mut body = body(&ObjectMeta::default(), &value(&spec), &value(&velero.unwrap_or_default()));
    body["metadata"]["annotations"][labels::SHOWN_PAUSED] = json!(paused.to_string());
    with_own_labels(&mut body, &found.metadata);
    DesiredCopy::Copy(body)
}

/// The schedule that a copy is one of.
pub(super) fn original(view: &State, key: &Key) -> Option<Target> {
    let found =
        view.get::<NonAdminSchedule>(&key.namespace, &key.name).filter(|_| key.kind == Kind::Schedule)?;
    Some(Target::of(Kind::NonAdminSchedule, &found.metadata))
}

fn is_held(found: &DynamicObject) -> bool {
    found.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == labels::VELERO_VIEW_FINALIZER)
}

/// Has the copy of a schedule held from the beginning.
pub(super) fn hold(kind: Kind, body: &mut Value) {
    if kind == Kind::Schedule {
        body["metadata"]["finalizers"] = json!([labels::VELERO_VIEW_FINALIZER]);
    }
}

/// Lets go of a copy that nacre removes.
pub(super) fn release(seen: &Observed, found: &DynamicObject) -> Option<Action> {
    is_held(found).then(|| Action::RemoveFinalizer(target(seen, found), labels::VELERO_VIEW_FINALIZER))
}

/// What the owner did to the copy, carried over to the schedule; none if there is nothing of that.
pub(super) fn carried_over(seen: &Observed, found: &DynamicObject, wanted: &Value) -> Option<Plan> {
    let original = seen.original.as_ref()?;
    if found.metadata.deletion_timestamp.is_some() {
        let plan = Plan::done().because("a tenant deletes a schedule with Velero's own tools");
        return is_held(found)
            .then(|| plan.then(Action::Delete(original.clone())).then_if(release(seen, found)));
    }
    let paused = found.data["spec"]["paused"] == json!(true);
    let shown = annotation(&found.metadata, labels::SHOWN_PAUSED)?;
    if shown == paused.to_string() || wanted["spec"]["paused"] == json!(paused) {
        return None;
    }
    let mut spec = json!({ "paused": paused });
    if found.data["spec"]["skipImmediately"] == json!(true) {
        spec["skipImmediately"] = json!(true);
    }
    let plan = Plan::done().because("a tenant pauses or resumes a schedule with Velero's own tools");
    Some(plan.then(Action::Patch(original.clone(), json!({ "spec": spec }))))
}

/// Has a copy held that its owner made.
pub(super) fn ensure_held(seen: &Observed, found: &DynamicObject) -> Option<Action> {
    let hold = seen.key.kind == Kind::Schedule && !is_held(found);
    hold.then(|| Action::AddFinalizer(target(seen, found), labels::VELERO_VIEW_FINALIZER))
}

/// What `velero schedule create` asks for.
pub(super) fn asked(view: &State, key: &Key, found: &DynamicObject) -> TenantRequest {
    let spec = found.data.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(unknown) = spec.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return TenantRequest::Refused(format!("spec.{unknown}: is not known here; leave it out"));
    }
    if spec.get(KNOWN[4]) == Some(&json!(true)) {
        let why = "backups outlive their schedule here; leave it out";
        return TenantRequest::Refused(format!("spec.{}: {why}", KNOWN[4]));
    }
    let template = spec.get("template").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut wanted: Map<String, Value> = spec.into_iter().filter(|(_, value)| !value.is_null()).collect();
    wanted.remove(KNOWN[4]);
    wanted.insert("template".to_owned(), json!({"backupSpec": cleaned(template, &key.namespace)}));
    let spec: NonAdminScheduleSpec = match serde_json::from_value(wanted.into()) {
        Ok(spec) => spec,
        Err(error) => return TenantRequest::Refused(format!("spec: cannot be read: {error}")),
    };
    let request = NonAdminSchedule { metadata: meta(found), spec, status: None };
    let made = Object::of(Kind::NonAdminSchedule, &without_uid(request.clone(), |made| &mut made.metadata));
    judged(schedule::judge(view, request), made, "spec.template.backupSpec", "spec.template")
}

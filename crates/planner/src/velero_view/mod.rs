//! Velero's own tools for tenants: copies of the Velero objects that are a tenant's, in the tenant's namespace.
//!
//! A copy is generated (`desired`) from the objects in Velero's namespace and the tenant's requests whenever either
//! changes, and is never read for anything else. What an object in a tenant's namespace is, its name says: one that is
//! called like the tenant's request is the copy of what became of it. Any other Backup, Restore, Schedule or
//! DeleteBackupRequest was made with Velero's command line and is a request (`request`), for which nacre makes the
//! NonAdminBackup, NonAdminRestore or NonAdminSchedule of that name, under the same rules, or says why not. A
//! DownloadRequest is answered as a NonAdminDownloadRequest is, by `download`. Copies of schedules can be paused and
//! deleted (`schedule`).
//!
//! `enabled` says for which namespaces, and `affected` which copies a change affects.

mod affected;
mod desired;
mod enabled;
mod label;
mod record;
mod related;
mod request;
pub mod roles;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use api::velero::BackupStorageLocationStatus;
use api::{Kind, NonAdminBackupStorageLocation, labels};
use jiff::Timestamp;
use kube::core::{DynamicObject, ObjectMeta};
use serde_json::{Value, json};

pub use affected::{affected, affected_by_copy, everything};
pub use desired::DesiredCopy;
pub use enabled::enabled_in;
pub use record::{RECORD, in_use, record};
pub use request::TenantRequest;
pub(crate) use request::has_its_own_velero;

use crate::ownership::label;
use crate::state::State;
use crate::{Action, Event, Key, Object, Plan, Target, location, merge};

/// What is copied.
pub const COPIED: [Kind; 9] = [
    Kind::Backup,
    Kind::Restore,
    Kind::BackupStorageLocation,
    Kind::DeleteBackupRequest,
    Kind::PodVolumeBackup,
    Kind::PodVolumeRestore,
    Kind::DataUpload,
    Kind::DataDownload,
    Kind::Schedule,
];

/// What is watched in tenants' namespaces, where anything is.
pub const WATCHED: [Kind; 10] = [
    Kind::Backup,
    Kind::Restore,
    Kind::BackupStorageLocation,
    Kind::DeleteBackupRequest,
    Kind::PodVolumeBackup,
    Kind::PodVolumeRestore,
    Kind::DataUpload,
    Kind::DataDownload,
    Kind::Schedule,
    Kind::DownloadRequest,
];

/// Everything a decision about an object of Velero's kinds in a tenant's namespace reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Which object.
    pub key: Key,
    /// What is there, whoever wrote it.
    pub found: Option<Arc<DynamicObject>>,
    /// Whether the view is enabled for the namespace; none while that is unknown.
    pub enabled: Option<bool>,
    /// What it is a copy of.
    pub desired: DesiredCopy,
    /// The schedule that it is a copy of, if it is one of a schedule.
    pub original: Option<Target>,
    /// What it asks for, if it is a copy of nothing.
    pub asked: TenantRequest,
    /// How far the times that a copied location shows may be behind Velero's.
    pub allowed_lag: Duration,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// Gathers what a decision about this object reads; none if there is nothing to decide.
pub fn observe(view: &State, key: &Key) -> Option<Observed> {
    if !view.velero_view_active() || key.namespace == view.admin_namespace() {
        return None;
    }
    let found = view.velero_view(key.kind, &key.namespace, &key.name);
    let desired = desired::of(view, key);
    let enabled = enabled_in(view, &key.namespace);
    let asked = match (&desired, &found) {
        (DesiredCopy::Nothing, Some(found)) if enabled == Some(true) => request::read(view, key, found),
        _ => TenantRequest::Nothing,
    };
    let original = schedule::original(view, key);
    let allowed_lag =
        location::times::allowed_lag(view.number_of_locations(), uid_of_location(view, key).as_deref());
    Some(Observed {
        key: key.clone(),
        found,
        enabled,
        desired,
        original,
        asked,
        allowed_lag,
        now: view.now(),
    })
}

/// The uid of the location that this is the copy of, if it is one of a location.
fn uid_of_location(view: &State, key: &Key) -> Option<String> {
    let is_location = key.kind == Kind::BackupStorageLocation;
    let found = is_location.then(|| view.get::<NonAdminBackupStorageLocation>(&key.namespace, &key.name));
    found.flatten()?.metadata.uid.clone()
}

impl Observed {
    /// What Events of a plan are about.
    pub fn about(&self) -> ObjectMeta {
        self.found.as_ref().map_or_else(ObjectMeta::default, |found| found.metadata.clone())
    }
}

/// What an object in a tenant's namespace says about itself; good for nothing but removing it.
pub(crate) fn mark(object: &DynamicObject) -> Option<&str> {
    label(&object.metadata, labels::SHOWN)
}

/// How long an answer that says no is kept, for whoever asked to read it.
fn until_read(kind: Kind) -> Duration {
    match kind {
        Kind::DeleteBackupRequest => Duration::from_mins(10),
        _ => Duration::from_hours(24),
    }
}

/// Decides what to do about one object.
pub fn decide(seen: &Observed) -> Plan {
    match (seen.enabled, &seen.found) {
        (Some(false), Some(found)) if is_ours(seen, found) => {
            remove(seen, found).because("the Velero view is disabled for the namespace")
        }
        (Some(false), _) => Plan::done().because("the Velero view is disabled for the namespace"),
        (None, _) => {
            Plan::done().because("whether the Velero view is enabled for the namespace is not known yet")
        }
        (Some(true), found) => show(seen, found.as_deref()),
    }
}

/// Whether nacre put it there, or would have written it: that goes with the view.
fn is_ours(seen: &Observed, found: &DynamicObject) -> bool {
    mark(found).is_some() || !matches!(seen.desired, DesiredCopy::Nothing)
}

fn show(seen: &Observed, found: Option<&DynamicObject>) -> Plan {
    match (&seen.desired, found) {
        (DesiredCopy::Copy(wanted), None) => {
            Plan::done().then(Action::Create(whole(&seen.key, wanted))).because("it has no copy yet")
        }
        (DesiredCopy::Copy(wanted) | DesiredCopy::Waiting(wanted), Some(found)) => {
            schedule::carried_over(seen, found, wanted).unwrap_or_else(|| {
                rewrite(seen, found, wanted).because("the copy shows what it is a copy of")
            })
        }
        (DesiredCopy::Gone, Some(found)) => remove(seen, found).because("what it is a copy of is gone"),
        (DesiredCopy::Nothing, Some(found)) if mark(found) == Some(labels::SHOWN_COPY) => {
            remove(seen, found).because("it is marked as a copy and is a copy of nothing")
        }
        (DesiredCopy::Nothing, Some(found)) => request::decide(seen, found),
        (DesiredCopy::Undecided, _) => Plan::done().because("what it is a copy of is not decided yet"),
        (DesiredCopy::Waiting(_), None) => Plan::done().because("it gets a copy when Velero has it"),
        (DesiredCopy::Gone | DesiredCopy::Nothing, None) => Plan::done().because("there is nothing to show"),
    }
}

/// A copy, ready to be made.
fn whole(key: &Key, wanted: &Value) -> Object {
    let mut body = wanted.clone();
    body["apiVersion"] = json!(key.kind.api_version());
    body["kind"] = json!(key.kind.name());
    body["metadata"]["name"] = json!(key.name);
    body["metadata"]["namespace"] = json!(key.namespace);
    schedule::hold(key.kind, &mut body);
    Object { kind: key.kind, body }
}

/// One write, if anything differs. Velero's kinds have their status among the rest.
fn rewrite(seen: &Observed, found: &DynamicObject, wanted: &Value) -> Plan {
    if found.metadata.deletion_timestamp.is_some() {
        // It comes back when it is gone.
        return Plan::done();
    }
    let found_now = comparable(found);
    let wanted = ignore_time_only_changes(seen, &found_now, with_foreign_marks(&found_now, wanted));
    let change = merge::diff(&found_now, &wanted);
    let held = schedule::ensure_held(seen, found);
    Plan::done().then_if(change.map(|change| Action::Patch(target(seen, found), change))).then_if(held)
}

fn target(seen: &Observed, found: &DynamicObject) -> Target {
    Target::of(seen.key.kind, &found.metadata)
}

fn remove(seen: &Observed, found: &DynamicObject) -> Plan {
    let is_deleting = found.metadata.deletion_timestamp.is_some();
    let plan = Plan::done().then_if(schedule::release(seen, found));
    if is_deleting { plan } else { plan.then(Action::Delete(target(seen, found))) }
}

/// The parts of an object that a copy has.
fn comparable(object: &DynamicObject) -> Value {
    let part = |name: &str| object.data.get(name).filter(|part| !part.is_null()).cloned();
    json!({
        "metadata": {
            "labels": object.metadata.labels.clone().unwrap_or_default(),
            "annotations": object.metadata.annotations.clone().unwrap_or_default(),
        },
        "spec": part("spec").unwrap_or_else(|| json!({})),
        "status": part("status").unwrap_or_else(|| json!({})),
    })
}

/// Labels and annotations of programs that mark every object they see are left alone: rewriting those would be a
/// quarrel without end.
fn with_foreign_marks(found: &Value, wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    for kind in ["labels", "annotations"] {
        let foreign = found["metadata"][kind].as_object().into_iter().flatten();
        for (name, value) in foreign.filter(|(name, _)| !related::is_veleros(name)) {
            let marks = wanted["metadata"][kind].as_object_mut();
            marks.and_then(|marks| {
                (!marks.contains_key(name)).then(|| marks.insert(name.clone(), value.clone()))
            });
        }
    }
    wanted
}

/// Velero writes down every minute when it last looked at a location; that alone is worth a write only now and then.
fn ignore_time_only_changes(seen: &Observed, found: &Value, wanted: Value) -> Value {
    if seen.key.kind != Kind::BackupStorageLocation {
        return wanted;
    }
    let mut alike = wanted.clone();
    for field in ["lastSyncedTime", "lastValidationTime"] {
        let (was, is) = (found["status"][field].as_str(), wanted["status"][field].as_str());
        match (was, alike["status"].as_object_mut()) {
            (Some(was), Some(status)) if Some(was) <= is => _ = status.insert(field.to_owned(), json!(was)),
            (None, Some(status)) => _ = status.remove(field),
            _ => {}
        }
    }
    let status =
        |of: &Value| serde_json::from_value::<BackupStorageLocationStatus>(of["status"].clone()).ok();
    let due = status(found).zip(status(&wanted));
    let due = due.is_some_and(|(shown, now)| location::times::are_due(&shown, &now, seen.allowed_lag));
    if merge::diff(found, &alike).is_none() && !due { alike } else { wanted }
}

/// Says no, in Velero's own way, where Velero's command line looks.
fn refuse(seen: &Observed, found: &DynamicObject, why: &str) -> Plan {
    let status = match seen.key.kind {
        Kind::DeleteBackupRequest => json!({"phase": "Processed", "errors": [why]}),
        _ => json!({"phase": "FailedValidation", "validationErrors": [why]}),
    };
    let mut wanted = comparable(found);
    wanted["metadata"]["labels"][labels::SHOWN] = json!(labels::SHOWN_REFUSED);
    wanted["status"] = status;
    let plan = Plan::done().because(why.to_owned());
    match merge::diff(&comparable(found), &wanted) {
        None => plan,
        Some(change) => plan
            .then(Action::Patch(target(seen, found), change))
            .with_event(Event::warning("RequestRefused", why))
            .requeue_after(until_read(seen.key.kind)),
    }
}

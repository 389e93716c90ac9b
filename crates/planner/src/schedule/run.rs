//! The NonAdminBackup that a run is.

use std::collections::BTreeMap;

use api::velero::BackupSpec;
use api::{Duration, NonAdminBackup, NonAdminBackupSpec, NonAdminSchedule, labels};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::core::ObjectMeta;

use super::cron::hash;
use super::{keep, outlived};
use crate::ownership::annotation;
use crate::{Policy, bounds};

/// The longest name of a run: Velero's names and labels have no room for more.
const LONGEST_NAME: usize = 63;
/// The time at the end of a name, and the dash before it.
const TIME: usize = 15;

/// The name of the run that is due at this time: the same for the same time always, so that a run is made once.
pub fn name(schedule: &str, due: Timestamp) -> String {
    let time = due.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%S").to_string();
    format!("{}-{time}", short(schedule, LONGEST_NAME - TIME))
}

/// The value of the label that names the schedule of a run.
pub fn label_value(schedule: &str) -> String {
    short(schedule, LONGEST_NAME)
}

/// A name with at most so many characters. One that is cut ends in a hash, so that two do not become one.
fn short(name: &str, longest: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let end = format!("-{:08x}", hash(name.as_bytes()) & 0xffff_ffff);
    let cut = name.get(..longest - end.len()).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{cut}{end}")
}

/// The run that is due at this time.
pub fn backup(schedule: &NonAdminSchedule, due: Timestamp, policy: &Policy) -> NonAdminBackup {
    NonAdminBackup {
        metadata: metadata(schedule, due, policy),
        spec: NonAdminBackupSpec { backup_spec: spec(schedule, policy), delete_backup: None },
        status: None,
    }
}

/// Everything about a run but its spec. It has no owner, since it outlives the schedule. Whoever asked for the schedule asks
/// for its runs.
fn metadata(schedule: &NonAdminSchedule, due: Timestamp, policy: &Policy) -> ObjectMeta {
    let of = schedule.metadata.name.as_deref().unwrap_or_default();
    let mut annotations = BTreeMap::from([(labels::SCHEDULED_FOR.to_owned(), due.to_string())]);
    let requester = annotation(&schedule.metadata, labels::REQUESTER);
    annotations.extend(requester.map(|record| (labels::REQUESTER.to_owned(), record.to_owned())));
    let ttl = outlived::ttl(schedule, policy);
    annotations.extend(ttl.map(|ttl| (labels::TTL_AFTER_SCHEDULE.to_owned(), ttl)));
    ObjectMeta {
        name: Some(name(of, due)),
        namespace: schedule.metadata.namespace.clone(),
        labels: Some(BTreeMap::from([(labels::NAS_NAME.to_owned(), label_value(of))])),
        finalizers: Some(vec![labels::NAB_FINALIZER.to_owned()]),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    }
}

/// The template. Where the schedule says what is kept, nacre deletes what is not, so that Velero shall not do it before.
pub(super) fn spec(schedule: &NonAdminSchedule, policy: &Policy) -> BackupSpec {
    let mut spec = schedule.spec.template.backup_spec.clone();
    if keep::replaces_ttl(schedule, policy) {
        spec.ttl = longest_ttl(policy);
    }
    spec
}

/// The template as it is written, where its ttl is shorter than that of the runs: it holds once the schedule is gone.
pub(super) fn spec_after_schedule(schedule: &NonAdminSchedule, policy: &Policy) -> Option<BackupSpec> {
    let spec = &schedule.spec.template.backup_spec;
    let runs = longest_ttl(policy).filter(|_| keep::replaces_ttl(schedule, policy))?;
    let asked = spec.ttl.as_ref().filter(|ttl| !ttl.is_zero())?;
    let is_longer = asked.nanos().is_some_and(|asked| Some(asked) > runs.nanos());
    (!is_longer).then(|| spec.clone())
}

/// How long Velero keeps a run, if nobody moves its expiration; none if that cannot be read.
pub(super) fn ttl(schedule: &NonAdminSchedule, policy: &Policy) -> Option<std::time::Duration> {
    let spec = spec(schedule, policy);
    let given =
        policy.backup.enforce.ttl.as_ref().or(spec.ttl.as_ref()).or(policy.backup.defaults.ttl.as_ref());
    given.cloned().unwrap_or_else(|| outlived::VELERO_TTL.into()).to_std()
}

/// The longest time a backup may be kept; none where the administrators enforce one.
fn longest_ttl(policy: &Policy) -> Option<Duration> {
    if policy.backup.enforce.ttl.is_some() {
        return None;
    }
    Some(policy.backup.ttl.max.clone().unwrap_or_else(|| bounds::TTL.into()))
}

#[cfg(test)]
mod tests {
    use api::{NonAdminSchedule, labels};
    use serde_json::json;

    use super::backup;
    use crate::{Policy, requester};

    #[test]
    fn whoever_asked_for_the_schedule_asks_for_its_runs() {
        let record = r#"{"user":"ada","uid":"","groups":["team"],"scopes":[]}"#;
        let mut schedule: NonAdminSchedule = serde_json::from_value(json!({
            "metadata": {"name": "daily", "namespace": "shop", "annotations": {labels::REQUESTER: record}},
            "spec": {"schedule": "@daily", "template": {"backupSpec": {}}},
        }))
        .unwrap();
        let due = "2026-01-01T00:00:00Z".parse().unwrap();
        let of_run = |schedule: &NonAdminSchedule| {
            requester::of(&backup(schedule, due, &Policy::default()).metadata).user().map(str::to_owned)
        };
        assert_eq!(of_run(&schedule).as_deref(), Some("ada"));
        schedule.metadata.annotations = None;
        assert_eq!(of_run(&schedule), None);
    }
}

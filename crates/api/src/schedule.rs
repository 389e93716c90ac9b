//! NonAdminSchedule: a namespace owner has backups made again and again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::strict;
use crate::velero::{BackupSpec, ScheduleStatus};
use crate::{Duration, Phase, Retention};

/// When to back up the namespace, how, and how long to keep what was backed up.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "NonAdminSchedule", namespaced)]
#[kube(shortname = "nas", status = "NonAdminScheduleStatus", derive = "PartialEq", derive = "Default")]
#[kube(
    doc = "Backups of the namespace it is made in, at set times. At each time nacre makes a NonAdminBackup named after the schedule and the time."
)]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(
    name = "Velero-Phase",
    type_ = "string",
    json_path = ".status.veleroSchedule.status.phase"
))]
#[kube(printcolumn(name = "Next-Run", type_ = "string", json_path = ".status.nextRun"))]
#[kube(printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
#[schemars(rename_all = "camelCase")]
pub struct NonAdminScheduleSpec {
    /// When to run: five fields of cron (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly,
    /// @monthly, @yearly, or @every with a duration such as @every 6h. H in place of a number lets nacre choose one for
    /// this namespace, H(1-5) one of a range, and H/15 is every 15 from one on. CRON_TZ= in front names a time zone; without one it is UTC.
    pub schedule: String,
    /// What to back up and how.
    pub template: ScheduleTemplate,
    /// Set to true to have no runs until it is false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Set to true to skip the next run. The controller then sets it to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_immediately: Option<bool>,
    /// The time zone that the schedule is in, for example Europe/Berlin. Without it, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How late a run that was missed may still start, for example 2h. Without it, half of the time until the next run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<Duration>,
    /// What happens when a run is due and the one before it is not finished: Forbid, which is the default, skips it;
    /// Allow starts it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Which backups of this schedule are kept. All others are deleted with their data, but never the last good one.
    /// Without it, each backup is kept for the ttl in the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// When somebody last confirmed the schedule, as `kubectl nacre schedule confirm` writes it. It has no meaning of its
    /// own: whoever changes any field of the spec is recorded again as the one who asks for the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Time>,
}

/// What each run is made of. It has no metadata, on purpose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename_all = "camelCase")]
pub struct ScheduleTemplate {
    /// What to back up and how, as in Velero's BackupSpec. It covers this namespace only.
    #[serde(deserialize_with = "strict")]
    pub backup_spec: BackupSpec,
}

/// Whether two runs of a schedule may go on at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Concurrency {
    /// A run that is due while another one is not finished is skipped.
    #[default]
    Forbid,
    /// It starts all the same.
    Allow,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminScheduleStatus {
    /// What Velero's tools show of a schedule. nacre runs it, so there is no Velero object behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_schedule: Option<VeleroSchedule>,
    /// When the next run starts. None while it is paused or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run: Option<Time>,
    /// The latest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<ScheduledBackup>,
    /// The latest runs, newest first, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_backups: Vec<ScheduledBackup>,
    /// The name of the last good backup of this schedule. It is never deleted by retention and does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good_backup: Option<String>,
    /// When the last good backup of this schedule was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good_time: Option<Time>,
    /// The time up to which every run that was due has been made or skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_due: Option<Time>,
    /// Since when it is known who asks for the runs, and until when that is good for. None where nobody recorded it, or
    /// the policy sets no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// How far nacre has got with it: BackingOff if it is refused, Created if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is known about the schedule, by type. Each reason is a word for programs, and each message a sentence for
    /// people.
    ///
    /// Accepted: whether the schedule runs. Reasons: ScheduleAccepted; InvalidScheduleSpec (the message names the field
    /// and what would be accepted); PolicyUnavailable (waits until the administrators have corrected the policy);
    /// NamespaceNotSeen (no run is made until nacre sees the namespace).
    ///
    /// RunsOnTime: whether the latest run was made as it was due. Reasons: RunCreated; RunSkipped (the message says
    /// which and why); RunRefused (the latest run is refused or waits, the message is its own).
    ///
    /// Retained: whether the schedule keeps what it is to keep, and nothing else. Reasons: RetentionApplied;
    /// RetentionStuck (backups could not be deleted for a day); RetentionOverLimit (so many are kept that the namespace
    /// has no place for the next run); TtlEnforced (backups expire earlier than the retention says). Each backup that is
    /// deleted is an Event with reason BackupNotKept.
    ///
    /// RequesterConfirmed: whether the record of who asks for the runs is recent enough. Reasons: RecentlyConfirmed;
    /// ConfirmationDue (it has to be confirmed soon); ConfirmationOverdue (runs that need permissions of that person are
    /// skipped until somebody confirms it).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Since when it is known who asks for the runs of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// The generation of the spec that somebody made.
    pub generation: i64,
    /// When nacre first saw that generation.
    pub time: Time,
    /// Until when it is to be confirmed.
    pub until: Time,
}

/// What Velero's tools show of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroSchedule {
    /// As Velero would report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ScheduleStatus>,
    /// By which its Velero objects are labelled; only on what the Go controller made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The name of a Velero Schedule; only on what the Go controller made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One run of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduledBackup {
    /// The NonAdminBackup.
    pub name: String,
    /// Its Velero Backup, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_backup_name: Option<String>,
    /// Velero's phase, or nacre's as long as Velero has none. None while the NonAdminBackup is being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When Velero began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When Velero ended, well or badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_timestamp: Option<Time>,
    /// When Velero removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<Time>,
}

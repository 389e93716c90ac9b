//! What the requests in a cluster come to, namespace by namespace, for whoever watches over it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore,
    NonAdminSchedule, Phase, condition,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::core::ObjectMeta;

use crate::usage::Usage;
use crate::{last_good, schedule};

/// What the requests in a cluster come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How many there are, by namespace, kind and phase.
    pub requests: BTreeMap<(String, Kind, &'static str), u64>,
    /// When the last good backup of a namespace was completed.
    pub last_good: BTreeMap<String, Timestamp>,
    /// Since when the request that waits longest for Velero has been waiting, by namespace and kind.
    pub waiting_since: BTreeMap<(String, Kind), Timestamp>,
    /// The schedules, by namespace and name.
    pub schedules: BTreeMap<(String, String), Scheduled>,
    /// Since when Velero has had backups in its queue and none at work.
    pub idle_since: Option<Timestamp>,
    /// What each namespace uses.
    pub usage: BTreeMap<String, Usage>,
}

/// How a schedule is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// When its last good backup was completed; without one, when it was created.
    pub last_good: Timestamp,
    /// The seconds between two runs around now; none while it is paused or its times cannot be read.
    pub interval: Option<i64>,
    /// Whether it is accepted.
    pub accepted: bool,
    /// Whether its latest run was made as it was due; none before there is one.
    pub on_time: Option<bool>,
    /// Whether it keeps what it is to keep, and nothing else; none without a retention.
    pub retained: Option<bool>,
    /// Until when somebody has to confirm it, if ever.
    pub confirm_by: Option<Timestamp>,
}

/// The totals over all requests, brought up to date with every change, so that nobody has to read all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    requests: BTreeMap<(String, Kind, &'static str), u64>,
    /// Since when a request has been waiting for Velero, and its name.
    waiting: BTreeMap<(String, Kind), BTreeSet<(Timestamp, String)>>,
    /// When a backup ended, and its name.
    ended: BTreeMap<String, BTreeSet<(Timestamp, String)>>,
    schedules: BTreeMap<(String, String), Scheduled>,
}

impl Totals {
    /// A request has changed.
    pub(crate) fn shift<K: Measured>(&mut self, before: Option<&K>, after: Option<&K>) {
        if let Some(request) = before {
            self.remove(request);
        }
        if let Some(request) = after {
            self.add(request);
        }
    }

    fn add<K: Measured>(&mut self, request: &K) {
        let (namespace, name) = place(request.meta());
        *self.requests.entry((namespace.clone(), K::KIND, word(request.phase()))).or_default() += 1;
        if let Some(since) = request.waiting_since() {
            let waiting = self.waiting.entry((namespace.clone(), K::KIND)).or_default();
            waiting.insert((since, name.clone()));
        }
        if let Some(scheduled) = request.scheduled() {
            self.schedules.insert((namespace.clone(), name.clone()), scheduled);
        }
        if let Some(at) = request.ended() {
            self.ended.entry(namespace).or_default().insert((at, name));
        }
    }

    fn remove<K: Measured>(&mut self, request: &K) {
        let (namespace, name) = place(request.meta());
        let counted = (namespace.clone(), K::KIND, word(request.phase()));
        if let Some(count) = self.requests.get_mut(&counted) {
            *count -= 1;
            if *count == 0 {
                self.requests.remove(&counted);
            }
        }
        if let Some(since) = request.waiting_since() {
            take(&mut self.waiting, &(namespace.clone(), K::KIND), &(since, name.clone()));
        }
        if K::KIND == Kind::NonAdminSchedule {
            self.schedules.remove(&(namespace.clone(), name.clone()));
        }
        if let Some(at) = request.ended() {
            take(&mut self.ended, &namespace, &(at, name));
        }
    }

    /// The totals. Whether a backup, given by namespace and name, is a good one is asked of the newest first.
    pub(crate) fn measures(&self, is_good: impl Fn(&str, &str) -> bool) -> Measures {
        let last_good = self.ended.iter().filter_map(|(namespace, ended)| {
            let newest = ended.iter().rev().find(|(_, name)| is_good(namespace, name));
            newest.map(|(at, _)| (namespace.clone(), *at))
        });
        let longest =
            self.waiting.iter().filter_map(|(place, since)| Some((place.clone(), since.first()?.0)));
        Measures {
            requests: self.requests.clone(),
            last_good: last_good.collect(),
            waiting_since: longest.collect(),
            schedules: self.schedules.clone(),
            idle_since: None,
            usage: BTreeMap::new(),
        }
    }
}

/// Removes a value, and the set if it was the last one.
fn take<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

/// A request that counts.
pub(crate) trait Measured: Resource {
    /// Its kind.
    const KIND: Kind;

    /// How far nacre has got with it.
    fn phase(&self) -> Option<Phase>;

    /// Whether Velero has begun, and Velero's phase; none for what Velero does not work on in turn.
    fn velero(&self) -> Option<(bool, &str)> {
        None
    }

    /// When Velero ended it, if it is a backup.
    fn ended(&self) -> Option<Timestamp> {
        None
    }

    /// How it is doing, if it is a schedule.
    fn scheduled(&self) -> Option<Scheduled> {
        None
    }

    /// Since when Velero has had it without having begun.
    fn waiting_since(&self) -> Option<Timestamp> {
        let (started, stage) = self.velero()?;
        let waits = self.phase() == Some(Phase::Created)
            && !started
            && ["", "New", "Queued", "ReadyToStart"].contains(&stage);
        self.meta().creation_timestamp.as_ref().filter(|_| waits).map(|Time(since)| *since)
    }
}

/// Whether Velero has begun, and Velero's phase.
fn begun<'a>(start: Option<&Time>, phase: Option<&'a str>) -> (bool, &'a str) {
    (start.is_some(), phase.unwrap_or_default())
}

impl Measured for NonAdminBackup {
    const KIND: Kind = Kind::NonAdminBackup;

    fn phase(&self) -> Option<Phase> {
        self.status.as_ref()?.phase
    }

    fn velero(&self) -> Option<(bool, &str)> {
        let velero = self.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        Some(
            velero.map_or((false, ""), |velero| {
                begun(velero.start_timestamp.as_ref(), velero.phase.as_deref())
            }),
        )
    }

    fn ended(&self) -> Option<Timestamp> {
        last_good::ended(self)
    }
}

impl Measured for NonAdminRestore {
    const KIND: Kind = Kind::NonAdminRestore;

    fn phase(&self) -> Option<Phase> {
        self.status.as_ref()?.phase
    }

    fn velero(&self) -> Option<(bool, &str)> {
        let velero = self.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
        Some(
            velero.map_or((false, ""), |velero| {
                begun(velero.start_timestamp.as_ref(), velero.phase.as_deref())
            }),
        )
    }
}

impl Measured for NonAdminBackupStorageLocation {
    const KIND: Kind = Kind::NonAdminBackupStorageLocation;

    fn phase(&self) -> Option<Phase> {
        self.status.as_ref()?.phase
    }
}

impl Measured for NonAdminDownloadRequest {
    const KIND: Kind = Kind::NonAdminDownloadRequest;

    fn phase(&self) -> Option<Phase> {
        self.status.as_ref()?.phase
    }
}

impl Measured for NonAdminSchedule {
    const KIND: Kind = Kind::NonAdminSchedule;

    fn phase(&self) -> Option<Phase> {
        self.status.as_ref()?.phase
    }

    fn scheduled(&self) -> Option<Scheduled> {
        let status = self.status.as_ref()?;
        let created = self.metadata.creation_timestamp.as_ref()?.0;
        let is = |type_| condition::get(&status.conditions, type_).map(|found| found.status == "True");
        Some(Scheduled {
            last_good: status.last_good_time.as_ref().map_or(created, |good| good.0),
            interval: schedule::interval(self).map(|interval| interval.as_secs()),
            accepted: is(condition::ACCEPTED) == Some(true),
            on_time: is(condition::RUNNING_ON_TIME),
            retained: is(condition::RETAINED),
            confirm_by: status.confirmation.as_ref().map(|confirmation| confirmation.until.0),
        })
    }
}

fn place(meta: &ObjectMeta) -> (String, String) {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn word(phase: Option<Phase>) -> &'static str {
    match phase {
        None | Some(Phase::New) => "New",
        Some(Phase::BackingOff) => "BackingOff",
        Some(Phase::Created) => "Created",
        Some(Phase::Deleting) => "Deleting",
    }
}

#[cfg(test)]
mod tests {
    use api::{Kind, NonAdminBackup, NonAdminSchedule};
    use serde_json::{Value, json};

    use super::{Measured as _, Measures, Totals};

    fn backup(name: &str, namespace: &str, made: &str, phase: &str, velero: &Value) -> NonAdminBackup {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": made},
            "spec": {"backupSpec": {}}, "status": {"phase": phase, "veleroBackup": {"status": velero}},
        }))
        .unwrap()
    }

    fn done(at: &str) -> Value {
        json!({"phase": "Completed", "startTimestamp": at, "completionTimestamp": at})
    }

    fn some() -> Vec<NonAdminBackup> {
        vec![
            backup("a", "shop", "2026-01-01T00:00:00Z", "Created", &done("2026-01-02T00:00:00Z")),
            backup("b", "shop", "2026-01-01T00:00:00Z", "Created", &done("2026-01-01T00:00:00Z")),
            backup("bad", "shop", "2026-01-01T00:00:00Z", "Created", &done("2026-01-03T00:00:00Z")),
            backup("c", "shop", "2026-01-01T05:00:00Z", "Created", &json!({"phase": "Queued"})),
            backup("d", "shop", "2026-01-01T04:00:00Z", "Created", &json!({"phase": "New"})),
            backup("e", "rival", "2026-01-01T03:00:00Z", "BackingOff", &json!({})),
        ]
    }

    fn totals(backups: &[NonAdminBackup]) -> Totals {
        let mut totals = Totals::default();
        for backup in backups {
            totals.shift(None, Some(backup));
        }
        totals
    }

    #[test]
    fn the_latest_good_backup_and_the_longest_wait_of_each_namespace_count() {
        let measures = totals(&some()).measures(|_, name| name != "bad");
        let of =
            |namespace: &str, phase| measures.requests[&(namespace.to_owned(), Kind::NonAdminBackup, phase)];
        assert_eq!((of("shop", "Created"), of("rival", "BackingOff")), (5, 1));
        assert_eq!(measures.last_good["shop"].to_string(), "2026-01-02T00:00:00Z");
        assert!(!measures.last_good.contains_key("rival"));
        let waiting = &measures.waiting_since[&("shop".to_owned(), Kind::NonAdminBackup)];
        assert_eq!(waiting.to_string(), "2026-01-01T04:00:00Z");
        assert_eq!(measures.waiting_since.len(), 1);
    }

    fn schedule(spec: &Value, status: &Value) -> NonAdminSchedule {
        let mut json = json!({
            "metadata": {"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}}, "status": status,
        });
        json["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_interval_of_a_schedule_is_that_of_its_times_and_not_of_when_it_was_resumed() {
        let hours = |spec: Value, last: &str, next: &str| {
            let mut status = json!({"phase": "Created", "lastDue": last});
            if !next.is_empty() {
                status["nextRun"] = json!(next);
            }
            schedule(&spec, &status).scheduled().unwrap().interval.map(|seconds| seconds / 3600)
        };
        let nightly = json!({});
        assert_eq!(hours(nightly.clone(), "2026-01-05T02:00:00Z", "2026-01-06T02:00:00Z"), Some(24));
        let resumed = hours(nightly.clone(), "2026-01-05T01:50:00Z", "2026-01-05T02:00:00Z");
        assert_eq!(resumed, Some(24), "resumed ten minutes before it is due");
        assert_eq!(hours(nightly, "2026-01-05T02:00:00Z", ""), Some(24), "refused");
        let workdays = json!({"schedule": "0 2 * * 1-5"});
        assert_eq!(hours(workdays, "2026-01-09T02:00:00Z", "2026-01-12T02:00:00Z"), Some(72));
        assert_eq!(hours(json!({"paused": true}), "2026-01-05T02:00:00Z", ""), None);
        assert_eq!(hours(json!({"schedule": "0 25 * * *"}), "2026-01-05T02:00:00Z", ""), None);
    }

    #[test]
    fn what_the_conditions_of_a_schedule_report_counts() {
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let stuck = condition("Retained", "False", "RetentionStuck");
        let skipped = condition("RunsOnTime", "False", "RunSkipped");
        let refused = condition("Accepted", "False", "InvalidScheduleSpec");
        let found =
            schedule(&json!({}), &json!({"conditions": [refused, skipped, stuck]})).scheduled().unwrap();
        assert_eq!((found.accepted, found.on_time, found.retained), (false, Some(false), Some(false)));
        let good = condition("Accepted", "True", "ScheduleAccepted");
        let found = schedule(&json!({}), &json!({"conditions": [good]})).scheduled().unwrap();
        assert_eq!((found.accepted, found.on_time, found.retained), (true, None, None));
    }

    /// A counter is there from its first event on, so that its increase is 0 then: these alerts go by gauges.
    #[test]
    fn alerts_about_schedules_name_the_schedule_and_go_by_gauges() {
        let text = include_str!("../../../deploy/monitoring/alerts.yaml");
        let shipped: Value = serde_saphyr::from_str(text).unwrap();
        let groups = shipped["spec"]["groups"].as_array().unwrap().iter();
        let rules: Vec<_> = groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect();
        for (alert, metric) in [
            ("NacreScheduleBackupTooOld", "nacre_schedule_interval_seconds"),
            ("NacreScheduleRefused", "nacre_schedule_accepted"),
            ("NacreScheduleRunSkipped", "nacre_schedule_runs_on_time"),
            ("NacreScheduleToConfirm", "nacre_schedule_confirm_by_timestamp_seconds"),
            ("NacreRetentionStuck", "nacre_schedule_retained"),
        ] {
            let rule =
                rules.iter().find(|rule| rule["alert"] == alert).unwrap_or_else(|| panic!("no {alert}"));
            let expression = rule["expr"].as_str().unwrap();
            assert!(
                expression.contains(metric) && !expression.contains("increase("),
                "{alert}: {expression}"
            );
            assert!(expression.contains("by (namespace, schedule)"), "{alert}: {expression}");
            let command = rule["annotations"]["description"].as_str().unwrap();
            assert!(
                command.contains(" {{ $labels.schedule }} -n {{ $labels.namespace }}"),
                "{alert}: {command}"
            );
        }
        let dashboard = include_str!("../../../deploy/monitoring/dashboard.json");
        for shown in ["nacre_schedule_accepted", "nacre_schedule_runs_on_time", "nacre_schedule_retained"] {
            assert!(dashboard.contains(shown), "no panel has {shown}");
        }
    }

    #[test]
    fn a_schedule_that_is_deleted_leaves_nothing() {
        let found = schedule(&json!({}), &json!({"phase": "Created"}));
        let mut totals = Totals::default();
        totals.shift(None, Some(&found));
        assert_eq!(totals.measures(|_, _| true).schedules.len(), 1);
        totals.shift(Some(&found), None);
        assert_eq!(totals.measures(|_, _| true), Measures::default());
    }

    #[test]
    fn changes_leave_the_same_totals_as_a_fresh_count_and_deletions_leave_nothing() {
        let (first, mut changed) = (some(), some());
        let mut totals = totals(&first);
        for backup in &mut changed {
            *backup = self::backup(
                backup.metadata.name.as_deref().unwrap(),
                "shop",
                "2026-01-01T01:00:00Z",
                "Created",
                &json!({"phase": "InProgress", "startTimestamp": "2026-01-01T02:00:00Z"}),
            );
        }
        for (before, after) in first.iter().zip(&changed) {
            totals.shift(Some(before), Some(after));
        }
        assert_eq!(totals.measures(|_, _| true), self::totals(&changed).measures(|_, _| true));
        for backup in &changed {
            totals.shift(Some(backup), None);
        }
        assert_eq!(totals.measures(|_, _| true), Measures::default());
    }
}

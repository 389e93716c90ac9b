//! What the requests in a cluster come to, namespace by namespace, for whoever watches over it. Looked at when somebody asks,
//! never per event.

use std::collections::BTreeMap;

use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore, Phase,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

use crate::last_good::{self, Storage};

/// What the requests in a cluster come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How many there are, by namespace, kind and phase.
    pub requests: BTreeMap<(String, Kind, &'static str), u64>,
    /// When the last good backup of a namespace was completed.
    pub last_good: BTreeMap<String, Timestamp>,
    /// Since when the request that waits longest for Velero has been waiting, by namespace and kind.
    pub waiting_since: BTreeMap<(String, Kind), Timestamp>,
}

impl Measures {
    /// Counts a backup in. Where it is stored is looked up only if that matters.
    pub fn backup(&mut self, backup: &NonAdminBackup, storage: impl FnOnce() -> Storage, now: Timestamp) {
        let status = backup.status.as_ref();
        let phase = status.and_then(|status| status.phase);
        self.count(Kind::NonAdminBackup, &backup.metadata, phase);
        let velero = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        let started = velero.is_some_and(|velero| velero.start_timestamp.is_some());
        let stage = velero.and_then(|velero| velero.phase.as_deref());
        self.wait(Kind::NonAdminBackup, &backup.metadata, phase, started, stage);
        let namespace = namespace(&backup.metadata);
        if let Some(ended) = last_good::ended(backup)
            && self.last_good.get(&namespace).is_none_or(|latest| *latest < ended)
            && last_good::why_not_good(backup, &storage(), now).is_none()
        {
            self.last_good.insert(namespace, ended);
        }
    }

    /// Counts a restore in.
    pub fn restore(&mut self, restore: &NonAdminRestore) {
        let status = restore.status.as_ref();
        let phase = status.and_then(|status| status.phase);
        self.count(Kind::NonAdminRestore, &restore.metadata, phase);
        let velero = status.and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
        let started = velero.is_some_and(|velero| velero.start_timestamp.is_some());
        let stage = velero.and_then(|velero| velero.phase.as_deref());
        self.wait(Kind::NonAdminRestore, &restore.metadata, phase, started, stage);
    }

    /// Counts a location in.
    pub fn location(&mut self, location: &NonAdminBackupStorageLocation) {
        let phase = location.status.as_ref().and_then(|status| status.phase);
        self.count(Kind::NonAdminBackupStorageLocation, &location.metadata, phase);
    }

    /// Counts a download in.
    pub fn download(&mut self, download: &NonAdminDownloadRequest) {
        let phase = download.status.as_ref().and_then(|status| status.phase);
        self.count(Kind::NonAdminDownloadRequest, &download.metadata, phase);
    }

    fn count(&mut self, kind: Kind, meta: &ObjectMeta, phase: Option<Phase>) {
        *self.requests.entry((namespace(meta), kind, word(phase))).or_default() += 1;
    }

    /// Velero has it and has not begun.
    fn wait(
        &mut self,
        kind: Kind,
        meta: &ObjectMeta,
        phase: Option<Phase>,
        started: bool,
        stage: Option<&str>,
    ) {
        let stage = stage.unwrap_or_default();
        let waits = phase == Some(Phase::Created)
            && !started
            && ["", "New", "Queued", "ReadyToStart"].contains(&stage);
        if let Some(Time(since)) = meta.creation_timestamp.as_ref().filter(|_| waits) {
            let earliest = self.waiting_since.entry((namespace(meta), kind)).or_insert(*since);
            *earliest = (*earliest).min(*since);
        }
    }
}

fn namespace(meta: &ObjectMeta) -> String {
    meta.namespace.clone().unwrap_or_default()
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
    use api::{Kind, NonAdminBackup};
    use serde_json::{Value, json};

    use super::Measures;
    use crate::last_good::{Storage, StorageProblem};

    const NOW: &str = "2026-01-05T00:00:00Z";

    fn backup(namespace: &str, made: &str, phase: &str, velero: &Value) -> NonAdminBackup {
        serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": namespace, "creationTimestamp": made},
            "spec": {"backupSpec": {}}, "status": {"phase": phase, "veleroBackup": {"status": velero}},
        }))
        .unwrap()
    }

    fn done(at: &str, items: i64) -> Value {
        json!({"phase": "Completed", "startTimestamp": at, "completionTimestamp": at, "progress": {"itemsBackedUp": items}})
    }

    #[test]
    fn the_latest_good_backup_and_the_longest_wait_of_each_namespace_count() {
        let failed = json!({"phase": "Failed", "startTimestamp": "2026-01-03T00:00:00Z", "completionTimestamp": "2026-01-03T00:00:00Z"});
        let mut measures = Measures::default();
        for (namespace, made, phase, velero) in [
            ("shop", "2026-01-01T00:00:00Z", "Created", done("2026-01-02T00:00:00Z", 1)),
            ("shop", "2026-01-01T00:00:00Z", "Created", done("2026-01-01T00:00:00Z", 1)),
            ("shop", "2026-01-01T00:00:00Z", "Created", failed),
            ("shop", "2026-01-01T00:00:00Z", "Created", done("2026-01-03T00:00:00Z", 0)),
            ("shop", "2026-01-01T05:00:00Z", "Created", json!({"phase": "Queued"})),
            ("shop", "2026-01-01T04:00:00Z", "Created", json!({"phase": "New"})),
            ("rival", "2026-01-01T03:00:00Z", "BackingOff", json!({})),
        ] {
            let backup = backup(namespace, made, phase, &velero);
            measures.backup(&backup, || Storage::Usable, NOW.parse().unwrap());
        }
        let of =
            |namespace: &str, phase| measures.requests[&(namespace.to_owned(), Kind::NonAdminBackup, phase)];
        assert_eq!((of("shop", "Created"), of("rival", "BackingOff")), (6, 1));
        assert_eq!(
            measures.last_good["shop"].to_string(),
            "2026-01-02T00:00:00Z",
            "an empty one is not good"
        );
        assert!(!measures.last_good.contains_key("rival"));
        let waiting = &measures.waiting_since[&("shop".to_owned(), Kind::NonAdminBackup)];
        assert_eq!(waiting.to_string(), "2026-01-01T04:00:00Z");
        assert_eq!(measures.waiting_since.len(), 1);
    }

    #[test]
    fn a_backup_that_could_not_be_restored_now_is_not_the_last_good_one() {
        let mut measures = Measures::default();
        let good = backup("shop", "2026-01-01T00:00:00Z", "Created", &done("2026-01-02T00:00:00Z", 1));
        let gone = StorageProblem { location: None, what: "does not exist any more" };
        measures.backup(&good, || Storage::Unavailable(gone), NOW.parse().unwrap());
        assert!(measures.last_good.is_empty());
        measures.backup(&good, || Storage::Unknown, NOW.parse().unwrap());
        assert_eq!(measures.last_good.len(), 1);
    }
}

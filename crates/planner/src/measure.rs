//! What the requests in a cluster come to, namespace by namespace, for whoever watches over it. Looked at when somebody asks,
//! never per event.

use std::collections::BTreeMap;

use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore, Phase,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

/// What the requests in a cluster come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// How many there are, by namespace, kind and phase.
    pub requests: BTreeMap<(String, Kind, &'static str), u64>,
    /// When the latest backup of a namespace that is complete was completed.
    pub last_good: BTreeMap<String, Timestamp>,
    /// Since when the request that waits longest for Velero has been waiting, by namespace and kind.
    pub waiting_since: BTreeMap<(String, Kind), Timestamp>,
}

impl Measures {
    /// Counts a backup in.
    pub fn backup(&mut self, backup: &NonAdminBackup) {
        let status = backup.status.as_ref();
        let phase = status.and_then(|status| status.phase);
        self.count(Kind::NonAdminBackup, &backup.metadata, phase);
        let velero = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        let started = velero.is_some_and(|velero| velero.start_timestamp.is_some());
        let stage = velero.and_then(|velero| velero.phase.as_deref());
        self.wait(Kind::NonAdminBackup, &backup.metadata, phase, started, stage);
        let completed = velero.filter(|_| stage == Some("Completed"));
        if let Some(Time(at)) = completed.and_then(|velero| velero.completion_timestamp.as_ref()) {
            let latest = self.last_good.entry(namespace(&backup.metadata)).or_insert(*at);
            *latest = (*latest).max(*at);
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

    fn backup(namespace: &str, made: &str, phase: &str, velero: &Value) -> NonAdminBackup {
        serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": namespace, "creationTimestamp": made},
            "spec": {"backupSpec": {}}, "status": {"phase": phase, "veleroBackup": {"status": velero}},
        }))
        .unwrap()
    }

    #[test]
    fn the_latest_good_backup_and_the_longest_wait_of_each_namespace_count() {
        let done = |at: &str| json!({"phase": "Completed", "startTimestamp": at, "completionTimestamp": at});
        let failed = json!({"phase": "Failed", "startTimestamp": "2026-01-03T00:00:00Z", "completionTimestamp": "2026-01-03T00:00:00Z"});
        let mut measures = Measures::default();
        for (namespace, made, phase, velero) in [
            ("shop", "2026-01-01T00:00:00Z", "Created", done("2026-01-02T00:00:00Z")),
            ("shop", "2026-01-01T00:00:00Z", "Created", done("2026-01-01T00:00:00Z")),
            ("shop", "2026-01-01T00:00:00Z", "Created", failed),
            ("shop", "2026-01-01T05:00:00Z", "Created", json!({"phase": "Queued"})),
            ("shop", "2026-01-01T04:00:00Z", "Created", json!({"phase": "New"})),
            ("rival", "2026-01-01T03:00:00Z", "BackingOff", json!({})),
        ] {
            measures.backup(&backup(namespace, made, phase, &velero));
        }
        let of =
            |namespace: &str, phase| measures.requests[&(namespace.to_owned(), Kind::NonAdminBackup, phase)];
        assert_eq!((of("shop", "Created"), of("rival", "BackingOff")), (5, 1));
        assert_eq!(measures.last_good["shop"].to_string(), "2026-01-02T00:00:00Z");
        assert!(!measures.last_good.contains_key("rival"));
        let waiting = &measures.waiting_since[&("shop".to_owned(), Kind::NonAdminBackup)];
        assert_eq!(waiting.to_string(), "2026-01-01T04:00:00Z");
        assert_eq!(measures.waiting_since.len(), 1);
    }
}

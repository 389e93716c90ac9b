//! Claims, pods and Velero's objects about volumes.

use api::{Kind, labels};
use serde_json::{Value, json};

use super::manifests::object;
use super::{ADMIN, World, long};

impl World {
    /// Velero's node agent runs.
    pub(crate) fn node_agent_runs(&mut self) {
        let status = json!({"desiredNumberScheduled": 1, "numberReady": 1});
        self.apply(object(Kind::DaemonSet, &format!("{ADMIN}/node-agent"), json!({ "status": status })));
    }

    /// Somebody makes a claim; `restore` is the Velero Restore if Velero does. Returns its uid.
    pub(crate) fn claim(&mut self, place: &str, restore: Option<&str>) -> String {
        let labels =
            restore.map_or_else(|| json!({}), |restore| json!({labels::VELERO_RESTORE_NAME: long(restore)}));
        let rest = json!({"metadata": {"labels": labels}, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
        self.apply(object(Kind::PersistentVolumeClaim, place, rest));
        self.uid(&format!("PersistentVolumeClaim {place}"))
    }

    /// Velero makes a pod that waits for its data. Returns its uid.
    pub(crate) fn restored_pod(&mut self, place: &str, restore: &str) -> String {
        let waiting = json!([{"name": "restore-wait", "state": {"running": {}}}]);
        let rest = json!({
            "metadata": {"labels": {labels::VELERO_RESTORE_NAME: long(restore)}},
            "spec": {"nodeName": "node"},
            "status": {"phase": "Pending", "initContainerStatuses": waiting},
        });
        self.apply(object(Kind::Pod, place, rest));
        self.uid(&format!("Pod {place}"))
    }

    /// Velero saves the claim `data` of the pod `db` into a backup.
    pub(crate) fn velero_saves(&mut self, backup: &str, namespace: &str, phase: &str) {
        // The claim may be gone since.
        let claim = self.get(&format!("PersistentVolumeClaim {namespace}/data"))["metadata"]["uid"].clone();
        let labels = json!({
            labels::VELERO_BACKUP_NAME: long(backup),
            labels::VELERO_BACKUP_UID: self.uid(&format!("backup {backup}")),
            labels::VELERO_CLAIM_UID: claim.as_str().unwrap_or("then"),
        });
        let rest = json!({
            "metadata": {"labels": labels, "annotations": {labels::VELERO_CLAIM_NAME: "data"}},
            "spec": {"pod": {"namespace": namespace, "name": "db", "uid": "then"}, "volume": "files"},
            "status": {"phase": phase},
        });
        self.apply(object(Kind::PodVolumeBackup, &format!("{ADMIN}/{backup}-v"), rest));
    }

    /// Velero begins to write a claim through the pod `db`.
    pub(crate) fn velero_writes(&mut self, restore: &str, namespace: &str, pod: &str, claim: &str) {
        let labels = json!({
            labels::VELERO_RESTORE_NAME: long(restore),
            labels::VELERO_RESTORE_UID: self.uid(&format!("restore {restore}")),
            labels::VELERO_CLAIM_UID: claim,
        });
        let rest = json!({
            "metadata": {"labels": labels},
            "spec": {"pod": {"namespace": namespace, "name": "db", "uid": pod}, "volume": "files"},
        });
        self.apply(object(Kind::PodVolumeRestore, &format!("{ADMIN}/{restore}-v"), rest));
    }

    /// A node agent is so far with it.
    pub(crate) fn volume_is(&mut self, restore: &str, status: Value) {
        self.edit(&format!("PodVolumeRestore {restore}-v"), json!({ "status": status }));
    }

    fn uid(&self, object: &str) -> String {
        self.get(object)["metadata"]["uid"].as_str().unwrap_or_else(|| panic!("no {object}")).to_owned()
    }
}

//! What a round of `verify` creates in its scratch namespace.

use api::{NonAdminBackup, NonAdminRestore};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The name of the claim, the pod, the backup and the restore.
pub(super) const NAME: &str = "verify";
/// Where the pod has its volume.
pub(super) const FOLDER: &str = "/data";
/// The user and group that nacre's image runs as. Volumes are made writable for the group. The user is named for the init
/// container that Velero adds at a restore: its image may run as root, which this pod forbids.
const NUMBER: i64 = 65532;

/// What the round is made with.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// nacre's image: it holds the program that writes and reads the volume.
    pub(super) image: String,
    /// The cluster's default, if none.
    pub(super) storage_class: Option<String>,
    /// OpenShift chooses users and groups by itself, and refuses any other.
    pub(super) chooses_user: bool,
}

/// Objects of this file deserialize by construction; the tests read each of them.
fn read<K: DeserializeOwned>(object: Value) -> anyhow::Result<K> {
    Ok(serde_json::from_value(object)?)
}

pub(super) fn namespace(name: &str) -> anyhow::Result<Namespace> {
    read(json!({ "metadata": { "name": name } }))
}

pub(super) fn claim(settings: &Settings) -> anyhow::Result<PersistentVolumeClaim> {
    read(json!({
        "metadata": { "name": NAME },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": settings.storage_class,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    }))
}

/// It passes the strictest level of Pod Security.
pub(super) fn pod(settings: &Settings) -> anyhow::Result<Pod> {
    let number = (!settings.chooses_user).then_some(NUMBER);
    read(json!({
        "metadata": { "name": NAME },
        "spec": {
            "restartPolicy": "Always",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": number, "fsGroup": number,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": NAME,
                "image": settings.image,
                "command": ["/kubectl-nacre", "__volume", FOLDER],
                "volumeMounts": [{ "name": "data", "mountPath": FOLDER }],
                "resources": {
                    "requests": { "cpu": "10m", "memory": "16Mi" }, "limits": { "cpu": "500m", "memory": "64Mi" },
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": NAME } }],
        },
    }))
}

pub(super) fn backup() -> anyhow::Result<NonAdminBackup> {
    // Files are read by Velero's node agent, which needs no storage with snapshots.
    let spec = json!({ "backupSpec": { "defaultVolumesToFsBackup": true, "ttl": "24h" } });
    read(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": { "name": NAME }, "spec": spec,
    }))
}

pub(super) fn restore() -> anyhow::Result<NonAdminRestore> {
    read(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore",
        "metadata": { "name": NAME }, "spec": { "restoreSpec": { "backupName": NAME } },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_can_be_made() {
        let settings = Settings { image: "nacre:1".into(), storage_class: None, chooses_user: false };
        namespace("scratch").unwrap();
        assert_eq!(claim(&settings).unwrap().spec.unwrap().storage_class_name, None);
        backup().unwrap();
        restore().unwrap();
        let numbers = |pod: Pod| {
            let context = pod.spec.unwrap().security_context.unwrap();
            (context.run_as_user, context.fs_group)
        };
        assert_eq!(numbers(pod(&settings).unwrap()), (Some(NUMBER), Some(NUMBER)));
        let on_openshift = Settings { chooses_user: true, ..settings };
        assert_eq!(numbers(pod(&on_openshift).unwrap()), (None, None));
    }
}

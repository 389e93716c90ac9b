//! Volumes that are folders: a StorageClass without provisioner and `local` PersistentVolumes.
//!
//! `hostPath` volumes would be simpler, but Velero's backup of files skips them.

use std::fs;
use std::path::Path;

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::NODE;

/// The StorageClass, which is the cluster's default.
pub const STORAGE_CLASS: &str = "local";

/// How many volumes a cluster begins with. A claim that is deleted leaves its volume used up, so a story needs more
/// than it has claims.
pub(crate) const AT_FIRST: usize = 16;
/// The same where nobody can make more: in a cluster of `bed up`, for all stories that run in a cluster that exists.
pub(crate) const WITHOUT_MORE: usize = 96;

/// The StorageClass: a volume is bound once a pod wants it.
pub(crate) fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// Makes the folders of volumes with these numbers, and returns their PersistentVolumes.
pub(crate) fn volumes(folder: &Path, numbers: std::ops::Range<usize>) -> Result<Vec<DynamicObject>> {
    let volume = |number: usize| -> Result<DynamicObject> {
        let name = format!("local-{number}");
        let path = folder.join("volumes").join(&name);
        fs::create_dir_all(&path)?;
        let affinity = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [NODE] });
        Ok(serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "10Gi" },
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": STORAGE_CLASS,
                "local": { "path": path },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [affinity] }] } },
            },
        }))?)
    };
    numbers.map(volume).collect()
}

//! What a round of `verify` creates in its scratch namespace.

use api::{NonAdminBackup, NonAdminRestore};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use planner::{Policy, backup::nearest_ttl};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::volume::WRITER;

/// The name of the claim, the pod, the backup and the restore.
pub(super) const NAME: &str = "verify";
/// Where the pod has its volume.
pub(super) const FOLDER: &str = "/data";
/// The user and group that nacre's image runs as. Volumes are made writable for the group. The user is named for the init
/// container that Velero adds at a restore: its image may run as root, which this pod forbids.
const NUMBER: i64 = 65532;
/// How long Velero keeps the backup if nobody deletes it.
const TTL: &str = "24h";

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
                "env": [{ "name": WRITER, "valueFrom": { "fieldRef": { "fieldPath": "metadata.uid" } } }],
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

/// Under this policy, if it is known: one whose `ttl` the policy refuses would say nothing about the cluster.
pub(super) fn backup(policy: Option<&Policy>) -> anyhow::Result<NonAdminBackup> {
    let ttl = policy.and_then(|policy| nearest_ttl(TTL.into(), policy));
    // Files are read by Velero's node agent, which needs no storage with snapshots.
    let spec = json!({ "backupSpec": { "defaultVolumesToFsBackup": true, "ttl": ttl } });
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
    use planner::policy::Bounds;

    use super::*;
    use crate::preview::{PreviewResult, of_backup, tests::shop};

    #[test]
    fn the_backup_passes_whatever_the_policy_says_of_its_ttl() {
        let bounds = |min: Option<&str>, max: Option<&str>| {
            let mut policy = Policy::default();
            policy.backup.ttl = Bounds { min: min.map(Into::into), max: max.map(Into::into) };
            policy
        };
        let mut enforced = bounds(None, None);
        enforced.backup.enforce.ttl = Some("36h".into());
        let of = |policy: &Policy| {
            let asked = backup(Some(policy)).unwrap();
            let PreviewResult::Passes(made) = of_backup(&shop(policy.clone()), &asked) else {
                panic!("{:?}", of_backup(&shop(policy.clone()), &asked))
            };
            made["ttl"].as_str().map(str::to_owned)
        };
        assert_eq!(of(&bounds(None, None)).as_deref(), Some("24h"));
        assert_eq!(of(&bounds(Some("1h"), Some("720h"))).as_deref(), Some("24h"));
        assert_eq!(of(&bounds(Some("48h"), None)).as_deref(), Some("48h"));
        assert_eq!(of(&bounds(None, Some("12h"))).as_deref(), Some("12h"));
        assert_eq!(of(&enforced).as_deref(), Some("36h"));
        assert_eq!(backup(None).unwrap().spec.backup_spec.ttl, None, "the policy may say anything");
    }

    #[test]
    fn every_object_can_be_made() {
        let settings = Settings { image: "nacre:1".into(), storage_class: None, chooses_user: false };
        namespace("scratch").unwrap();
        assert_eq!(claim(&settings).unwrap().spec.unwrap().storage_class_name, None);
        backup(None).unwrap();
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

//! The Velero object that nacre generates from a spec.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation};
use api::{Kind, NonAdminBackup, NonAdminRestore, PodVolumeCounts};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use planner::turns::{Place, Tag};
use planner::{Action, Plan, Policy, backup, restore};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// It is its turn.
const NEXT: Place = Place::Next(Tag { priority: 0, start: 0, time: 0, weight: 100, charged: 0 });

use crate::arbitrary::OWN;

/// Whose storage a backup is restored from, and whether its data was moved there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) tenants: bool,
    pub(crate) data_moved: bool,
}

/// A Velero object that nacre would make, with the names of the ConfigMaps it makes first.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) object: Value,
    pub(crate) config_maps: Vec<String>,
}

/// The Velero Restore for a request; none if it is refused.
pub(crate) fn restore(spec: &Value, enforced: &Value, source: Source) -> Option<Made> {
    let mut policy = Policy::default();
    policy.restore.enforce = serde_json::from_value(enforced.clone()).unwrap();
    let seen = restore::Observed {
        restore: tenants::<NonAdminRestore>("NonAdminRestore", &json!({"restoreSpec": spec})),
        unreadable: None,
        namespace: Some(namespace()),
        velero: None,
        name_taken: false,
        backup: Some(tenants("NonAdminBackup", &json!({"backupSpec": {}}))),
        source: Some(velero_backup(source)),
        velero_location: Some(location(source.tenants)),
        source_volumes: PodVolumeCounts::default(),
        modifier: None,
        config_maps: ["resourceModifier", "resourcePolicy"].map(|field| config_map(&spec[field])),
        volumes: Default::default(),
        data: planner::restore::DataFacts::default(),
        results: None,
        position: 1,
        publish_position: true,
        was_given: false,
        turn: Some(NEXT),
        rejected_write: None,
        access: planner::requester::Access::default(),
        velero_access: planner::dedicated::VeleroAccess::default(),
        policy: Some(Arc::new(policy)),
        admin_namespace: "velero".to_owned(),
        now: Timestamp::UNIX_EPOCH,
    };
    made(&restore::decide(&seen), Kind::Restore)
}

/// The Velero Backup for a request; none if it is refused.
pub(crate) fn backup(spec: &Value, enforced: &Value) -> Option<Made> {
    let mut policy = Policy::default();
    policy.backup.enforce = serde_json::from_value(enforced.clone()).unwrap();
    let seen = backup::Observed {
        marked: planner::schedule::Marked::default(),
        backup: tenants::<NonAdminBackup>("NonAdminBackup", &json!({"backupSpec": spec})),
        unreadable: None,
        namespace: Some(namespace()),
        velero: None,
        name_taken: false,
        squatter: None,
        storage_missing: false,
        velero_location: None,
        location: None,
        storage: None,
        default_storage: None,
        resource_policy: config_map(&spec["resourcePolicy"]),
        delete_requests: Vec::new(),
        restores: Vec::new(),
        volumes: Default::default(),
        operations: Vec::new(),
        canceller: planner::volumes::Velero::default(),
        volume_facts: backup::VolumeFacts::default(),
        results: None,
        position: 1,
        publish_position: true,
        was_given: false,
        turn: Some(NEXT),
        others: backup::Others::default(),
        awaited: false,
        rejected_write: None,
        access: planner::requester::Access::default(),
        velero_access: planner::dedicated::VeleroAccess::default(),
        policy: Some(Arc::new(policy)),
        admin_namespace: "velero".to_owned(),
        now: Timestamp::UNIX_EPOCH,
    };
    made(&backup::decide(&seen), Kind::Backup)
}

fn made(plan: &Plan, kind: Kind) -> Option<Made> {
    let created: Vec<_> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Create(object) => Some(object),
            _ => None,
        })
        .collect();
    let at = created.iter().position(|object| object.kind == kind)?;
    let before = created[..at].iter().filter(|object| object.kind == Kind::ConfigMap);
    Some(Made {
        object: created[at].body.clone(),
        config_maps: before.map(|object| object.name().to_owned()).collect(),
    })
}

fn tenants<T: DeserializeOwned>(kind: &str, spec: &Value) -> Arc<T> {
    let whole = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": "daily", "namespace": OWN, "uid": "11111111-2222-4333-8444-555555555555"},
    });
    Arc::new(serde_json::from_value(whole).unwrap())
}

fn namespace() -> Arc<Namespace> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": OWN, "uid": "space"}})).unwrap())
}

fn velero_backup(source: Source) -> Arc<Backup> {
    let mut spec = json!({"storageLocation": "place"});
    if source.data_moved {
        spec["snapshotMoveData"] = json!(true);
    }
    let whole = json!({
        "apiVersion": "velero.io/v1", "kind": "Backup", "spec": spec, "status": {"phase": "Completed"},
        "metadata": {"name": "source", "namespace": "velero"},
    });
    Arc::new(serde_json::from_value(whole).unwrap())
}

fn location(tenants: bool) -> Arc<BackupStorageLocation> {
    let mut metadata = json!({"name": "place", "namespace": "velero"});
    if tenants {
        metadata["labels"] = json!({"openshift.io/oadp-nabsl-origin-nacuuid": "place"});
        metadata["annotations"] = json!({"openshift.io/oadp-nabsl-origin-namespace": OWN});
    }
    let whole = json!({
        "apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}, "status": {"phase": "Available"},
    });
    Arc::new(serde_json::from_value(whole).unwrap())
}

fn config_map(reference: &Value) -> Option<Arc<ConfigMap>> {
    let usable = reference["name"] == "usable";
    let labels = if usable { json!({"nacre.dev/tenant-usable": "true"}) } else { json!({}) };
    reference.is_object().then(|| {
        let metadata = json!({"name": reference["name"], "namespace": "velero", "labels": labels});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    })
}

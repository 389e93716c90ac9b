//! The objects that a replacement reads and removes: claims, and the workloads that use them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::restore_preview::claims_of;

/// A built-in kind that runs pods, or a pod. They are removed in this order: what creates others goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WorkloadKind {
    /// It creates Jobs by the clock.
    CronJob,
    /// It creates ReplicaSets.
    Deployment,
    /// It creates pods with claims of their own.
    StatefulSet,
    /// It creates a pod on every node.
    DaemonSet,
    /// It creates pods.
    ReplicaSet,
    /// It creates pods, in the old way.
    ReplicationController,
    /// It creates pods that end.
    Job,
    /// A pod.
    Pod,
}

impl WorkloadKind {
    /// Every kind that a replacement can remove.
    pub const ALL: [Self; 8] = [
        Self::CronJob,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::Job,
        Self::Pod,
    ];

    /// Group, version, kind and plural.
    pub const fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::CronJob => ("batch", "v1", "CronJob", "cronjobs"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet", "daemonsets"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::ReplicationController => ("", "v1", "ReplicationController", "replicationcontrollers"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
            Self::Pod => ("", "v1", "Pod", "pods"),
        }
    }

    /// The group-resource.
    pub fn resource(self) -> String {
        let (group, _, _, plural) = self.names();
        if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
    }

    /// What an object of this kind is called in messages.
    pub fn called(self, name: &str) -> String {
        format!("{} {name}", self.names().2)
    }

    fn of(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| {
            let (own_group, _, own_kind, _) = one.names();
            own_group == group && own_kind == kind
        })
    }
}

/// The object that controls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// A built-in kind; none if it is another, which some operator acts on.
    pub built_in: Option<WorkloadKind>,
    /// Kind and name, for messages.
    pub called: String,
    /// Its uid.
    pub uid: String,
}

/// A workload, as far as a replacement reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, read from another field")]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The workload's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// What controls it.
    pub owner: Option<Owner>,
    /// The claims that its pods name.
    pub claims: Vec<String>,
    /// How the names of the claims begin that a StatefulSet makes; an ordinal follows.
    pub claim_prefixes: Vec<String>,
    /// How many volumes of a pod Velero could save: claims and emptyDirs.
    pub volumes: usize,
    /// Whether its claims are deleted with it.
    pub deletes_claims: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it is a pod that has ended.
    pub has_ended: bool,
    /// Whether all its pods are available.
    pub is_available: bool,
}

impl Workload {
    /// Reads an object of this kind.
    pub fn read(kind: WorkloadKind, object: &Value) -> Self {
        let meta = meta(object);
        let pod_spec = match kind {
            WorkloadKind::Pod => &object["spec"],
            WorkloadKind::CronJob => &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
            _ => &object["spec"]["template"]["spec"],
        };
        let name = meta.name.clone().unwrap_or_default();
        let templates = object["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
        let claim_prefixes = templates
            .filter_map(|template| Some(format!("{}-{name}-", template["metadata"]["name"].as_str()?)))
            .collect();
        let saves = |volume: &&Value| {
            volume["persistentVolumeClaim"].is_object()
                || volume["emptyDir"].is_object()
                || volume["ephemeral"].is_object()
        };
        let retention = &object["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"];
        Self {
            kind,
            owner: owner(&meta),
            claims: claims_of(pod_spec),
            claim_prefixes,
            volumes: pod_spec["volumes"].as_array().into_iter().flatten().filter(saves).count(),
            deletes_claims: kind == WorkloadKind::StatefulSet && retention == "Delete",
            is_deleting: meta.deletion_timestamp.is_some(),
            has_ended: matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")),
            is_available: is_available(kind, object),
            uid: meta.uid.unwrap_or_default(),
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            name,
        }
    }

    /// Whether its pods use a claim of this name.
    pub fn uses(&self, claim: &str) -> bool {
        let ordinal = |prefix: &String| {
            claim
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        self.claims.iter().any(|one| one == claim) || self.claim_prefixes.iter().any(ordinal)
    }

    /// Kind and name.
    pub fn called(&self) -> String {
        self.kind.called(&self.name)
    }
}

fn is_available(kind: WorkloadKind, object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let current = number(&status["observedGeneration"]) >= number(&object["metadata"]["generation"]);
    match kind {
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController => current && number(&status["availableReplicas"]) >= wanted,
        WorkloadKind::DaemonSet => {
            current && number(&status["numberAvailable"]) >= number(&status["desiredNumberScheduled"])
        }
        WorkloadKind::Pod => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
            status["phase"] == "Succeeded" || conditions.into_iter().any(ready)
        }
        WorkloadKind::CronJob | WorkloadKind::Job => true,
    }
}

/// A claim, as far as a replacement reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The claim's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What it waits for when it is being deleted.
    pub finalizers: Vec<String>,
    /// Whether it belongs to one pod and goes with it.
    pub is_ephemeral: bool,
}

impl Claim {
    /// Reads a PersistentVolumeClaim.
    pub fn read(object: &Value) -> Self {
        let meta = meta(object);
        Self {
            is_ephemeral: meta.owner_references.iter().flatten().any(|owner| owner.kind == "Pod"),
            created: meta.creation_timestamp.map(|time| time.0),
            is_deleting: meta.deletion_timestamp.is_some(),
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            finalizers: meta.finalizers.unwrap_or_default(),
        }
    }
}

fn meta(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap_or_default()
}

fn owner(meta: &ObjectMeta) -> Option<Owner> {
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    Some(Owner {
        built_in: WorkloadKind::of(group, &owner.kind),
        called: format!("{} {}", owner.kind, owner.name),
        uid: owner.uid.clone(),
    })
}

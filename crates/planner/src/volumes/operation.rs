//! One volume operation, whatever its kind, with what nacre knows about its pod and its progress.

use api::velero::{
    Backup, DataDownload, DataUpload, PodVolumeBackup, PodVolumeRestore, Restore, VolumeOperation,
};
use api::{ContainerState, Kind, RestoredPod};
use jiff::Timestamp;
use kube::core::ObjectMeta;

use crate::state::{State, WatchedKind};
use crate::{Key, Target};

/// The init container in which a restored pod waits for its data; before Velero 1.10 it had the second name.
const WAIT_CONTAINERS: [&str; 2] = ["restore-wait", "restic-wait"];

/// One of Velero's objects about a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The object.
    pub target: Target,
    /// Its phase; empty while no node agent has processed it.
    pub phase: String,
    /// Velero's message, or the one that nacre wrote when it cancelled it.
    pub message: Option<String>,
    /// The name of the claim, if the object has it.
    pub claim: Option<String>,
    /// The uid of the claim that is saved or written.
    pub claim_uid: Option<String>,
    /// The pod it works through.
    pub pod: Option<Pod>,
    /// The name of the volume in that pod.
    pub volume: Option<String>,
    /// Bytes done.
    pub done: i64,
    /// Bytes in all, as far as Velero knows.
    pub total: i64,
    /// Bytes that were new since the previous backup of the claim, as far as Velero reports it.
    pub new_bytes: Option<i64>,
    /// Whether `spec.cancel` is set.
    pub is_cancelling: bool,
    /// Since when nacre has seen `spec.cancel`.
    pub cancelling_since: Option<Timestamp>,
    /// When the object was created.
    pub created: Option<Timestamp>,
    /// When it ended.
    pub completed: Option<Timestamp>,
    /// When phase or progress last changed, as far as nacre has seen.
    pub changed: Option<Timestamp>,
    /// Since when no node agent runs, if it is known that none does.
    pub without_agent_since: Option<Timestamp>,
}

/// A pod that an operation works through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Whether it can receive data.
    pub state: PodState,
}

/// Whether a pod that Velero restored can receive data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// nacre does not see it: it belongs to a backup, or nacre may not list pods.
    Unknown,
    /// The pod of this uid does not exist.
    Gone,
    /// No node was found for it, and why.
    NotScheduled(String),
    /// It has a node, but its first container does not run, and why.
    NotStarted(String),
    /// It does not wait for its data, and why: Velero never begins to write into such a pod.
    DoesNotWait(&'static str),
    /// It waits for its data.
    Ready,
}

impl Operation {
    /// It will not change any more.
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Completed" | "Failed" | "Canceled")
    }

    /// The data is where it should be.
    pub fn is_completed(&self) -> bool {
        self.phase == "Completed"
    }

    /// No node agent works on it yet: it waits for its pod, or in the queue of a node.
    pub fn is_new(&self) -> bool {
        matches!(self.phase.as_str(), "" | "New")
    }
}

/// The volume operations of a Velero Backup.
pub fn of_backup(view: &State, velero: &Backup) -> Vec<Operation> {
    let mut all = operations::<PodVolumeBackup>(view, &velero.metadata);
    all.extend(operations::<DataUpload>(view, &velero.metadata));
    all
}

/// The volume operations of a Velero Restore.
pub fn of_restore(view: &State, velero: &Restore) -> Vec<Operation> {
    let mut all = operations::<PodVolumeRestore>(view, &velero.metadata);
    all.extend(operations::<DataDownload>(view, &velero.metadata));
    all
}

fn operations<K: WatchedKind + VolumeOperation>(view: &State, owner: &ObjectMeta) -> Vec<Operation> {
    let (Some(name), Some(uid)) = (owner.name.as_deref(), owner.uid.as_deref()) else { return Vec::new() };
    view.volume_operations::<K>(name, uid).iter().map(|object| operation(view, object.as_ref())).collect()
}

fn operation<K: WatchedKind + VolumeOperation>(view: &State, object: &K) -> Operation {
    let meta = object.meta();
    let progress = object.progress();
    let noted = view.volume_note(&Key::of(K::KIND, meta));
    Operation {
        target: Target::of(K::KIND, meta),
        phase: object.phase().to_owned(),
        message: object.message().map(str::to_owned),
        claim: object.claim_name().map(str::to_owned),
        claim_uid: object.claim_uid().map(str::to_owned),
        pod: pod(view, object),
        volume: object.pod_volume().map(str::to_owned),
        done: progress.done,
        total: progress.total,
        new_bytes: object.new_bytes(),
        is_cancelling: object.is_cancelling(),
        cancelling_since: noted.and_then(|noted| noted.cancelling_since),
        created: meta.creation_timestamp.as_ref().map(|time| time.0),
        completed: object.completed(),
        changed: noted.map(|noted| noted.changed),
        without_agent_since: view.node_agent_missing_since(),
    }
}

fn pod<K: WatchedKind + VolumeOperation>(view: &State, object: &K) -> Option<Pod> {
    let named = object.pod()?;
    let state = if K::KIND == Kind::PodVolumeRestore && view.is_listed(Kind::Pod) {
        let found = view.get::<RestoredPod>(named.namespace, named.name);
        let same = found.filter(|pod| pod.metadata.uid.as_deref() == Some(named.uid));
        same.map_or(PodState::Gone, |pod| pod_state(&pod))
    } else {
        PodState::Unknown
    };
    Some(Pod { namespace: named.namespace.to_owned(), name: named.name.to_owned(), state })
}

/// Whether a pod that exists can receive data.
fn pod_state(pod: &RestoredPod) -> PodState {
    let status = &pod.status;
    // A finalizer can hold such a pod for any time.
    if pod.metadata.deletion_timestamp.is_some() {
        return PodState::DoesNotWait("it is being deleted");
    }
    match status.phase.as_deref() {
        Some("Succeeded" | "Failed") => return PodState::DoesNotWait("it has ended"),
        Some("Running") => return PodState::DoesNotWait("it runs already"),
        _ => {}
    }
    if pod.spec.node_name.is_none() {
        let scheduled = status.conditions.iter().find(|condition| condition.type_ == "PodScheduled");
        let why = scheduled.and_then(|condition| condition.message.clone()).unwrap_or_default();
        return PodState::NotScheduled(why);
    }
    let waits = |name: &str| WAIT_CONTAINERS.contains(&name);
    match status.init_container_statuses.iter().find(|container| waits(&container.name)) {
        None => PodState::NotStarted(String::new()),
        Some(container) => match &container.state {
            ContainerState { waiting: Some(waiting), .. } => {
                PodState::NotStarted(waiting.reason.clone().unwrap_or_default())
            }
            ContainerState { terminated: Some(_), .. } => {
                PodState::DoesNotWait("its init container restore-wait has ended")
            }
            _ => PodState::Ready,
        },
    }
}

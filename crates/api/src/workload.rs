//! What nacre reads of Kubernetes' own objects to tell whether volume data is safe. Only the fields that decisions
//! read are kept.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A PersistentVolumeClaim.
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[resource(inherit = PersistentVolumeClaim)]
#[serde(default)]
pub struct Claim {
    /// Its name, labels and owners.
    pub metadata: ObjectMeta,
    /// What is claimed.
    pub spec: ClaimSpec,
    /// How far it is.
    pub status: ClaimPhase,
}

/// What a claim asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// Its StorageClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Its PersistentVolume, once it is bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<String>,
    /// Filesystem, which is the default, or Block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,
    /// What its volume is made from, for example a VolumeSnapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_source: Option<DataSource>,
}

/// What the volume of a claim is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSource {
    /// Its kind.
    pub kind: String,
    /// The name of the object.
    pub name: String,
}

/// How far a claim is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimPhase {
    /// Pending, Bound or Lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// A PersistentVolume.
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[resource(inherit = PersistentVolume)]
#[serde(default)]
pub struct Volume {
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// Where the data is.
    pub spec: VolumeSpec,
}

/// Where the data of a volume is, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    /// That it is a folder of a node, if it is: Velero saves no such volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPath>,
    /// The claim that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimRef>,
}

/// A folder of a node. Which one is of no interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPath {}

/// The claim that a volume is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimRef {
    /// Its uid: a name can be given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl Volume {
    /// The uid of the claim whose data is in a folder of a node.
    pub fn host_path_of(&self) -> Option<&str> {
        self.spec.host_path?;
        self.spec.claim_ref.as_ref()?.uid.as_deref()
    }
}

/// A Pod that Velero restored: nacre looks at no other.
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[resource(inherit = Pod)]
#[serde(default)]
pub struct RestoredPod {
    /// Its name, labels and owners.
    pub metadata: ObjectMeta,
    /// Where it runs.
    pub spec: RestoredPodSpec,
    /// How far it is.
    pub status: RestoredPodStatus,
}

/// Where a restored pod runs, and with which claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoredPodSpec {
    /// Its node, once it is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Its volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<PodVolume>,
}

/// A volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodVolume {
    /// Its name within the pod.
    pub name: String,
    /// The claim behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
}

/// The claim behind a volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    /// The name of the PersistentVolumeClaim.
    pub claim_name: String,
}

/// How far a restored pod is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoredPodStatus {
    /// Pending, Running, Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What is so and why; of interest is `PodScheduled`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodCondition>,
    /// What its init containers wait for: the first of them is Velero's, which waits for the data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// The name of the container in the pod.
    pub name: String,
    /// What it does.
    pub state: ContainerState,
}

/// What a container does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// What it waits for, if it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// That it has ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
}

/// That a container has ended. How is of no interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminated {}

/// What a container waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// In one word, for example `ImagePullBackOff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A DaemonSet in Velero's namespace: the node agent is one.
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[resource(inherit = DaemonSet)]
#[serde(default)]
pub struct NodeAgent {
    /// Its name and namespace.
    pub metadata: ObjectMeta,
    /// How it is started.
    pub spec: NodeAgentSpec,
    /// How many of it run.
    pub status: NodeAgentStatus,
}

impl NodeAgent {
    /// It is Velero's node agent, and ready on at least one node.
    pub fn runs(&self) -> bool {
        matches!(self.metadata.name.as_deref(), Some("node-agent" | "restic")) && self.status.number_ready > 0
    }

    /// Whether Velero takes CSI snapshots: the node agent is started with the same features as Velero.
    pub fn takes_csi_snapshots(&self) -> bool {
        let containers = self.spec.template.spec.containers.iter();
        let features = containers
            .flat_map(|container| &container.args)
            .filter_map(|arg| arg.strip_prefix("--features=").or_else(|| arg.strip_prefix("--features ")));
        features.flat_map(|features| features.split(',')).any(|feature| feature.trim() == "EnableCSI")
    }
}

/// How a DaemonSet is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAgentSpec {
    /// Its pods.
    pub template: NodeAgentTemplate,
}

/// The pods of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAgentTemplate {
    /// What runs in them.
    pub spec: NodeAgentPodSpec,
}

/// What runs in the pods of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAgentPodSpec {
    /// Its containers.
    pub containers: Vec<NodeAgentContainer>,
}

/// A container of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAgentContainer {
    /// With which arguments it is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// How many pods of a DaemonSet run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAgentStatus {
    /// On how many nodes it should run.
    pub desired_number_scheduled: i32,
    /// On how many nodes it is ready.
    pub number_ready: i32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Claim, NodeAgent, RestoredPod};

    #[test]
    fn the_node_agents_features_say_whether_velero_takes_csi_snapshots() {
        let takes = |args: &[&str]| {
            let spec = json!({"template": {"spec": {"containers": [{"name": "node-agent", "args": args}]}}});
            let agent: NodeAgent = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            agent.takes_csi_snapshots()
        };
        assert!(takes(&["node-agent", "server", "--features=EnableAPIGroupVersions,EnableCSI"]));
        assert!(!takes(&["node-agent", "server", "--features=EnableCSIMigration"]));
        assert!(!takes(&[]));
    }

    #[test]
    fn only_what_decisions_read_is_kept() {
        let claim: Claim = serde_json::from_value(json!({"metadata": {"name": "data", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeName": "pv-1"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}))
        .unwrap();
        assert_eq!(claim.spec.volume_name.as_deref(), Some("pv-1"));
        assert_eq!(
            serde_json::to_value(&claim).unwrap(),
            json!({"metadata": {"name": "data", "uid": "u"},
                "spec": {"storageClassName": "fast", "volumeName": "pv-1"}, "status": {"phase": "Bound"}})
        );
    }

    #[test]
    fn a_pod_names_the_claims_behind_its_volumes() {
        let pod: RestoredPod = serde_json::from_value(json!({"metadata": {"name": "db"},
            "spec": {"containers": [], "volumes": [{"name": "a", "emptyDir": {}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"initContainerStatuses": [{"name": "restore-wait", "image": "x",
                "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}))
        .unwrap();
        let claims: Vec<_> =
            pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref()).collect();
        assert_eq!(claims[0].claim_name, "data");
        let waiting = pod.status.init_container_statuses[0].state.waiting.as_ref().unwrap();
        assert_eq!(waiting.reason.as_deref(), Some("ImagePullBackOff"));
    }
}

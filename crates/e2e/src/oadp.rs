//! A cluster as OADP sets it up for the Go controller: its role, and CRDs from before Velero 1.18.

use anyhow::{Context, Result, ensure};
use api::DataProtectionApplication;
use bed::{Bed, Builder, Node};
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::{NodeCluster, TestCluster, VELERO, command_line};

/// The namespace of OADP, and of its Velero.
pub const OADP: &str = "openshift-adp";

/// The phases of a Velero Backup that the released definition knows.
const KNOWN: [&str; 11] = [
    "New",
    "FailedValidation",
    "InProgress",
    "WaitingForPluginOperations",
    "WaitingForPluginOperationsPartiallyFailed",
    "Finalizing",
    "FinalizingPartiallyFailed",
    "Completed",
    "PartiallyFailed",
    "Failed",
    "Deleting",
];

/// The tenants' kinds, and the one for administrators.
/// OADP has no other kind of ours.
const KINDS: [&str; 5] = [
    "nonadminbackups",
    "nonadminrestores",
    "nonadminbackupstoragelocations",
    "nonadminbackupstoragelocationrequests",
    "nonadmindownloadrequests",
];

/// Others whose CRDs OADP's bundle brings.
const OTHER_KINDS: [&str; 4] = [
    "dataprotectionapplications.oadp.openshift.io",
    "backups.velero.io",
    "restores.velero.io",
    "downloadrequests.velero.io",
];

/// What nacre has and OADP does not.
const NEW_KINDS: [&str; 1] = ["nonadminschedules"];
/// Fields of statuses that nacre has and OADP does not. The API server drops what a CRD does not name.
const NEW_FIELDS: [&str; 5] = ["claims", "claimsNotListed", "results", "objects", "log"];
/// Columns of `kubectl get` that nacre has and OADP does not.
const NEW_COLUMNS: [&str; 4] = ["Data-Protected", "Data-Restored", "Starts", "Waits"];
/// The same as `NEW_FIELDS` within `queueInfo`.
const NEW_QUEUE_FIELDS: [&str; 3] = ["estimatedStart", "earliestStart", "latestStart"];

impl TestCluster {
    /// A cluster with Velero and with what OADP ships for the Go controller, and nothing of nacre's own.
    pub async fn build_as_oadp() -> Result<Self> {
        Self::build_as_oadp_on(Bed::builder().with_velero()).await
    }

    /// The same on a bed of the story's choosing.
    pub async fn build_as_oadp_on(bed: Builder) -> Result<Self> {
        let bed = bed.start().await?;
        let objects = shipped(bed.velero_namespace().unwrap_or(VELERO))?;
        bed.apply(&objects).await.context("applying what OADP ships")?;
        Ok(Self { bed })
    }

    /// What an administrator of OADP says: which store tenants may use, and more.
    pub async fn configure_oadp(&self, more: Value) -> Result<()> {
        let store = self.bed.store()?.url();
        self.bed.apply(&[application(self.velero(), store, &more)?]).await
    }

    /// What OLM does now and then: its roles are as it made them again.
    pub async fn olm_writes_its_roles(&self) -> Result<()> {
        let roles = by_olm().into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
        self.bed.apply(&roles).await
    }

    /// Applies parts of the installation for this namespace of Velero's, as `doctor` advises.
    pub async fn apply_parts(&self, parts: &str) -> Result<()> {
        let render = tokio::process::Command::new(command_line()?)
            .args(["render", "--only", parts, "-n", self.velero()])
            .kill_on_drop(true)
            .output()
            .await?;
        let said = String::from_utf8_lossy(&render.stderr);
        ensure!(render.status.success(), "render --only {parts}: {said}");
        self.bed.apply_yaml(&String::from_utf8(render.stdout)?).await
    }
}

impl NodeCluster {
    /// A node with nacre in place of the Go controller: in OADP's namespace, with OADP's role, CRDs, service account and
    /// Deployment, and nothing else. An administrator of OADP approves which storage tenants bring.
    pub async fn start_as_oadp() -> Result<Self> {
        let cluster = Self::on(Node::start_with_velero_in(OADP).await?).await?;
        let node = cluster.site.node()?;
        node.apply(&shipped(OADP)?).await.context("applying what OADP ships")?;
        let approval = json!({"requireApprovalForBSL": true});
        node.apply(&[application(OADP, &node.store_url(), &approval)?]).await?;
        let applications = Api::<DataProtectionApplication>::namespaced(node.client().await?, OADP);
        node.apply(&[oadp_controller(&applications.get("dpa").await?, &cluster.image)?]).await?;
        cluster.nacre_pods_ready(1).await?;
        Ok(cluster)
    }
}

/// What OADP's bundle brings for its controller.
fn shipped(namespace: &str) -> Result<Vec<DynamicObject>> {
    let released = api::crds().into_iter().filter(|crd| !NEW_KINDS.contains(&&*crd.spec.names.plural));
    let definitions = released.map(|crd| Ok(older(serde_json::to_value(crd)?)));
    let objects = definitions.chain(roles(namespace)?.into_iter().map(Ok)).collect::<Result<Vec<_>>>()?;
    Ok(objects.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?)
}

/// What an administrator of OADP asks for: the controller, the store tenants may use, and more.
fn application(namespace: &str, store: &str, more: &Value) -> Result<DynamicObject> {
    let config = json!({"region": bed::REGION, "s3ForcePathStyle": "true", "s3Url": store});
    let mut non_admin = json!({"enable": true, "enforceBSLSpec": {"config": config}});
    for (name, value) in more.as_object().into_iter().flatten() {
        non_admin[name] = value.clone();
    }
    let application = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": "dpa", "namespace": namespace}, "spec": {"nonAdmin": non_admin}});
    Ok(serde_json::from_value(application)?)
}

/// The controller's Deployment as OADP's operator makes it for an application: no arguments, no ports, no probes. OpenShift
/// runs such a pod as a user of its own choosing, and without privileges.
pub fn oadp_controller(application: &DataProtectionApplication, image: &str) -> Result<DynamicObject> {
    let name = "non-admin-controller";
    let namespace = application.namespace().context("an application without a namespace")?;
    let labels = json!({"control-plane": name});
    let owner = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "name": application.name_any(), "uid": application.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    let unprivileged = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let container = json!({"name": name, "image": image, "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "WATCH_NAMESPACE", "value": namespace}, {"name": "LOG_LEVEL", "value": "4"}],
        "terminationMessagePolicy": "FallbackToLogsOnError", "securityContext": unprivileged});
    let somebody = json!({"runAsUser": 1_000_680_000, "runAsNonRoot": true, "fsGroup": 1_000_680_000,
        "seccompProfile": {"type": "RuntimeDefault"}});
    let pod = json!({"serviceAccountName": name, "restartPolicy": "Always", "securityContext": somebody,
        "containers": [container]});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}}});
    Ok(serde_json::from_value(deployment)?)
}

/// A CRD of ours as OADP has it: `spec` may be left out, Velero reports less, and the fields and columns that nacre added are
/// not there.
fn older(mut crd: Value) -> Value {
    crd["apiVersion"] = json!("apiextensions.k8s.io/v1");
    crd["kind"] = json!("CustomResourceDefinition");
    // nacre did not make it.
    crd["metadata"]["labels"] = json!({});
    let version = &mut crd["spec"]["versions"][0];
    if let Some(columns) = version["additionalPrinterColumns"].as_array_mut() {
        columns.retain(|column| !NEW_COLUMNS.iter().any(|name| column["name"] == *name));
    }
    let schema = &mut version["schema"]["openAPIV3Schema"];
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("required");
    }
    for field in NEW_FIELDS {
        forget(&mut schema["properties"]["status"], field);
    }
    if let Some(queue) = schema.pointer_mut("/properties/status/properties/queueInfo") {
        for field in NEW_QUEUE_FIELDS {
            forget(queue, field);
        }
    }
    if let Some(backup) = schema.pointer_mut("/properties/status/properties/veleroBackup/properties") {
        backup["status"]["properties"]["phase"]["enum"] = json!(KNOWN);
        forget(&mut backup["status"], "queuePosition");
        forget(&mut backup["spec"], "volumeGroupSnapshotLabelKey");
    }
    if let Some(spec) = schema.pointer_mut("/properties/spec/properties/backupSpec") {
        forget(spec, "volumeGroupSnapshotLabelKey");
    }
    crd
}

fn forget(schema: &mut Value, field: &str) {
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove(field);
    }
}

/// The rules of OADP's role for its controller: what `doctor` compares nacre's with.
const ROLE: &str = include_str!("../../planner/src/install/oadp-role.yaml");

fn cluster_role(name: &str, labels: &Value, rules: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules})
}

/// What OADP's bundle grants its controller, and what OLM makes of the CRDs for namespace owners.
fn roles(namespace: &str) -> Result<Vec<Value>> {
    let own: Value = serde_saphyr::from_str(ROLE)?;
    let name = "non-admin-controller";
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
        cluster_role("oadp-non-admin", &json!({}), &own),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "oadp-non-admin"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "oadp-non-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}),
    ];
    all.extend(by_olm());
    Ok(all)
}

/// The roles that OLM makes for the CRDs of OADP's bundle, with the labels and names that OLM gives them.
fn by_olm() -> Vec<Value> {
    let own = KINDS.iter().map(|plural| format!("{plural}.oadp.openshift.io"));
    let crds = own.chain(OTHER_KINDS.map(str::to_owned));
    crds.enumerate().flat_map(|(number, crd)| roles_of_crd(number, &crd)).collect()
}

fn roles_of_crd(number: usize, crd: &str) -> [Value; 4] {
    let (plural, group) = crd.split_once('.').unwrap_or((crd, ""));
    let version = if group == "velero.io" { "v1" } else { "v1alpha1" };
    // OLM has a hash of group, version and kind there.
    let hash = format!("{:016x}", 0x4fa8_c5d8_e33a_0000 + number);
    let role = |name: &str, to: &str, rule: Value| {
        let labels = json!({
            "olm.managed": "true",
            format!("olm.opgroup.permissions/aggregate-to-{hash}-{to}"): "true",
            format!("rbac.authorization.k8s.io/aggregate-to-{to}"): "true",
        });
        cluster_role(&format!("{crd}-{version}-{name}"), &labels, &json!([rule]))
    };
    let on_kind = |verbs: &[&str]| json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
    [
        role("admin", "admin", on_kind(&["*"])),
        role("edit", "edit", on_kind(&["create", "update", "patch", "delete"])),
        role("view", "view", on_kind(&["get", "list", "watch"])),
        role(
            "crdview",
            "view",
            json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": [crd], "verbs": ["get"]}),
        ),
    ]
}

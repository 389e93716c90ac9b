//! What a hostile backup is made of: one object each of kinds that a tenant may have, and of kinds or contents that it
//! may not. The mutations make more of them.

use serde_json::{Value, json};

/// The namespace that is restored to, and one that nobody may touch.
pub(super) const HOME: &str = "shop";
pub(super) const VICTIM: &str = "victim";

pub(super) struct Template {
    /// The folder in the archive, as Velero spells resources.
    pub(super) folder: &'static str,
    pub(super) namespaced: bool,
    pub(super) object: Value,
}

fn of(folder: &'static str, version: &str, kind: &str, rest: Value) -> Template {
    build(folder, true, version, kind, rest)
}

fn cluster(folder: &'static str, version: &str, kind: &str, rest: Value) -> Template {
    build(folder, false, version, kind, rest)
}

fn build(folder: &'static str, namespaced: bool, version: &str, kind: &str, rest: Value) -> Template {
    let mut object = rest;
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!("x");
    if namespaced {
        object["metadata"]["namespace"] = json!(HOME);
    }
    Template { folder, namespaced, object }
}

/// Every template, in groups that are equally likely: there are many workloads, and one kind of volume is enough.
pub(super) fn templates() -> [Vec<Template>; 6] {
    [innocent(), workloads(), permissions(), of_the_cluster(), requests(), volumes()]
}

fn innocent() -> Vec<Template> {
    vec![
        of("configmaps", "v1", "ConfigMap", json!({"data": {"a": "b"}})),
        of("secrets", "v1", "Secret", json!({"data": {"a": "Yg=="}})),
        of("serviceaccounts", "v1", "ServiceAccount", json!({"secrets": [{"name": "x"}]})),
        of(
            "services",
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
        ),
        of(
            "horizontalpodautoscalers.autoscaling",
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 2,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
        ),
        of(
            "poddisruptionbudgets.policy",
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1}}),
        ),
    ]
}

/// What the level *baseline* forbids, each for itself.
fn privileged() -> Vec<Value> {
    let container = |rest: Value| {
        let mut container = json!({"name": "c", "image": "c"});
        for (key, value) in rest.as_object().into_iter().flatten() {
            container[key] = value.clone();
        }
        json!({"containers": [container]})
    };
    let mut init = container(json!({}));
    init["initContainers"] = json!([{"name": "i", "image": "i", "securityContext": {"privileged": true}}]);
    let mut host = container(json!({}));
    host["hostNetwork"] = json!(true);
    let mut process = container(json!({}));
    process["hostPID"] = json!(true);
    let mut path = container(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}));
    path["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    let mut profile = container(json!({}));
    profile["securityContext"] = json!({"seccompProfile": {"type": "Unconfined"}});
    vec![
        container(json!({})),
        container(json!({"securityContext": {"privileged": true}})),
        container(json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}})),
        container(json!({"securityContext": {"procMount": "Unmasked"}})),
        container(json!({"ports": [{"containerPort": 80, "hostPort": 80}]})),
        container(json!({"livenessProbe": {"httpGet": {"port": 80, "host": "10.0.0.1"}}})),
        init,
        host,
        process,
        path,
        profile,
    ]
}

fn workloads() -> Vec<Template> {
    let labels = json!({"app": "x"});
    let with = |spec: &Value, more: Value| {
        let mut rest = json!({"spec": {"template": {"metadata": {"labels": labels}, "spec": spec}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            rest["spec"][key] = value.clone();
        }
        rest
    };
    let selected = || json!({"selector": {"matchLabels": {"app": "x"}}});
    let mut all = Vec::new();
    for spec in privileged() {
        let mut job = spec.clone();
        job["restartPolicy"] = json!("Never");
        all.extend([
            of("pods", "v1", "Pod", json!({"spec": spec})),
            of(
                "podtemplates",
                "v1",
                "PodTemplate",
                json!({"template": {"metadata": {"labels": labels}, "spec": spec}}),
            ),
            of(
                "replicationcontrollers",
                "v1",
                "ReplicationController",
                with(&spec, json!({"replicas": 0, "selector": labels})),
            ),
            of("deployments.apps", "apps/v1", "Deployment", with(&spec, selected())),
            of("replicasets.apps", "apps/v1", "ReplicaSet", with(&spec, selected())),
            of("daemonsets.apps", "apps/v1", "DaemonSet", with(&spec, selected())),
            of("statefulsets.apps", "apps/v1", "StatefulSet", with(&spec, selected())),
            of("jobs.batch", "batch/v1", "Job", with(&job, json!({}))),
            of(
                "cronjobs.batch",
                "batch/v1",
                "CronJob",
                json!({"spec": {"schedule": "0 0 1 1 *",
                    "jobTemplate": {"spec": {"template": {"metadata": {"labels": labels}, "spec": job}}}}}),
            ),
        ]);
    }
    all
}

fn permissions() -> Vec<Template> {
    let group = "rbac.authorization.k8s.io";
    let rbac = "rbac.authorization.k8s.io/v1";
    let grant = json!({"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ada"}]});
    let rules = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let token = |kind: &str| json!({"type": kind, "metadata": {"annotations": {"kubernetes.io/service-account.name": "default"}}});
    vec![
        of("rolebindings.rbac.authorization.k8s.io", rbac, "RoleBinding", grant.clone()),
        of("roles.rbac.authorization.k8s.io", rbac, "Role", rules.clone()),
        cluster("clusterrolebindings.rbac.authorization.k8s.io", rbac, "ClusterRoleBinding", grant),
        cluster("clusterroles.rbac.authorization.k8s.io", rbac, "ClusterRole", rules),
        of("secrets", "v1", "Secret", token("kubernetes.io/service-account-token")),
        of("secrets", "v1", "Secret", token("bootstrap.kubernetes.io/token")),
        of("resourcequotas", "v1", "ResourceQuota", json!({"spec": {"hard": {"pods": "1000"}}})),
        of(
            "limitranges",
            "v1",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1000"}}]}}),
        ),
        of(
            "networkpolicies.networking.k8s.io",
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}}}),
        ),
        of(
            "endpoints",
            "v1",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 80}]}]}),
        ),
        of(
            "endpointslices.discovery.k8s.io",
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.9"]}], "ports": []}),
        ),
        of("leases.coordination.k8s.io", "coordination.k8s.io/v1", "Lease", json!({"spec": {}})),
        of("controllerrevisions.apps", "apps/v1", "ControllerRevision", json!({"revision": 1})),
    ]
}

fn of_the_cluster() -> Vec<Template> {
    let labels = json!({"pod-security.kubernetes.io/enforce": "privileged", "nacre.dev/x": "y"});
    let webhook = json!({"webhooks": [{"name": "x.example.com", "sideEffects": "None", "failurePolicy": "Ignore",
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://192.0.2.1/"},
        "rules": [{"apiGroups": ["x.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}]}]});
    vec![
        cluster("namespaces", "v1", "Namespace", json!({"metadata": {"labels": labels}})),
        cluster(
            "persistentvolumes",
            "v1",
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"},
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "none"}}),
        ),
        cluster(
            "storageclasses.storage.k8s.io",
            "storage.k8s.io/v1",
            "StorageClass",
            json!({"provisioner": "x.example.com"}),
        ),
        cluster(
            "priorityclasses.scheduling.k8s.io",
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"value": 1_000_000}),
        ),
        cluster(
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            webhook,
        ),
        cluster(
            "apiservices.apiregistration.k8s.io",
            "apiregistration.k8s.io/v1",
            "APIService",
            json!({"metadata": {"labels": {"x": "y"}}, "spec": {"group": "x.example.com", "version": "v1", "groupPriorityMinimum": 1,
                "versionPriority": 1, "service": {"namespace": HOME, "name": "x"}}}),
        ),
        cluster(
            "customresourcedefinitions.apiextensions.k8s.io",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"spec": {"group": "x.example.com", "scope": "Namespaced", "names": {"kind": "X", "plural": "xs", "singular": "x",
                "listKind": "XList"}, "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        ),
        cluster(
            "certificatesigningrequests.certificates.k8s.io",
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            json!({"spec": {"request": "eA==", "signerName": "x.example.com/x", "usages": ["client auth"]}}),
        ),
        cluster("nodes", "v1", "Node", json!({"spec": {"unschedulable": true}})),
    ]
}

/// Objects that ask somebody with more permissions to do something.
fn requests() -> Vec<Template> {
    let velero = "velero.io/v1";
    let mut all = vec![
        of("backups.velero.io", velero, "Backup", json!({"spec": {"includedNamespaces": ["*"]}})),
        of("restores.velero.io", velero, "Restore", json!({"spec": {"backupName": "x"}})),
        of(
            "schedules.velero.io",
            velero,
            "Schedule",
            json!({"spec": {"schedule": "0 0 1 1 *", "template": {}}}),
        ),
        of(
            "deletebackuprequests.velero.io",
            velero,
            "DeleteBackupRequest",
            json!({"spec": {"backupName": "x"}}),
        ),
        of(
            "downloadrequests.velero.io",
            velero,
            "DownloadRequest",
            json!({"spec": {"target": {"kind": "BackupContents", "name": "x"}}}),
        ),
        of(
            "backupstoragelocations.velero.io",
            velero,
            "BackupStorageLocation",
            json!({"spec": {"provider": "aws", "objectStorage": {"bucket": "x"}}}),
        ),
        of(
            "podvolumerestores.velero.io",
            velero,
            "PodVolumeRestore",
            json!({"spec": {"pod": {"namespace": VICTIM, "name": "x"}, "volume": "v", "backupStorageLocation": "x",
                "repoIdentifier": "x", "snapshotID": "x", "sourceNamespace": VICTIM}}),
        ),
        of(
            "virtualmachineinstancemigrations.kubevirt.io",
            "kubevirt.io/v1",
            "VirtualMachineInstanceMigration",
            json!({"spec": {"vmiName": "x"}}),
        ),
    ];
    for (plural, kind, spec) in [
        ("nonadminbackups", "NonAdminBackup", json!({"backupSpec": {}})),
        ("nonadminrestores", "NonAdminRestore", json!({"restoreSpec": {"backupName": "x"}})),
        (
            "nonadmindownloadrequests",
            "NonAdminDownloadRequest",
            json!({"target": {"kind": "BackupLog", "name": "x"}}),
        ),
    ] {
        let folder: &'static str = match plural {
            "nonadminbackups" => "nonadminbackups.oadp.openshift.io",
            "nonadminrestores" => "nonadminrestores.oadp.openshift.io",
            _ => "nonadmindownloadrequests.oadp.openshift.io",
        };
        all.push(of(
            folder,
            "oadp.openshift.io/v1alpha1",
            kind,
            json!({"spec": spec, "status": {"phase": "Created"}}),
        ));
    }
    // On Velero's list of what must always be looked at, whatever the filters say.
    all.push(of(
        "datauploads.velero.io",
        "velero.io/v2alpha1",
        "DataUpload",
        json!({"spec": {"sourceNamespace": HOME, "sourcePVC": "x", "backupStorageLocation": "default", "snapshotType": "CSI",
            "operationTimeout": "10m"}, "status": {"phase": "Completed", "snapshotID": "x"}}),
    ));
    all
}

fn volumes() -> Vec<Template> {
    let snapshot = "snapshot.storage.k8s.io/v1";
    let claim = |rest: Value| {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}}});
        for (key, value) in rest.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"spec": spec, "status": {"phase": "Bound"}})
    };
    let stolen = json!({"source": {"pvc": {"namespace": VICTIM, "name": "disk"}}});
    let reference =
        json!({"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "disk", "namespace": VICTIM});
    vec![
        of("persistentvolumeclaims", "v1", "PersistentVolumeClaim", claim(json!({"volumeName": "x"}))),
        of(
            "persistentvolumeclaims",
            "v1",
            "PersistentVolumeClaim",
            claim(json!({"dataSourceRef": reference})),
        ),
        of(
            "volumesnapshots.snapshot.storage.k8s.io",
            snapshot,
            "VolumeSnapshot",
            json!({"spec": {"source": {"persistentVolumeClaimName": "x"}},
                "status": {"boundVolumeSnapshotContentName": "x", "readyToUse": true}}),
        ),
        of(
            "volumesnapshots.snapshot.storage.k8s.io",
            snapshot,
            "VolumeSnapshot",
            json!({"spec": {"source": {"volumeSnapshotContentName": "x"}}}),
        ),
        cluster(
            "volumesnapshotcontents.snapshot.storage.k8s.io",
            snapshot,
            "VolumeSnapshotContent",
            json!({"spec": {"driver": "d", "deletionPolicy": "Delete", "source": {"volumeHandle": "v"},
                "volumeSnapshotRef": {"namespace": HOME, "name": "x"}},
                "status": {"snapshotHandle": "somebody-elses", "readyToUse": true}}),
        ),
        cluster(
            "volumesnapshotclasses.snapshot.storage.k8s.io",
            snapshot,
            "VolumeSnapshotClass",
            json!({"driver": "d", "deletionPolicy": "Delete"}),
        ),
        of("datavolumes.cdi.kubevirt.io", "cdi.kubevirt.io/v1beta1", "DataVolume", json!({"spec": stolen})),
        of("datasources.cdi.kubevirt.io", "cdi.kubevirt.io/v1beta1", "DataSource", json!({"spec": stolen})),
        of(
            "virtualmachines.kubevirt.io",
            "kubevirt.io/v1",
            "VirtualMachine",
            json!({"spec": {"dataVolumeTemplates": [{"metadata": {"name": "d"}, "spec": stolen}]}}),
        ),
    ]
}

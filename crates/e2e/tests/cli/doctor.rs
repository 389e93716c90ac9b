//! `doctor` by an administrator, on a healthy cluster and on a broken one, and by a user without permissions.

use anyhow::{Context as _, Result, ensure};
use e2e::TestCluster;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{person::Person, program::nacre, stage, test_cluster};

const GUIDE: &str = include_str!("../../../../docs/admin-guide.md");

/// What is said, by verdict.
fn of<'a>(diagnosis: &'a Value, verdict: &str) -> Vec<&'a Value> {
    let all = diagnosis["findings"].as_array().into_iter().flatten();
    all.filter(|finding| finding["verdict"] == verdict).collect()
}

/// Whether the guide shows this page as it is, apart from numbers, the name of the leader, and what other stories
/// created.
fn in_the_guide(page: &str) {
    let plain = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "");
    let guide: Vec<String> = GUIDE.lines().map(plain).collect();
    let changes = |line: &str| {
        line.contains("is leader, as its lease shows")
            || line.contains("of tenants")
            || line.contains("brought storage")
    };
    for line in page.lines().filter(|line| !changes(line)) {
        assert!(guide.contains(&plain(line)), "not in docs/admin-guide.md: {line}\nall of it:\n{page}");
    }
}

async fn examined(test_cluster: &TestCluster, more: &[&str], code: i32) -> Result<Value> {
    nacre(&test_cluster.bed.kubeconfig(), &[&["doctor", "-o", "json"], more].concat()).await?.json(code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_cluster_has_no_problem_and_one_warning() -> Result<()> {
    let test_cluster = test_cluster().await?;
    // There are no nodes, and so no pods: nacre runs outside the cluster, and the Deployment's status is set by hand.
    let pods = json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}});
    let deployments = Api::<Deployment>::namespaced(test_cluster.bed.client().await?, e2e::VELERO);
    deployments.patch_status("non-admin-controller", &PatchParams::default(), &Patch::Merge(pods)).await?;
    // Other stories bring storage meanwhile: a healthy Velero is ready for that.
    let limits = json!({"limits": {"memory": "1Gi", "ephemeral-storage": "10Gi"}});
    let container =
        json!({"name": "velero", "args": ["server", "--disable-informer-cache=true"], "resources": limits});
    let ready = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    deployments.patch("velero", &PatchParams::default(), &Patch::Strategic(ready)).await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let diagnosis = examined(test_cluster, &["--as", "dora", "--as-group", "system:masters"], 0).await?;
    // The policy lets tenants bring storage, with approval: no more can be said for it.
    let warnings: Vec<_> = of(&diagnosis, "warning").iter().map(|one| one["message"].to_string()).collect();
    assert!(
        matches!(&warnings[..], [one] if one.contains("all Secrets that Velero can read")),
        "{diagnosis:#}"
    );
    assert!(of(&diagnosis, "problem").is_empty(), "{diagnosis:#}");
    assert!(of(&diagnosis, "not-checked").is_empty(), "{diagnosis:#}");
    let fine: Vec<_> = of(&diagnosis, "ok").iter().map(|one| one["message"].to_string()).collect();
    for words in [
        "v1.18.3",
        "it looked at its storage",
        "the default location \\\"default\\\" is Available",
        "CRDs are there and current",
        "roles and bindings are there and current",
        "admission policies are there and current",
        "its certificate fits",
        "velero/nacre_",
        "set by ConfigMap nacre-policy",
    ] {
        assert!(fine.iter().any(|message| message.contains(words)), "{words}: {diagnosis:#}");
    }
    // Looked at, and not touched.
    let wrote = test_cluster.bed.audit().since(mark).await?.writes().only(|request| request.user == "dora");
    assert!(wrote.is_empty(), "{wrote:?}");

    let page = nacre(&test_cluster.bed.kubeconfig(), &["doctor"]).await?.with(0)?;
    in_the_guide(&page);
    assert!(page.starts_with("Velero\n  ok ") && page.ends_with("1 warning\n"), "{page}");

    // For a user without permissions, every line says "not checked".
    let otto = Person::new(test_cluster, "curious", "otto").await?;
    let ended = otto.nacre(&["doctor"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    for words in [
        "not checked  Deployment velero: you may not get deployments in namespace velero",
        "you may not list roles",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    Ok(())
}

/// Everything that can be wrong at once, with a Velero of its own.
const SICK: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: velero, namespace: sick}
spec:
  replicas: 1
  selector: {matchLabels: {component: velero}}
  template:
    metadata: {labels: {component: velero}}
    spec: {containers: [{name: velero, image: "velero/velero:v1.16.2", args: [server, --restore-only]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: non-admin-controller, namespace: elsewhere}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: non-admin-controller}}
  template:
    metadata: {labels: {control-plane: non-admin-controller}}
    spec: {containers: [{name: manager, image: "quay.io/konveyor/oadp-non-admin:latest"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nacre-policy, namespace: sick}
data: {policy.yaml: "backup:\n  tll: {max: 48h}\n"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: generous, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [oadp.openshift.io], resources: [nonadminbackups/status], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: movers}
rules: [{apiGroups: [kubevirt.io], resources: [virtualmachineinstancemigrations], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: movers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: movers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mia}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: helpers, namespace: sick}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachineinstancemigrations.kubevirt.io}
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {plural: virtualmachineinstancemigrations, kind: VirtualMachineInstanceMigration}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_is_wrong_is_found_with_its_fix() -> Result<()> {
    let stage = stage().await?;
    stage.bed.namespace("sick").await?;
    stage.bed.namespace("elsewhere").await?;
    stage.bed.apply_yaml(SICK).await?;
    let page = nacre(&stage.bed.kubeconfig(), &["doctor", "-n", "sick"]).await?.with(1)?;
    in_the_guide(&page);
    let diagnosis = examined(stage, &["-n", "sick"], 1).await?;
    let expected = [
        ("problem", "Velero does not run", "kubectl describe pods -n sick"),
        ("warning", "Velero v1.16.2 is older", "upgrade Velero"),
        ("problem", "--restore-only", "kubectl edit deployment velero -n sick"),
        ("problem", "does not know BackupStorageLocations", "velero install --crds-only"),
        ("problem", "of nacre in sick, but one in velero", "kubectl nacre doctor -n velero"),
        ("problem", "another non-admin controller runs in elsewhere (quay.io/konveyor", "--replicas=0"),
        ("problem", "nobody holds the lease", "kubectl logs -n sick"),
        ("problem", "admission policies are missing", "kubectl nacre install --image IMAGE -n sick"),
        (
            "warning",
            "there is no ValidatingWebhookConfiguration nacre",
            "kubectl nacre install --image IMAGE -n sick",
        ),
        ("problem", "roles and bindings are missing", "kubectl nacre install --image IMAGE -n sick"),
        ("problem", "clusterrole generous lets owners of namespaces", "kubectl edit clusterrole generous"),
        ("warning", "user bob (rolebinding/helpers)", "kubectl delete rolebinding"),
        ("warning", "user mia can live-migrate", "kubectl nacre migration revoke --user mia"),
        (
            "problem",
            "ConfigMap: 2:3: backup.tll: there is no such field",
            "kubectl edit configmap nacre-policy -n sick",
        ),
        ("problem", "there is no valid policy", "policy check"),
    ];
    for (verdict, message, fix) in expected {
        let found =
            of(&diagnosis, verdict).into_iter().find(|one| one["message"].to_string().contains(message));
        let found = found.with_context(|| format!("{verdict}: {message}: {diagnosis:#}"))?;
        assert!(found["fix"].to_string().contains(fix), "{fix}: {found:#}");
    }

    // What it says to do helps.
    let other = "another non-admin controller";
    let said = |diagnosis: &Value, words: &str| diagnosis.to_string().contains(words);
    let fix = of(&diagnosis, "problem").into_iter().find(|one| one["message"].to_string().contains(other));
    let fix = fix.and_then(|one| one["fix"].as_str()).context("a fix")?;
    let words: Vec<&str> = fix.split(' ').skip(1).collect();
    stage.bed.kubectl(&words).await?.ok()?;
    stage.bed.kubectl(&["delete", "configmap", "nacre-policy", "-n", "sick"]).await?.ok()?;
    stage.bed.kubectl(&["delete", "clusterrole", "generous"]).await?.ok()?;
    let deployments = Api::<Deployment>::namespaced(stage.bed.client().await?, "sick");
    let alive = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    deployments.patch_status("velero", &PatchParams::default(), &Patch::Merge(alive)).await?;
    let diagnosis = examined(stage, &["-n", "sick"], 1).await?;
    for words in [other, "Velero does not run", "backup.tll", "clusterrole generous"] {
        ensure!(!said(&diagnosis, words), "{words} is still said: {diagnosis:#}");
    }
    assert!(said(&diagnosis, "1 of 1 pods available"), "{diagnosis:#}");
    Ok(())
}

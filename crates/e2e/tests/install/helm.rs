//! The chart: the same objects as `render`, installed and removed by the real helm.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bed::{Bed, eventually};
use e2e::deploy;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::life::nacre;
use crate::traces::traces;

const TIMEOUT: Duration = Duration::from_mins(2);

/// Without a cluster, Helm does not know what the API server serves.
const MUTATION: &str = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";

/// Objects by kind, namespace and name, whatever their order and whatever text they were made from.
fn by_name(yaml: &str) -> Result<BTreeMap<String, Value>> {
    let named = |object: kube::api::DynamicObject| -> Result<(String, Value)> {
        let kind = object.types.as_ref().context("an object without a kind")?.kind.clone();
        let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
        Ok((
            format!("{kind} {}/{}", namespace.unwrap_or_default(), name.unwrap_or_default()),
            serde_json::to_value(object)?,
        ))
    };
    bed::parse_manifests(yaml)?.into_iter().map(named).collect()
}

pub(crate) async fn the_chart_does_the_same(bed: &Bed) -> Result<()> {
    let chart = deploy("chart").display().to_string();
    let known = ["--api-versions", MUTATION];
    for (namespace, known, values, flags) in [
        ("velero", &known[..], &[][..], &[][..]),
        // An API server from before 1.36.
        ("velero", &[][..], &[][..], &["--requester-webhook"][..]),
        ("velero", &[][..], &["--set", "webhook=false"][..], &["--requester-webhook", "--no-webhook"][..]),
        (
            "backup",
            &known[..],
            &[
                "--set",
                "replicas=1,image=mine:3,logLevel=6,webhook=false,console=true,veleroView=true,fence=true,nodeSelector.disk=fast,aggregateTo={admin}",
            ][..],
            &[
                "--replicas",
                "1",
                "--image",
                "mine:3",
                "--log-level",
                "6",
                "--no-webhook",
                "--console",
                "--velero-view",
                "--fence",
                "--aggregate-to",
                "admin",
            ][..],
        ),
    ] {
        let template = ["template", "nacre", &chart, "-n", namespace, "--include-crds", "--no-hooks"];
        let templated = by_name(&bed.helm(&[&template[..], known, values].concat()).await?.ok()?)?;
        let (success, rendered, words) = nacre(bed, &[&["render", "-n", namespace], flags].concat()).await?;
        ensure!(success, "{words}");
        let mut rendered = by_name(&rendered)?;
        if namespace == "backup" {
            let deployment =
                rendered.get_mut("Deployment backup/non-admin-controller").context("a Deployment")?;
            deployment["spec"]["template"]["spec"]["nodeSelector"] = serde_json::json!({"disk": "fast"});
            let console = rendered.get_mut("Deployment backup/nacre-console").context("a Deployment")?;
            console["spec"]["template"]["spec"]["nodeSelector"] = serde_json::json!({"disk": "fast"});
        }
        ensure!(
            templated.keys().collect::<Vec<_>>() == rendered.keys().collect::<Vec<_>>(),
            "helm: {:#?}\nrender: {:#?}",
            templated.keys(),
            rendered.keys()
        );
        for (name, object) in &templated {
            ensure!(object == &rendered[name], "{name} differs:\n{object:#}\n{:#}", rendered[name]);
        }
    }

    // A release of before there was the value keeps its permissions with --reuse-values.
    let unset = ["template", "nacre", &chart, "-n", "velero", "--set", "aggregateTo=null"];
    let unset = bed.helm(&unset).await?.ok()?;
    let taken = |line: &str| line.contains("aggregate-to-") && line.ends_with("\"false\"");
    ensure!(unset.contains("aggregate-to-edit: \"true\"") && !unset.lines().any(taken), "{unset}");

    bed.helm(&["install", "nacre", &chart, "-n", "velero", "--create-namespace"]).await?.ok()?;
    let deployments = ["get", "deployment", "-n", "velero", "-o", "name"];
    ensure!(bed.kubectl(&deployments).await?.ok()?.trim() == "deployment.apps/non-admin-controller");
    ensure!(bed.kubectl(&["get", "nonadminbackups", "-A"]).await?.success, "the definitions are not there");
    // Two installers do not fight over it, and there is one per cluster whoever installed it.
    let (success, _, words) = nacre(bed, &["install"]).await?;
    ensure!(!success && words.contains("installed by Helm as release nacre"), "{words}");
    let (success, _, words) = nacre(bed, &["install", "-n", "elsewhere"]).await?;
    let plain = "installed in namespace velero already, and there is one per cluster";
    ensure!(!success && words.contains(plain), "{words}");
    bed.helm(&["upgrade", "nacre", &chart, "-n", "velero", "--set", "replicas=1"]).await?.ok()?;
    ensure!(bed.kubectl(&["get", "pdb", "-n", "velero", "-o", "name"]).await?.ok()?.trim().is_empty());
    // Helm knows nothing of finalizers: the last thing it runs does.
    held(bed, "with-helm").await?;
    let uninstall = ["uninstall", "nacre", "-n", "velero", "--timeout", "3m"];
    let (uninstalled, let_go) = tokio::join!(bed.helm(&uninstall), play_the_hook(bed));
    ensure!(let_go?.trim() == "let go of nonadminbackup/with-helm in shop");
    uninstalled?.ok()?;
    free(bed, "with-helm").await?;
    let hooks = "job,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding";
    let left = bed.kubectl(&["get", hooks, "-A", "-o", "name"]).await?.ok()?;
    ensure!(!left.contains("nacre-uninstall"), "{left}");
    // Without it, the command line finds what is left.
    bed.helm(&["install", "nacre", &chart, "-n", "velero"]).await?.ok()?;
    held(bed, "after-helm").await?;
    bed.helm(&["uninstall", "nacre", "-n", "velero", "--no-hooks"]).await?.ok()?;
    ensure!(bed.kubectl(&deployments).await?.ok()?.trim().is_empty());
    ensure!(
        bed.kubectl(&["get", "nonadminbackups", "-A"]).await?.success,
        "the definitions went, and every request with them"
    );
    let (success, done, words) = nacre(bed, &["uninstall"]).await?;
    ensure!(success && done.trim() == "let go of nonadminbackup/after-helm in shop", "{done}{words}");
    free(bed, "after-helm").await?;

    // The other way round: the command line removes it all in the right order, and Helm's record is left to Helm.
    bed.helm(&["install", "nacre", &chart, "-n", "velero"]).await?.ok()?;
    held(bed, "before-helm").await?;
    let (success, done, words) = nacre(bed, &["uninstall"]).await?;
    ensure!(success && done.contains("delete deployment/non-admin-controller in velero"), "{done}{words}");
    ensure!(words.contains("`helm uninstall nacre -n velero` removes it"), "{words}");
    free(bed, "before-helm").await?;
    let left = traces(bed).await?;
    ensure!(left == ["Secret velero/sh.helm.release.v1.nacre.v1"], "{left:#?}");
    bed.helm(&["uninstall", "nacre", "-n", "velero", "--no-hooks"]).await?.ok()?;
    let releases = bed.helm(&["list", "-n", "velero", "--all", "--short"]).await?.ok()?;
    ensure!(releases.trim().is_empty(), "{releases}");
    Ok(())
}

/// Does what the pod of Helm's last Job would do on a node, with no other permissions than the pod has. Returns what it
/// printed.
async fn play_the_hook(bed: &Bed) -> Result<String> {
    let pods = Api::<Pod>::namespaced(bed.client().await?, "velero");
    let of_job = ListParams::default().labels("batch.kubernetes.io/job-name=nacre-uninstall");
    let pod = eventually("the Job's pod", TIMEOUT, async || {
        pods.list(&of_job).await?.items.pop().context("there is none yet")
    })
    .await?;
    let spec = pod.spec.clone().context("a spec")?;
    let account = spec.service_account_name.clone().context("an account")?;
    let container = &spec.containers[0];
    ensure!(container.command.as_deref() == Some(&["/kubectl-nacre".to_owned()]), "{container:?}");
    let user = format!("system:serviceaccount:velero:{account}");
    let args = container.args.clone().unwrap_or_default();
    let args: Vec<&str> = args.iter().map(String::as_str).chain(["--as", &user]).collect();
    let (success, done, words) = nacre(bed, &args).await?;
    ensure!(success, "{words}");
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &ended).await?;
    Ok(done)
}

/// A request as nacre leaves it.
async fn held(bed: &Bed, name: &str) -> Result<()> {
    bed.apply_yaml(&format!(
        "{{apiVersion: oadp.openshift.io/v1alpha1, kind: NonAdminBackup, metadata: {{name: {name}, namespace: shop, \
         finalizers: [{}]}}, spec: {{backupSpec: {{}}}}}}",
        api::labels::NAB_FINALIZER
    ))
    .await
}

/// Its owner can delete it.
async fn free(bed: &Bed, name: &str) -> Result<()> {
    let gone = ["delete", "nonadminbackup", name, "-n", "shop", "--timeout", "20s"];
    bed.kubectl(&gone).await?.ok().map(drop)
}

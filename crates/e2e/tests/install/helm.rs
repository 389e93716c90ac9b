//! The chart: the same objects as `render`, installed and removed by the real helm.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use bed::Bed;
use e2e::deploy;
use serde_json::Value;

use crate::life::nacre;

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
    for (namespace, values, flags) in [
        ("velero", &[][..], &[][..]),
        (
            "backup",
            &["--set", "replicas=1,image=mine:3,logLevel=6,webhook=false,veleroView=true,nodeSelector.disk=fast"][..],
            &["--replicas", "1", "--image", "mine:3", "--log-level", "6", "--no-webhook", "--velero-view"][..],
        ),
    ] {
        let template = ["template", "nacre", &chart, "-n", namespace, "--include-crds"];
        let templated = by_name(&bed.helm(&[&template[..], values].concat()).await?.ok()?)?;
        let (success, rendered, words) = nacre(bed, &[&["render", "-n", namespace], flags].concat()).await?;
        ensure!(success, "{words}");
        let mut rendered = by_name(&rendered)?;
        if namespace == "backup" {
            let deployment =
                rendered.get_mut("Deployment backup/non-admin-controller").context("a Deployment")?;
            deployment["spec"]["template"]["spec"]["nodeSelector"] = serde_json::json!({"disk": "fast"});
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

    bed.helm(&["install", "nacre", &chart, "-n", "velero", "--create-namespace"]).await?.ok()?;
    let deployments = ["get", "deployment", "-n", "velero", "-o", "name"];
    ensure!(bed.kubectl(&deployments).await?.ok()?.trim() == "deployment.apps/non-admin-controller");
    ensure!(bed.kubectl(&["get", "nonadminbackups", "-A"]).await?.success, "the definitions are not there");
    // Two installers do not fight over it.
    let (success, _, words) = nacre(bed, &["install"]).await?;
    ensure!(!success && words.contains("installed by Helm as release nacre"), "{words}");
    bed.helm(&["upgrade", "nacre", &chart, "-n", "velero", "--set", "replicas=1"]).await?.ok()?;
    ensure!(bed.kubectl(&["get", "pdb", "-n", "velero", "-o", "name"]).await?.ok()?.trim().is_empty());
    bed.helm(&["uninstall", "nacre", "-n", "velero"]).await?.ok()?;
    ensure!(bed.kubectl(&deployments).await?.ok()?.trim().is_empty());
    ensure!(
        bed.kubectl(&["get", "nonadminbackups", "-A"]).await?.success,
        "the definitions went, and every request with them"
    );
    Ok(())
}

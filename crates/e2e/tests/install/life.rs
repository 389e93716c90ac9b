//! Install on an empty cluster, install again, upgrade, uninstall: each as an administrator would.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use api::{Kind, NonAdminBackup, labels};
use bed::Bed;
use e2e::command_line;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{helm, matrix};

/// Runs `kubectl nacre` and returns whether it went well, what it answered and what it remarked.
pub(crate) async fn nacre(bed: &Bed, args: &[&str]) -> Result<(bool, String, String)> {
    let output = tokio::process::Command::new(command_line()?)
        .args(args)
        .env("KUBECONFIG", bed.kubeconfig())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.success(), text(output.stdout), text(output.stderr)))
}

pub(crate) async fn well(bed: &Bed, args: &[&str]) -> Result<(String, String)> {
    let (success, answer, remarks) = nacre(bed, args).await?;
    ensure!(success, "{args:?}: {answer}{remarks}");
    Ok((answer, remarks))
}

/// H6
/// planted: a role that `view` includes
#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_cluster_and_back() -> Result<()> {
    let bed = Bed::builder().start().await?;
    // What OADP's bundle would have put there.
    let foreign = definition(&bed).await?;

    // Nobody without the rights half-installs it.
    bed.namespace("shop").await?;
    bed.bind("shop", "ada", "admin").await?;
    let (success, _, words) = nacre(&bed, &["install", "--image", "first:1", "--as=ada"]).await?;
    ensure!(!success && words.contains("forbidden") && words.contains("ada"), "{words}");
    ensure!(
        Api::<CustomResourceDefinition>::all(bed.client().await?)
            .list(&ListParams::default())
            .await?
            .items
            .len()
            == 1
    );

    // Said first, done then, and the second time there is nothing to do.
    let (planned, _) = well(&bed, &["install", "--image", "first:1", "--dry-run"]).await?;
    ensure!(planned.contains("would create namespace/velero"), "{planned}");
    let (done, remarks) = well(&bed, &["install", "--image", "first:1"]).await?;
    ensure!(done.contains("create deployment/non-admin-controller in velero"), "{done}");
    ensure!(planned == done.replace("create ", "would create "), "{planned}\n{done}");
    ensure!(
        remarks.contains("dataprotectionapplications.oadp.openshift.io was made by somebody else"),
        "{remarks}"
    );
    let mark = bed.audit().mark().await?;
    let (again, _) = well(&bed, &["install", "--image", "first:1"]).await?;
    ensure!(again.contains("nothing to do"), "{again}");
    let writes = bed.audit().since(mark).await?.writes().by("kubectl-nacre/");
    ensure!(writes.is_empty(), "{:#?}", writes.tally());
    ensure!(definition_of(&bed).await?.resource_version() == foreign.resource_version());

    // Upgraded: what differs is changed, what is of no more use goes.
    let fewer = ["install", "--image", "second:2", "--replicas", "1", "--no-webhook"];
    let (upgraded, _) = well(&bed, &fewer).await?;
    ensure!(
        upgraded.contains("change deployment/") && upgraded.contains("delete poddisruptionbudget/"),
        "{upgraded}"
    );
    ensure!(upgraded.contains("delete validatingwebhookconfiguration/nacre"), "{upgraded}");
    ensure!(upgraded.lines().count() == 5, "{upgraded}");
    let (success, _, words) = nacre(&bed, &["install", "-n", "elsewhere"]).await?;
    ensure!(!success && words.contains("installed in namespace velero already"), "{words}");

    // With the NetworkPolicy for Velero's pods, which goes with the rest.
    let (_, words) = well(&bed, &["install", "--egress"]).await?;
    ensure!(words.contains("applied NetworkPolicy nacre-velero-egress in velero"), "{words}");
    let limits = Api::<NetworkPolicy>::namespaced(bed.client().await?, "velero");
    let spec = limits.get("nacre-velero-egress").await?.spec.context("a spec")?;
    ensure!(spec.policy_types.as_deref() == Some(&["Egress".to_owned()]), "{spec:?}");

    Box::pin(matrix::tenants_do_what_they_may(&bed)).await?;
    uninstalled(&bed).await?;
    ensure!(limits.get_opt("nacre-velero-egress").await?.is_none(), "the NetworkPolicy stayed");
    Box::pin(helm::the_chart_does_the_same(&bed)).await
}

/// A definition that nacre has too, made by somebody else and different.
async fn definition(bed: &Bed) -> Result<CustomResourceDefinition> {
    bed.apply_yaml(
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
         metadata: {name: dataprotectionapplications.oadp.openshift.io}, \
         spec: {group: oadp.openshift.io, scope: Namespaced, \
         names: {kind: DataProtectionApplication, plural: dataprotectionapplications, singular: dataprotectionapplication}, \
         versions: [{name: v1alpha1, served: true, storage: true, \
         schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}",
    )
    .await?;
    definition_of(bed).await
}

async fn definition_of(bed: &Bed) -> Result<CustomResourceDefinition> {
    let definitions = Api::<CustomResourceDefinition>::all(bed.client().await?);
    Ok(definitions.get(&Kind::DataProtectionApplication.group_resource()).await?)
}

/// With a request that has finalizers, and one that is being deleted and has finalizers.
async fn uninstalled(bed: &Bed) -> Result<()> {
    let backups = Api::<NonAdminBackup>::namespaced(bed.client().await?, "shop");
    for name in ["stays", "stuck"] {
        let held = json!({"metadata": {"name": name, "finalizers": [labels::NAB_FINALIZER, "example.com/theirs"]},
            "spec": {"backupSpec": {}}});
        backups.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    }
    backups.delete("stuck", &DeleteParams::default()).await?;
    let free = Patch::Merge(json!({"metadata": {"finalizers": [labels::NAB_FINALIZER]}}));
    backups.patch("stuck", &PatchParams::default(), &free).await?;

    // A pod that still runs is waited for: nothing is taken away that it would put back.
    let pods = Api::<Pod>::namespaced(bed.client().await?, "velero");
    let pod = json!({"metadata": {"name": "still-here", "labels": {"control-plane": "non-admin-controller"}},
        "spec": {"containers": [{"name": "x", "image": "x"}], "serviceAccountName": "non-admin-controller"}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    let (success, _, words) = nacre(bed, &["uninstall", "--timeout", "1"]).await?;
    ensure!(!success && words.contains("pod still-here in velero did not end in time"), "{words}");
    ensure!(backups.get("stays").await?.finalizers().len() == 2);
    pods.delete("still-here", &DeleteParams::default().grace_period(0)).await?;

    let (planned, _) = well(bed, &["uninstall", "--dry-run"]).await?;
    ensure!(planned.contains("would let go of nonadminbackup/stays in shop"), "{planned}");
    // What the program leaves behind for itself goes too.
    bed.apply_yaml(
        "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: nacre, namespace: kube-system}, spec: {}}",
    )
    .await?;
    let (done, kept) = well(bed, &["uninstall", "--timeout", "5m"]).await?;
    ensure!(
        done.contains("delete lease/nacre in kube-system")
            && done.contains("delete role/nacre in kube-system"),
        "{done}"
    );
    ensure!(
        done.contains("delete clusterrole/nacre") && !done.contains("customresourcedefinition"),
        "{done}"
    );
    ensure!(kept.contains("1 nonadminbackups of tenants") && kept.contains("the namespace velero"), "{kept}");
    ensure!(backups.get_opt("stuck").await?.is_none(), "the object being deleted is stuck");
    ensure!(backups.get("stays").await?.finalizers() == ["example.com/theirs"]);
    let (again, _) = well(bed, &["uninstall", "--timeout", "5m"]).await?;
    ensure!(again.contains("nacre is not installed"), "{again}");

    // With the definitions, but for the one that is not nacre's.
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    backups.patch("stays", &PatchParams::default(), &free).await?;
    let (done, _) = well(bed, &["uninstall", "--crds", "--yes", "--timeout", "5m"]).await?;
    ensure!(done.lines().count() == 6 && !done.contains("dataprotectionapplications"), "{done}");
    let left = Api::<CustomResourceDefinition>::all(bed.client().await?);
    bed::eventually("the definitions to be gone", std::time::Duration::from_mins(2), async || {
        let names: Vec<_> =
            left.list(&ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect();
        ensure!(names == [Kind::DataProtectionApplication.group_resource()], "{names:?}");
        Ok(())
    })
    .await
    .context("uninstalling with the definitions")
}

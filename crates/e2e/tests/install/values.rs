//! Installing again: what was installed stays unless somebody says otherwise, and what would change is shown first.

use anyhow::{Context, Result, ensure};
use api::NonAdminBackup;
use bed::Bed;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use crate::life::{nacre, well};

const CONTROLLER: &str = "non-admin-controller";
const GROUP: &str = "oadp.openshift.io";

/// The image and the number of pods of what runs.
async fn runs(bed: &Bed) -> Result<(String, i32)> {
    let deployments = Api::<Deployment>::namespaced(bed.client().await?, "backup");
    let spec = deployments.get(CONTROLLER).await?.spec.context("a spec")?;
    let pod = spec.template.spec.context("a pod")?;
    let image = pod.containers.first().and_then(|container| container.image.clone()).context("an image")?;
    Ok((image, spec.replicas.unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_stays() -> Result<()> {
    let bed = Bed::builder().start().await?;
    let (success, _, words) = nacre(&bed, &["install"]).await?;
    ensure!(!success && words.contains("say which image to run: --image"), "{words}");
    let (success, _, words) =
        nacre(&bed, &["install", "--image", "first:1", "-n", "velero", "--velero-namespace", "backup"])
            .await?;
    ensure!(!success && words.contains("say one of them"), "{words}");

    let first =
        ["--image", "first:1", "--replicas", "3", "--velero-view", "--no-webhook", "--aggregate-to", "admin"];
    well(&bed, &[&["install", "--velero-namespace", "backup", "--timeout", "2m"], &first[..]].concat())
        .await?;
    let mark = bed.audit().mark().await?;
    let (again, _) = well(&bed, &["install"]).await?;
    ensure!(again.contains("nacre is installed in backup as asked for; nothing to do"), "{again}");
    let writes = bed.audit().since(mark).await?.writes().by("kubectl-nacre/");
    ensure!(writes.is_empty(), "{:#?}", writes.tally());

    // A change is shown field by field before it is made.
    let (planned, _) = well(&bed, &["install", "--image", "second:2", "--dry-run"]).await?;
    let expected = "would change deployment/non-admin-controller in backup\n    \
                    spec.template.spec.containers[non-admin-controller].image: first:1 -> second:2\n\
                    would change configmap/nacre-install-values in backup\n    data.image: first:1 -> second:2\n";
    ensure!(planned == expected, "{planned}");
    ensure!(runs(&bed).await? == ("first:1".to_owned(), 3));

    // A change by hand is not taken back, and what is lost comes back as it was.
    let image = format!("{CONTROLLER}=third:3");
    bed.kubectl(&["set", "image", "deployment", CONTROLLER, &image, "-n", "backup"]).await?.ok()?;
    bed.kubectl(&["set", "env", "deployment", CONTROLLER, "HTTPS_PROXY=proxy:3128", "-n", "backup"])
        .await?
        .ok()?;
    let (_, remarks) = well(&bed, &["install"]).await?;
    ensure!(remarks.contains("image is third:3 on the Deployment and was first:1"), "{remarks}");
    let (again, _) = well(&bed, &["install"]).await?;
    ensure!(again.contains("nothing to do"), "{again}");
    let proxy = bed.kubectl(&["get", "deployment", CONTROLLER, "-n", "backup", "-o", "yaml"]).await?.ok()?;
    ensure!(proxy.contains("proxy:3128"), "{proxy}");
    bed.kubectl(&["delete", "deployment", CONTROLLER, "-n", "backup"]).await?.ok()?;
    well(&bed, &["install"]).await?;
    ensure!(runs(&bed).await? == ("third:3".to_owned(), 3));
    // An installation of before there was a record.
    bed.kubectl(&["delete", "configmap", "nacre-install-values", "-n", "backup"]).await?.ok()?;
    let (done, _) = well(&bed, &["install"]).await?;
    ensure!(done == "create configmap/nacre-install-values in backup\n", "{done}");

    only_admins_may_ask(&bed).await?;
    doctor_agrees(&bed).await?;
    let (done, _) =
        well(&bed, &["install", "--velero-view=false", "--aggregate-to", "admin,edit,view"]).await?;
    ensure!(done.contains("delete clusterrole/nacre:velero-view\n"), "{done}");
    bed.wait_allowed("eve", "shop", "create", GROUP, "nonadminbackups").await?;
    there_is_no_kubevirt(&bed).await?;
    requests_are_not_lost_unasked(&bed).await
}

async fn only_admins_may_ask(bed: &Bed) -> Result<()> {
    bed.namespace("shop").await?;
    bed.bind("shop", "ada", "admin").await?;
    bed.bind("shop", "eve", "edit").await?;
    bed.bind("shop", "vic", "view").await?;
    bed.wait_allowed("ada", "shop", "create", GROUP, "nonadminbackups").await?;
    for user in ["eve", "vic"] {
        ensure!(!bed.allowed(user, "shop", "get", GROUP, "nonadminbackups").await?, "{user} may look");
    }
    // Some users only.
    bed.kubectl(&["create", "rolebinding", "asks", "--clusterrole=nacre:edit", "--user=may", "-n", "shop"])
        .await?
        .ok()?;
    bed.wait_allowed("may", "shop", "create", GROUP, "nonadminbackups").await
}

/// What was installed on purpose is neither a problem nor a warning.
async fn doctor_agrees(bed: &Bed) -> Result<()> {
    let (_, page, words) = nacre(bed, &["doctor", "-n", "backup", "-o", "json"]).await?;
    let page: Value = serde_json::from_str(&page).with_context(|| words)?;
    let findings = page["findings"].as_array().context("findings")?;
    let said = |verdict: &str, text: &str| {
        findings.iter().any(|one| one["verdict"] == verdict && one["message"].to_string().contains(text))
    };
    ensure!(said("note", "aggregateTo is [admin]"), "{page:#}");
    ensure!(said("note", "the webhook is off (webhook: false)"), "{page:#}");
    ensure!(said("ok", "roles and bindings are there and current"), "{page:#}");
    Ok(())
}

async fn there_is_no_kubevirt(bed: &Bed) -> Result<()> {
    let without = [
        &["migration", "grant", "--user", "ann", "-n", "shop"][..],
        &["migration", "rollback", "--dry-run"],
        &["migration", "install"],
    ];
    for args in without {
        let (success, done, words) = nacre(bed, args).await?;
        ensure!(!success && done.is_empty(), "{args:?}: {done}");
        ensure!(words.contains("there is no KubeVirt on this cluster"), "{args:?}: {words}");
    }
    let client = bed.client().await?;
    let bindings = Api::<RoleBinding>::all(client.clone()).list(&ListParams::default()).await?.items;
    ensure!(bindings.iter().all(|one| !one.role_ref.name.contains("migrate")), "{bindings:#?}");
    ensure!(Api::<ClusterRole>::all(client).get_opt("kubevirt.io:migrate").await?.is_none());
    Ok(())
}

async fn requests_are_not_lost_unasked(bed: &Bed) -> Result<()> {
    let backups = Api::<NonAdminBackup>::namespaced(bed.client().await?, "shop");
    let backup = json!({"metadata": {"name": "daily"}, "spec": {"backupSpec": {}}});
    backups.create(&PostParams::default(), &serde_json::from_value(backup)?).await?;
    let (success, done, words) = nacre(bed, &["uninstall", "--crds"]).await?;
    let counted = "1 NonAdminBackup in 1 namespace";
    ensure!(
        !success && done.is_empty() && words.contains(counted) && words.contains("--yes"),
        "{done}{words}"
    );
    backups.get("daily").await?;
    runs(bed).await?;
    let (_, words) = well(bed, &["uninstall", "--crds", "--dry-run"]).await?;
    ensure!(words.contains(&format!("would be removed with the CRDs: {counted}")), "{words}");
    let (done, words) = well(bed, &["uninstall", "--crds", "--yes", "--timeout", "5m"]).await?;
    ensure!(done.contains("delete customresourcedefinition/nonadminbackups"), "{done}");
    ensure!(done.contains("delete configmap/nacre-install-values in backup"), "{done}");
    ensure!(words.contains(&format!("removed with the CRDs: {counted}")), "{words}");
    Ok(())
}

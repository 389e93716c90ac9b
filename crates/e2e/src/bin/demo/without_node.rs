//! The demo without a node: no pod runs, and so no volume is lost. What comes back is objects.

use anyhow::{Context, Result, ensure};
use api::{NonAdminRestore, condition};
use e2e::{Tenant, TestCluster};

use crate::show::{command, heading as say, line};

const SHOP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: prices, namespace: shop }
data: { tea: '3', coffee: '4' }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web:1 }] }
";

const BACKUP: &str = "
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata: { name: daily, namespace: shop }
spec: { backupSpec: {} }
";

const RESTORE: &str = "
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminRestore
metadata: { name: back, namespace: shop }
spec: { restoreSpec: { backupName: daily } }
";

const THEFT: &str = "
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminRestore
metadata: { name: theft, namespace: rival }
spec: { restoreSpec: { backupName: daily } }
";

pub(crate) async fn story() -> Result<()> {
    say("A real cluster: etcd, kube-apiserver, kube-controller-manager, an S3 store and Velero");
    let test_cluster = TestCluster::build().await?;
    say("nacre, running as its own ServiceAccount");
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rival = test_cluster.tenant("rival", "bob").await?;

    say("ada owns the namespace shop, and has no right anywhere else");
    apply(&shop, SHOP).await?;
    show(&shop, &["get", "configmaps,deployments", "-n", "shop"]).await?;
    refused(&shop, &["get", "backups.velero.io", "-n", "velero"]).await?;

    say("She backs it up");
    apply(&shop, BACKUP).await?;
    let outcome = shop.backup_ends("daily").await?;
    ensure!(outcome == "Completed", "the backup ended as {outcome}");
    show(&shop, &["get", "nonadminbackups", "-n", "shop"]).await?;
    let stored = test_cluster.bed.store()?.keys(bed::BUCKET)?;
    line(&format!(
        "   {} objects are in the bucket, for example {}",
        stored.len(),
        stored.first().context("one")?
    ));

    say("She loses a config map and a deployment");
    show(&shop, &["delete", "configmap/prices", "deployment/web", "-n", "shop"]).await?;

    say("She restores them");
    apply(&shop, RESTORE).await?;
    let outcome = shop.restore_ends("back").await?;
    ensure!(outcome == "Completed", "the restore ended as {outcome}");
    show(&shop, &["get", "nonadminrestores", "-n", "shop"]).await?;
    show(&shop, &["get", "configmap/prices", "deployment/web", "-n", "shop"]).await?;

    say("bob, who owns the namespace rival, tries to take her backup");
    refused(&rival, &["get", "nonadminbackups", "-n", "shop"]).await?;
    apply(&rival, THEFT).await?;
    let reason = rival
        .wait("the theft to be refused", "theft", |restore: Option<&NonAdminRestore>| {
            let accepted = condition::get(&restore?.status.as_ref()?.conditions, condition::ACCEPTED)?;
            (accepted.status == "False").then(|| accepted.message.clone())
        })
        .await?;
    line(&format!("   refused: {reason}"));

    say("And the Events show what happened");
    show(&shop, &["get", "events", "-n", "shop", "-o", EVENTS]).await?;
    show(&rival, &["get", "events", "-n", "rival", "-o", EVENTS]).await
}

const EVENTS: &str = "custom-columns=TYPE:.type,REASON:.reason,ABOUT:.involvedObject.name,MESSAGE:.message";

async fn apply(who: &Tenant<'_>, manifest: &str) -> Result<()> {
    let file = who.bed.folder().join("manifest.yaml");
    std::fs::write(&file, manifest)?;
    let path = file.to_string_lossy();
    show(who, &["apply", "-f", &path]).await
}

/// Runs kubectl as this user and shows the command and what came of it.
async fn show(who: &Tenant<'_>, args: &[&str]) -> Result<()> {
    let text = kubectl(who, args).await?.ok()?;
    text.lines().for_each(|text| line(&format!("   {text}")));
    Ok(())
}

/// Runs kubectl as this user and shows how it is refused.
async fn refused(who: &Tenant<'_>, args: &[&str]) -> Result<()> {
    let output = kubectl(who, args).await?;
    ensure!(!output.success, "{} was allowed to: kubectl {}", who.user, args.join(" "));
    line(&format!("   {}", output.stderr.trim()));
    Ok(())
}

async fn kubectl(who: &Tenant<'_>, args: &[&str]) -> Result<bed::Output> {
    let user = format!("--as={}", who.user);
    command(&who.user, "kubectl", args);
    who.bed.kubectl(&[args, &[user.as_str()]].concat()).await
}

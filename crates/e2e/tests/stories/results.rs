//! What Velero reported about a restore from the cluster's own storage is the tenant's to read, without any link to that
//! storage.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::DownloadRequest;
use api::{LogLines, NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, condition};
use bed::eventually;
use e2e::{Tenant, TestCluster, VELERO};
use flate2::{Compression, write::GzEncoder};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::{downloads, forged};

const TIMEOUT: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn warnings_of_a_restore_are_shown_to_the_tenant_and_no_link_is_left() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    for number in 0..5 {
        shop.create::<ConfigMap>(&format!("price-{number}"), json!({"data": {"tea": "3"}})).await?;
    }
    shop.create::<ConfigMap>("alone", json!({"data": {"tea": "3"}})).await?;
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");
    for number in 0..5 {
        shop.edit::<ConfigMap>(&format!("price-{number}"), json!({"data": {"tea": "4"}})).await?;
    }

    shop.restore("back", "daily").await?;
    ensure!(shop.restore_ends("back").await? == "Completed");
    let status = shop
        .wait("the warnings", "back", |restore: Option<&NonAdminRestore>| {
            let status = restore?.status.as_ref()?;
            condition::get(&status.conditions, condition::RESULTS_READ).map(|_| status.clone())
        })
        .await?;
    let found = condition::get(&status.conditions, condition::RESULTS_READ).context("ResultsRead")?;
    ensure!(found.status == "True" && found.reason == condition::WARNINGS_REPORTED, "{found:?}");
    ensure!(found.message.contains("already exists"), "{}", found.message);
    let results = status.results.context("results")?;
    // Five that differ only in the object are one line.
    let grouped = results.warnings.iter().find(|line| line.starts_with("5 objects were not restored"));
    // Older versions of Velero have the name in quotes.
    let is_named =
        |line: &String| line.contains("ConfigMap:price-0") || line.contains("ConfigMap \"price-0\"");
    ensure!(grouped.is_some_and(is_named), "{results:#?}");
    ensure!(results.errors.is_empty() && !format!("{results:?}").contains("http"), "{results:#?}");

    // A backup without warnings has nothing to read, and no request for a link is left behind.
    let backup = shop.api::<NonAdminBackup>().get("daily").await?.status.context("a status")?;
    ensure!(condition::get(&backup.conditions, condition::RESULTS_READ).is_none());
    let requests = Api::<DownloadRequest>::namespaced(test_cluster.bed.client().await?, VELERO);
    eventually("the request for a link to be gone", TIMEOUT, async || {
        let left = requests.list(&ListParams::default()).await?.items;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
}

/// Waits until nacre has read a log, and returns what it shows of it.
async fn log(tenant: &Tenant<'_>, name: &str, kind: &str, of: &str) -> Result<LogLines> {
    downloads::ask(tenant, name, kind, of).await?;
    let status = tenant
        .wait("the log", name, |request: Option<&NonAdminDownloadRequest>| {
            let status = request?.status.as_ref()?;
            condition::is_true(&status.conditions, condition::PROCESSED).then(|| status.clone())
        })
        .await?;
    let link = status.velero.and_then(|velero| velero.status?.download_url);
    ensure!(link.is_none(), "there is a link");
    status.log.context("the lines of the log")
}

/// Without any policy the owner of a namespace reads the log of its backups and restores, and nothing of anybody else.
#[tokio::test(flavor = "multi_thread")]
async fn logs_are_shown_to_the_tenant_without_any_policy_and_name_nobody_else() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rival = test_cluster.tenant("rival", "bob").await?;
    for tenant in [&shop, &rival] {
        tenant
            .create::<ConfigMap>(&format!("{}-prices", tenant.namespace), json!({"data": {"tea": "3"}}))
            .await?;
        tenant.back_up("daily").await?;
        ensure!(tenant.backup_ends("daily").await? == "Completed");
    }
    // The log of shop's backup now has a line about somebody else, and one with a key, as if a plugin had written them.
    let backup = shop.api::<NonAdminBackup>().get("daily").await?;
    let velero = backup.status.and_then(|status| status.velero_backup?.name).context("a reference")?;
    let stored = test_cluster.bed.store()?.path(bed::BUCKET, &format!("backups/{velero}/{velero}-logs.gz"));
    let mut file = std::fs::read(&stored)?;
    let planted = format!(
        "time=\"2026-11-18T07:00:00Z\" level=error msg=\"planted\" backup={VELERO}/{velero} namespace=rival name=x\n\
         time=\"2026-11-18T07:00:00Z\" level=error msg=\"planted: denied in rival/x\" backup={VELERO}/{velero}\n\
         time=\"2026-11-18T07:00:00Z\" level=error msg=\"planted: AKIAIOSFODNN7EXAMPLE\" backup={VELERO}/{velero}\n\
         time=\"2026-11-18T07:00:00Z\" level=error msg=\"no answer from https://s3.internal/x?X-Amz-Signature=0\" \
         backup={VELERO}/{velero}\n"
    );
    file.extend(compressed(planted.as_bytes())?);
    std::fs::write(&stored, file)?;

    shop.restore("back", "daily").await?;
    ensure!(shop.restore_ends("back").await? == "Completed");
    for (name, kind, of) in [("log", "BackupLog", "daily"), ("how", "RestoreLog", "back")] {
        let log = log(&shop, name, kind, of).await?;
        let text = log.lines.join("\n");
        ensure!(text.contains("name=shop-prices") && text.contains("level=info"), "{log:#?}");
        // Velero's plugins name themselves `velero.io/...`, which tells nobody anything.
        let in_velero = format!("{VELERO}/");
        for other in ["rival", "planted", "AKIA", "://", in_velero.as_str()] {
            ensure!(!text.replace(&velero, "").contains(other), "{other}: {text}");
        }
        ensure!(log.lines.len() > 5 && log.lines.len() <= api::MOST_LINES, "{log:#?}");
        ensure!(kind == "RestoreLog" || text.contains("no answer from <address>"), "{log:#?}");
        ensure!(kind == "RestoreLog" || log.left_out.is_some_and(|many| many >= 3), "{log:#?}");
    }
    // Nobody reads the log of somebody else's.
    downloads::ask(&rival, "theft", "BackupLog", &velero).await?;
    let gets = downloads::reported(&rival, "theft", condition::BACKUP_NOT_AVAILABLE).await?;
    ensure!(gets.contains("there is no NonAdminBackup"), "{gets}");
    Ok(())
}

fn compressed(text: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    Ok(encoder.finish()?)
}

/// What nacre's modifier takes off objects leaves no trace on those that had nothing of it: Velero compares each with
/// the one in the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn unchanged_objects_from_own_storage_give_no_warnings() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    forged::tenant_storage(&test_cluster, &shop).await?;
    for number in 0..40 {
        shop.create::<ConfigMap>(&format!("price-{number}"), json!({"data": {"tea": "3"}})).await?;
    }
    let annotated =
        json!({"metadata": {"annotations": {"shop.example.com/by": "ada"}}, "data": {"tea": "3"}});
    shop.create::<ConfigMap>("annotated", annotated).await?;
    shop.create::<ConfigMap>("changed", json!({"data": {"tea": "3"}})).await?;
    forged::genuine_backup(&test_cluster, &shop).await?;
    shop.edit::<ConfigMap>("changed", json!({"data": {"tea": "4"}})).await?;

    shop.restore("back", "daily").await?;
    ensure!(shop.restore_ends("back").await? == "Completed");
    let name = shop
        .api::<NonAdminRestore>()
        .get("back")
        .await?
        .status
        .and_then(|status| status.velero_restore?.name);
    let restores = test_cluster.bed.velero_api("Restore").await?;
    let restore = restores.get(&name.context("a reference")?).await?;
    // One that differs, the certificates that the cluster itself keeps in the namespace, and nothing of the 41.
    let warnings = restore.data["status"]["warnings"].as_u64().unwrap_or_default();
    ensure!((1..=3).contains(&warnings), "{}", restore.data["status"]);
    Ok(())
}

//! Schedules on real Velero: runs through real minutes, and retention that removes data from the bucket.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, NonAdminSchedule, labels};
use bed::eventually;
use e2e::{TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

/// Several minutes of real time, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(8);

#[tokio::test(flavor = "multi_thread")]
async fn every_minute_a_backup_is_made_and_the_data_of_old_ones_goes() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy("schedules: {spread: 0}\n").await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let spec = json!({"schedule": "* * * * *", "retention": {"keepLast": 1}, "template": {"backupSpec": {}}});
    shop.create::<NonAdminSchedule>("often", json!({ "spec": spec })).await?;

    let runs = shop.api::<NonAdminBackup>();
    let own = ListParams::default().labels(&format!("{}=often", labels::NAS_NAME));
    let velero = Api::<Backup>::namespaced(test_cluster.bed.client().await?, VELERO);
    let mut made = std::collections::BTreeSet::new();
    let mut good = std::collections::BTreeSet::new();
    let three_made_and_one_kept = async || {
        let status = shop.api::<NonAdminSchedule>().get("often").await?.status.unwrap_or_default();
        good.extend(status.last_good_backup);
        made.extend(runs.list(&own).await?.items.iter().map(ResourceExt::name_any));
        // A run is known by its time: never two of one minute.
        let minutes: std::collections::BTreeSet<_> = made.iter().filter_map(|name| name.get(..18)).collect();
        ensure!(minutes.len() == made.len(), "two runs of one minute: {made:?}");
        ensure!(good.len() >= 3, "good so far: {good:?}, made: {made:?}");
        Ok(())
    };
    eventually("three good runs", TIMEOUT, three_made_and_one_kept).await?;
    shop.edit::<NonAdminSchedule>("often", json!({"spec": {"paused": true}})).await?;
    let one_is_left = async || {
        let left = runs.list(&own).await?.items;
        ensure!(left.len() == 1, "{:?}", left.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
        let at_velero = velero.list(&ListParams::default()).await?.items;
        ensure!(
            at_velero.len() == 1,
            "{:?}",
            at_velero.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        );
        let left = at_velero[0].name_any();
        let stored = test_cluster.bed.store()?.keys(bed::BUCKET)?;
        let others: Vec<_> =
            stored.iter().filter(|key| key.contains("backups/") && !key.contains(&left)).collect();
        ensure!(others.is_empty(), "the data of others is in the bucket: {others:?}");
        Ok(left)
    };
    let left = eventually("retention", TIMEOUT, one_is_left).await?;
    let status = shop.api::<NonAdminSchedule>().get("often").await?.status.unwrap_or_default();
    let newest = status.last_good_backup.unwrap_or_default();
    let kept = runs.get(&newest).await?.status.and_then(|status| status.velero_backup?.name);
    ensure!(kept.as_deref() == Some(left.as_str()), "{kept:?} and {left}");
    // Paused and settled: no writes.
    let mark = test_cluster.bed.audit().mark().await?;
    shop.edit::<ConfigMap>("prices", json!({"data": {"tea": "4"}})).await?;
    let written = test_cluster.bed.audit().since(mark).await?;
    let written = written.only(|request| {
        request.resource == "nonadminschedules" && !matches!(request.verb.as_str(), "get" | "list" | "watch")
    });
    ensure!(written.is_empty(), "{:#?}", written.tally());
    nacre.process.terminate(Duration::from_secs(15)).await?;
    Ok(())
}

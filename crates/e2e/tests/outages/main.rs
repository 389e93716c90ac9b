//! Outages of the API server, etcd, Velero and the store. Each time everything continues by itself.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, Phase};
use bed::wait_until;
use e2e::{Blackhole, NACRE, Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

/// Velero looks at a location about once a minute.
const TIMEOUT: Duration = Duration::from_mins(3);

async fn created(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let api = tenant.api::<NonAdminBackup>();
    wait_until("it to be Created", TIMEOUT, api, name, |backup| {
        let status = backup?.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
        status.velero_backup.as_ref()?.name.clone()
    })
    .await
}

/// How Velero ended a backup, as the tenant is shown.
async fn ends(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let api = tenant.api::<NonAdminBackup>();
    wait_until("the backup to end", TIMEOUT, api, name, |backup| {
        let velero = backup?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
        // Velero writes no time of the end for a backup that it could not upload.
        let over = ["Completed", "PartiallyFailed", "Failed", "FailedValidation"];
        velero.phase.clone().filter(|phase| over.contains(&phase.as_str()))
    })
    .await
}

async fn made(test_cluster: &TestCluster) -> Result<usize> {
    let backups = Api::<Backup>::namespaced(test_cluster.bed.client().await?, VELERO);
    Ok(backups.list(&ListParams::default()).await?.items.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_restarts_and_etcd_stands_still() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("before").await?;
    ensure!(ends(&shop, "before").await? == "Completed");

    test_cluster.bed.restart_api_server().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("after").await?;
    ensure!(ends(&shop, "after").await? == "Completed");

    // In the middle of a request's way.
    shop.back_up("meanwhile").await?;
    test_cluster.bed.pause_etcd(true)?;
    sleep(Duration::from_secs(8)).await;
    test_cluster.bed.pause_etcd(false)?;
    ensure!(ends(&shop, "meanwhile").await? == "Completed");
    ensure!(made(&test_cluster).await? == 3, "one each");
    shop.delete::<NonAdminBackup>("before").await?;
    shop.gone::<NonAdminBackup>("before").await?;
    ensure!(nacre.process.is_running());
    test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(5)).await
}

/// As when one of several API servers is gone with its machine: nobody closes the line.
#[tokio::test(flavor = "multi_thread")]
async fn the_line_dies_without_a_word() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    let blackhole = Blackhole::lay(&test_cluster.account().await?).await?;
    let nacre = test_cluster.start_nacre_with(&blackhole.kubeconfig).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("before").await?;
    created(&shop, "before").await?;

    blackhole.dies();
    let died = Instant::now();
    shop.back_up("after").await?;
    created(&shop, "after").await?;
    eprintln!("dead line: nacre went on after {:.0} s", died.elapsed().as_secs_f64());
    ensure!(made(&test_cluster).await? == 2, "one each");
    ensure!(nacre.process.is_running());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn velero_dies_in_the_middle_of_a_backup() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    // Enough to be busy with for a while.
    let maps = shop.api::<ConfigMap>();
    for at in 0..300 {
        let map = json!({"metadata": {"name": format!("m{at}")}, "data": {"x": "y".repeat(2000)}});
        maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    }
    shop.back_up("cut").await?;
    let name = created(&shop, "cut").await?;
    let backups = Api::<Backup>::namespaced(test_cluster.bed.client().await?, VELERO);
    wait_until("Velero to have begun", TIMEOUT, backups, &name, |backup| {
        (backup?.phase() == "InProgress").then_some(())
    })
    .await?;
    test_cluster.bed.velero_stop()?;
    test_cluster.bed.velero_start().await?;
    // Velero gives up what it was at when it died, or had just finished; the tenant is shown which.
    let ended = ends(&shop, "cut").await?;
    ensure!(["Failed", "Completed"].contains(&ended.as_str()), "{ended}");
    shop.back_up("again").await?;
    ensure!(ends(&shop, "again").await? == "Completed");
    shop.delete::<NonAdminBackup>("cut").await?;
    shop.gone::<NonAdminBackup>("cut").await?;
    ensure!(nacre.process.is_running());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_goes_down_and_comes_back() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("before").await?;
    ensure!(ends(&shop, "before").await? == "Completed");

    // Down: what Velero has ends badly, and says so.
    let store = test_cluster.bed.store()?;
    store.go_down();
    shop.back_up("down").await?;
    let ended = ends(&shop, "down").await?;
    ensure!(["Failed", "FailedValidation"].contains(&ended.as_str()), "{ended}");
    store.go_up().await?;

    // Back: the next one is made, and the failed one can be deleted.
    let locations = test_cluster.bed.velero_api("BackupStorageLocation").await?;
    wait_until("the location to be available again", TIMEOUT, locations, "default", |location| {
        (location?.data["status"]["phase"] == "Available").then_some(())
    })
    .await?;
    shop.back_up("after").await?;
    ensure!(ends(&shop, "after").await? == "Completed");
    shop.delete::<NonAdminBackup>("down").await?;
    shop.gone::<NonAdminBackup>("down").await?;
    ensure!(made(&test_cluster).await? == 2, "before and after");
    ensure!(nacre.process.is_running());
    Ok(())
}

/// More than fits on the store's disk, of what does not compress.
async fn grow_large(shop: &Tenant<'_>) -> Result<()> {
    let maps = shop.api::<ConfigMap>();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in 0..10 {
        let mut noise = String::new();
        for _ in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            write!(noise, "{state:016x}")?;
        }
        let map = json!({"metadata": {"name": format!("large{at}")}, "data": {"noise": noise}});
        maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_under_the_bucket_is_full() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let store = test_cluster.bed.store()?;
    store.go_down();
    store.go_up_on_small_disk(2 << 20).await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("before").await?;
    ensure!(ends(&shop, "before").await? == "Completed");

    // Too much: the tenant is shown that it failed, and what is whole stays whole.
    grow_large(&shop).await?;
    shop.back_up("too-large").await?;
    let ended = ends(&shop, "too-large").await?;
    ensure!(["Failed", "PartiallyFailed"].contains(&ended.as_str()), "{ended}");
    shop.delete::<NonAdminBackup>("too-large").await?;
    shop.gone::<NonAdminBackup>("too-large").await?;

    // Smaller again: the next one fits.
    shop.api::<ConfigMap>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    shop.back_up("after").await?;
    ensure!(ends(&shop, "after").await? == "Completed");
    ensure!(made(&test_cluster).await? == 2, "before and after");
    ensure!(nacre.process.is_running());
    Ok(())
}

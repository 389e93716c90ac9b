//! kill -9 between any two writes of each path: afterwards there is exactly one Velero object or none, as the story
//! demands, and nothing is orphaned.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, DownloadRequest, Restore};
use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, condition, labels};
use bed::eventually;
use e2e::{FaultProxy, NACRE, Nacre, Tenant, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

/// More writes than any path has.
const ENOUGH: usize = 12;
/// How long what is gone from a tenant's view may take to be gone from Velero's.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A cluster whose nacre is killed again and again.
struct Stage<'a> {
    test_cluster: &'a TestCluster,
    fault_proxy: FaultProxy,
    nacre: Nacre,
}

impl<'a> Stage<'a> {
    async fn set(test_cluster: &'a TestCluster) -> Result<Self> {
        let fault_proxy = FaultProxy::open(&test_cluster.account().await?).await?;
        let nacre =
            test_cluster.start_nacre_with(&fault_proxy.kubeconfig(test_cluster.bed.folder())?).await?;
        Ok(Self { test_cluster, fault_proxy, nacre })
    }

    /// Kills nacre after so many writes about something that `step` begins, or when it has come to its `end`, and starts it
    /// again. Returns whether there were so many.
    async fn kill_after(
        &mut self,
        writes: usize,
        about: &str,
        step: impl Future<Output = Result<()>>,
        end: impl Future<Output = Result<()>>,
    ) -> Result<bool> {
        self.fault_proxy.cut_after_writes_about(about, writes);
        step.await?;
        tokio::select! {
            () = self.fault_proxy.silent() => {}
            ended = end => ended?,
        }
        // The end may be seen before the proxy has heard that the last write went through.
        let died = timeout(Duration::from_millis(500), self.fault_proxy.silent()).await.is_ok();
        self.nacre.process.kill().await?;
        self.fault_proxy.relent();
        self.nacre = self
            .test_cluster
            .start_nacre_with(&self.fault_proxy.kubeconfig(self.test_cluster.bed.folder())?)
            .await?;
        Ok(died)
    }
}

/// What is asked for on a path that nacre is killed on after so many writes. None is named like the beginning of another,
/// and Velero's Restores have room for eleven characters of namespace and name.
fn name(path: &str, writes: usize) -> String {
    format!("{path}-{writes}-w")
}

async fn backed_up(shop: &Tenant<'_>, name: &str) -> Result<()> {
    let ended = shop.backup_ends(name).await?;
    ensure!(ended == "Completed", "{name}: {ended}");
    Ok(())
}

async fn restored(shop: &Tenant<'_>, name: &str) -> Result<()> {
    let ended = shop.restore_ends(name).await?;
    ensure!(ended == "Completed", "{name}: {ended}");
    Ok(())
}

/// The objects of Velero's that were made for a request of this name, by the annotation that says so.
async fn made_for<K>(test_cluster: &TestCluster, name: &str, key: &str) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let all = test_cluster.admin::<K>().await?.list(&ListParams::default()).await?.items;
    let own = all.iter().filter(|object| object.annotations().get(key).is_some_and(|origin| origin == name));
    Ok(own.map(ResourceExt::name_any).collect())
}

/// How many objects of this Velero Backup are in the bucket.
fn keys_of(test_cluster: &TestCluster, backup: &str) -> Result<usize> {
    let folder = format!("backups/{backup}/");
    Ok(test_cluster.bed.store()?.keys(bed::BUCKET)?.iter().filter(|key| key.starts_with(&folder)).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn death_between_any_two_writes_changes_nothing_in_the_end() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let mut stage = Stage::set(&test_cluster).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;

    // Creating: finalizer, Velero Backup, status. Mirroring: one status for each thing Velero says. One write more than
    // there are shows that all were tried.
    let mut finished = Vec::new();
    for writes in 1..ENOUGH {
        let name = name("create", writes);
        let step = async { shop.back_up(&name).await.map(drop) };
        let died = stage.kill_after(writes, &name, step, backed_up(&shop, &name)).await?;
        backed_up(&shop, &name).await?;
        let made = made_for::<Backup>(&test_cluster, &name, labels::NAB_NAME).await?;
        ensure!(made.len() == 1, "{name}: {made:?}");
        finished.push(name);
        if !died {
            break;
        }
    }
    ensure!((5..ENOUGH - 1).contains(&finished.len()), "creating and mirroring: {finished:?}");

    // Deleting the request alone, and with its data.
    for with_data in [false, true] {
        let mut tried = 0;
        for writes in 1..ENOUGH {
            tried = writes;
            let name = finished.pop().unwrap_or_else(|| name("more", writes));
            if shop.api::<NonAdminBackup>().get_opt(&name).await?.is_none() {
                shop.back_up(&name).await?;
                backed_up(&shop, &name).await?;
            }
            let stored = made_for::<Backup>(&test_cluster, &name, labels::NAB_NAME).await?.remove(0);
            ensure!(keys_of(&test_cluster, &stored)? > 0, "its data is in the bucket");
            let step = async {
                if with_data {
                    let change = json!({"spec": {"deleteBackup": true}});
                    shop.edit::<NonAdminBackup>(&name, change).await.map(drop)
                } else {
                    shop.delete::<NonAdminBackup>(&name).await
                }
            };
            let died = stage.kill_after(writes, &name, step, shop.gone::<NonAdminBackup>(&name)).await?;
            shop.gone::<NonAdminBackup>(&name).await?;
            let left = made_for::<Backup>(&test_cluster, &name, labels::NAB_NAME).await?;
            ensure!(left.is_empty(), "after {writes} writes, with data {with_data}: {left:?}");
            let data_gone = keys_of(&test_cluster, &stored)? == 0;
            ensure!(
                data_gone == with_data,
                "after {writes} writes: the data goes exactly when it was asked for"
            );
            if !died {
                break;
            }
        }
        // The Velero Backup and the finalizer; with data also the status, and a DeleteBackupRequest.
        let expected = if with_data { 4..ENOUGH - 1 } else { 3..4 };
        ensure!(expected.contains(&tried), "deleting takes {} writes", tried - 1);
    }
    test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn death_between_any_two_writes_of_a_restore_or_download_changes_nothing_in_the_end() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy("downloads: {platformStorage: logs}").await?;
    let mut stage = Stage::set(&test_cluster).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.back_up("daily").await?;
    backed_up(&shop, "daily").await?;

    // Restoring: finalizer, Velero Restore, status. Mirroring: one status for each thing Velero says.
    let mut finished = Vec::new();
    for writes in 1..ENOUGH {
        let name = name("r", writes);
        shop.delete::<ConfigMap>("prices").await?;
        let step = async { shop.restore(&name, "daily").await.map(drop) };
        let died = stage.kill_after(writes, &name, step, restored(&shop, &name)).await?;
        restored(&shop, &name).await?;
        let made = made_for::<Restore>(&test_cluster, &name, labels::NAR_NAME).await?;
        ensure!(made.len() == 1, "{name}: {made:?}");
        shop.api::<ConfigMap>().get("prices").await?;
        finished.push(name);
        if !died {
            break;
        }
    }
    ensure!((5..ENOUGH - 1).contains(&finished.len()), "restoring and mirroring: {finished:?}");

    // Deleting: status, Velero Restore, finalizer.
    for (writes, name) in (1..).zip(&finished[..4]) {
        let step = shop.delete::<NonAdminRestore>(name);
        let died = stage.kill_after(writes, name, step, shop.gone::<NonAdminRestore>(name)).await?;
        ensure!(died == (writes <= 3), "deleting takes three writes, and not {writes}");
        shop.gone::<NonAdminRestore>(name).await?;
        let left = made_for::<Restore>(&test_cluster, name, labels::NAR_NAME).await?;
        ensure!(left.is_empty(), "{name}: {left:?}");
    }
    downloads(&mut stage, &shop).await?;
    test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(2)).await
}

/// Waits for the link.
async fn linked(shop: &Tenant<'_>, name: &str) -> Result<()> {
    shop.wait("the link", name, |request: Option<&NonAdminDownloadRequest>| {
        condition::is_true(&request?.status.as_ref()?.conditions, condition::PROCESSED).then_some(())
    })
    .await
}

async fn downloads(stage: &mut Stage<'_>, shop: &Tenant<'_>) -> Result<()> {
    let test_cluster = stage.test_cluster;
    // Asking Velero, and showing the link.
    for writes in 1..=3 {
        let name = name("log", writes);
        let ask = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
        let step = async { shop.create::<NonAdminDownloadRequest>(&name, ask).await.map(drop) };
        let died = stage.kill_after(writes, &name, step, linked(shop, &name)).await?;
        ensure!(died == (writes <= 2), "a download takes two writes, and not {writes}");
        linked(shop, &name).await?;
        let made = made_for::<DownloadRequest>(test_cluster, &name, labels::NADR_NAME).await?;
        ensure!(made.len() == 1, "{name}: {made:?}");
    }
    // Its end takes Velero's object along, also if nacre dies of it.
    for writes in 1..=2 {
        let name = name("log", writes);
        let uid = shop.api::<NonAdminDownloadRequest>().get(&name).await?.uid().context("a uid")?;
        let gone = || {
            eventually("Velero's object to go", TIMEOUT, async || {
                let left = made_for::<DownloadRequest>(test_cluster, &name, labels::NADR_NAME).await?;
                ensure!(left.is_empty(), "{left:?}");
                anyhow::Ok(())
            })
        };
        let step = shop.delete::<NonAdminDownloadRequest>(&name);
        let died = stage.kill_after(writes, &uid, step, gone()).await?;
        ensure!(died == (writes <= 1), "its end takes one write, and not {writes}");
        gone().await?;
    }
    Ok(())
}

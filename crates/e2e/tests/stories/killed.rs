//! kill -9 between any two writes of each path: afterwards there is exactly one Velero object or none, as the story
//! demands, and nothing is orphaned.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, DownloadRequest, Restore};
use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, condition, labels};
use bed::eventually;
use e2e::{House, NACRE, Nacre, Tap, Tenant};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

/// More writes than any path has.
const ENOUGH: usize = 12;
/// How long what is gone from a tenant's view may take to be gone from Velero's.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster whose nacre is killed again and again.
struct Stage<'a> {
    house: &'a House,
    tap: Tap,
    nacre: Nacre,
}

impl<'a> Stage<'a> {
    async fn set(house: &'a House) -> Result<Self> {
        let tap = Tap::open(&house.account().await?).await?;
        let nacre = house.start_nacre_with(&tap.kubeconfig(house.bed.folder())?).await?;
        Ok(Self { house, tap, nacre })
    }

    /// Kills nacre after so many writes about something that `step` begins, or when it has come to its `end`, and starts it
    /// anew. Returns whether there were so many.
    async fn kill_after(
        &mut self,
        writes: usize,
        about: &str,
        step: impl Future<Output = Result<()>>,
        end: impl Future<Output = Result<()>>,
    ) -> Result<bool> {
        self.tap.cut_after_writes_about(about, writes);
        step.await?;
        tokio::select! {
            () = self.tap.silent() => {}
            ended = end => ended?,
        }
        let died = self.tap.is_silent();
        self.nacre.process.kill().await?;
        self.tap.relent();
        self.nacre = self.house.start_nacre_with(&self.tap.kubeconfig(self.house.bed.folder())?).await?;
        Ok(died)
    }
}

/// Tenants for each write of a path, with a finished backup each where one is needed. None is named like the beginning of
/// another.
async fn tenants<'a>(house: &'a House, path: &str, many: usize) -> Result<Vec<Tenant<'a>>> {
    let mut all = Vec::new();
    for number in 1..=many {
        all.push(house.tenant(&format!("{path}-{number}-writes"), "ada").await?);
    }
    Ok(all)
}

async fn back_up(tenants: &[Tenant<'_>]) -> Result<()> {
    for tenant in tenants {
        tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
        tenant.back_up("daily").await?;
    }
    try_join_all(tenants.iter().map(backed_up)).await?;
    Ok(())
}

async fn backed_up(tenant: &Tenant<'_>) -> Result<()> {
    let ended = tenant.backup_ends("daily").await?;
    ensure!(ended == "Completed", "{}: {ended}", tenant.namespace);
    Ok(())
}

async fn restored(tenant: &Tenant<'_>) -> Result<()> {
    let ended = tenant.restore_ends("back").await?;
    ensure!(ended == "Completed", "{}: {ended}", tenant.namespace);
    Ok(())
}

/// The objects of Velero's that were made for this tenant.
async fn made_for<K>(house: &House, tenant: &Tenant<'_>, key: &str) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let all = house.admin::<K>().await?.list(&ListParams::default()).await?.items;
    let own = all.iter().filter(|object| object.annotations().get(key) == Some(&tenant.namespace));
    Ok(own.map(ResourceExt::name_any).collect())
}

/// How many objects of this Velero Backup are in the bucket.
fn keys_of(house: &House, backup: &str) -> Result<usize> {
    let folder = format!("backups/{backup}/");
    Ok(house.bed.store()?.keys(bed::BUCKET)?.iter().filter(|key| key.starts_with(&folder)).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn death_between_any_two_writes_changes_nothing_in_the_end() -> Result<()> {
    let house = House::build().await?;
    let mut stage = Stage::set(&house).await?;
    let (kept, lost) = (tenants(&house, "keep", 5).await?, tenants(&house, "lose", 5).await?);
    tokio::try_join!(back_up(&kept), back_up(&lost))?;

    // Creating: finalizer, Velero Backup, status. Mirroring: one status for each thing Velero says.
    let asking = tenants(&house, "create", ENOUGH).await?;
    let mut tried = 0;
    for tenant in &asking {
        tried += 1;
        let step = async { tenant.back_up("daily").await.map(drop) };
        if !stage.kill_after(tried, &tenant.namespace, step, backed_up(tenant)).await? {
            break;
        }
    }
    ensure!((5..ENOUGH).contains(&tried), "creating and mirroring took {} writes", tried - 1);
    for tenant in &asking[..tried] {
        backed_up(tenant).await?;
        let made = made_for::<Backup>(&house, tenant, labels::NAB_NAMESPACE).await?;
        ensure!(made.len() == 1, "{}: {made:?}", tenant.namespace);
    }

    // Deleting the request alone, and with its data. One write more than there are shows that all were tried.
    for (tenants, with_data) in [(&kept, false), (&lost, true)] {
        let mut tried = 0;
        for tenant in tenants {
            tried += 1;
            let stored = made_for::<Backup>(&house, tenant, labels::NAB_NAMESPACE).await?.remove(0);
            ensure!(keys_of(&house, &stored)? > 0, "its data is in the bucket");
            let step = async {
                if with_data {
                    let change = json!({"spec": {"deleteBackup": true}});
                    tenant.edit::<NonAdminBackup>("daily", change).await.map(drop)
                } else {
                    tenant.delete::<NonAdminBackup>("daily").await
                }
            };
            let end = tenant.gone::<NonAdminBackup>("daily");
            let died = stage.kill_after(tried, &tenant.namespace, step, end).await?;
            tenant.gone::<NonAdminBackup>("daily").await?;
            let left = made_for::<Backup>(&house, tenant, labels::NAB_NAMESPACE).await?;
            ensure!(left.is_empty(), "{}: {left:?}", tenant.namespace);
            let data_gone = keys_of(&house, &stored)? == 0;
            ensure!(
                data_gone == with_data,
                "{}: the data goes exactly when it was asked for",
                tenant.namespace
            );
            if !died {
                break;
            }
        }
        ensure!(tried > 3, "deleting took {} writes", tried - 1);
    }
    house.bed.audit().quiet(NACRE, Duration::from_secs(2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn death_between_any_two_writes_of_a_restore_or_download_changes_nothing_in_the_end() -> Result<()> {
    let house = House::build().await?;
    house.set_policy("downloads: {platformStorage: logs}").await?;
    let mut stage = Stage::set(&house).await?;
    let shops = tenants(&house, "restore", 9).await?;
    back_up(&shops).await?;

    // Restoring: finalizer, Velero Restore, status. Mirroring: one status for each thing Velero says.
    let mut tried = 0;
    for tenant in &shops {
        tried += 1;
        tenant.delete::<ConfigMap>("prices").await?;
        let step = async { tenant.restore("back", "daily").await.map(drop) };
        if !stage.kill_after(tried, &tenant.namespace, step, restored(tenant)).await? {
            break;
        }
    }
    ensure!((5..=shops.len()).contains(&tried), "restoring and mirroring took {} writes", tried - 1);
    for tenant in &shops[..tried] {
        restored(tenant).await?;
        let made = made_for::<Restore>(&house, tenant, labels::NAR_NAMESPACE).await?;
        ensure!(made.len() == 1, "{}: {made:?}", tenant.namespace);
        tenant.api::<ConfigMap>().get("prices").await?;
    }

    // Deleting: status, Velero Restore, finalizer.
    for (writes, tenant) in (1..).zip(&shops[..4]) {
        let step = tenant.delete::<NonAdminRestore>("back");
        let died =
            stage.kill_after(writes, &tenant.namespace, step, tenant.gone::<NonAdminRestore>("back")).await?;
        ensure!(died == (writes <= 3), "deleting takes three writes, and not {writes}");
        tenant.gone::<NonAdminRestore>("back").await?;
        let left = made_for::<Restore>(&house, tenant, labels::NAR_NAMESPACE).await?;
        ensure!(left.is_empty(), "{}: {left:?}", tenant.namespace);
    }
    downloads(&mut stage, &shops).await?;
    house.bed.audit().quiet(NACRE, Duration::from_secs(2)).await
}

/// Waits for the link.
async fn linked(tenant: &Tenant<'_>) -> Result<()> {
    tenant
        .wait("the link", "log", |request: Option<&NonAdminDownloadRequest>| {
            condition::is_true(&request?.status.as_ref()?.conditions, condition::PROCESSED).then_some(())
        })
        .await
}

async fn downloads(stage: &mut Stage<'_>, tenants: &[Tenant<'_>]) -> Result<()> {
    let house = stage.house;
    // Asking Velero, and showing the link.
    for (writes, tenant) in (1..).zip(&tenants[..3]) {
        let ask = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
        let step = async { tenant.create::<NonAdminDownloadRequest>("log", ask).await.map(drop) };
        let died = stage.kill_after(writes, &tenant.namespace, step, linked(tenant)).await?;
        ensure!(died == (writes <= 2), "a download takes two writes, and not {writes}");
        linked(tenant).await?;
        let made = made_for::<DownloadRequest>(house, tenant, labels::NADR_NAMESPACE).await?;
        ensure!(made.len() == 1, "{}: {made:?}", tenant.namespace);
    }
    // Its end takes Velero's object along, also if nacre dies of it.
    for (writes, tenant) in (1..).zip(&tenants[..2]) {
        let request = tenant.api::<NonAdminDownloadRequest>().get("log").await?;
        let uid = request.uid().context("a uid")?;
        let end = async {
            eventually("Velero's object to go", PATIENCE, async || {
                let left = made_for::<DownloadRequest>(house, tenant, labels::NADR_NAMESPACE).await?;
                ensure!(left.is_empty(), "{left:?}");
                anyhow::Ok(())
            })
            .await
        };
        let died =
            stage.kill_after(writes, &uid, tenant.delete::<NonAdminDownloadRequest>("log"), end).await?;
        ensure!(died == (writes <= 1), "its end takes one write, and not {writes}");
        let left = made_for::<DownloadRequest>(house, tenant, labels::NADR_NAMESPACE).await?;
        ensure!(left.is_empty(), "{}: {left:?}", tenant.namespace);
    }
    Ok(())
}

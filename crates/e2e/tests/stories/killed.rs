//! kill -9 between any two writes of each path: afterwards there is exactly one Velero Backup or none, as the story
//! demands, and nothing is orphaned.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, Phase};
use e2e::{House, NACRE, Tap, Tenant, VELERO};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

/// The Velero Backups made for this tenant.
async fn backups_of(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let backups = Api::<Backup>::namespaced(tenant.bed.client().await?, VELERO);
    let all = backups.list(&ListParams::default()).await?.items.into_iter();
    let own = all.filter(|backup| {
        let annotations = backup.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get("openshift.io/oadp-nab-origin-namespace"))
            == Some(&tenant.namespace)
    });
    Ok(own.filter_map(|backup| backup.metadata.name).collect())
}

/// Runs `step` with a nacre that is killed after so many writes. Returns whether it came to so many.
async fn dying_after(
    house: &House,
    tap: &Tap,
    writes: usize,
    step: impl AsyncFnOnce() -> Result<()>,
) -> Result<bool> {
    let nacre = house.start_nacre_with(&tap.kubeconfig(house.bed.folder())?).await?;
    tap.cut_after(writes);
    step().await?;
    let cut = tokio::time::timeout(Duration::from_secs(8), tap.silent()).await;
    nacre.process.kill().await?;
    tap.relent();
    Ok(cut.is_ok())
}

async fn created(tenant: &Tenant<'_>) -> Result<()> {
    tenant
        .wait("it to be Created", "daily", |backup: Option<&NonAdminBackup>| {
            (backup?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn death_between_any_two_writes_changes_nothing_in_the_end() -> Result<()> {
    let house = House::build().await?;
    let tap = Tap::open(&house.account().await?).await?;

    // Creating: finalizer, Velero Backup, status.
    for writes in 1..=3 {
        let tenant = house.tenant(&format!("create-{writes}"), "ada").await?;
        let died =
            dying_after(&house, &tap, writes, async || tenant.back_up("daily").await.map(|_| ())).await?;
        ensure!(died, "creating takes at least {writes} writes");
        let nacre = house.start_nacre().await?;
        created(&tenant).await?;
        ensure!(tenant.backup_ends("daily").await? == "Completed");
        ensure!(backups_of(&tenant).await?.len() == 1, "after {writes} writes");
        house.bed.audit().quiet(NACRE, Duration::from_secs(2)).await?;
        nacre.process.kill().await?;
    }

    // Deleting the request alone, and with its data. Each path has at least three writes; one more than there are
    // shows that all were tried.
    for with_data in [false, true] {
        for writes in 1..=5 {
            let tenant = house.tenant(&format!("delete-{with_data}-{writes}"), "ada").await?;
            let nacre = house.start_nacre().await?;
            tenant.back_up("daily").await?;
            ensure!(tenant.backup_ends("daily").await? == "Completed");
            let stored = backups_of(&tenant).await?.remove(0);
            ensure!(keys_of(&house, &stored)? > 0, "its data is in the bucket");
            nacre.process.kill().await?;
            let step = async || {
                if with_data {
                    let change = json!({"spec": {"deleteBackup": true}});
                    tenant.edit::<NonAdminBackup>("daily", change).await.map(|_| ())
                } else {
                    tenant.delete::<NonAdminBackup>("daily").await
                }
            };
            let died = dying_after(&house, &tap, writes, step).await?;
            ensure!(died || writes > 3, "deleting takes at least {writes} writes");
            let nacre = house.start_nacre().await?;
            tenant.gone::<NonAdminBackup>("daily").await?;
            ensure!(backups_of(&tenant).await?.is_empty(), "after {writes} writes, with data: {with_data}");
            ensure!(
                (keys_of(&house, &stored)? == 0) == with_data,
                "the data goes exactly when it was asked for"
            );
            nacre.process.kill().await?;
            if !died {
                break;
            }
        }
    }
    Ok(())
}

/// How many objects of this Velero Backup are in the bucket.
fn keys_of(house: &House, backup: &str) -> Result<usize> {
    let folder = format!("backups/{backup}/");
    Ok(house.bed.store()?.keys(bed::BUCKET)?.iter().filter(|key| key.starts_with(&folder)).count())
}

//! A tenant's keys change: Velero has the new ones within two minutes, without an administrator. Credentials that do
//! more than open the bucket are removed within one.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::velero::BackupStorageLocation;
use api::{NonAdminBackup, Phase, condition};
use bed::wait_until;
use e2e::TestCluster;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::location::{OPEN, reference, says};

#[tokio::test(flavor = "multi_thread")]
async fn c12_new_keys_are_used_within_two_minutes_and_smuggled_ones_cut_off_within_one() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy(OPEN).await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let store = test_cluster.bed.store()?;
    let (old, new) = (store.open_account("old").await?, store.open_account("new").await?);
    shop.keep_keys("keys", &old).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let name = reference(&shop.location_available("bucket").await?);
    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("before", own.clone()).await?;
    ensure!(shop.backup_ends("before").await? == "Completed");

    // The store does not know the old keys any more, and the tenant has new ones.
    store.close_account("old").await?;
    let (rotated, since) = (Timestamp::now(), Instant::now());
    shop.keep_keys("keys", &new).await?;
    let storages = test_cluster.admin::<BackupStorageLocation>().await?;
    wait_until("Velero to look with the new keys", Duration::from_mins(2), storages, &name, |storage| {
        let status = storage?.status.as_ref()?;
        let looked: Timestamp = status.last_validation_time.as_ref()?.0;
        (looked > rotated && status.phase.as_deref() == Some("Available")).then_some(())
    })
    .await?;
    let took = since.elapsed();
    let status = shop.location_available("bucket").await?;
    let synced = condition::get(&status.conditions, condition::SECRET_SYNCED);
    ensure!(synced.is_some_and(|synced| synced.reason == condition::SECRET_UPDATED), "{synced:?}");
    shop.create::<NonAdminBackup>("after", own.clone()).await?;
    ensure!(shop.backup_ends("after").await? == "Completed");
    println!("new keys were in use after {took:?}");

    // A credential that would make Velero run a program: removed, and the reason reported, never the value.
    let since = Instant::now();
    shop.keep_keys("keys", "[default]\ncredential_process = /bin/steal hunter2\n").await?;
    let refused = shop
        .location_is("the smuggled key to be refused", "bucket", |status| {
            status.phase == Some(Phase::BackingOff)
                && says(
                    status,
                    condition::ACCEPTED,
                    condition::BSL_SPEC_VALIDATION,
                    "line 2: credential_process",
                )
        })
        .await?;
    test_cluster.gone_from_velero::<BackupStorageLocation>(&name).await?;
    test_cluster.gone_from_velero::<Secret>(&name).await?;
    let took = since.elapsed();
    ensure!(took < Duration::from_mins(1), "cut off only after {took:?}");
    println!("smuggled keys were cut off after {took:?}");
    ensure!(!format!("{refused:?}").contains("hunter2"));

    // Plain keys again, with what only concerns the command line: it goes on by itself.
    shop.keep_keys("keys", &format!("# rotated\n{new}region = somewhere\n")).await?;
    shop.location_available("bucket").await?;
    let log = std::fs::read_to_string(nacre.process.log())?;
    ensure!(!log.contains("hunter2") && !log.contains("secret-key"), "a secret is in the log");
    Ok(())
}

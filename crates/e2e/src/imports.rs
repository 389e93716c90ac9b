//! When Velero has imported what is in a bucket.

use std::time::Duration;

use anyhow::{Context, Result};
use bed::{Bed, wait_until};
use jiff::Timestamp;
use kube::api::DynamicObject;

/// Waits until Velero has imported this backup and everything else that was in the bucket when it found it. Returns the
/// backup.
///
/// Velero goes through a bucket in no order, so that one backup is there says nothing about the others. When it has gone
/// through all of them, it writes the time into the location.
pub async fn imported(bed: &Bed, control: &str, within: Duration) -> Result<DynamicObject> {
    let backups = bed.velero_api("Backup").await?;
    let backup =
        wait_until("Velero to import it", within, backups, control, |found| Some(found?.clone())).await?;
    let since = backup.metadata.creation_timestamp.as_ref().context("a time of creation")?.0;
    let location = backup.data["spec"]["storageLocation"].as_str().context("a location")?;
    let locations = bed.velero_api("BackupStorageLocation").await?;
    wait_until("Velero to import the rest of the bucket", within, locations, location, |found| {
        let done: Timestamp = found?.data["status"]["lastSyncedTime"].as_str()?.parse().ok()?;
        (done >= since).then_some(())
    })
    .await?;
    Ok(backup)
}

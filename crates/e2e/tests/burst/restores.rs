//! Restores: the burst.

use std::time::Duration;

use anyhow::Result;
use api::velero::Restore;
use api::{NonAdminBackup, NonAdminRestore, Phase};
use bed::Bed;
use e2e::{House, NACRE};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::{ATTEMPTS, Asked, NAMESPACES, SLACK, make_namespaces, measured, namespace, raw_ceiling, sample};

impl Asked for NonAdminRestore {
    type Velero = Restore;

    fn spec() -> Value {
        json!({"restoreSpec": {"backupName": "daily"}})
    }

    fn created_as(&self) -> Option<String> {
        let status = self.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
        status.velero_restore.as_ref()?.name.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_restores_at_once_cost_little_more_than_their_writes() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = House::build().await?;
        house.bed.velero_stop()?;
        let nacre = house.start_nacre().await?;
        finished_backups(&house.bed).await?;
        let sample = sample::<NonAdminRestore>(&house.bed).await?;
        nacre.process.kill().await?;
        let raw = raw_ceiling::<NonAdminRestore>(&house.bed, &sample).await?;
        let nacre = house.start_nacre().await?;
        ratio = measured::<NonAdminRestore>(&house.bed, &nacre, raw).await?;
        if ratio < SLACK {
            return Ok(());
        }
    }
    anyhow::bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// A finished backup in every namespace; Velero is played.
async fn finished_backups(bed: &Bed) -> Result<()> {
    make_namespaces(bed, "shop").await?;
    let client = bed.client().await?;
    for number in 0..NAMESPACES {
        let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace("shop", number));
        let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "daily"}, "spec": {"backupSpec": {}}});
        requests.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
        let created = |request: Option<&NonAdminBackup>| {
            let status = request?.status.clone()?;
            (status.phase == Some(Phase::Created)).then_some(status.velero_backup?.name?)
        };
        let within = Duration::from_secs(30);
        let velero =
            bed::wait_until("the backup to be created", within, requests.clone(), "daily", created).await?;
        let done = json!({"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"});
        bed.velero_status("Backup", &velero, done).await?;
    }
    bed.audit().quiet(NACRE, Duration::from_secs(3)).await
}

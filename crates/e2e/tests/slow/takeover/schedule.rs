//! A schedule of the Go controller, which real Velero runs every minute: nacre takes it over, the Velero Schedule goes
//! once, its Backups stay, and every minute has one run.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, Schedule};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use bed::eventually;
use e2e::{NACRE, TestCluster};
use jiff::{Timestamp, civil};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::{Nac, nacuuid};

/// Several minutes of real time, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(8);

/// The minute in the name of a run, which ends with it for Velero and for nacre.
fn minute(name: &str) -> Result<Timestamp> {
    let (_, time) = name.rsplit_once('-').context("a time")?;
    let time = civil::DateTime::strptime("%Y%m%d%H%M%S", time)?;
    Ok(time.with().second(0).build()?.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_schedule_that_velero_runs_no_minute_is_lost_or_doubled() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy("schedules: {spread: 0}\n").await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let nac = Nac { test_cluster: &test_cluster, shop: &shop };
    // A run that takes longer than a minute must not stop the next.
    let spec = json!({"schedule": "* * * * *", "concurrency": "Allow", "template": {"backupSpec": {}}});
    shop.create::<NonAdminSchedule>("often", json!({ "spec": spec })).await?;
    let (uuid, marks) = (nacuuid("often", 1), Nac::marks("nas", "often", 1));
    let template = json!({"spec": {"schedule": "* * * * *", "template": {"includedNamespaces": ["shop"]}}});
    nac.makes("velero.io/v1", "Schedule", marks, template).await?;
    let status = json!({"phase": "Created",
        "veleroSchedule": {"nacuuid": uuid, "name": uuid, "namespace": e2e::VELERO, "status": {"phase": "Enabled"}}});
    nac.tells::<NonAdminSchedule>("often", labels::NAS_FINALIZER, status).await?;

    let of_velero = ListParams::default().labels(&format!("velero.io/schedule-name={uuid}"));
    let backups = test_cluster.admin::<Backup>().await?;
    let made_by_velero = async || {
        let made = backups.list(&of_velero).await?.items;
        anyhow::Ok(made.iter().map(ResourceExt::name_any).collect::<Vec<_>>())
    };
    eventually("a run by Velero", TIMEOUT, async || {
        ensure!(!made_by_velero().await?.is_empty(), "none");
        Ok(())
    })
    .await?;

    let mark = test_cluster.bed.audit().mark().await?;
    let nacre = test_cluster.start_nacre().await?;
    test_cluster.gone_from_velero::<Schedule>(&uuid).await?;
    let last = made_by_velero().await?;
    let made_by_nacre = async || {
        let runs = shop.api::<NonAdminBackup>().list(&ListParams::default()).await?.items;
        let runs: Vec<_> = runs
            .iter()
            .filter(|run| run.labels().get(labels::NAS_NAME).is_some_and(|name| name == "often"))
            .map(ResourceExt::name_any)
            .collect();
        ensure!(runs.len() >= 2, "only {runs:?}");
        Ok(runs)
    };
    let runs = eventually("two runs by nacre", TIMEOUT, made_by_nacre).await?;
    shop.edit::<NonAdminSchedule>("often", json!({"spec": {"paused": true}})).await?;

    ensure!(made_by_velero().await? == last, "Velero's Backups stay, and there are no more of them");
    // Velero looks once a minute and may miss one of its own; from its last one on there is one for each.
    let minutes = last.iter().max().into_iter().chain(&runs).map(|name| minute(name));
    let minutes = minutes.collect::<Result<BTreeSet<_>>>()?;
    let (first, end) = minutes.first().zip(minutes.last()).context("runs")?;
    let expected = usize::try_from(end.duration_since(*first).as_mins())? + 1;
    ensure!(
        minutes.len() == expected && minutes.len() == runs.len() + 1,
        "one run each minute, but Velero made {last:?} and nacre {runs:?}"
    );
    let deleted =
        test_cluster.bed.audit().since(mark).await?.by(NACRE).writes().only(|request| {
            request.resource == "schedules" && request.verb == "delete" && request.code < 300
        });
    ensure!(deleted.len() == 1, "the Velero Schedule was deleted {} times", deleted.len());
    nacre.process.terminate(Duration::from_secs(15)).await?;
    Ok(())
}

//! Schedules on real Velero: runs through real minutes, and retention that removes data from the bucket.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, NonAdminSchedule, labels};
use bed::eventually;
use e2e::two_replicas::{BRISK, created, leads, only_holders_act};
use e2e::{NACRE, TestCluster, VELERO, at_length};
use jiff::{SignedDuration, Timestamp};
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
    // Paused and settled: no writes, although time goes by, and Velero looks at its storage meanwhile.
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(2)).await?;
    let (mark, began) = (test_cluster.bed.audit().mark().await?, Instant::now());
    let silence = Duration::from_secs(at_length(10, 65));
    let silent_so_long = async || {
        let passed = began.elapsed();
        ensure!(passed > silence, "{passed:?}");
        Ok(())
    };
    eventually("silence", TIMEOUT, silent_so_long).await?;
    let written = test_cluster.bed.audit().since(mark).await?.by(NACRE).writes();
    // What namespaces have used of the queue is written to a ConfigMap now and then.
    let written = written.only(|request| request.resource != "configmaps");
    ensure!(written.is_empty(), "{:#?}", written.tally());
    nacre.process.terminate(Duration::from_mins(2)).await?;
    Ok(())
}

/// When a leader dies: shortly before a run is due, when the status of its schedule says that it is made, or when it is
/// there.
const DEATHS: [&str; 3] = ["before", "begun", "made"];

fn run_at(due: Timestamp) -> String {
    format!("often-{}", due.strftime("%Y%m%d%H%M%S"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_when_a_run_is_due_leaves_one_run_for_each_time() -> Result<()> {
    // Nobody works off what is handed over, so nothing but nacre decides what there is.
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.set_policy("schedules: {spread: 0}\nqueue: {inFlight: 0}\n").await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let launch = async |name: &str| {
        let account = test_cluster.account_of(VELERO).await?;
        let nacre = test_cluster.launch(name, VELERO, &account, &BRISK)?;
        nacre.until_ready().await?;
        anyhow::Ok(nacre)
    };
    let mut leader = launch("first").await?;
    leads(&leader, true).await?;
    // More often than every minute, so that three leaders die in one.
    let spec = json!({"schedule": "@every 20s", "concurrency": "Allow", "template": {"backupSpec": {}}});
    shop.create::<NonAdminSchedule>("often", json!({ "spec": spec })).await?;
    for death in DEATHS {
        let standby = launch(death).await?;
        let ahead = |schedule: Option<&NonAdminSchedule>| {
            let next = schedule?.status.as_ref()?.next_run.as_ref()?.0;
            (next.duration_since(Timestamp::now()) > SignedDuration::from_secs(2)).then_some(next)
        };
        let due = shop.wait("a run that is not due yet", "often", ahead).await?;
        let run = run_at(due);
        match death {
            "before" => {
                let soon = async || {
                    let left = due.duration_since(Timestamp::now());
                    ensure!(left < SignedDuration::from_millis(200), "{left:#} left");
                    Ok(())
                };
                eventually("the time before the run", TIMEOUT, soon).await?;
            }
            "begun" => {
                let names_it = |schedule: Option<&NonAdminSchedule>| {
                    let latest = schedule?.status.as_ref()?.recent_backups.first()?;
                    (latest.name == run).then_some(())
                };
                shop.wait("the status to name the run", "often", names_it).await?;
            }
            _ => shop.wait("the run", &run, |run: Option<&NonAdminBackup>| run.map(drop)).await?,
        }
        leader.process.kill().await?;
        created(&shop, &run).await?;
        leader = standby;
        leads(&leader, true).await?;
    }
    shop.edit::<NonAdminSchedule>("often", json!({"spec": {"paused": true}})).await?;
    let is_paused =
        |schedule: Option<&NonAdminSchedule>| schedule?.status.as_ref()?.next_run.is_none().then_some(());
    shop.wait("the schedule to be paused", "often", is_paused).await?;
    let runs = shop.api::<NonAdminBackup>().list(&ListParams::default()).await?.items;
    for run in &runs {
        created(&shop, &run.name_any()).await?;
    }
    let seen = test_cluster.bed.audit().since(mark).await?;
    let made = |resource: &'static str| {
        seen.by(NACRE).only(|one| one.verb == "create" && one.resource == resource && one.code == 201).len()
    };
    // A name is a time. What was made, deleted and made again would show in the number of creations. What a leader sent as
    // it died is logged as timed out, whether it was done or not.
    for resource in ["nonadminbackups", "backups"] {
        ensure!(made(resource) <= runs.len(), "{} runs: {:#?}", runs.len(), seen.tally());
    }
    let at_velero = Api::<Backup>::namespaced(test_cluster.bed.client().await?, VELERO);
    let at_velero = at_velero.list(&ListParams::default()).await?.items.len();
    ensure!(at_velero == runs.len(), "{at_velero} at Velero for {} runs", runs.len());
    only_holders_act(&seen)?;
    leader.process.terminate(Duration::from_mins(2)).await?;
    Ok(())
}

//! Turns with real Velero: a tenant floods, and another one asks for a single backup.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, Restore};
use api::{NonAdminBackup, NonAdminRestore};
use bed::Bed;
use e2e::{Tenant, TestCluster, at_length};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

/// How many backups the one tenant asks for.
fn many() -> usize {
    at_length(60, 500)
}

/// When Velero started what belongs to a namespace, oldest first, with the name of the request.
async fn started(test_cluster: &TestCluster) -> Result<Vec<(i64, String, String)>> {
    let all = test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await?.items;
    let mut started: Vec<_> = all
        .iter()
        .filter_map(|velero| {
            let at = velero.status.as_ref()?.start_timestamp.as_ref()?.0.as_second();
            let of = |name: &str| velero.annotations().get(name).cloned();
            Some((at, of(api::labels::NAB_NAMESPACE)?, of(api::labels::NAB_NAME)?))
        })
        .collect();
    started.sort();
    Ok(started)
}

async fn is_held_back(tenant: &Tenant<'_>, name: &str) -> Result<i64> {
    let found: NonAdminBackup = tenant
        .wait("it to wait for its turn", name, |found: Option<&NonAdminBackup>| {
            let status = found?.status.as_ref()?;
            status.queue_info.as_ref()?;
            found.cloned()
        })
        .await?;
    let status = found.status.context("a status")?;
    ensure!(status.phase == Some(api::Phase::New), "{status:?}");
    ensure!(api::condition::is_true(&status.conditions, "Accepted"), "{status:?}");
    ensure!(api::condition::get(&status.conditions, "Queued").is_none(), "{status:?}");
    Ok(status.queue_info.context("a position")?.estimated_queue_position)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_one_starts_within_two_of_somebody_elses_many() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let (flood, one) = (test_cluster.tenant("flood", "ada").await?, test_cluster.tenant("one", "bob").await?);
    for tenant in [&flood, &one] {
        tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    }
    let names: Vec<_> = (0..many()).map(|number| format!("b{number:03}")).collect();
    for name in &names {
        flood.back_up(name).await?;
    }
    let last = names.last().context("a name")?;
    let position = is_held_back(&flood, last).await?;
    ensure!(position > 10, "it is at {position}");
    // One has ended, so that a restore of it can be asked for in the middle of the flood.
    ensure!(flood.backup_ends("b000").await? == "Completed");

    one.back_up("only").await?;
    let before = started(&test_cluster).await?.len();
    flood.restore("meanwhile", "b000").await?;
    ensure!(flood.restore_ends("meanwhile").await? == "Completed");
    ensure!(one.backup_ends("only").await? == "Completed");
    let order = started(&test_cluster).await?;
    let at = order.iter().position(|(_, namespace, _)| namespace == "one").context("it was started")?;
    println!(
        "of {} asked for by another tenant, {before} had started when it was asked for; it was number {}",
        many(),
        at + 1
    );
    // What Velero had was one that ran and one that was next. One more may have got its turn before nacre saw the request.
    ensure!(at <= before + 2, "{at} went before it, and {before} had started: {order:?}");
    ensure!(order.len() < many(), "the flood was over by then: {}", order.len());
    let restores = test_cluster.admin::<Restore>().await?.list(&ListParams::default()).await?.items.len();
    ensure!(restores == 1, "{restores}");

    // What waits costs Velero nothing when it is withdrawn.
    flood.delete::<NonAdminBackup>(last).await?;
    flood.gone::<NonAdminBackup>(last).await?;
    ensure!(flood.api::<NonAdminRestore>().get_opt("meanwhile").await?.is_some());
    Ok(())
}

/// Velero 1.18 with several workers now and then starts a backup twice: its queue reads a backup from a cache that is behind,
/// and makes ready again what runs already. The second start finds what the first one saved.
const STARTED_TWICE: &str = "backup execution failed: backup already exists in object storage";

/// Velero has three workers. nacre comes to know it, and gives them work of different namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn all_workers_of_velero_are_kept_busy() -> Result<()> {
    const TENANTS: usize = 6;
    const EACH: usize = 3;
    let bed = Bed::builder().with_velero().velero_flag("--concurrent-backups=3");
    let test_cluster = TestCluster::build_on(bed).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        let tenant = test_cluster.tenant(&format!("busy-{number}"), &format!("user-{number}")).await?;
        tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
        tenants.push(tenant);
    }
    let veleros = test_cluster.admin::<Backup>().await?;
    let mut changes =
        watcher(veleros, watcher::Config::default()).default_backoff().applied_objects().boxed();
    for round in 0..EACH {
        for tenant in &tenants {
            tenant.back_up(&format!("b{round}")).await?;
        }
    }
    let (mut phases, mut uids, mut busiest, mut most) = (BTreeMap::new(), BTreeMap::new(), 0, 0);
    let (mut history, mut started_twice) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
    let over = |phase: &str| matches!(phase, "Completed" | "PartiallyFailed" | "Failed" | "FailedValidation");
    let all = async {
        while phases.values().filter(|phase: &&String| over(phase)).count() < TENANTS * EACH {
            let velero = changes.next().await.context("the watch goes on")??;
            let status = velero.status.clone().unwrap_or_default();
            let name = velero.name_any();
            // nacre gives each of them once: only Velero itself starts one again.
            let uid = velero.uid();
            ensure!(
                *uids.entry(name.clone()).or_insert_with(|| uid.clone()) == uid,
                "{name} was given twice"
            );
            match status.failure_reason.as_deref() {
                Some(STARTED_TWICE) => drop(started_twice.insert(name.clone())),
                Some(reason) => anyhow::bail!("{name}: {reason}"),
                None => {}
            }
            let phase = status.phase.unwrap_or_default();
            history.entry(name.clone()).or_default().push(phase.clone());
            phases.insert(name, phase);
            let count = |of: &dyn Fn(&str) -> bool| phases.values().filter(|phase| of(phase)).count();
            busiest = busiest.max(count(&|phase| phase == "InProgress"));
            most = most.max(count(&|phase| !over(phase) && !phase.starts_with("Finalizing")));
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_mins(4), all).await.context("Velero ends all of them")??;
    println!(
        "three workers: at most {busiest} at work, {most} at Velero, {} started twice by it",
        started_twice.len()
    );
    let mut ended_well = phases.iter().filter(|(name, _)| !started_twice.contains(*name));
    ensure!(ended_well.all(|(_, phase)| phase == "Completed"), "{history:?}");
    ensure!(started_twice.len() <= EACH, "Velero started most of them twice: {started_twice:?}, {history:?}");
    ensure!(busiest == 3, "at most {busiest} were at work");
    // One more than there are workers, and eight more while backups are over in a moment, as these are.
    ensure!(most <= 4 + 8, "{most} were at Velero at a time");
    Ok(())
}

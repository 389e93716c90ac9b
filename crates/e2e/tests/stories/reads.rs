//! nacre reads only from its watches: once the caches are synced, it sends no get or list.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, NonAdminRestore, Phase};
use bed::{Bed, Requests, wait_until};
use e2e::{NACRE, Tenant, TestCluster, VELERO};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(2);

/// What nacre fetched or listed, apart from the lease it holds.
fn fetched(requests: &Requests) -> Requests {
    requests.by(NACRE).only(|read| matches!(read.verb.as_str(), "get" | "list") && !read.is_of_lease())
}

/// The name Velero has for a backup, once it is there.
async fn created(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    tenant
        .wait("it to be Created", name, |backup: Option<&NonAdminBackup>| {
            let status = backup?.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
            status.velero_backup.as_ref()?.name.clone()
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_or_listed_for_an_event() -> Result<()> {
    let test_cluster = TestCluster::build_on(Bed::builder().with_idle_velero().audit_reads()).await?;
    test_cluster.hand_over_at_once().await?;
    let bed = &test_cluster.bed;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let start = bed.audit().mark().await?;
    let nacre = test_cluster.start_nacre().await?;
    let lists = fetched(&bed.audit().since(start).await?).only(|read| read.verb == "list");
    ensure!(lists.len() >= 10, "the log shows reads: {:#?}", lists.tally());
    // What is looked at now and then has had its turn.
    bed.audit().until_quiet(NACRE, Duration::from_secs(2)).await?;

    let mark = bed.audit().mark().await?;
    let names: Vec<_> = (0..20).map(|number| format!("b{number}")).collect();
    for name in &names {
        shop.back_up(name).await?;
    }
    let mut velero = Vec::new();
    for name in &names {
        velero.push(created(&shop, name).await?);
    }
    let first = velero.first().context("a backup")?;
    for tick in 1..=10 {
        bed.velero_status(
            "Backup",
            first,
            json!({"phase": "InProgress", "progress": {"itemsBackedUp": tick}}),
        )
        .await?;
        wait_until("the tick to be shown", TIMEOUT, shop.api(), "b0", |backup: Option<&NonAdminBackup>| {
            let shown = backup?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
            (shown.progress.as_ref()?.items_backed_up? == tick).then_some(())
        })
        .await?;
    }
    let done = json!({"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"});
    for name in &velero {
        bed.velero_status("Backup", name, done.clone()).await?;
    }
    for name in &names {
        ensure!(shop.backup_ends(name).await? == "Completed");
    }
    shop.restore("back", "b0").await?;
    shop.wait("the restore to be Created", "back", |restore: Option<&NonAdminRestore>| {
        (restore?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
    })
    .await?;
    for name in &names[1..] {
        shop.delete::<NonAdminBackup>(name).await?;
        shop.gone::<NonAdminBackup>(name).await?;
    }
    let all = bed.audit().since(mark).await?;
    ensure!(all.writes().by(NACRE).len() > names.len() * 5, "nacre was at work: {:#?}", all.writes().tally());
    let fetched = fetched(&all);
    let here = fetched.only(|read| ["shop", VELERO].contains(&read.namespace.as_str()));
    ensure!(here.is_empty(), "{:#?}", here.tally());
    // The clock has its own turn elsewhere, and that is no more than one.
    ensure!(fetched.tally().values().all(|times| *times <= 1), "{:#?}", fetched.tally());
    ensure!(nacre.process.is_running());
    Ok(())
}

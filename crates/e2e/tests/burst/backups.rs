//! Backups: the burst, then progress ticks and a drain.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, Phase};
use e2e::{House, NACRE, Nacre, VELERO};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{ATTEMPTS, Asked, SLACK, make_namespaces, measured, raw_ceiling, sample};

impl Asked for NonAdminBackup {
    type Velero = Backup;

    fn spec() -> Value {
        json!({"backupSpec": {"ttl": "24h"}})
    }

    fn created_as(&self) -> Option<String> {
        let status = self.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
        status.velero_backup.as_ref()?.name.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_backups_at_once_cost_little_more_than_their_writes() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = House::build().await?;
        house.bed.velero_stop()?;
        make_namespaces(&house.bed, "shop").await?;
        let nacre = house.start_nacre().await?;
        let sample = sample::<NonAdminBackup>(&house.bed).await?;
        nacre.process.kill().await?;
        let raw = raw_ceiling::<NonAdminBackup>(&house.bed, &sample).await?;
        let nacre = house.start_nacre().await?;
        ratio = measured::<NonAdminBackup>(&house.bed, &nacre, raw).await?;
        if ratio < SLACK {
            ticks_write_to_one(&house, &nacre).await?;
            return drains(&house).await;
        }
    }
    anyhow::bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

async fn velero_status(backups: &Api<Backup>, name: &str, status: Value) -> Result<()> {
    let change = Patch::Merge(json!({ "status": status }));
    backups.patch(name, &PatchParams::default(), &change).await?;
    Ok(())
}

/// Ten progress ticks of one running backup among a thousand waiting: ten writes to its request, and to others no more
/// than the queue's budget allows.
async fn ticks_write_to_one(house: &House, nacre: &Nacre) -> Result<()> {
    let bed = &house.bed;
    let backups = Api::<Backup>::namespaced(bed.client().await?, VELERO);
    let first = backups.list(&ListParams::default().limit(1)).await?.items.remove(0);
    let name = first.metadata.name.context("a name")?;
    let owner = first.metadata.annotations.unwrap_or_default();
    let (namespace, request) =
        (&owner["openshift.io/oadp-nab-origin-namespace"], &owner["openshift.io/oadp-nab-origin-name"]);
    let requests = Api::<NonAdminBackup>::namespaced(bed.client().await?, namespace);
    let shows = async |done: i64| {
        bed::wait_until(
            "the tick to be shown",
            Duration::from_secs(10),
            requests.clone(),
            request,
            |request| {
                let velero = request?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
                (velero.progress.as_ref()?.items_backed_up? == done).then_some(())
            },
        )
        .await
    };
    velero_status(&backups, &name, json!({"phase": "InProgress", "progress": {"itemsBackedUp": 1}})).await?;
    shows(1).await?;

    let mark = bed.audit().mark().await?;
    let (began, before) = (Instant::now(), nacre.process.usage()?.cpu_seconds);
    for tick in 1..=10 {
        velero_status(&backups, &name, json!({"progress": {"itemsBackedUp": tick * 10}})).await?;
        shows(tick * 10).await?;
    }
    let cpu = nacre.process.usage()?.cpu_seconds - before;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE).only(|write| write.resource != "events");
    let budget = usize::try_from(began.elapsed().as_secs() + 1)? * 10;
    let own = writes.only(|write| write.name == *request && write.namespace == *namespace);
    println!(
        "ten ticks: {} writes to its request, {} to others; {cpu:.2} s of CPU",
        own.len(),
        writes.len() - own.len()
    );
    ensure!(own.len() == 10, "{:#?}", own.tally());
    ensure!(writes.len() - own.len() <= budget, "{} in {:?}", writes.len(), began.elapsed());
    ensure!(cpu < 0.5, "{cpu} s of CPU");
    Ok(())
}

/// Velero works through all of them: the last request shows it within two seconds, and all show that they are done.
async fn drains(house: &House) -> Result<()> {
    let bed = &house.bed;
    let client = bed.client().await?;
    let backups = Api::<Backup>::namespaced(client.clone(), VELERO);
    let mut all = backups.list(&ListParams::default()).await?.items;
    all.sort_by_key(|backup| {
        (backup.metadata.creation_timestamp.as_ref().map(|time| time.0), backup.metadata.name.clone())
    });
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    let done = json!({"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"});
    for backup in &all {
        pace.tick().await;
        velero_status(&backups, backup.metadata.name.as_deref().context("a name")?, done.clone()).await?;
    }
    let ended = Instant::now();
    let requests = Api::<NonAdminBackup>::all(client);
    let unfinished = async || -> Result<(), Vec<String>> {
        let list = requests.list(&ListParams::default()).await.map_err(|error| vec![error.to_string()])?;
        let late = list.items.iter().filter(|request| {
            let status = request.status.clone().unwrap_or_default();
            let phase = status.velero_backup.and_then(|velero| velero.status?.phase);
            phase.as_deref() != Some("Completed")
                || status.queue_info.map(|info| info.estimated_queue_position) != Some(0)
        });
        let late: Vec<_> = late.filter_map(|request| request.metadata.name.clone()).take(5).collect();
        if late.is_empty() { Ok(()) } else { Err(late) }
    };
    bed::eventually("every request to show the end", Duration::from_secs(10), unfinished).await?;
    let lag = ended.elapsed();
    println!("drained {} at 20 a second; the last request showed it within {lag:.1?}", all.len());
    ensure!(lag < Duration::from_secs(2), "{lag:?}");
    Ok(())
}

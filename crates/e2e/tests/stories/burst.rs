//! A thousand requests at once, against what a bare client needs for the same writes; then progress ticks, a drain, and
//! what it all cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::NonAdminBackup;
use api::velero::Backup;
use bed::Bed;
use e2e::{House, NACRE, Nacre, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const REQUESTS: usize = 1000;
const NAMESPACES: usize = 20;
/// As many as nacre has workers: beyond 16 the API server takes no more in the same time.
const AT_A_TIME: usize = 32;

fn namespace(series: &str, number: usize) -> String {
    format!("{series}-{}", number % NAMESPACES)
}

fn request(number: usize) -> Result<NonAdminBackup> {
    let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": format!("b{number}")}, "spec": {"backupSpec": {"ttl": "24h"}}});
    Ok(serde_json::from_value(body)?)
}

async fn make_namespaces(bed: &Bed, series: &str) -> Result<()> {
    for number in 0..NAMESPACES {
        bed.namespace(&namespace(series, number)).await?;
    }
    Ok(())
}

/// The same 4000 writes from a bare client: submit, finalizer, Velero Backup, status.
async fn raw_ceiling(bed: &Bed) -> Result<Duration> {
    make_namespaces(bed, "raw").await?;
    let client = bed.client().await?;
    let began = Instant::now();
    stream::iter(0..REQUESTS)
        .map(|number| {
            let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace("raw", number));
            let backups = Api::<Backup>::namespaced(client.clone(), VELERO);
            async move {
                let made = requests.create(&PostParams::default(), &request(number)?).await?;
                let name = made.metadata.name.clone().context("a name")?;
                let held = json!({"metadata": {"finalizers": ["nacre.dev/raw"]}});
                requests.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
                let velero = json!({"apiVersion": "velero.io/v1", "kind": "Backup",
                    "metadata": {"name": format!("raw-{number}"), "labels": {"raw": "true"}},
                    "spec": {"includedNamespaces": [namespace("raw", number)], "ttl": "24h"}});
                backups.create(&PostParams::default(), &serde_json::from_value(velero)?).await?;
                let status =
                    json!({"status": {"phase": "Created", "queueInfo": {"estimatedQueuePosition": 1}}});
                requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(began.elapsed())
}

async fn remove_raw(bed: &Bed) -> Result<()> {
    bed.kubectl(&["delete", "backups.velero.io", "-n", VELERO, "-l", "raw=true", "--wait=false"])
        .await?
        .ok()?;
    let client = bed.client().await?;
    stream::iter(0..REQUESTS)
        .map(|number| {
            let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace("raw", number));
            async move {
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                requests.patch(&format!("b{number}"), &PatchParams::default(), &free).await?;
                requests.delete(&format!("b{number}"), &kube::api::DeleteParams::default()).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(())
}

/// Submits all requests and returns how long it took until the last was `Created`.
async fn burst(bed: &Bed, nacre: &Nacre) -> Result<Duration> {
    make_namespaces(bed, "shop").await?;
    let client = bed.client().await?;
    let began = Instant::now();
    stream::iter(0..REQUESTS)
        .map(|number| {
            let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace("shop", number));
            async move { anyhow::Ok(requests.create(&PostParams::default(), &request(number)?).await?) }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    // Watching a thousand requests from here would cost the machine as much as nacre's own work: nacre counts its
    // writes, and whether they did what they should is looked at once, afterwards.
    let three_each = f64::from(u32::try_from(REQUESTS)?) * 3.0;
    let written = async || {
        let written = nacre.metric("nacre_api_writes_total").await?;
        if written >= three_each { Ok(()) } else { Err(anyhow::anyhow!("{written} writes")) }
    };
    bed::eventually("three writes for each request", Duration::from_mins(1), written).await?;
    let took = began.elapsed();
    let all = Api::<NonAdminBackup>::all(client).list(&kube::api::ListParams::default()).await?;
    let created = all.items.iter().filter(|request| {
        request.status.as_ref().and_then(|status| status.phase) == Some(api::Phase::Created)
    });
    ensure!(created.count() == REQUESTS, "not all were Created");
    Ok(took)
}

async fn velero_status(backups: &Api<Backup>, name: &str, status: Value) -> Result<()> {
    let change = Patch::Merge(json!({ "status": status }));
    backups.patch(name, &PatchParams::default(), &change).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_at_once_cost_little_more_than_their_writes() -> Result<()> {
    let house = House::build().await?;
    let bed = &house.bed;
    bed.velero_stop()?;
    let raw = raw_ceiling(bed).await?;
    remove_raw(bed).await?;

    let nacre = house.start_nacre().await?;
    let mark = bed.audit().mark().await?;
    let took = burst(bed, &nacre).await?;
    let busy = nacre.process.usage()?;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE);
    let events = writes.only(|write| write.resource == "events");
    let own = writes.only(|write| write.resource != "events");
    let conflicts = own.only(|write| write.code == 409);
    println!(
        "{REQUESTS} requests: {took:.1?} until all were Created, {raw:.1?} for a bare client ({:.2} times); \
         {} writes, {} of them conflicts, {} Events; {:.2} s of CPU, {} MiB at most",
        took.as_secs_f64() / raw.as_secs_f64(),
        own.len(),
        conflicts.len(),
        events.len(),
        busy.cpu_seconds,
        busy.peak_rss >> 20,
    );
    ensure!(conflicts.is_empty(), "{:#?}", own.tally());
    ensure!(own.len() <= REQUESTS * 301 / 100, "{} writes: {:#?}", own.len(), own.tally());
    ensure!(took < raw.mul_f64(1.3), "{took:?} against {raw:?}");
    ensure!(busy.peak_rss < 40 << 20, "{} bytes", busy.peak_rss);

    ticks_write_to_one(&house, &nacre).await?;
    drains(&house).await
}

/// Ten progress ticks of one running backup among a thousand waiting: ten writes to its request, none to others.
async fn ticks_write_to_one(house: &House, nacre: &Nacre) -> Result<()> {
    let bed = &house.bed;
    let settle = async || bed.audit().quiet(NACRE, Duration::from_secs(3)).await;
    bed::eventually("positions to be settled", Duration::from_mins(4), settle).await?;
    let backups = Api::<Backup>::namespaced(bed.client().await?, VELERO);
    let first = backups.list(&kube::api::ListParams::default().limit(1)).await?.items.remove(0);
    let name = first.metadata.name.context("a name")?;
    let owner = first.metadata.annotations.unwrap_or_default();
    let (namespace, request) =
        (&owner["openshift.io/oadp-nab-origin-namespace"], &owner["openshift.io/oadp-nab-origin-name"]);
    velero_status(&backups, &name, json!({"phase": "InProgress", "progress": {"totalItems": 100}})).await?;
    bed::eventually("positions to be settled", Duration::from_secs(30), settle).await?;

    let mark = bed.audit().mark().await?;
    let before = nacre.process.usage()?.cpu_seconds;
    let requests = Api::<NonAdminBackup>::namespaced(bed.client().await?, namespace);
    for tick in 1..=10 {
        velero_status(&backups, &name, json!({"progress": {"itemsBackedUp": tick * 10}})).await?;
        bed::wait_until(
            "the tick to be shown",
            Duration::from_secs(10),
            requests.clone(),
            request,
            |request| {
                let velero = request?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
                (velero.progress.as_ref()?.items_backed_up? == tick * 10).then_some(())
            },
        )
        .await?;
    }
    let cpu = nacre.process.usage()?.cpu_seconds - before;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE);
    println!("ten ticks: {} writes, {cpu:.2} s of CPU", writes.len());
    ensure!(writes.len() == 10, "{:#?}", writes.tally());
    ensure!(writes.as_slice().iter().all(|write| write.name == *request && write.namespace == *namespace));
    ensure!(cpu < 0.5, "{cpu} s of CPU");
    Ok(())
}

/// Velero works through all of them: the last request shows it within two seconds, and positions only fall.
async fn drains(house: &House) -> Result<()> {
    let bed = &house.bed;
    let client = bed.client().await?;
    let backups = Arc::new(Api::<Backup>::namespaced(client.clone(), VELERO));
    let mut all = backups.list(&kube::api::ListParams::default()).await?.items;
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
        let list = requests
            .list(&kube::api::ListParams::default())
            .await
            .map_err(|error| vec![error.to_string()])?;
        let late = list.items.iter().filter(|request| {
            let status = request.status.clone().unwrap_or_default();
            let phase = status.velero_backup.and_then(|velero| velero.status?.phase);
            phase.as_deref() != Some("Completed")
                || status.queue_info.map(|info| info.estimated_queue_position) != Some(0)
        });
        let late: Vec<_> = late.filter_map(|request| request.metadata.name.clone()).collect();
        if late.is_empty() { Ok(()) } else { Err(late) }
    };
    bed::eventually("every request to show the end", Duration::from_secs(10), unfinished).await?;
    let lag = ended.elapsed();
    println!("drained {} at 20 a second; the last request showed it within {lag:.1?}", all.len());
    ensure!(lag < Duration::from_secs(2), "{lag:?}");
    bed.audit().quiet(NACRE, Duration::from_secs(5)).await
}

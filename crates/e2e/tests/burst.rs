//! A thousand requests at once, against what a bare client needs for the same writes; then progress ticks, a drain, and
//! what it all cost. It is a program of its own, so that nothing else runs beside what it measures.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

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
    let requests = Api::<NonAdminBackup>::all(client);
    let all_created = async || {
        let written = nacre.metric("nacre_api_writes_total").await?;
        ensure!(written >= three_each, "{written} writes");
        let took = began.elapsed();
        let all = requests.list(&kube::api::ListParams::default()).await?;
        let phase = |request: &NonAdminBackup| request.status.as_ref().and_then(|status| status.phase);
        let created = all.items.iter().filter(|request| phase(request) == Some(api::Phase::Created)).count();
        ensure!(created == REQUESTS, "{created} are Created");
        anyhow::Ok(took)
    };
    bed::eventually("every request to be Created", Duration::from_mins(1), all_created).await
}

async fn velero_status(backups: &Api<Backup>, name: &str, status: Value) -> Result<()> {
    let change = Patch::Merge(json!({ "status": status }));
    backups.patch(name, &PatchParams::default(), &change).await?;
    Ok(())
}

/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best of three counts.
const ATTEMPTS: usize = 3;
/// How much longer than the bare client it may take.
const SLACK: f64 = 1.3;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_at_once_cost_little_more_than_their_writes() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = House::build().await?;
        house.bed.velero_stop()?;
        let raw = raw_ceiling(&house.bed).await?;
        remove_raw(&house.bed).await?;
        let nacre = house.start_nacre().await?;
        let took = measured(&house.bed, &nacre, raw).await?;
        ratio = took.as_secs_f64() / raw.as_secs_f64();
        if ratio < SLACK {
            ticks_write_to_one(&house, &nacre).await?;
            return drains(&house).await;
        }
    }
    anyhow::bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// One burst: what it cost is told, and what does not depend on the machine's mood is required.
async fn measured(bed: &Bed, nacre: &Nacre, raw: Duration) -> Result<Duration> {
    let mark = bed.audit().mark().await?;
    let took = burst(bed, nacre).await?;
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
    ensure!(busy.peak_rss < 40 << 20, "{} bytes", busy.peak_rss);
    Ok(took)
}

/// Ten progress ticks of one running backup among a thousand waiting: ten writes to its request, and to others no more
/// than the queue's budget allows.
async fn ticks_write_to_one(house: &House, nacre: &Nacre) -> Result<()> {
    let bed = &house.bed;
    let backups = Api::<Backup>::namespaced(bed.client().await?, VELERO);
    let first = backups.list(&kube::api::ListParams::default().limit(1)).await?.items.remove(0);
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
        let late: Vec<_> = late.filter_map(|request| request.metadata.name.clone()).take(5).collect();
        if late.is_empty() { Ok(()) } else { Err(late) }
    };
    bed::eventually("every request to show the end", Duration::from_secs(10), unfinished).await?;
    let lag = ended.elapsed();
    println!("drained {} at 20 a second; the last request showed it within {lag:.1?}", all.len());
    ensure!(lag < Duration::from_secs(2), "{lag:?}");
    Ok(())
}

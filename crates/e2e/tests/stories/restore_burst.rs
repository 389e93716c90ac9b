//! A thousand restores at once, against what a bare client needs for the same writes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::velero::Restore;
use api::{NonAdminBackup, NonAdminRestore, Phase};
use bed::Bed;
use e2e::{House, NACRE, Nacre, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::burst::{AT_A_TIME, NAMESPACES, REQUESTS, make_namespaces, namespace};

fn request(number: usize) -> Result<NonAdminRestore> {
    let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore",
        "metadata": {"name": format!("r{number}")}, "spec": {"restoreSpec": {"backupName": "daily"}}});
    Ok(serde_json::from_value(body)?)
}

/// The same 4000 writes from a bare client: submit, finalizer, Velero Restore, status.
async fn raw_ceiling(bed: &Bed) -> Result<Duration> {
    make_namespaces(bed, "raw").await?;
    let client = bed.client().await?;
    let began = Instant::now();
    stream::iter(0..REQUESTS)
        .map(|number| {
            let requests = Api::<NonAdminRestore>::namespaced(client.clone(), &namespace("raw", number));
            let restores = Api::<Restore>::namespaced(client.clone(), VELERO);
            async move {
                let made = requests.create(&PostParams::default(), &request(number)?).await?;
                let name = made.metadata.name.clone().context("a name")?;
                let held = json!({"metadata": {"finalizers": ["nacre.dev/raw"]}});
                requests.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
                let velero = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
                    "metadata": {"name": format!("raw-{number}"), "labels": {"raw": "true"}},
                    "spec": {"backupName": "daily", "includedNamespaces": [namespace("raw", number)]}});
                restores.create(&PostParams::default(), &serde_json::from_value(velero)?).await?;
                let status =
                    json!({"status": {"phase": "Created", "queueInfo": {"estimatedQueuePosition": 1}}});
                requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    let took = began.elapsed();
    // Gone before nacre starts, so that it has nothing to do about them.
    bed.kubectl(&["delete", "restores.velero.io", "-n", VELERO, "-l", "raw=true", "--wait=false"])
        .await?
        .ok()?;
    for number in 0..NAMESPACES {
        let requests = Api::<NonAdminRestore>::namespaced(client.clone(), &namespace("raw", number));
        for left in requests.list(&ListParams::default()).await?.items {
            let name = left.metadata.name.context("a name")?;
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            requests.patch(&name, &PatchParams::default(), &free).await?;
            requests.delete(&name, &kube::api::DeleteParams::default()).await?;
        }
    }
    Ok(took)
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

/// Submits all requests and returns how long it took until the last was `Created`.
async fn burst(bed: &Bed, nacre: &Nacre) -> Result<Duration> {
    let client = bed.client().await?;
    let before = nacre.metric("nacre_api_writes_total").await?;
    let began = Instant::now();
    stream::iter(0..REQUESTS)
        .map(|number| {
            let requests = Api::<NonAdminRestore>::namespaced(client.clone(), &namespace("shop", number));
            async move { anyhow::Ok(requests.create(&PostParams::default(), &request(number)?).await?) }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    // As for backups: nacre counts its writes, and what they did is looked at once, afterwards.
    let three_each = before + f64::from(u32::try_from(REQUESTS)?) * 3.0;
    let written = async || {
        let written = nacre.metric("nacre_api_writes_total").await?;
        if written >= three_each { Ok(()) } else { Err(anyhow::anyhow!("{written} writes")) }
    };
    bed::eventually("three writes for each request", Duration::from_mins(1), written).await?;
    let took = began.elapsed();
    let all = Api::<NonAdminRestore>::all(client).list(&ListParams::default()).await?;
    let created = all
        .items
        .iter()
        .filter(|request| request.status.as_ref().and_then(|status| status.phase) == Some(Phase::Created));
    ensure!(created.count() == REQUESTS, "not all were Created");
    Ok(took)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_restores_at_once_cost_little_more_than_their_writes() -> Result<()> {
    let house = House::build().await?;
    let bed = &house.bed;
    bed.velero_stop()?;
    let raw = raw_ceiling(bed).await?;
    let nacre = house.start_nacre().await?;
    finished_backups(bed).await?;

    let mark = bed.audit().mark().await?;
    let took = burst(bed, &nacre).await?;
    let busy = nacre.process.usage()?;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE);
    let own = writes.only(|write| write.resource != "events");
    let conflicts = own.only(|write| write.code == 409);
    println!(
        "{REQUESTS} restores: {took:.1?} until all were Created, {raw:.1?} for a bare client ({:.2} times); \
         {} writes, {} of them conflicts; {:.2} s of CPU, {} MiB at most",
        took.as_secs_f64() / raw.as_secs_f64(),
        own.len(),
        conflicts.len(),
        busy.cpu_seconds,
        busy.peak_rss >> 20,
    );
    ensure!(conflicts.is_empty(), "{:#?}", own.tally());
    ensure!(own.len() <= REQUESTS * 301 / 100, "{} writes: {:#?}", own.len(), own.tally());
    ensure!(took < raw.mul_f64(1.3), "{took:?} against {raw:?}");
    ensure!(busy.peak_rss < 40 << 20, "{} bytes", busy.peak_rss);
    Ok(())
}

//! Downloads: a link to a log when the policy opens it, the very bytes that the bucket holds, nothing for anybody else,
//! and nothing left behind.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::velero::DownloadRequest;
use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, Phase, condition, labels};
use bed::{eventually, wait_until};
use e2e::{Tenant, TestCluster, VELERO};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) async fn ask(
    tenant: &Tenant<'_>,
    name: &str,
    kind: &str,
    of: &str,
) -> Result<NonAdminDownloadRequest> {
    tenant.create(name, json!({"spec": {"target": {"kind": kind, "name": of}}})).await
}

/// Waits until a request has this condition, and returns what it says.
pub(crate) async fn reported(tenant: &Tenant<'_>, name: &str, type_: &str) -> Result<String> {
    tenant
        .wait(type_, name, |request: Option<&NonAdminDownloadRequest>| {
            let status = request?.status.as_ref()?;
            let found = condition::get(&status.conditions, type_)?;
            (status.phase == Some(Phase::BackingOff)).then(|| found.message.clone())
        })
        .await
}

/// Waits until there is no link and says why.
pub(crate) async fn refused(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let is_refused = |request: Option<&NonAdminDownloadRequest>| {
        let processed = condition::get(&request?.status.as_ref()?.conditions, condition::PROCESSED)?;
        (processed.status == "False").then(|| processed.message.clone())
    };
    tenant.wait("the download to be refused", name, is_refused).await
}

/// Waits for the link.
pub(crate) async fn link(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    tenant
        .wait("the link", name, |request: Option<&NonAdminDownloadRequest>| {
            let status = request?.status.as_ref()?;
            let answer = status.velero.as_ref()?.status.as_ref()?;
            let ready = status.phase == Some(Phase::Created)
                && condition::is_true(&status.conditions, condition::PROCESSED);
            answer.download_url.clone().filter(|_| ready)
        })
        .await
}

/// Fetches a link without any credential.
pub(crate) async fn fetch(link: &str) -> Result<Vec<u8>> {
    let rest = link.strip_prefix("http://").context("a plain link")?;
    let (host, path) = rest.split_once('/').context("a path")?;
    let mut stream = TcpStream::connect(host).await?;
    let ask = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("an end of the headers")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{head}");
    }
    Ok(answer.split_off(end + 4))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_to_the_bytes_in_the_bucket_and_only_for_the_owner() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rival = test_cluster.tenant("rival", "bob").await?;
    let requests = Api::<DownloadRequest>::namespaced(test_cluster.bed.client().await?, VELERO);

    // Asked for before there is anything, it waits and says for what.
    ask(&shop, "first", "BackupResults", "daily").await?;
    let waits = reported(&shop, "first", condition::BACKUP_NOT_AVAILABLE).await?;
    assert!(waits.contains("there is no NonAdminBackup \"daily\""), "{waits}");
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.back_up("daily").await?;
    assert_eq!(shop.backup_ends("daily").await?, "Completed");

    // The cluster's own storage is closed unless the policy opens it; then the same request goes on by itself.
    let closed = reported(&shop, "first", condition::LOCATION_NOT_USED).await?;
    assert!(closed.contains("ask the administrators"), "{closed}");
    assert!(requests.list(&ListParams::default()).await?.items.is_empty());
    test_cluster
        .bed
        .apply_yaml(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: nacre-policy, namespace: velero}, \
             data: {policy.yaml: 'downloads: {platformStorage: logs}'}}",
        )
        .await?;
    link(&shop, "first").await?;
    shop.delete::<NonAdminDownloadRequest>("first").await?;
    ask(&shop, "log", "BackupLog", "daily").await?;
    let url = link(&shop, "log").await?;
    let backup = shop.api::<NonAdminBackup>().get("daily").await?;
    let velero = backup.status.and_then(|status| status.velero_backup?.name).context("a reference")?;
    let stored = test_cluster.bed.store()?.path(bed::BUCKET, &format!("backups/{velero}/{velero}-logs.gz"));
    assert_eq!(fetch(&url).await?, std::fs::read(stored)?);
    let request = shop.api::<NonAdminDownloadRequest>().get("log").await?;
    let uid = request.uid().context("a uid")?;
    let made = requests.get(&format!("nadr-{uid}")).await?;
    assert_eq!(made.labels().get(labels::NADR_UID), Some(&uid));
    assert_eq!(made.annotations().get(labels::NADR_NAMESPACE).map(String::as_str), Some("shop"));
    assert_eq!(made.spec.target.name, velero);

    // Of a restore too; the contents stay closed.
    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    ask(&shop, "how", "RestoreResults", "back").await?;
    let restore = shop.api::<NonAdminRestore>().get("back").await?;
    let velero_restore =
        restore.status.and_then(|status| status.velero_restore?.name).context("a reference")?;
    let key = format!("restores/{velero_restore}/restore-{velero_restore}-results.gz");
    let stored = test_cluster.bed.store()?.path(bed::BUCKET, &key);
    assert_eq!(fetch(&link(&shop, "how").await?).await?, std::fs::read(stored)?);
    ask(&shop, "all", "BackupContents", "daily").await?;
    reported(&shop, "all", condition::LOCATION_NOT_USED).await?;

    // Somebody else, with the name, with a copied label, with a copied name of Velero's: nothing is made.
    // nacre's own requests, for what it shows by itself, come and go.
    let asked = ListParams::default().labels(labels::NADR_UID);
    let before = requests.list(&asked).await?.items.len();
    ask(&rival, "theft", "BackupLog", "daily").await?;
    reported(&rival, "theft", condition::BACKUP_NOT_AVAILABLE).await?;
    let copied = json!({"metadata": {"labels": {labels::SYNCED_FROM: velero}}, "spec": {"backupSpec": {}}});
    rival.create::<NonAdminBackup>("copied", copied).await?;
    ask(&rival, "more", "BackupLog", "copied").await?;
    reported(&rival, "more", condition::BACKUP_NOT_AVAILABLE).await?;
    ask(&rival, "most", "BackupLog", &velero).await?;
    reported(&rival, "most", condition::BACKUP_NOT_AVAILABLE).await?;
    assert_eq!(requests.list(&asked).await?.items.len(), before);

    // Deleted, it takes its Velero object along; also while nacre is down.
    shop.delete::<NonAdminDownloadRequest>("how").await?;
    eventually("the Velero object to go too", TIMEOUT, async || {
        let left = requests.list(&asked).await.map_err(|error| error.to_string())?.items;
        if left.len() == 1 { Ok(()) } else { Err(format!("{} are left", left.len())) }
    })
    .await?;
    drop(nacre);
    shop.delete::<NonAdminDownloadRequest>("log").await?;
    let _nacre = test_cluster.start_nacre().await?;
    wait_until("the leftover to go", TIMEOUT, requests.clone(), &format!("nadr-{uid}"), |left| {
        left.is_none().then_some(())
    })
    .await?;

    // When its time is over, both go.
    ask(&shop, "late", "BackupLog", "daily").await?;
    link(&shop, "late").await?;
    let uid = shop.api::<NonAdminDownloadRequest>().get("late").await?.uid().context("a uid")?;
    test_cluster.bed.velero_stop()?;
    let past = Timestamp::now() - Duration::from_mins(1);
    let expired = json!({"expiration": past.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    test_cluster.bed.velero_status("DownloadRequest", &format!("nadr-{uid}"), expired).await?;
    shop.gone::<NonAdminDownloadRequest>("late").await?;
    wait_until("its Velero object to go", TIMEOUT, requests, &format!("nadr-{uid}"), |left| {
        left.is_none().then_some(())
    })
    .await
}

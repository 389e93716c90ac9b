//! Volumes of all kinds: many, full of small files, large, and of a database that is in use. Part of `make long`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use e2e::NodeTenant;
use serde_json::json;

use crate::{cluster, cluster_of_bed, say};

/// The bytes of a replica.
const SMALL: u64 = 4 << 20;
const BACK_UP: [&str; 5] = ["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"];
const RESTORE: [&str; 5] = ["restore", "create", "--from-backup", "one", "--wait"];

/// Backs up, loses and restores everything of a tenant.
async fn lost_and_restored(tenant: &NodeTenant<'_>) -> Result<()> {
    lost_and_restored_by(tenant, async || tenant.cli(&BACK_UP).await?.with_code(0)).await.map(drop)
}

/// The same, with a backup made in this way. Returns what the backup printed.
async fn lost_and_restored_by(
    tenant: &NodeTenant<'_>,
    back_up: impl AsyncFn() -> Result<String>,
) -> Result<String> {
    let began = Instant::now();
    let printed = back_up().await?;
    let backed_up = began.elapsed();
    tenant.lose_namespace_contents().await?;
    let began = Instant::now();
    tenant.cli(&RESTORE).await?.with_code(0)?;
    let name = &tenant.namespace;
    say(&format!(
        "{name}: backup {:.0} s, restore {:.0} s",
        backed_up.as_secs_f64(),
        began.elapsed().as_secs_f64()
    ))?;
    Ok(printed)
}

#[tokio::test]
async fn a_stateful_set_with_three_replicas_comes_back_with_each_replicas_own_bytes() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("replicas", "rosa").await?;
    let written = tenant.start_stateful_set("web", SMALL, &json!({})).await?;
    lost_and_restored(&tenant).await?;
    assert_eq!(tenant.checksums_of_replicas("web").await?, written);
    Ok(())
}

#[tokio::test]
async fn fifty_thousand_small_files_come_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("small-files", "sam").await?;
    tenant.start_deployment("db", 1000).await?;
    let write = "cd /data; d=0; while [ $d -lt 500 ]; do mkdir d$d; f=0; while [ $f -lt 100 ]; do \
                 echo $d $f > d$d/f$f; f=$((f+1)); done; d=$((d+1)); done; sync";
    tenant.shell("db", write).await?;
    let count = "find /data -name 'f*' -type f | wc -l";
    assert_eq!(tenant.shell("db", count).await?.trim(), "50000");
    let written = tenant.checksum("db").await?;
    lost_and_restored(&tenant).await?;
    assert_eq!(tenant.shell("db", count).await?.trim(), "50000");
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_file_of_one_gibibyte_comes_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("large-file", "lars").await?;
    tenant.start_deployment("db", 1 << 30).await?;
    let written = tenant.checksum("db").await?;
    // While it is saved, its page shows how far and how fast.
    let look = async {
        bed::eventually("bytes on the page", Duration::from_mins(4), async || {
            let page = tenant.cli(&["backup", "describe", "one"]).await?.stdout;
            let line = page.lines().find(|line| line.starts_with("Volume data:"));
            let line = line.with_context(|| format!("no bytes yet:\n{page}"))?;
            ensure!(line.contains(" of 1 GiB") && line.ends_with("/s"), "{line}");
            Ok(())
        })
        .await
    };
    // In a terminal, the line that follows the backup shows the same.
    let typed = format!("stty cols 120 rows 30; kubectl nacre {}", BACK_UP.join(" "));
    let back_up = async || tenant.type_and_confirm(&typed).await?.with_code(0);
    let (restored, looked) = tokio::join!(lost_and_restored_by(&tenant, back_up), look);
    looked?;
    let printed = restored?;
    let frames = printed.split(['\r', '\n']).filter(|frame| frame.contains(" of 1 GiB of volume data"));
    let rated = frames.clone().filter(|frame| frame.contains("/s")).count();
    ensure!(rated > 0, "no bytes and rate in {} frames: {printed:?}", frames.count());
    assert_eq!(tenant.shell("db", "stat -c %s /data/bytes").await?.trim(), (1u64 << 30).to_string());
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

/// Books money from one account to another, again and again, unless it is asked to pause; then it answers that it does.
/// It begins paused where the volume is as it was while it was read: so nothing is booked after a restore before the test
/// has counted what came back.
const BOOKKEEPER: &str = "
db=/data/bank.db
[ ! -f /data/quiet ] || touch /tmp/pause
[ -f $db ] || sqlite3 $db 'PRAGMA journal_mode=WAL; CREATE TABLE debit(n); CREATE TABLE credit(n);' >/dev/null
n=0
while true; do
  if [ -f /tmp/pause ]; then touch /tmp/paused; sleep 0.1; continue; fi
  rm -f /tmp/paused
  n=$((n+1))
  sqlite3 -cmd '.timeout 9000' $db \"BEGIN; INSERT INTO debit VALUES($n); INSERT INTO credit VALUES($n); COMMIT;\"
done";
/// Velero runs this in the pod before it reads the volume, and fails the backup if it fails. What is booked then is noted.
const QUIESCE: &str = "set -e; touch /tmp/pause; until [ -f /tmp/paused ]; do sleep 0.1; done; \
                       sqlite3 -cmd '.timeout 9000' /data/bank.db 'PRAGMA wal_checkpoint(TRUNCATE)'; \
                       sqlite3 /data/bank.db 'SELECT count(*) FROM debit' > /data/quiet; sync";
/// And this afterwards.
const GO_ON: &str = "rm /tmp/pause /data/quiet";

#[tokio::test]
async fn a_database_in_use_is_quiesced_by_hooks_and_comes_back_consistent() -> Result<()> {
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    cluster.load_sqlite().await?;
    let tenant = cluster.tenant("bank", "bea").await?;
    tenant.apply(&e2e::claim("bank")).await?;
    let hook = |command: &str| json!(["/bin/sh", "-c", command]).to_string();
    let mut spec = e2e::sqlite_pod_spec("bank");
    spec["containers"][0]["args"] = json!(["-c", BOOKKEEPER]);
    let annotations = json!({
        "pre.hook.backup.velero.io/container": "main",
        "pre.hook.backup.velero.io/command": hook(QUIESCE),
        "post.hook.backup.velero.io/container": "main",
        "post.hook.backup.velero.io/command": hook(GO_ON),
    });
    tenant.apply_deployment("bank", &annotations, &spec).await?;
    let count = "sqlite3 -cmd '.timeout 9000' /data/bank.db 'SELECT count(*) FROM debit'";
    let booked = async || -> Result<u64> { Ok(tenant.shell("bank", count).await?.trim().parse()?) };
    bed::eventually("some bookings", std::time::Duration::from_mins(1), async || {
        let booked = booked().await?;
        ensure!(booked > 20, "only {booked}");
        Ok(())
    })
    .await?;
    let before = booked().await?;
    tenant.cli(&BACK_UP).await?.with_code(0)?;
    // It went on afterwards.
    let after = booked().await?;
    bed::eventually("bookings after the backup", std::time::Duration::from_mins(1), async || {
        ensure!(booked().await? > after, "none");
        Ok(())
    })
    .await?;
    assert_eq!(tenant.shell("bank", "ls /data").await?.trim().lines().find(|name| *name == "quiet"), None);

    tenant.lose_namespace_contents().await?;
    // The program begins paused, so what is looked at is what was backed up.
    tenant.cli(&RESTORE).await?.with_code(0)?;
    let look = "until [ -f /tmp/paused ]; do sleep 0.1; done; sqlite3 -cmd '.timeout 9000' /data/bank.db \
                'PRAGMA integrity_check; SELECT (SELECT sum(n) FROM debit) = (SELECT sum(n) FROM credit); \
                SELECT count(*) FROM debit'; cat /data/quiet";
    let seen = tenant.shell("bank", look).await?;
    let lines: Vec<&str> = seen.lines().collect();
    ensure!(lines.len() == 4 && lines[..2] == ["ok", "1"], "{seen}");
    let (restored, quiet): (u64, u64) = (lines[2].parse()?, lines[3].parse()?);
    assert_eq!(restored, quiet, "bookings that were restored, and that there were when the volume was read");
    ensure!(quiet >= before, "{quiet} bookings were backed up of {before}");
    Ok(())
}

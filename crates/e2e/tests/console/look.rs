//! A namespace in the middle of its life, of which the story plays nacre and Velero: the whole overview, and live progress.

use anyhow::{Context as _, Result, ensure};
use api::{NonAdminBackup, NonAdminSchedule};
use e2e::Tenant;
use e2e::played::{complete, condition, play};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};

use crate::browser::Driver;
use crate::cluster::{laptop, stage};
use crate::times;

/// Velero is so far with it.
fn running(done: u32) -> Value {
    let started = Timestamp::now() - SignedDuration::from_mins(2);
    json!({"phase": "Created", "veleroBackup": {"name": "v", "status": {"phase": "InProgress", "startTimestamp": started,
        "progress": {"totalItems": 120, "itemsBackedUp": done}}}})
}

/// Two claims, one of them in the last good backup; a schedule, a backup that runs, one that waits and one that was refused.
async fn busy(tenant: &Tenant<'_>) -> Result<()> {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for name in ["database", "uploads"] {
        tenant.create::<PersistentVolumeClaim>(name, claim.clone()).await?;
    }
    let now = Timestamp::now();
    let hours = |hours| now - SignedDuration::from_hours(hours);
    tenant.back_up("nightly-20261117021400").await?;
    let mut good = complete("Completed", "True");
    let velero = &mut good["veleroBackup"]["status"];
    velero["startTimestamp"] = json!(hours(9) - SignedDuration::from_secs(95));
    velero["completionTimestamp"] = json!(hours(9));
    velero["progress"] = json!({"totalItems": 118, "itemsBackedUp": 118});
    good["claims"] = json!([{"name": "database", "state": "Saved", "bytes": 734_003_200}]);
    play::<NonAdminBackup>(tenant, "nightly-20261117021400", good).await?;
    let spec = json!({"schedule": "14 2 * * *", "timeZone": "Europe/Berlin", "template": {"backupSpec": {}}, "retention": {"keepDaily": 7}});
    tenant.create::<NonAdminSchedule>("nightly", json!({ "spec": spec })).await?;
    let next = now + SignedDuration::from_hours(15);
    let mut status = json!({"phase": "Created", "nextRun": next, "lastGoodBackup": "nightly-20261117021400", "lastGoodTime": hours(9)});
    let until = now + SignedDuration::from_hours(10 * 24);
    status["confirmation"] = json!({"generation": 1, "time": hours(80 * 24), "until": until});
    let mut due = condition("RequesterConfirmed", "False", "ConfirmationDue");
    due[0]["message"] = json!(format!("\"ada\" asks for the runs, which has to be confirmed until {until}"));
    status["conditions"] = due;
    play::<NonAdminSchedule>(tenant, "nightly", status).await?;
    tenant.back_up("before-upgrade").await?;
    play::<NonAdminBackup>(tenant, "before-upgrade", running(40)).await?;
    tenant.back_up("after-upgrade").await?;
    let minutes = |minutes: i64| now + SignedDuration::from_secs(minutes * 60 + 30);
    let turn = json!({"estimatedQueuePosition": 3, "estimatedStart": minutes(17), "earliestStart": minutes(13),
        "latestStart": minutes(25)});
    let conditions = [("Accepted", "BackupAccepted"), ("WaitingForTurn", "OthersFirst")]
        .map(|(type_, reason)| condition(type_, "True", reason)[0].clone());
    let status = json!({"phase": "New", "queueInfo": turn, "conditions": conditions});
    play::<NonAdminBackup>(tenant, "after-upgrade", status).await?;
    tenant.back_up("for-ever").await?;
    let mut refused = condition("Accepted", "False", "InvalidBackupSpec");
    refused[0]["message"] = json!("spec.backupSpec.ttl: the policy allows backups to be kept at most 720h");
    play::<NonAdminBackup>(tenant, "for-ever", json!({"phase": "BackingOff", "conditions": refused})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_look_answers_and_progress_is_live() -> Result<()> {
    let cluster = stage().await?;
    let tenant = &cluster.tenant("shop", "ada").await?;
    busy(tenant).await?;
    let console = laptop(&cluster.bed, "shop", Some("ada")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("ada").await?;
    browser.open(&console.link).await?;
    for words in [
        "There is a good backup, but claim uploads is not in it",
        "nightly-20261117021400, 9h ago",
        "before-upgrade: 40 of 120 items",
        "after-upgrade: starts in about 1",
        "; 2 ahead of you",
        "for-ever: spec.backupSpec.ttl: the policy allows",
        "nightly: next run in ",
        "NOT in the last good backup: it is newer",
    ] {
        browser.sees(words).await?;
    }
    browser.does_not_see("Safe: ").await?;
    browser.inspect("60-overview").await?;
    browser.colours("dark").await?;
    browser.inspect("60-overview-dark").await?;
    browser.colours("light").await?;

    // Each time is that of the reader's clock, also on the part of a page that an update has brought.
    times::reads_elsewhere(&browser).await?;
    let pages = [
        ("", 1),
        ("/restore", 1),
        ("/backups/nightly-20261117021400", 4),
        // Besides the next run: until when it is to be confirmed, as a field and in a condition. The calendar names its zone.
        ("/schedules/nightly", 3),
        ("/backups", 4),
    ];
    for (path, least) in pages {
        browser.open(&console.page(&format!("/ns/shop{path}"))).await?;
        browser.sees("nightly").await?;
        let times = times::are_the_readers(&browser).await.with_context(|| format!("on {path:?}"))?;
        ensure!(times >= least, "{path}: {times}");
    }
    play::<NonAdminBackup>(tenant, "before-upgrade", running(50)).await?;
    browser.sees("50 of 120 items").await?;
    ensure!(times::are_the_readers(&browser).await? >= 4, "times are missing");
    times::reads_at_home(&browser).await?;
    browser.open(&console.page("/ns/shop")).await?;

    // An update takes the focus away from nobody.
    browser
        .script("window.stayed = true; document.querySelector(\"a[href$='/new-backup']\").focus()")
        .await?;
    play::<NonAdminBackup>(tenant, "before-upgrade", running(60)).await?;
    browser.sees("before-upgrade: 60 of 120 items").await?;
    let focused = browser.script("return document.activeElement.getAttribute('href')").await?;
    ensure!(focused == "/ns/shop/new-backup", "{focused}");

    // The number and the bar of one that is not complete move without the page being loaded again.
    browser.open(&console.page("/ns/shop/backups/before-upgrade")).await?;
    browser.sees("60 of 120 items").await?;
    browser.does_not_see("Completed").await?;
    browser.script("window.stayed = true").await?;
    play::<NonAdminBackup>(tenant, "before-upgrade", running(80)).await?;
    browser.sees("80 of 120 items").await?;
    let bar = browser
        .script("const bar = document.querySelector('#progress'); return [bar.value, bar.max]")
        .await?;
    ensure!(bar == json!([80, 120]), "{bar}");
    browser.inspect("61-running").await?;
    play::<NonAdminBackup>(tenant, "before-upgrade", complete("Completed", "True")).await?;
    browser.sees("Completed").await?;
    let (stayed, bar) = (
        browser.script("return window.stayed === true").await?,
        browser.script("return document.querySelector('#progress')").await?,
    );
    ensure!(
        stayed == true && bar.is_null(),
        "the page was loaded again, or still shows a bar: {stayed} {bar}"
    );
    Ok(())
}

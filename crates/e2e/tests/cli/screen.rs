//! What a user sees on a terminal. Statuses are written by the test, so that every step is visible, and the same steps
//! are in the user guide.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminDownloadRequest};
use bed::wait_until;
use e2e::Tenant;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{person::Person, stage, terminal::Terminal};

const GUIDE: &str = include_str!("../../../../docs/user-guide.md");

/// What nacre would write.
async fn play(tenant: &Tenant<'_>, name: &str, status: Value) -> Result<()> {
    let backups = kube::Api::<NonAdminBackup>::namespaced(tenant.bed.client().await?, &tenant.namespace);
    let patch = Patch::Merge(json!({ "status": status }));
    backups.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn at_velero(position: i64, said: &Value) -> Value {
    json!({"phase": "Created", "queueInfo": {"estimatedQueuePosition": position},
        "veleroBackup": {"name": "v", "status": said}})
}

async fn is_there(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let there = |backup: Option<&NonAdminBackup>| backup.map(|_| ());
    wait_until("the backup to be made", std::time::Duration::from_mins(2), tenant.api(), name, there).await
}

/// Whether the guide shows these lines, times and spinners apart.
fn in_the_guide(lines: &[String]) {
    let plain = |text: &str| -> String {
        let text = text.trim().trim_start_matches(|c: char| !c.is_alphanumeric());
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>().replace("00", "0")
    };
    let guide: Vec<String> = GUIDE.lines().map(plain).collect();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        assert!(
            guide.contains(&plain(line)),
            "not in docs/user-guide.md: {line}\nall of it:\n{}",
            lines.join("\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_from_the_queue_to_its_end() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "screen", "ada").await?;
    let mut terminal = Terminal::start(&ada.kubeconfig, &["backup", "create", "daily", "--wait"])?;
    is_there(&ada.tenant, "daily").await?;
    let steps = [
        (at_velero(4, &json!({})), "3 ahead of it"),
        (at_velero(1, &json!({"phase": "New"})), "next in Velero's queue"),
        (
            at_velero(
                1,
                &json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 17}}),
            ),
            "17 of 42 items",
        ),
        (
            at_velero(
                1,
                &json!({"phase": "Finalizing", "progress": {"totalItems": 42, "itemsBackedUp": 42}}),
            ),
            "finishing",
        ),
    ];
    let mut seen = vec![terminal.shows("has not processed it yet").await?];
    for (status, words) in steps {
        play(&ada.tenant, "daily", status).await?;
        seen.push(terminal.shows(words).await?);
    }
    assert!(seen[3].contains("━━"), "a bar: {}", seen[3]);
    // Volumes: how many bytes.
    let running = json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 42}});
    for mebibytes in [2, 4] {
        let mut status = at_velero(1, &running);
        status["claims"] =
            json!([{"name": "data", "state": "Waiting", "bytes": mebibytes << 20, "totalBytes": 8 << 20}]);
        status["conditions"] = json!([{"type": "DataProtected", "status": "Unknown", "reason": "StillRunning",
            "message": "the backup is not over yet", "lastTransitionTime": "2026-11-15T12:00:00Z"}]);
        play(&ada.tenant, "daily", status).await?;
        terminal.shows(&format!("{mebibytes} MiB of 8 MiB of volume data")).await?;
    }
    let done = json!({"phase": "Completed", "progress": {"totalItems": 42, "itemsBackedUp": 42},
        "startTimestamp": "2026-11-15T12:00:00Z", "completionTimestamp": "2026-11-15T12:00:12Z"});
    let mut over = at_velero(0, &done);
    (over["claims"], over["conditions"]) = (json!(null), json!(null));
    play(&ada.tenant, "daily", over).await?;
    assert_eq!(terminal.ends().await?, 0);
    seen.push(terminal.shows("complete, 42 items in 12s").await?);
    assert!(terminal.is_coloured());
    let text = terminal.text();
    let left: Vec<&str> = text.lines().collect();
    assert_eq!(left.len(), 2, "the bar is gone: {text}");
    assert_eq!(left[0], "nonadminbackup.oadp.openshift.io/daily created");
    in_the_guide(&seen);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_screen_for_a_namespace() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "overview", "ada").await?;
    let ago = |hours: i64| (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours)).to_string();
    let done = |phase: &str, hours: i64| {
        json!({"phase": phase, "progress": {"totalItems": 42, "itemsBackedUp": 42}, "startTimestamp": ago(hours),
            "completionTimestamp": ago(hours), "errors": i64::from(phase != "Completed"), "expiration": ago(-700)})
    };
    let refused = json!({"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False", "reason": "InvalidBackupSpec",
        "lastTransitionTime": ago(0), "message": "spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less"}]});
    let missing = "spec.backupSpec.storageLocation: there is no NonAdminBackupStorageLocation \"mine\" in this namespace; \
                   create it or name another; the backup starts when it is ready";
    let held = json!({"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False",
        "reason": "InvalidBackupSpec", "lastTransitionTime": ago(0), "message": missing}]});
    let elsewhere = json!({"spec": {"backupSpec": {"storageLocation": "mine"}}});
    ada.tenant.create::<NonAdminBackup>("friday", elsewhere).await?;
    play(&ada.tenant, "friday", held).await?;
    let running = json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 17}});
    for (name, status) in [
        ("monday", at_velero(0, &done("Completed", 26))),
        ("tuesday", at_velero(0, &done("PartiallyFailed", 4))),
        ("forever", refused),
        ("wednesday", at_velero(1, &running)),
        ("thursday", at_velero(3, &json!({}))),
    ] {
        ada.tenant.back_up(name).await?;
        play(&ada.tenant, name, status).await?;
    }
    // As wide as the guide's lines are long.
    let mut terminal = Terminal::of_width(240, &ada.kubeconfig, &["status"])?;
    assert_eq!(terminal.ends().await?, 3, "the last one that ended was not good");
    terminal.shows("limits: only the administrators").await?;
    assert!(terminal.is_coloured());
    let lines: Vec<String> = terminal.text().lines().map(str::to_owned).collect();
    in_the_guide(&lines);

    // A narrow one breaks lines between words, below the text they belong to.
    for arguments in [&["status"][..], &["backup", "describe", "forever"], &["explain", "backup", "forever"]]
    {
        let mut narrow = Terminal::of_width(60, &ada.kubeconfig, arguments)?;
        narrow.ends().await?;
        narrow.shows("48h").await?;
        // A command is not broken: a copied half of one would do something else.
        let too_long: Vec<_> = narrow.too_long().into_iter().filter(|row| !row.contains("kubectl")).collect();
        assert_eq!(too_long, [""; 0], "{arguments:?}:\n{}", narrow.text());
    }
    let mut narrow = Terminal::of_width(60, &ada.kubeconfig, &["status"])?;
    narrow.ends().await?;
    narrow.shows("limits: only the administrators").await?;
    let text = narrow.text();
    let refused: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("Refused")).take(3).map(str::trim_end).collect();
    assert_eq!(
        refused,
        [
            "Refused           forever: spec.backupSpec.ttl: the",
            "                  administrator allows backups to be kept at",
            "                  most 48h; ask for that or less",
        ]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_wait_and_nothing_else() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "stopped", "ada").await?;
    let mut terminal = Terminal::start(&ada.kubeconfig, &["backup", "create", "daily", "--wait"])?;
    terminal.shows("has not processed it yet").await?;
    terminal.interrupt()?;
    assert_eq!(terminal.ends().await?, 130);
    terminal.shows("backup daily was not stopped").await?;
    let backup = ada.tenant.api::<NonAdminBackup>().get("daily").await?;
    assert!(backup.metadata.deletion_timestamp.is_none() && backup.spec.delete_backup.is_none());

    let ended = ada.nacre(&["backup", "wait", "daily", "--timeout", "1s"]).await?;
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    assert!(ended.stderr.contains("after 1s backup daily is not done"), "{ended:#?}");

    // Nobody answers a download request here; when it is given up, it goes.
    let mut terminal = Terminal::start(&ada.kubeconfig, &["backup", "logs", "daily"])?;
    let requests = ada.tenant.api::<NonAdminDownloadRequest>();
    bed::eventually("the request to be made", std::time::Duration::from_mins(2), async || {
        let made = requests.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        if made.len() == 1 { Ok(()) } else { Err(format!("{} are there", made.len())) }
    })
    .await?;
    terminal.interrupt()?;
    assert_eq!(terminal.ends().await?, 130);
    assert!(requests.list(&ListParams::default()).await?.items.is_empty());

    // Asked on a terminal, anything but yes is no.
    let mut terminal = Terminal::start(&ada.kubeconfig, &["backup", "delete", "daily"])?;
    terminal.shows("Delete backup daily of namespace stopped together with its data? [y/N]").await?;
    terminal.types("n\n")?;
    assert_eq!(terminal.ends().await?, 1);
    assert!(ada.tenant.api::<NonAdminBackup>().get("daily").await?.spec.delete_backup.is_none());
    Ok(())
}

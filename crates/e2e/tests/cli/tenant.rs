//! A namespace owner's tasks with the CLI alone: every verb for backups and restores.

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminDownloadRequest, velero::Backup};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{person::Person, program::nacre, test_cluster};

/// Nothing is left of what a download needed.
async fn no_downloads_left(person: &Person<'_>) -> Result<()> {
    let left = person.tenant.api::<NonAdminDownloadRequest>().list(&ListParams::default()).await?.items;
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_with_backups_and_restores() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let ada = Person::new(test_cluster, "shop", "ada").await?;

    // An empty namespace.
    let ended = ada.nacre(&["status"]).await?;
    assert!(ended.stdout.contains("none: nothing could be brought back"), "{ended:#?}");
    assert_eq!(ended.code, Some(3));
    let ended = ada.nacre(&["backup", "get"]).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert_eq!(ended.stderr, "No backups found in namespace shop.\n");

    // A backup, waited for: lines instead of a bar, since this is no terminal, and Velero's outcome as exit code.
    ada.tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let ended = ada.nacre(&["backup", "create", "daily", "--wait", "--timeout", "2m"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.starts_with("nonadminbackup.oadp.openshift.io/daily created\n"), "{ended:#?}");
    assert!(ended.stdout.contains("backup daily: complete, "), "{ended:#?}");
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(ada.says(&["backup", "wait", "daily"]).await?.lines().count(), 1, "it is over already");

    // Looked at in every way.
    let table = ada.says(&["backup", "get"]).await?;
    assert!(table.lines().count() == 2 && table.contains("daily   Completed"), "{table}");
    assert!(ada.says(&["backup", "get", "-o", "wide"]).await?.contains("VELERO-NAME"));
    assert_eq!(ada.says(&["backup", "get", "-o", "name"]).await?, "nonadminbackup.oadp.openshift.io/daily\n");
    let one: Value = serde_json::from_str(&ada.says(&["backup", "get", "daily", "-o", "json"]).await?)?;
    assert_eq!(one["kind"], "NonAdminBackup");
    let all: Value = serde_json::from_str(&ada.says(&["backup", "get", "-o", "json"]).await?)?;
    assert_eq!((&all["kind"], &all["items"][0]["kind"]), (&json!("List"), &json!("NonAdminBackup")));
    let page = ada.says(&["backup", "describe", "daily"]).await?;
    for words in
        ["the cluster's own", "nacre, always", "Velero's default", "BackupCompleted", "--from-backup daily"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        ada.nacre(&["backup", "get", "-A"]).await?.stderr.contains("forbidden"),
        "ada owns one namespace"
    );

    // Its log is in the cluster's storage, which is closed: nacre shows what is about the namespace.
    let ended = ada.nacre(&["backup", "logs", "daily"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("level=info") && ended.stdout.contains("name=prices"), "{ended:#?}");
    assert!(ended.stderr.contains("lines of the log about namespace shop"), "{ended:#?}");
    let ended = ada.nacre(&["backup", "download", "daily"]).await?;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("the administrators do not allow downloads from there"), "{ended:#?}");
    no_downloads_left(&ada).await?;
    // Whoever may only look is not told about a request that was never made, but which permission is missing.
    let vic = ada.viewer("vic").await?;
    let ended = nacre(&vic, &["backup", "logs", "daily"]).await?;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains(
            "the log cannot be fetched: you may not create NonAdminDownloadRequests in namespace shop"
        ),
        "{ended:#?}"
    );
    assert!(nacre(&vic, &["backup", "get"]).await?.with(0)?.contains("daily"), "looking is allowed");

    // Lost and brought back, from the last good backup.
    ada.tenant.delete::<ConfigMap>("prices").await?;
    let ended = ada.nacre(&["restore", "create", "back", "--wait"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stderr.contains("restoring from daily"), "{ended:#?}");
    assert!(ada.tenant.api::<ConfigMap>().get_opt("prices").await?.is_some());
    let table = ada.says(&["restore", "get"]).await?;
    assert!(table.contains("back   daily    Completed"), "{table}");
    let page = ada.says(&["restore", "describe", "back"]).await?;
    assert!(page.contains("RestoreCompleted") && page.contains("nacre, always"), "{page}");
    assert_eq!(ada.says(&["restore", "wait", "back"]).await?.lines().count(), 1);
    assert!(ada.says(&["restore", "logs", "back"]).await?.contains("name=prices"));

    // A restore from a backup that is still on its way waits for it.
    ada.says(&["backup", "create", "next"]).await?;
    ada.says(&["restore", "create", "early", "--from-backup", "next", "--wait"]).await?;
    ada.says(&["backup", "delete", "next", "--yes", "--wait"]).await?;
    assert!(
        !ada.says(&["restore", "get"]).await?.contains("early"),
        "restores go with the data they came from"
    );

    // A good state, on one screen.
    let screen = ada.says(&["status"]).await?;
    for words in
        ["daily, ", "back: complete", "1 backup, 0 unfinished backups", "limits: only the administrators"]
    {
        assert!(screen.contains(words), "{words}: {screen}");
    }

    // Gone, with the data; not without a yes.
    let ended = ada.nacre(&["backup", "delete", "daily"]).await?;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("use --yes"), "{ended:#?}");
    let velero =
        ada.tenant.api::<NonAdminBackup>().get("daily").await?.status.unwrap().velero_backup.unwrap();
    let ended = ada.nacre(&["restore", "delete", "back", "--yes", "--wait"]).await?;
    assert_eq!((ended.code, ended.stderr.ends_with("restore back is gone\n")), (Some(0), true), "{ended:#?}");
    let ended = ada.nacre(&["backup", "delete", "daily", "--yes", "--wait", "--timeout", "2m"]).await?;
    assert_eq!((ended.code, ended.stderr.ends_with("backup daily is gone\n")), (Some(0), true), "{ended:#?}");
    let velero = velero.name.unwrap();
    assert!(test_cluster.admin::<Backup>().await?.get_opt(&velero).await?.is_none());
    let stored = test_cluster.bed.store()?.keys(bed::BUCKET)?;
    assert!(!stored.iter().any(|key| key.contains(&velero)), "{stored:?}");
    let ended = ada.nacre(&["backup", "wait", "daily"]).await?;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("there is no backup \"daily\" in namespace shop"), "{ended:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_policy_says_is_told_before_and_after() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let eve = Person::new(test_cluster, "strict", "eve").await?;

    // Refused at once: by the program where the rule is nacre's own, by the webhook where it is the administrators'.
    let ended = eve.nacre(&["backup", "create", "--ttl", "soon"]).await?;
    assert_eq!(ended.code, Some(2));
    let ended = eve.nacre(&["backup", "create", "long", "--ttl", "72h", "--wait"]).await?;
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let refused =
        "error: refused: spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h";
    assert!(ended.stderr.starts_with(refused), "{ended:#?}");

    // A location that does not exist may come: the backup waits, with the same word and the same code everywhere.
    let elsewhere = ["backup", "create", "lost", "--ttl", "24h", "--storage-location", "none"];
    let ended = eve.nacre(&[&elsewhere[..], &["--wait", "--timeout", "5s"]].concat()).await?;
    assert_eq!(ended.code, Some(4), "{ended:#?}");
    let hint =
        "warning: backups wait for location \"none\", which namespace strict does not have: it has none";
    assert!(ended.stderr.contains(hint), "{ended:#?}");
    eve.says(&["backup", "delete", "lost", "--yes", "--wait"]).await?;
    let ended = eve.nacre(&elsewhere).await?;
    assert_eq!(ended.code, Some(0), "sent, as everything that is not waited for: {ended:#?}");
    assert!(ended.stderr.contains(hint), "{ended:#?}");
    let ended_waiting = eve.nacre(&["backup", "wait", "lost", "--timeout", "5s"]).await?;
    assert_eq!(ended_waiting.code, Some(4), "{ended_waiting:#?}");
    let described = eve.says(&["backup", "describe", "lost"]).await?;
    assert!(described.contains("Waiting - spec.backupSpec.storageLocation: there is no"), "{described}");
    // The webhook warned of it, and it is known what would heal it.
    let warned =
        "Warning: spec.backupSpec.storageLocation: there is no NonAdminBackupStorageLocation \"none\"";
    assert!(ended.stderr.contains(warned), "{ended:#?}");
    let screen = eve.nacre(&["status"]).await?.stdout;
    assert!(
        screen.contains("Waiting           lost: for its location: spec.backupSpec.storageLocation"),
        "{screen}"
    );
    eve.says(&["backup", "delete", "lost", "--yes", "--wait"]).await?;

    // eve may not read the policy: the output says so, with the webhook's answer; an administrator sees the rule.
    let manifest = eve.says(&["backup", "create", "long", "--ttl", "72h", "--dry-run"]).await?;
    let file = test_cluster.bed.folder().join("long.yaml");
    std::fs::write(&file, manifest)?;
    let file = file.display().to_string();
    let ended = eve.nacre(&["explain", "-f", &file]).await?;
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    for words in ["not checked: the administrators' policy", "would reject it: refused: spec.backupSpec.ttl"]
    {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let admin =
        crate::program::nacre(&test_cluster.bed.kubeconfig(), &["explain", "-f", &file, "-n", "strict"])
            .await?;
    assert_eq!(admin.code, Some(3));
    assert!(admin.stdout.contains("rule: backup.ttl of the administrators' policy"), "{admin:#?}");
    let spec = eve.says(&["backup", "create", "fine", "--ttl", "24h", "--dry-run", "-o", "yaml"]).await?;
    let file = test_cluster.bed.folder().join("fine.yaml");
    std::fs::write(&file, spec)?;
    let file = file.display().to_string();
    let admin =
        crate::program::nacre(&test_cluster.bed.kubeconfig(), &["explain", "-n", "strict", "-f", &file])
            .await?;
    assert!(admin.with(0)?.contains("policy, backup.enforce.snapshotVolumes"));

    assert!(
        eve.says(&["explain", "-f", &file]).await?.contains("webhook was asked and had nothing against it")
    );

    // Downloads are open here: the log comes unpacked, and nothing stays behind.
    eve.says(&["backup", "create", "fine", "--ttl", "24h", "--wait"]).await?;
    let log = eve.says(&["backup", "logs", "fine"]).await?;
    assert!(log.contains("level=info"), "{log}");
    let page = eve.says(&["backup", "describe", "fine", "--details"]).await?;
    assert!(!page.contains("No details"), "{page}");
    let ended = eve.nacre(&["backup", "download", "fine"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("the contents cannot be fetched"), "{ended:#?}");
    no_downloads_left(&eve).await?;
    eve.says(&["restore", "create", "again", "--from-backup", "fine", "--wait"]).await?;
    assert!(eve.says(&["restore", "logs", "again"]).await?.contains("level="));
    no_downloads_left(&eve).await?;

    // An administrator sees the limits, and what was filled in by which rule.
    let admin = crate::program::nacre(&test_cluster.bed.kubeconfig(), &["status", "-n", "strict"]).await?;
    assert!(admin.stdout.contains("1 of 3 backups"), "{admin:#?}");
    let admin = crate::program::nacre(
        &test_cluster.bed.kubeconfig(),
        &["backup", "describe", "fine", "-n", "strict"],
    )
    .await?;
    assert!(admin.with(0)?.contains("policy, backup.enforce.snapshotVolumes"));

    // Only the record of it goes; its data stays.
    eve.says(&["backup", "delete", "fine", "--keep-data", "--yes"]).await?;
    eve.tenant.gone::<NonAdminBackup>("fine").await
}

//! `kubectl nacre schedule`, with real Velero: from the first run to the last backup.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use bed::eventually;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{person::Person, test_cluster};

/// Until a minute begins, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_from_its_creation_to_the_end_of_its_backups() -> Result<()> {
    let ada = Person::new(test_cluster().await?, "timed", "ada").await?;
    let shop = &ada.tenant;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // What no policy allows is not sent, and what this one does not allow is refused by the webhook.
    let create =
        |schedule: &'static str| ["schedule", "create", "often", "--schedule", schedule, "--keep-last", "2"];
    let refused = ada.nacre(&create("61 * * * *")).await?;
    ensure!(
        refused.code == Some(1) && refused.stderr.contains("this schedule would be refused"),
        "{refused:#?}"
    );
    let bad = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminSchedule",
        "metadata": {"name": "bad", "namespace": "timed"},
        "spec": {"schedule": "@every 1s", "template": {"backupSpec": {"includedNamespaces": ["rival"]}}}});
    let file = shop.bed.folder().join("bad-schedule.json");
    std::fs::write(&file, bad.to_string())?;
    let refused = shop.bed.kubectl(&["create", "-f", &file.display().to_string(), "--as=ada"]).await?;
    ensure!(!refused.success && refused.stderr.contains("requests.nacre.dev"), "{refused:?}");

    ada.says(&create("* * * * *")).await?;
    let next = |schedule: Option<&NonAdminSchedule>| schedule?.status.as_ref()?.next_run.clone();
    shop.wait("its next run", "often", next).await?;
    let listed = ada.says(&["schedule", "get"]).await?;
    ensure!(listed.contains("often") && listed.contains("Enabled") && listed.contains("in "), "{listed}");
    let columns = shop.bed.kubectl(&["get", "nas", "-n", "timed", "--as=ada"]).await?.ok()?;
    ensure!(
        columns.lines().next().is_some_and(|line| line.contains("NEXT-RUN") && line.contains("PAUSED")),
        "{columns}"
    );
    let explained = shop.bed.kubectl(&["explain", "nas.spec.retention.keepLast"]).await?.ok()?;
    ensure!(explained.contains("DESCRIPTION") && !explained.contains("<empty>"), "{explained}");
    let calendar = ada.says(&["schedule", "preview", "often", "--days", "1"]).await?;
    ensure!(
        calendar.contains("In 1 days, often has 2 backups") && calendar.contains("Next to go"),
        "{calendar}"
    );

    // A run of its own, and pausing.
    let good = |schedule: Option<&NonAdminSchedule>| schedule?.status.as_ref()?.last_good_backup.clone();
    let first = eventually("a good run", TIMEOUT, async || {
        let found = shop.api::<NonAdminSchedule>().get("often").await?;
        good(Some(&found)).context("no good run yet")
    })
    .await?;
    ada.says(&["schedule", "pause", "often"]).await?;
    let described = ada.says(&["schedule", "describe", "often"]).await?;
    for words in ["Status:     Paused", "Keeps:      2 last", &first, "Asked by:   ada"] {
        ensure!(described.contains(words), "{words}: {described}");
    }
    let status = ada.nacre(&["status"]).await?;
    ensure!(status.stdout.contains("last good backup often-"), "{status:#?}");
    let record = shop.api::<NonAdminBackup>().get(&first).await?;
    ensure!(
        record.annotations()[labels::REQUESTER].starts_with(r#"{"user":"ada""#),
        "a run is asked for by its owner"
    );
    ensure!(record.owner_references().is_empty(), "a run outlives its schedule");

    // By hand, as the schedule does: two ways, and neither is a run.
    ada.says(&["schedule", "run", "often", "--wait", "--timeout", "2m"]).await?;
    ada.says(&["backup", "create", "like-it", "--from-schedule", "often", "--wait", "--timeout", "2m"])
        .await?;
    let with_flags = ada.nacre(&["backup", "create", "--from-schedule", "often", "--ttl", "1h"]).await?;
    ensure!(
        with_flags.code == Some(1) && with_flags.stderr.contains("--from-schedule takes everything"),
        "{with_flags:#?}"
    );
    let own = ListParams::default().labels(&format!("{}=often", labels::NAS_NAME));
    let runs = async || anyhow::Ok(shop.api::<NonAdminBackup>().list(&own).await?.items);
    ensure!(runs().await?.iter().all(|run| !run.name_any().contains("manual")), "made by hand, and counted");
    ada.says(&["schedule", "resume", "often"]).await?;
    ada.says(&["schedule", "pause", "often"]).await?;

    // Its backups go with it, if that is said; those made by hand stay.
    let answer = ada.says(&["schedule", "delete", "often", "--with-backups", "--yes", "-o", "json"]).await?;
    ensure!(serde_json::from_str::<Value>(&answer).is_ok(), "{answer}");
    shop.gone::<NonAdminSchedule>("often").await?;
    eventually("its backups to go", TIMEOUT, async || {
        let left: Vec<_> = runs().await?.iter().map(ResourceExt::name_any).collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await?;
    let stays = shop.api::<NonAdminBackup>().get_opt("like-it").await?;
    ensure!(stays.is_some(), "what was made by hand went too");
    Ok(())
}

/// In advance, with what an administrator would run.
#[tokio::test(flavor = "multi_thread")]
async fn explain_and_preview_name_what_the_caller_may_not_have() -> Result<()> {
    let ada = Person::new(test_cluster().await?, "lacking", "ada").await?;
    ada.tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    ada.says(&["backup", "create", "daily", "--wait", "--timeout", "2m"]).await?;
    let manifest = ada.says(&["restore", "create", "again", "--from-backup", "daily", "--dry-run"]).await?;
    let file = ada.tenant.bed.folder().join("again.yaml");
    std::fs::write(&file, manifest)?;
    // The role `admin` holds neither `bind` nor `escalate`.
    let explained = ada.says(&["explain", "-f", &file.display().to_string()]).await?;
    let missing = "left out, since you do not have the permissions: rolebindings.rbac.authorization.k8s.io, roles.rbac.authorization.k8s.io";
    let flat = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(flat.contains(missing), "{explained}");
    ensure!(
        flat.contains("kubectl create role nacre-requester") && flat.contains("--user=ada"),
        "{explained}"
    );
    let previewed = ada.nacre(&["restore", "preview", "--from-backup", "daily", "-o", "json"]).await?;
    let code = previewed.code.unwrap_or(1);
    let commands = previewed.json(code)?["commands"].to_string();
    ensure!(commands.contains("kubectl create role nacre-requester"), "{commands}");
    Ok(())
}

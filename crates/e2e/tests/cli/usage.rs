//! What namespaces use, and the order of the queue, as owners and administrators see them.

use anyhow::{Context as _, Result, ensure};
use api::{NonAdminBackup, labels};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use crate::{cluster_and_nacre, person::Person, program::nacre, stage};

#[tokio::test(flavor = "multi_thread")]
async fn owners_see_what_they_use_and_administrators_see_all() -> Result<()> {
    let (test_cluster, controller) = cluster_and_nacre().await?;
    let fay = Person::new(test_cluster, "figures", "fay").await?;
    fay.says(&["backup", "create", "one", "--wait"]).await?;
    let own = fay.nacre(&["usage", "-o", "json"]).await?.json(0)?;
    ensure!(own["namespace"] == "figures" && own["usage"]["backups"] == 1, "{own}");
    // Others are not hers to see.
    let refused = fay.nacre(&["usage", "-A"]).await?;
    ensure!(refused.code == Some(1) && refused.stderr.contains("-A is for administrators"), "{refused:#?}");

    let all =
        nacre(&test_cluster.bed.kubeconfig(), &["usage", "-A", "-o", "json", "--sort-by", "backups"]).await?;
    // A namespace of another story may be at its limit, which is exit code 3.
    let rows: Vec<Value> = serde_json::from_str(&all.stdout).with_context(|| format!("{all:#?}"))?;
    let row = rows.iter().find(|row| row["namespace"] == "figures").context("no such row")?;
    ensure!(row["usage"] == own["usage"], "{row} and {own}");
    let metrics = controller.metrics().await?;
    ensure!(metrics.contains("nacre_namespace_backups{namespace=\"figures\"} 1"), "{metrics}");
    ensure!(metrics.contains("nacre_namespace_storage_bytes{namespace=\"figures\"} 0"), "{metrics}");
    Ok(())
}

/// Nobody acts on requests here, so this one waits.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_moves_a_request_and_its_owner_sees_it() -> Result<()> {
    let stage = stage().await?;
    let quin = Person::new(stage, "queued", "quin").await?;
    quin.tenant.back_up("daily").await?;
    let admin = stage.bed.kubeconfig();
    let marked = async |wanted: Option<&str>| {
        let found =
            quin.tenant.api::<NonAdminBackup>().get("daily").await?.metadata.annotations.unwrap_or_default();
        ensure!(found.get(labels::QUEUE).map(String::as_str) == wanted, "{found:?}");
        Ok(())
    };
    let said = nacre(&admin, &["queue", "hold", "backup", "queued/daily", "--reason", "until 18:00"])
        .await?
        .with(0)?;
    ensure!(said.contains("queued/daily held"), "{said}");
    marked(Some("hold")).await?;
    nacre(&admin, &["queue", "promote", "backup", "daily", "-n", "queued"]).await?.with(0)?;
    marked(Some("front")).await?;
    nacre(&admin, &["queue", "release", "backup", "queued/daily"]).await?.with(0)?;
    marked(None).await?;
    let events: Api<Event> = quin.tenant.api();
    let events = events.list(&ListParams::default().fields("involvedObject.name=daily")).await?;
    let seen: Vec<_> = events.items.iter().filter_map(|event| event.reason.as_deref()).collect();
    for reason in ["QueueHeld", "QueuePromoted", "QueueReleased"] {
        ensure!(seen.contains(&reason), "{seen:?}");
    }
    ensure!(
        events
            .items
            .iter()
            .any(|event| event.message.as_deref().is_some_and(|text| text.ends_with(": until 18:00")))
    );
    Ok(())
}

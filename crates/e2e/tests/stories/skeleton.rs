//! The walking skeleton: a tenant with nothing but the `admin` role backs up and restores through real Velero into real
//! S3, another tenant is refused, three writes per request, and no write once settled.

use std::time::Duration;

use anyhow::Result;
use api::{NonAdminBackup, NonAdminRestore, Phase, condition};
use e2e::{TestCluster, at_length};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

fn deployment() -> serde_json::Value {
    let labels = json!({"app": "web"});
    json!({"spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_backs_up_and_restores_through_real_velero() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rival = test_cluster.tenant("rival", "bob").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.create::<Deployment>("web", deployment()).await?;

    // Backed up: three writes from the request to `Created`, with all conditions.
    let mark = test_cluster.bed.audit().mark().await?;
    shop.back_up("daily").await?;
    let created = shop
        .wait("the backup to be created", "daily", |backup: Option<&NonAdminBackup>| {
            let status = backup?.status.clone()?;
            (status.phase == Some(Phase::Created)).then_some(status)
        })
        .await?;
    assert!(condition::is_true(&created.conditions, condition::ACCEPTED));
    assert!(condition::is_true(&created.conditions, condition::QUEUED));
    let name = created.velero_backup.and_then(|velero| velero.name).expect("a reference");
    assert_eq!(shop.backup_ends("daily").await?, "Completed");
    let writes = test_cluster.bed.audit().since(mark).await?.writes().by("nacre/");
    let until_created = writes.only(|write| write.resource != "events" && write.code < 300);
    let kinds: Vec<_> =
        until_created.as_slice().iter().take(3).map(|write| write.resource.as_str()).collect();
    assert_eq!(kinds, ["nonadminbackups", "backups", "nonadminbackups/status"], "{:#?}", writes.tally());
    let conflicts = writes.only(|write| write.code >= 400);
    assert!(conflicts.is_empty(), "{:#?}", conflicts.tally());
    let stored = test_cluster.bed.store()?.keys(bed::BUCKET)?;
    assert!(stored.iter().any(|key| key.contains(&name)), "{stored:#?}");

    // Lost and restored.
    shop.delete::<ConfigMap>("prices").await?;
    shop.delete::<Deployment>("web").await?;
    shop.gone::<Deployment>("web").await?;
    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    let prices = shop.api::<ConfigMap>().get("prices").await?;
    assert_eq!(prices.data.unwrap_or_default().get("tea").map(String::as_str), Some("3"));
    shop.api::<Deployment>().get("web").await?;

    // Another tenant sees nothing of it, and cannot restore it.
    assert!(rival.api_in::<NonAdminBackup>("shop").get("daily").await.is_err());
    rival.restore("theft", "daily").await?;
    let refusal = rival
        .wait("the theft to be refused", "theft", |restore: Option<&NonAdminRestore>| {
            let accepted =
                condition::get(&restore?.status.as_ref()?.conditions, condition::ACCEPTED)?.clone();
            (accepted.status == "False").then_some(accepted.message)
        })
        .await?;
    assert!(refusal.contains("no NonAdminBackup \"daily\" in this namespace"), "{refusal}");

    // Settled: silence.
    test_cluster
        .bed
        .audit()
        .until_quiet("nacre/", at_length(Duration::from_secs(5), Duration::from_mins(1)))
        .await?;
    assert!(nacre.process.is_running());
    Ok(())
}

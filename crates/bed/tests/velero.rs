//! Real Velero on the bed.

use std::time::Duration;

use anyhow::Result;
use bed::{BUCKET, Bed, wait_until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const TIMEOUT: Duration = Duration::from_secs(90);

async fn bed() -> Result<&'static Bed> {
    static BED: OnceCell<Bed> = OnceCell::const_new();
    BED.get_or_try_init(|| Bed::builder().with_velero().start()).await
}

async fn create(api: &Api<DynamicObject>, kind: &str, name: &str, spec: Value) -> Result<()> {
    let object =
        json!({ "apiVersion": "velero.io/v1", "kind": kind, "metadata": { "name": name }, "spec": spec });
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

async fn phase(api: &Api<DynamicObject>, name: &str, wanted: &str) -> Result<()> {
    let what = format!("{name} to be {wanted}");
    let reached = |object: Option<&DynamicObject>| (object?.data["status"]["phase"] == wanted).then_some(());
    wait_until(&what, TIMEOUT, api.clone(), name, reached).await
}

#[tokio::test]
async fn a_config_map_is_backed_up_lost_and_restored() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("shop").await?;
    let maps = Api::<ConfigMap>::namespaced(bed.client().await?, "shop");
    let map = json!({ "metadata": { "name": "prices" }, "data": { "apple": "3" } });
    maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;

    let backups = bed.velero_api("Backup").await?;
    let spec = json!({ "includedNamespaces": ["shop"], "storageLocation": "default" });
    create(&backups, "Backup", "one", spec).await?;
    phase(&backups, "one", "Completed").await?;
    let keys = bed.store()?.keys(BUCKET)?;
    assert!(keys.contains(&"backups/one/one.tar.gz".to_owned()), "{keys:?}");
    assert!(keys.contains(&"backups/one/velero-backup.json".to_owned()), "{keys:?}");

    maps.delete("prices", &DeleteParams::default()).await?;
    let restores = bed.velero_api("Restore").await?;
    create(&restores, "Restore", "back", json!({ "backupName": "one" })).await?;
    phase(&restores, "back", "Completed").await?;
    assert_eq!(maps.get("prices").await?.data.unwrap()["apple"], "3");

    let logs = bed.velero_cli(&["backup", "logs", "one"]).await?.ok()?;
    assert!(logs.contains("Backed up"), "{logs}");
    Ok(())
}

#[tokio::test]
async fn velero_can_be_played_by_hand() -> Result<()> {
    let bed = Bed::builder().with_velero().velero_namespace("openshift-adp").start().await?;
    bed.velero_stop()?;
    let backups = bed.velero_api("Backup").await?;
    create(&backups, "Backup", "mine", json!({ "storageLocation": "default" })).await?;
    bed.velero_status("Backup", "mine", json!({ "phase": "InProgress", "progress": { "totalItems": 7 } }))
        .await?;
    bed.velero_status("Backup", "mine", json!({ "phase": "Completed" })).await?;
    let status = backups.get("mine").await?.data["status"].clone();
    assert_eq!(status, json!({ "phase": "Completed", "progress": { "totalItems": 7 } }));

    bed.velero_start().await?;
    create(&backups, "Backup", "real", json!({ "storageLocation": "default" })).await?;
    phase(&backups, "real", "Completed").await
}

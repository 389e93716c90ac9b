//! Idle locations: Velero's validations of them, as often as with five hundred.

use std::time::Duration;

use anyhow::Result;
use api::NonAdminBackupStorageLocation;
use api::velero::BackupStorageLocation;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::{interval, sleep};

use super::{Cost, Meter, Reached, each, make_namespaces, namespace};
use crate::{Nacre, TestCluster, VELERO};

/// As many as Velero writes in a second where there are five hundred: each location twice a minute.
const LOOKS_A_SECOND: usize = 500 * 2 / 60;
/// Who has not handed over a single one by now does not know locations at all.
const NEVER: Duration = Duration::from_mins(1);
/// How soon to count again.
const COUNT_AGAIN: Duration = Duration::from_millis(200);

fn location(number: usize) -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
        "metadata": {"name": format!("l{number}")}, "spec": {"backupStorageLocationSpec": {
            "provider": "aws", "objectStorage": {"bucket": format!("bucket-{number}")},
            "config": {"region": "eu-west-1"}, "credential": {"name": format!("keys-{number}"), "key": "cloud"}}}})
}

/// Tenants bring so many locations; returns when Velero has them all.
pub async fn bring(meter: &mut Meter<'_>, many: usize, timeout: Duration) -> Result<Reached> {
    make_namespaces(&meter.test_cluster.bed, "many").await?;
    bring_to(meter, "many", many, timeout).await
}

/// The same for a series of namespaces that is there.
pub async fn bring_to(
    meter: &mut Meter<'_>,
    series: &str,
    many: usize,
    timeout: Duration,
) -> Result<Reached> {
    let client = meter.test_cluster.bed.client().await?;
    each(many, |number| {
        let secrets = Api::<Secret>::namespaced(client.clone(), &namespace(series, number));
        let locations =
            Api::<NonAdminBackupStorageLocation>::namespaced(client.clone(), &namespace(series, number));
        async move {
            let keys = format!("[default]\naws_access_key_id=a{number}\naws_secret_access_key=b\n");
            let secret =
                json!({"metadata": {"name": format!("keys-{number}")}, "stringData": {"cloud": keys}});
            secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
            locations.create(&PostParams::default(), &serde_json::from_value(location(number))?).await?;
            Ok(())
        }
    })
    .await?;
    let storages = Api::<BackupStorageLocation>::namespaced(client, VELERO);
    loop {
        let took = meter.elapsed();
        let done = handed_over(&storages).await?.len();
        if done >= many || took > timeout || (done == 0 && took > NEVER) {
            return Ok(Reached { done, of: many, took });
        }
        sleep(COUNT_AGAIN).await;
    }
}

async fn handed_over(storages: &Api<BackupStorageLocation>) -> Result<Vec<String>> {
    let ours = ListParams::default().labels("openshift.io/oadp-nabsl-origin-nacuuid");
    Ok(storages.list(&ours).await?.into_iter().filter_map(|storage| storage.metadata.name).collect())
}

/// Velero looks at every location of tenants, and can reach it.
pub async fn make_available(test_cluster: &TestCluster) -> Result<()> {
    let storages = Api::<BackupStorageLocation>::namespaced(test_cluster.bed.client().await?, VELERO);
    for name in handed_over(&storages).await? {
        let now = Timestamp::now().to_string();
        let status = json!({"lastValidationTime": now, "lastSyncedTime": now, "phase": "Available"});
        let patch = Patch::Merge(json!({ "status": status }));
        storages.patch(&name, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

/// What locations cost while nothing happens but Velero's looks at them.
#[derive(Debug, Clone)]
pub struct AtRest {
    /// How long it was watched.
    pub watched: Duration,
    /// What was used and written meanwhile.
    pub cost: Cost,
}

/// Velero looks at all locations for the first time, and then for so long as it always does.
pub async fn at_rest(
    test_cluster: &TestCluster,
    running: &Nacre,
    watched: Duration,
    timeout: Duration,
) -> Result<AtRest> {
    let storages = Api::<BackupStorageLocation>::namespaced(test_cluster.bed.client().await?, VELERO);
    let names = handed_over(&storages).await?;
    let look = async |name: &str, first: bool| -> Result<()> {
        let now = Timestamp::now().to_string();
        let mut status = json!({"lastValidationTime": now, "lastSyncedTime": now});
        if first {
            status["phase"] = json!("Available");
        }
        let patch = Patch::Merge(json!({ "status": status }));
        storages.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    for name in &names {
        look(name, true).await?;
    }
    // Events are rate-limited, and nacre waits for Velero's version until it gives up.
    Meter::start(test_cluster, running).await?.until_quiet(timeout).await?;

    let mut meter = Meter::start(test_cluster, running).await?;
    let mut pace = interval(Duration::from_secs(1));
    for turn in names.chunks(LOOKS_A_SECOND).cycle() {
        pace.tick().await;
        if meter.elapsed() >= watched {
            break;
        }
        for name in turn {
            look(name, false).await?;
        }
    }
    let watched = meter.elapsed();
    Ok(AtRest { watched, cost: meter.cost().await? })
}

//! Locations at rest: Velero writes down its looks at them as often as if there were five hundred, every Secret is looked at
//! twice a minute, and nacre does next to nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::NonAdminBackupStorageLocation;
use api::velero::BackupStorageLocation;
use bed::eventually;
use e2e::{House, NACRE, Nacre, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::asked::{make_namespaces, namespace};

const AT_A_TIME: usize = 16;
/// As many as Velero writes in a second where there are five hundred: each location twice a minute.
const LOOKS_A_SECOND: usize = 500 * 2 / 60;

fn location(number: usize) -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
        "metadata": {"name": format!("l{number}")}, "spec": {"backupStorageLocationSpec": {
            "provider": "aws", "objectStorage": {"bucket": format!("bucket-{number}")},
            "config": {"region": "eu-west-1"}, "credential": {"name": format!("keys-{number}"), "key": "cloud"}}}})
}

pub(crate) async fn at_rest(house: &House, nacre: &Nacre, many: usize, watched_for: Duration) -> Result<()> {
    make_namespaces(&house.bed, "many").await?;
    let client = house.bed.client().await?;
    stream::iter(0..many)
        .map(|number| {
            let secrets = Api::<Secret>::namespaced(client.clone(), &namespace("many", number));
            let locations =
                Api::<NonAdminBackupStorageLocation>::namespaced(client.clone(), &namespace("many", number));
            async move {
                let keys = format!("[default]\naws_access_key_id=a{number}\naws_secret_access_key=b\n");
                let secret =
                    json!({"metadata": {"name": format!("keys-{number}")}, "stringData": {"cloud": keys}});
                secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
                locations.create(&PostParams::default(), &serde_json::from_value(location(number))?).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;

    let began = Instant::now();
    let storages = Api::<BackupStorageLocation>::namespaced(client.clone(), VELERO);
    let ours = ListParams::default().labels("openshift.io/oadp-nabsl-origin-nacuuid");
    let names: Vec<String> =
        eventually("all locations to be handed over", Duration::from_mins(2), async || {
            let found = storages.list(&ours).await.map_err(|error| error.to_string())?;
            let names: Vec<_> = found.into_iter().filter_map(|storage| storage.metadata.name).collect();
            if names.len() == many { Ok(names) } else { Err(format!("{} of them", names.len())) }
        })
        .await?;
    println!("{many} locations handed over in {:.1} s", began.elapsed().as_secs_f64());
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
    // Events are told at leisure, and Velero, which is not there, is waited for before it is left alone.
    eventually("nacre to come to rest", Duration::from_mins(2), async || {
        house.bed.audit().quiet(NACRE, Duration::from_secs(3)).await
    })
    .await?;

    let mark = house.bed.audit().mark().await?;
    let (before, began) = (nacre.process.usage()?.cpu_seconds, Instant::now());
    let mut pace = tokio::time::interval(Duration::from_secs(1));
    for turn in names.chunks(LOOKS_A_SECOND).cycle() {
        pace.tick().await;
        if began.elapsed() >= watched_for {
            break;
        }
        for name in turn {
            look(name, false).await?;
        }
    }
    let share = (nacre.process.usage()?.cpu_seconds - before) / began.elapsed().as_secs_f64();
    let writes = house.bed.audit().since(mark).await?.writes().by(NACRE);
    println!("at rest: {:.2} % of a core, {} writes", share * 100.0, writes.len());
    ensure!(writes.is_empty(), "{:#?}", writes.tally());
    ensure!(share < 0.02, "{:.2} % of a core", share * 100.0);
    Ok(())
}

//! Five hundred locations at rest: Velero writes down its looks at each of them twice a minute, every Secret is looked
//! at twice a minute, and nacre does next to nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::NonAdminBackupStorageLocation;
use api::velero::BackupStorageLocation;
use bed::{Bed, eventually};
use e2e::{House, NACRE, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const LOCATIONS: usize = 500;
const NAMESPACES: usize = 20;
const AT_A_TIME: usize = 16;
/// As many as Velero writes in a second: each location twice a minute.
const LOOKS_A_SECOND: usize = LOCATIONS * 2 / 60;
const WATCHED_FOR: Duration = Duration::from_secs(40);

fn namespace(number: usize) -> String {
    format!("many-{}", number % NAMESPACES)
}

fn location(number: usize) -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
        "metadata": {"name": format!("l{number}")}, "spec": {"backupStorageLocationSpec": {
            "provider": "aws", "objectStorage": {"bucket": format!("bucket-{number}")},
            "config": {"region": "eu-west-1"}, "credential": {"name": format!("keys-{number}"), "key": "cloud"}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_locations_at_rest_cost_next_to_nothing() -> Result<()> {
    let house = House::build_on(Bed::builder().with_velero()).await?;
    house.bed.velero_stop()?;
    for number in 0..NAMESPACES {
        house.bed.namespace(&namespace(number)).await?;
    }
    let client = house.bed.client().await?;
    stream::iter(0..LOCATIONS)
        .map(|number| {
            let secrets = Api::<Secret>::namespaced(client.clone(), &namespace(number));
            let locations =
                Api::<NonAdminBackupStorageLocation>::namespaced(client.clone(), &namespace(number));
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

    let nacre = house.start_nacre().await?;
    let began = Instant::now();
    let storages = Api::<BackupStorageLocation>::namespaced(client.clone(), VELERO);
    let ours = ListParams::default().labels("openshift.io/oadp-nabsl-origin-nacuuid");
    let names: Vec<String> =
        eventually("all locations to be handed over", Duration::from_mins(2), async || {
            let found = storages.list(&ours).await.map_err(|error| error.to_string())?;
            let names: Vec<_> = found.into_iter().filter_map(|storage| storage.metadata.name).collect();
            if names.len() == LOCATIONS { Ok(names) } else { Err(format!("{} of them", names.len())) }
        })
        .await?;
    println!("{LOCATIONS} locations handed over in {:.1} s", began.elapsed().as_secs_f64());
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
        house.bed.audit().quiet(NACRE, Duration::from_secs(5)).await
    })
    .await?;

    let mark = house.bed.audit().mark().await?;
    let (before, began) = (nacre.process.usage()?.cpu_seconds, Instant::now());
    let mut pace = tokio::time::interval(Duration::from_secs(1));
    for turn in names.chunks(LOOKS_A_SECOND).cycle() {
        pace.tick().await;
        if began.elapsed() >= WATCHED_FOR {
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

//! Progress of one among many.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::{House, NACRE, Nacre};
use kube::api::ListParams;
use kube::{Api, Resource};
use serde_json::json;

use crate::asked::{Asked, velero_says};

/// Ten progress ticks of one that runs among many that wait: ten writes to its request, and to others no more than the
/// queue's budget allows.
pub(crate) async fn write_to_one<K: Asked + Send + 'static>(house: &House, nacre: &Nacre) -> Result<()> {
    let (bed, kind) = (&house.bed, K::Velero::kind(&()));
    let objects = house.admin::<K::Velero>().await?;
    let first = objects.list(&ListParams::default().limit(1)).await?.items.remove(0);
    let name = first.meta().name.clone().context("a name")?;
    let owner = first.meta().annotations.clone().unwrap_or_default();
    let [namespace, request] = K::ORIGIN.map(|key| owner[key].clone());
    let requests = Api::<K>::namespaced(bed.client().await?, &namespace);
    let shows = async |done: i64| {
        let within = Duration::from_secs(10);
        bed::wait_until("the tick to be shown", within, requests.clone(), &request, |request| {
            (request?.velero()["progress"][K::ITEMS] == done).then_some(())
        })
        .await
    };
    velero_says(&objects, &name, json!({"phase": "InProgress", "progress": {K::ITEMS: 1}})).await?;
    shows(1).await?;

    let mark = bed.audit().mark().await?;
    let (began, before) = (Instant::now(), nacre.process.usage()?.cpu_seconds);
    for tick in 1..=10 {
        velero_says(&objects, &name, json!({"progress": {K::ITEMS: tick * 10}})).await?;
        shows(tick * 10).await?;
    }
    let cpu = nacre.process.usage()?.cpu_seconds - before;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE).only(|write| write.resource != "events");
    let budget = usize::try_from(began.elapsed().as_secs() + 1)? * 10;
    let own = writes.only(|write| write.name == request && write.namespace == namespace);
    println!(
        "ten ticks of a {kind}: {} writes to its request, {} to others; {cpu:.2} s of CPU",
        own.len(),
        writes.len() - own.len()
    );
    ensure!(own.len() == 10, "{:#?}", own.tally());
    ensure!(writes.len() - own.len() <= budget, "{} in {:?}", writes.len(), began.elapsed());
    ensure!(cpu < 0.5, "{cpu} s of CPU");
    Ok(())
}

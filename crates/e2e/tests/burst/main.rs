//! A thousand requests at once, against what a bare client needs for the same writes. It is a program of its own, and
//! tells one story at a time, so that nothing else runs beside what it measures.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod backups;
mod restores;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bed::Bed;
use e2e::{NACRE, Nacre, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const REQUESTS: usize = 1000;
const NAMESPACES: usize = 20;
/// As many as nacre has workers: beyond 16 the API server takes no more in the same time.
const AT_A_TIME: usize = 32;
/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best of three counts.
const ATTEMPTS: usize = 3;
/// How much longer than the bare client it may take.
const SLACK: f64 = 1.3;

/// A kind that tenants ask with.
trait Asked:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
    /// Velero's kind for it.
    type Velero: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize;

    /// What is asked for.
    fn spec() -> Value;
    /// What Velero's object is called, once nacre has handed it over.
    fn created_as(&self) -> Option<String>;

    fn request(name: &str) -> Result<Self> {
        let body = json!({"apiVersion": Self::api_version(&()), "kind": Self::kind(&()),
            "metadata": {"name": name}, "spec": Self::spec()});
        Ok(serde_json::from_value(body)?)
    }
}

/// What nacre writes for one request, so that the bare client writes the same.
struct Sample {
    velero: Value,
    status: Value,
}

async fn sample<K: Asked + Send + 'static>(bed: &Bed) -> Result<Sample> {
    let requests = Api::<K>::namespaced(bed.client().await?, &namespace("shop", 0));
    requests.create(&PostParams::default(), &K::request("sample")?).await?;
    let created = |request: Option<&K>| Some((request?.created_as()?, request?.clone()));
    let (name, request) =
        bed::wait_until("the sample to be created", Duration::from_secs(30), requests, "sample", created)
            .await?;
    let objects = Api::<K::Velero>::namespaced(bed.client().await?, VELERO);
    let made = serde_json::to_value(objects.get(&name).await?)?;
    let metadata =
        json!({"labels": made["metadata"]["labels"], "annotations": made["metadata"]["annotations"]});
    let velero = json!({"apiVersion": K::Velero::api_version(&()), "kind": K::Velero::kind(&()),
        "metadata": metadata, "spec": made["spec"]});
    Ok(Sample { velero, status: serde_json::to_value(request)?["status"].clone() })
}

fn namespace(series: &str, number: usize) -> String {
    format!("{series}-{}", number % NAMESPACES)
}

async fn make_namespaces(bed: &Bed, series: &str) -> Result<()> {
    for number in 0..NAMESPACES {
        bed.namespace(&namespace(series, number)).await?;
    }
    Ok(())
}

/// The same 4000 writes from a bare client: submit, finalizer, Velero's object, status. All is removed afterwards.
async fn raw_ceiling<K: Asked>(bed: &Bed, sample: &Sample) -> Result<Duration> {
    make_namespaces(bed, "raw").await?;
    let client = bed.client().await?;
    let began = Instant::now();
    each(|number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("raw", number));
        let objects = Api::<K::Velero>::namespaced(client.clone(), VELERO);
        async move {
            let made = requests.create(&PostParams::default(), &K::request(&format!("b{number}"))?).await?;
            let name = made.meta().name.clone().context("a name")?;
            let held = json!({"metadata": {"finalizers": ["nacre.dev/raw"]}});
            requests.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
            let mut velero = sample.velero.clone();
            velero["metadata"]["name"] = json!(format!("raw-{number}"));
            objects.create(&PostParams::default(), &serde_json::from_value(velero)?).await?;
            let status = json!({"status": sample.status});
            requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            Ok(())
        }
    })
    .await?;
    let took = began.elapsed();
    each(|number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("raw", number));
        let objects = Api::<K::Velero>::namespaced(client.clone(), VELERO);
        async move {
            let name = format!("b{number}");
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            requests.patch(&name, &PatchParams::default(), &free).await?;
            requests.delete(&name, &DeleteParams::default()).await?;
            objects.delete(&format!("raw-{number}"), &DeleteParams::default()).await?;
            Ok(())
        }
    })
    .await?;
    Ok(took)
}

/// Does something for each number, so many at a time.
async fn each<F: Future<Output = Result<()>>>(step: impl Fn(usize) -> F) -> Result<()> {
    stream::iter(0..REQUESTS).map(step).buffer_unordered(AT_A_TIME).try_collect().await
}

/// Submits all requests and returns how long it took until the last was `Created`.
async fn burst<K: Asked>(bed: &Bed, nacre: &Nacre) -> Result<Duration> {
    let client = bed.client().await?;
    let before = nacre.metric("nacre_api_writes_total").await?;
    let began = Instant::now();
    each(|number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("shop", number));
        async move {
            requests.create(&PostParams::default(), &K::request(&format!("b{number}"))?).await?;
            Ok(())
        }
    })
    .await?;
    // Watching a thousand requests from here would cost the machine as much as nacre's own work: nacre counts its
    // writes, and whether they did what they should is looked at afterwards.
    let three_each = before + f64::from(u32::try_from(REQUESTS)?) * 3.0;
    let requests = Api::<K>::all(client);
    let all_created = async || {
        let written = nacre.metric("nacre_api_writes_total").await?;
        ensure!(written >= three_each, "{written} writes");
        let took = began.elapsed();
        let all = requests.list(&ListParams::default()).await?.items;
        let created = all.iter().filter(|request| request.created_as().is_some()).count();
        // The sample is one of them.
        ensure!(created > REQUESTS, "{created} are Created");
        anyhow::Ok(took)
    };
    bed::eventually("every request to be Created", Duration::from_mins(1), all_created).await
}

/// One burst: what it cost is told, and what does not depend on the machine's mood is required. Returns how many times as
/// long it took as the bare client.
async fn measured<K: Asked>(bed: &Bed, nacre: &Nacre, raw: Duration) -> Result<f64> {
    let mark = bed.audit().mark().await?;
    let took = burst::<K>(bed, nacre).await?;
    let busy = nacre.process.usage()?;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE);
    let events = writes.only(|write| write.resource == "events");
    let own = writes.only(|write| write.resource != "events");
    let conflicts = own.only(|write| write.code == 409);
    let ratio = took.as_secs_f64() / raw.as_secs_f64();
    println!(
        "{REQUESTS} x {}: {took:.1?} until all were Created, {raw:.1?} for a bare client ({ratio:.2} times); \
         {} writes, {} of them conflicts, {} Events; {:.2} s of CPU, {} MiB at most",
        K::kind(&()),
        own.len(),
        conflicts.len(),
        events.len(),
        busy.cpu_seconds,
        busy.peak_rss >> 20,
    );
    ensure!(conflicts.is_empty(), "{:#?}", own.tally());
    ensure!(own.len() <= REQUESTS * 301 / 100, "{} writes: {:#?}", own.len(), own.tally());
    ensure!(busy.peak_rss < 40 << 20, "{} bytes", busy.peak_rss);
    Ok(ratio)
}

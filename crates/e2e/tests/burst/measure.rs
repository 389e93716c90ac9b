//! A burst, and what it costs.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bed::Bed;
use e2e::{House, NACRE, Nacre};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{ListParams, PostParams};

use crate::asked::{Asked, namespace, sample};
use crate::raw;

/// As many as nacre has workers: beyond 16 the API server takes no more in the same time.
const AT_A_TIME: usize = 32;
/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best of three counts.
pub(crate) const ATTEMPTS: usize = 3;
/// How much longer than the bare client it may take.
pub(crate) const SLACK: f64 = 1.3;

/// Does something for each number below, so many at a time.
pub(crate) async fn each<F: Future<Output = Result<()>>>(
    many: usize,
    step: impl Fn(usize) -> F,
) -> Result<()> {
    stream::iter(0..many).map(step).buffer_unordered(AT_A_TIME).try_collect().await
}

/// Submits so many requests and returns how long it took until the last was `Created`.
pub(crate) async fn burst<K: Asked>(bed: &Bed, nacre: &Nacre, many: usize) -> Result<Duration> {
    let client = bed.client().await?;
    let before = nacre.metric("nacre_api_writes_total").await?;
    let began = Instant::now();
    each(many, |number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("shop", number));
        async move {
            let request = K::request(&format!("b{number}"), number)?;
            requests.create(&PostParams::default(), &request).await?;
            Ok(())
        }
    })
    .await?;
    // Watching a thousand requests from here would cost the machine as much as nacre's own work: nacre counts its
    // writes, and whether they did what they should is looked at afterwards.
    let three_each = before + f64::from(u32::try_from(many)?) * 3.0;
    let requests = Api::<K>::all(client);
    let all_created = async || {
        let written = nacre.metric("nacre_api_writes_total").await?;
        ensure!(written >= three_each, "{written} writes");
        let took = began.elapsed();
        let all = requests.list(&ListParams::default()).await?.items;
        let created = all.iter().filter(|request| request.created_as().is_some()).count();
        // The sample is one of them.
        ensure!(created > many, "{created} are Created");
        anyhow::Ok(took)
    };
    bed::eventually("every request to be Created", Duration::from_mins(1), all_created).await
}

/// One burst: what it cost is told, and what does not depend on the machine's mood is required. Returns how many times as
/// long it took as the bare client.
async fn measured<K: Asked>(bed: &Bed, nacre: &Nacre, many: usize, raw: Duration) -> Result<f64> {
    let mark = bed.audit().mark().await?;
    let took = burst::<K>(bed, nacre, many).await?;
    let busy = nacre.process.usage()?;
    let writes = bed.audit().since(mark).await?.writes().by(NACRE);
    let events = writes.only(|write| write.resource == "events");
    let own = writes.only(|write| write.resource != "events");
    let conflicts = own.only(|write| write.code == 409);
    let ratio = took.as_secs_f64() / raw.as_secs_f64();
    println!(
        "{many} x {}: {took:.1?} until all were Created, {raw:.1?} for a bare client ({ratio:.2} times); \
         {} writes, {} of them conflicts, {} Events; {:.2} s of CPU, {} MiB at most",
        K::kind(&()),
        own.len(),
        conflicts.len(),
        events.len(),
        busy.cpu_seconds,
        busy.peak_rss >> 20,
    );
    ensure!(conflicts.is_empty(), "{:#?}", own.tally());
    ensure!(own.len() <= many * 301 / 100, "{} writes: {:#?}", own.len(), own.tally());
    ensure!(busy.peak_rss < 40 << 20, "{} bytes", busy.peak_rss);
    Ok(ratio)
}

/// A bare client and then nacre do the same, one after the other on one cluster.
pub(crate) async fn against_a_bare_client<K: Asked + Send + 'static>(
    house: &House,
    many: usize,
) -> Result<(Nacre, f64)> {
    let nacre = house.start_nacre().await?;
    let sample = sample::<K>(&house.bed).await?;
    nacre.process.kill().await?;
    let raw = raw::ceiling::<K>(&house.bed, &sample, many).await?;
    let nacre = house.start_nacre().await?;
    let ratio = measured::<K>(&house.bed, &nacre, many, raw).await?;
    Ok((nacre, ratio))
}

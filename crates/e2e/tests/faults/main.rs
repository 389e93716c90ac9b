//! nacre as it ships, on a real API server, with a fault proxy between them that loses, rejects, delays and cuts
//! requests, by seed: what is there at the end is what is there without faults.
//!
//! `NACRE_SEEDS` says how many seeds are tried, `NACRE_SEED` tries a single one.

mod story;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::{FaultProxy, NACRE, TestCluster};

/// Default number of seeds.
const SEEDS: u64 = 3;
/// How many writes go wrong in each: nearly as many as the story needs.
const FAULTS: u32 = 14;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_changes_nothing_about_the_end() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.hand_over_at_once().await?;
    let fault_proxy = FaultProxy::open(&test_cluster.account().await?).await?;
    let kubeconfig = fault_proxy.kubeconfig(test_cluster.bed.folder())?;

    let mut nacre = test_cluster.start_nacre_with(&kubeconfig).await?;
    let calm = story::run(&test_cluster, "calm", async || Ok(())).await?;

    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("NACRE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NACRE_SEEDS").unwrap_or(SEEDS),
    };
    let (began, mut struck, mut slowest) = (Instant::now(), 0, (Duration::ZERO, 0));
    for seed in seeds.clone() {
        let namespace = format!("seed-{seed}");
        fault_proxy.disturb(seed, FAULTS);
        let reported = Instant::now();
        // Every third time it also dies in the middle of it all.
        let end = story::run(&test_cluster, &namespace, async || {
            if seed % 3 == 2 {
                nacre.process.kill().await?;
                nacre = test_cluster.start_nacre_with(&kubeconfig).await?;
            }
            Ok(())
        })
        .await;
        let again = format!("again: NACRE_SEED={seed} cargo test --package e2e --test faults");
        struck += fault_proxy.struck();
        let end = end.with_context(|| again.clone())?;
        ensure!(end == calm, "seed {seed} ends with\n{end:#?}\nand not\n{calm:#?}\n{again}");
        fault_proxy.relent();
        slowest = slowest.max((reported.elapsed(), seed));
    }
    ensure!(struck > 0, "nothing went wrong");
    eprintln!(
        "faults: {} seeds, {struck} writes went wrong, {:.0} s, the slowest was {} with {:.0} s",
        seeds.end - seeds.start,
        began.elapsed().as_secs_f64(),
        slowest.1,
        slowest.0.as_secs_f64()
    );
    // And nothing is left that makes it write on.
    test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(3)).await?;
    ensure!(nacre.process.is_running());
    Ok(())
}

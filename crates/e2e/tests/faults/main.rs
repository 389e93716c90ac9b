//! nacre as it ships, on a real API server, with a line between them that loses, refuses, delays and cuts, by seed: what
//! is there at the end is what is there without faults.
//!
//! `NACRE_SEEDS` says how many seeds are tried, `NACRE_SEED` tries a single one.

mod story;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::{House, NACRE, Tap};

/// How many seeds are tried unless told otherwise.
const SEEDS: u64 = 3;
/// How many writes go wrong in each: nearly as many as the story needs.
const FAULTS: u32 = 14;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_changes_nothing_about_the_end() -> Result<()> {
    let house = House::build_with_idle_velero().await?;
    let tap = Tap::open(&house.account().await?).await?;
    let kubeconfig = tap.kubeconfig(house.bed.folder())?;

    let mut nacre = house.start_nacre_with(&kubeconfig).await?;
    let calm = story::tell(&house, "calm", async || Ok(())).await?;

    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("NACRE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NACRE_SEEDS").unwrap_or(SEEDS),
    };
    let (began, mut struck, mut slowest) = (Instant::now(), 0, (Duration::ZERO, 0));
    for seed in seeds.clone() {
        let namespace = format!("seed-{seed}");
        tap.disturb(seed, FAULTS);
        let told = Instant::now();
        // Every third time it also dies in the middle of it all.
        let end = story::tell(&house, &namespace, async || {
            if seed % 3 == 2 {
                nacre.process.kill().await?;
                nacre = house.start_nacre_with(&kubeconfig).await?;
            }
            Ok(())
        })
        .await;
        let again = format!("again: NACRE_SEED={seed} cargo test --package e2e --test faults");
        struck += tap.struck();
        let end = end.with_context(|| again.clone())?;
        ensure!(end == calm, "seed {seed} ends with\n{end:#?}\nand not\n{calm:#?}\n{again}");
        tap.relent();
        slowest = slowest.max((told.elapsed(), seed));
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
    house.bed.audit().quiet(NACRE, Duration::from_secs(3)).await?;
    ensure!(nacre.process.is_running());
    Ok(())
}

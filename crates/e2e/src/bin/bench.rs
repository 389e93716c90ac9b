//! `make bench`: loads at several sizes on real clusters, the figures in docs/benchmarks.md, and a verdict on what is
//! promised.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use e2e::bench::{
    Bench, Load, Results, SLACK, Scope, THOUSAND, Who, beside_bare, findings, read, say, write,
};
use e2e::load::Contender;

/// A machine that is busy with something else for a moment only ever makes a measurement worse: so often nacre is
/// measured compared with the bare client, until it is as close as promised.
const ATTEMPTS: usize = 3;

/// From so many on, only a restart with all of them settled is measured.
const SETTLED: usize = 100_000;

/// Puts nacre under load on real clusters, and says what that costs.
#[derive(Parser)]
struct Args {
    /// How many requests there are.
    #[arg(default_values_t = [100, 1000, 10_000])]
    sizes: Vec<usize>,
    /// Another controller to put under the same load.
    #[arg(long, env = "PEER")]
    peer: Option<PathBuf>,
    /// The same with the limits of its client lifted.
    #[arg(long, env = "PEER_FAST")]
    peer_fast: Option<PathBuf>,
    /// The most requests that are asked of the others; one who crawls would take its time to show it again.
    #[arg(long, env = "PEER_UP_TO", default_value_t = usize::MAX, hide_default_value = true)]
    peer_up_to: usize,
    /// How many seconds each load may take.
    #[arg(long, env = "LIMIT", default_value_t = 600)]
    limit: u64,
    /// A note for the figures, such as what nacre was compared with.
    #[arg(long, env = "NOTE")]
    note: Option<String>,
    /// Only writes the tables and plots of the last run again.
    #[arg(long)]
    redraw: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let docs = e2e::root().join("docs");
    let run = async {
        let args = Args::parse();
        if args.redraw { read(&docs) } else { measure(&args, &docs).await }
    };
    let outcome = tokio::select! {
        outcome = run => outcome.and_then(|results| verdict(&results, &docs)),
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted; the clusters are gone")),
    };
    match outcome {
        Ok(()) => {
            say("== Every promise about which something was measured is kept.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("== FAILURE: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn verdict(results: &Results, docs: &Path) -> Result<()> {
    write(results, docs)?;
    say("== Figures: docs/benchmarks.md");
    let findings = findings(results);
    for finding in &findings {
        let kept = if finding.kept { "kept  " } else { "BROKEN" };
        say(&format!("   {kept} {} ({})", finding.promise, finding.measured));
    }
    let broken = findings.iter().filter(|finding| !finding.kept).count();
    ensure!(broken == 0, "{broken} of {} promises are broken", findings.len());
    Ok(())
}

async fn measure(args: &Args, docs: &Path) -> Result<Results> {
    let sizes: Vec<_> = args.sizes.iter().map(ToString::to_string).collect();
    let command = format!("make bench N=\"{}\"", sizes.join(" "));
    let peer_argument = args.peer.as_ref().map_or("", |_| " PEER=...");
    let lifted = args.peer_fast.as_ref().map_or("", |_| " PEER_FAST=...");
    let mut results = Results::new(format!("{command}{peer_argument}{lifted}"));
    results.notes.extend(args.note.clone());
    let has_peers = args.peer.is_some() || args.peer_fast.is_some();
    let scope = Scope {
        sizes: args.sizes.clone(),
        locations: args.sizes.iter().any(|n| *n < SETTLED),
        peers_up_to: has_peers.then_some(args.peer_up_to.min(SETTLED - 1)),
    };
    results.keep(read(docs).ok(), &scope);
    let mut bench = Bench { results, timeout: Duration::from_secs(args.limit) };
    let peers = [(Who::Peer, &args.peer), (Who::PeerFast, &args.peer_fast)];
    let peers: Vec<_> =
        peers.into_iter().filter_map(|(who, path)| Some((who, Contender::Peer(path.clone()?)))).collect();
    for &n in &args.sizes {
        if n >= SETTLED {
            bench.settled(Who::Nacre, &Contender::Nacre, n).await?;
            write(&bench.results, docs)?;
            continue;
        }
        nacre(&mut bench, n).await?;
        write(&bench.results, docs)?;
        for (who, peer) in peers.iter().filter(|_| n <= args.peer_up_to) {
            let backups = bench.backups(*who, peer, n).await;
            note(&mut bench, *who, &format!("{n} backups"), backups);
            let restores = bench.restores(*who, peer, n).await;
            note(&mut bench, *who, &format!("{n} restores"), restores);
            write(&bench.results, docs)?;
        }
    }
    if !scope.locations {
        return Ok(bench.results);
    }
    bench.locations(Who::Nacre, &Contender::Nacre).await?;
    for (who, peer) in &peers {
        let locations = bench.locations(*who, peer).await;
        note(&mut bench, *who, "locations", locations);
    }
    Ok(bench.results)
}

async fn nacre(bench: &mut Bench, n: usize) -> Result<()> {
    for attempt in 1..=ATTEMPTS {
        bench.bare(n).await?;
        bench.backups(Who::Nacre, &Contender::Nacre, n).await?;
        bench.turns(Who::Nacre, n).await?;
        let near = [Load::Burst, Load::Turns]
            .into_iter()
            .all(|load| beside_bare(&bench.results, load, n).is_some_and(|ratio| ratio <= SLACK));
        if near || n != THOUSAND {
            break;
        }
        if attempt < ATTEMPTS {
            let words = format!(
                "{n} backups were measured again, since they took more than {SLACK} times a bare client"
            );
            bench.results.notes.push(words);
        }
    }
    bench.restores(Who::Nacre, &Contender::Nacre, n).await?;
    if n == THOUSAND {
        bench.people(n).await?;
    }
    Ok(())
}

/// What one of the others cannot do ends nothing.
fn note(bench: &mut Bench, who: Who, what: &str, outcome: Result<()>) {
    if let Err(error) = outcome {
        let words = format!("{}, {what}: {error:#}", who.name());
        say(&format!("   {words}"));
        // A log's end belongs on the screen, not on the page.
        let first = words.lines().next().unwrap_or_default().to_owned();
        bench.results.notes.push(format!("{first}; what would have come next was left out"));
    }
}

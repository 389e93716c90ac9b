//! `bed`: a real cluster in a folder, from the command line.

mod background;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// A real Kubernetes cluster in a folder, for tests, demos and a look around.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster in the background and say how to use it
    Up(Cluster),
    /// Stop the cluster of `up` and remove its folder
    Down(ClusterDir),
    /// Print shell commands that make kubectl and velero use the cluster of `up`
    Env(ClusterDir),
    /// Run a cluster until standard input ends, or until a signal if that first says `keep`
    #[command(hide = true)]
    Serve(Cluster),
}

#[derive(Args)]
struct ClusterDir {
    /// The cluster's folder
    #[arg(long, default_value = ".bed")]
    dir: PathBuf,
}

#[derive(Args)]
struct Cluster {
    #[command(flatten)]
    place: ClusterDir,
    #[command(flatten)]
    parts: Parts,
}

/// What a cluster consists of besides its control plane.
#[derive(Args, Clone, Copy)]
struct Parts {
    /// Also start an S3 store and Velero
    #[arg(long)]
    with_velero: bool,
    /// Also start a node that runs pods, with Velero, its node agent and volumes; needs Linux and root
    #[arg(long)]
    with_node: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even that cannot be said, the exit code must do.
            let _ = writeln!(io::stderr(), "bed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let said = match command {
        Command::Up(cluster) => background::up(&cluster.place.dir, cluster.parts)?,
        Command::Down(place) => background::down(&place.dir)?,
        Command::Env(place) => background::env(&place.dir)?,
        Command::Serve(cluster) => return background::serve(&cluster.place.dir, cluster.parts),
    };
    writeln!(io::stdout(), "{said}")?;
    Ok(())
}

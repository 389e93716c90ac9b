//! `nacre`, the program in the cluster.

mod admin;
mod admission;
mod args;
mod chores;
mod controller;
mod dpa_operator;
mod lease;
mod measures;
mod metrics;
mod migration;
mod policy;
mod queue;
mod telemetry;
mod tls;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// One thread is plenty: the API server is what everybody waits for. A second would cost a seventh more, in wake-ups.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    telemetry::start(&args);
    let outcome = match args.command.clone() {
        None => controller::run(args).await,
        Some(Command::Operator { image }) => dpa_operator::run(args, image).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

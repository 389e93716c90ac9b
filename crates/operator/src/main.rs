//! `nacre`, the program in the cluster.

mod admin;
mod admission;
mod args;
mod chores;
mod controller;
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

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    telemetry::start(&args);
    match controller::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

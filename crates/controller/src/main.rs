//! `nacre`, the program in the cluster.

mod admin;
mod admission;
mod args;
mod chores;
mod console;
mod dpa_operator;
mod lease;
mod live_migration;
mod measures;
mod metrics;
mod policy;
mod queue;
mod records;
mod run;
mod telemetry;
mod tls;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// One thread is enough: the time is spent waiting for the API server. A second thread costs a seventh more CPU, in
// wake-ups.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    telemetry::start(&args);
    let outcome = match args.command.clone() {
        None => run::run(args).await,
        Some(Command::Operator { image }) => dpa_operator::run(args, image).await,
        Some(Command::Console { arguments }) => console::run(&args, &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", engine::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

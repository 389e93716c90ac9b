//! `kubectl nacre`: what tenants and administrators do from a shell.

mod args;
mod connect;
mod install;
mod migration;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    match args::run(args).await {
        Ok(outcome) => outcome.into(),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

//! `kubectl nacre`: what tenants and administrators do from a shell.

mod adopt;
mod allowed;
mod args;
mod backup;
mod changes;
mod completion;
mod confirm;
mod connect;
mod console;
mod delete;
mod describe;
mod doctor;
#[cfg(test)]
mod documented;
mod download;
mod explain;
mod help;
mod install;
mod interrupt;
mod list;
mod live;
mod live_migration;
mod location;
mod object_name;
mod output;
mod policy;
mod preview;
mod progress;
mod queue;
#[cfg(test)]
mod reference;
mod relocate;
mod request;
mod resources;
mod restore;
mod schedule;
mod selector;
mod send;
mod status;
mod style;
mod table;
mod text;
mod usage;
mod verify;
mod wait;
mod warnings;
mod whoami;
mod wrap;

use std::process::ExitCode;

// One thread is enough for one command, and starts faster than several.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = args::parse();
    match Box::pin(args::run(args)).await {
        Ok(outcome) => outcome.into(),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

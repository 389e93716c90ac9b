//! The command line as a whole: what all commands share, and which commands there are.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{
    connect::{Connection, Session},
    install, migration,
    output::{Format, Outcome},
};

/// Backups, restores and migration rights for the owners of namespaces.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-nacre",
    bin_name = "kubectl nacre",
    version,
    after_help = "Exit codes: 0 done, or the answer is good; 1 it failed; 2 the command line is wrong; \
                  3 it worked, and the answer needs attention."
)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,

    /// How to print the answer.
    #[arg(short, long, value_enum, default_value_t, global = true)]
    output: Format,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install nacre beside Velero, or bring an installation up to date.
    Install(install::Install),
    /// Remove nacre, leaving nothing stuck and keeping what tenants and Velero own.
    Uninstall(install::Uninstall),
    /// Print the manifests that install applies; no cluster is asked.
    Render(install::Render),
    /// Who may live-migrate KubeVirt machines: roles, grants, guard.
    Migration(migration::Args),
}

/// Does what was asked.
pub(crate) async fn run(args: Args) -> Result<Outcome> {
    let given = args.connection.namespace();
    match &args.command {
        Command::Render(verb) => return install::render(verb, given, args.output),
        Command::Install(verb) if verb.only_renders() => return verb.rendered(given, args.output),
        _ => {}
    }
    let session = Session::open(&args.connection, args.output).await?;
    match args.command {
        Command::Install(verb) => install::install(&session, &verb, given).await,
        Command::Uninstall(verb) => install::uninstall(&session, &verb, given).await,
        Command::Render(verb) => install::render(&verb, given, args.output),
        Command::Migration(args) => migration::run(&session, args).await,
    }
}

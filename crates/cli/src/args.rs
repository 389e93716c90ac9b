//! The command line as a whole: what all commands share, and which commands there are.

use std::sync::LazyLock;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::{
    adopt, backup, completion,
    connect::{Connection, Session},
    console, doctor, explain, help, install, live_migration, location,
    output::{EXIT_CODES, Format, Outcome},
    policy, queue, relocate, request, restore, schedule, status, usage, verify, whoami,
};

/// What `--version` prints.
static VERSION: LazyLock<String> = LazyLock::new(|| planner::version::text(option_env!("NACRE_COMMIT")));

/// Backups, restores and live-migration permissions for namespace owners.
#[derive(Debug, Parser)]
#[command(name = "kubectl-nacre", bin_name = "kubectl nacre", version = VERSION.as_str(), after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,

    /// Output format: table, wide, json, yaml or name.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t, global = true)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    output: Format,

    #[command(subcommand)]
    command: Command,
}

/// Every command also stands in one of `help::GROUPS`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Create, list, download and delete backups of a namespace.
    #[command(visible_alias = "nab", alias = "backups")]
    Backup(backup::Args),
    /// Restore a backup, and see the result.
    #[command(visible_alias = "nar", alias = "restores")]
    Restore(restore::Args),
    /// Back up the namespace at set times, and decide how long backups are kept.
    #[command(visible_alias = "nas", alias = "schedules")]
    Schedule(schedule::Args),
    /// Use your own storage for backups.
    #[command(visible_aliases = ["nabsl", "bsl"], alias = "locations")]
    Location(location::Args),
    /// Show the status of a namespace's backups on one screen.
    Status(status::Status),
    /// Show what a namespace, or each, uses: backups, storage and Velero's time.
    Usage(usage::Args),
    /// Show what nacre would do with a request, before it is sent.
    Explain(explain::Explain),
    /// Show who you are to nacre, and what you could back up and restore.
    Whoami(whoami::Whoami),
    /// Open the console in a browser: see, back up, restore, approve.
    Console(console::Args),
    /// Approve or reject storage that tenants want to use.
    #[command(visible_alias = "nabsl-request", alias = "requests")]
    Request(request::Args),
    /// See in which order Velero and nacre work, move a request to the front, or hold it.
    Queue(queue::Args),
    /// Show what tenants may request and which source sets it, or check a policy before it is applied.
    Policy(policy::Args),
    /// Give the backups of a deleted namespace to the namespace that was re-created under its name.
    Adopt(adopt::Adopt),
    /// Move the backups of tenants to another Velero, which is theirs alone.
    Relocate(relocate::Relocate),
    /// Check that the cluster is ready for nacre, and show how to fix what is not.
    Doctor(doctor::Doctor),
    /// Back up, lose and restore a volume in a scratch namespace, to see that nacre works.
    Verify(verify::Verify),
    /// Install nacre in Velero's namespace, or update an installation.
    Install(install::Install),
    /// Uninstall nacre without leaving objects stuck; objects of tenants and Velero stay.
    Uninstall(install::Uninstall),
    /// Print the manifests that install applies; needs no cluster.
    Render(install::Render),
    /// Manage who may live-migrate KubeVirt machines: roles, grants, guard.
    Migration(live_migration::Args),
    /// Print the shell completion script.
    Completion(completion::Completion),
    /// Print completions for the cursor position; called by completion scripts.
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(completion::Complete),
    /// Fill a volume, or print the checksum of what is in it; runs in the pod of verify.
    #[command(name = "__volume", hide = true)]
    Volume(verify::Volume),
}

/// The whole command line, as clap knows it. Completion and man pages are made of this.
pub(crate) fn command() -> clap::Command {
    help::grouped(Args::command())
}

/// Reads the command line; ends the program with help, the version or a complaint where that is the answer.
pub(crate) fn parse() -> Args {
    let matches = command().get_matches();
    let mut args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    args.connection.velero_source = matches.value_source("velero_namespace");
    args
}

/// Does what was asked.
pub(crate) async fn run(args: Args) -> Result<Outcome> {
    let given = args.connection.namespace();
    match &args.command {
        Command::Render(verb) => {
            return install::render(verb, args.connection.installation()?, args.output);
        }
        Command::Policy(verb) if verb.needs_no_cluster() => return verb.checked(args.output),
        Command::Install(verb) if verb.only_renders() => {
            return verb.rendered(args.connection.installation()?, args.output);
        }
        Command::Console(verb) if verb.in_cluster => {
            return console::in_cluster(verb, args.connection.velero_namespace()).await;
        }
        Command::Completion(verb) => return completion::script(verb),
        Command::Complete(verb) => return completion::complete(verb).await,
        Command::Volume(verb) => return verify::volume(verb).await,
        _ => {}
    }
    let session = Session::open(&args.connection, args.output).await?;
    match args.command {
        Command::Backup(args) => Box::pin(backup::run(&session, args)).await,
        Command::Restore(args) => Box::pin(restore::run(&session, args)).await,
        Command::Schedule(args) => Box::pin(schedule::run(&session, args)).await,
        Command::Location(args) => Box::pin(location::run(&session, args)).await,
        Command::Status(_) => Box::pin(status::run(&session)).await,
        Command::Usage(args) => Box::pin(usage::run(&session, &args)).await,
        Command::Explain(args) => Box::pin(explain::run(&session, &args)).await,
        Command::Whoami(_) => Box::pin(whoami::run(&session)).await,
        Command::Console(args) => Box::pin(console::run(&session, &args)).await,
        Command::Request(args) => Box::pin(request::run(&session, args, given)).await,
        Command::Queue(args) => Box::pin(queue::run(&session, args, given)).await,
        Command::Policy(args) => Box::pin(policy::run(&session, args, given)).await,
        Command::Adopt(verb) => Box::pin(adopt::run(&session, &verb)).await,
        Command::Relocate(verb) => Box::pin(relocate::run(&session, &verb)).await,
        Command::Install(verb) => {
            Box::pin(install::install(&session, &verb, args.connection.installation()?)).await
        }
        Command::Uninstall(verb) => {
            Box::pin(install::uninstall(&session, &verb, args.connection.installation()?)).await
        }
        Command::Render(verb) => install::render(&verb, args.connection.installation()?, args.output),
        Command::Migration(args) => live_migration::run(&session, args, given).await,
        Command::Doctor(_) => Box::pin(doctor::run(&session, given)).await,
        Command::Verify(args) => Box::pin(verify::run(&session, &args, given)).await,
        Command::Completion(verb) => completion::script(&verb),
        Command::Complete(verb) => completion::complete(&verb).await,
        Command::Volume(verb) => verify::volume(&verb).await,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        super::command().debug_assert();
    }

    /// Every command that does something shows how it is used.
    #[test]
    fn every_help_has_examples() {
        fn without(path: &str, command: &clap::Command) -> Vec<String> {
            let path = format!("{path} {}", command.get_name());
            let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
            let below: Vec<String> = shown.flat_map(|below| without(&path, below)).collect();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let silent = !command.has_subcommands() && !help.contains("kubectl nacre");
            if silent { vec![path] } else { below }
        }
        assert_eq!(without("", &super::command()), Vec::<String>::new());
    }
}

//! Completion: scripts for shells, and what they ask when somebody presses Tab.
//!
//! The scripts know nothing but how to ask `kubectl-nacre __complete -- WORDS`. `spot` finds where the cursor stands,
//! `offer` says what could stand there, `names` asks the cluster for names. It is read only, ends within a second, and
//! reports no errors, since errors would disturb while typing.

mod names;
mod offer;
mod spot;

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    args,
    output::{Outcome, lines, say},
};
use offer::Offers;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(kubectl nacre completion bash)          for kubectl-nacre, in this shell
  kubectl nacre completion zsh > \"${fpath[1]}/_kubectl-nacre\"
  kubectl nacre completion fish > ~/.config/fish/completions/kubectl-nacre.fish

kubectl completes its plugins itself, in every shell whose completion of kubectl is set up, if a program of this name is
on the PATH:
  kubectl nacre completion kubectl > ~/.local/bin/kubectl_complete-nacre
  chmod +x ~/.local/bin/kubectl_complete-nacre")]
pub(crate) struct Completion {
    /// For which shell; `kubectl` for `kubectl nacre` in all of them.
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Kubectl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Complete {
    /// The words after the program's name, the last of them unfinished.
    #[arg(last = true)]
    words: Vec<String>,
}

/// Prints a script.
pub(crate) fn script(verb: &Completion) -> Result<Outcome> {
    say(match verb.shell {
        Shell::Bash => include_str!("kubectl-nacre.bash"),
        Shell::Zsh => include_str!("_kubectl-nacre"),
        Shell::Fish => include_str!("kubectl-nacre.fish"),
        Shell::Kubectl => include_str!("kubectl_complete-nacre"),
    })?;
    Ok(Outcome::Good)
}

/// Prints what could stand at the end of these words: one a line, with a tab before what it means, and last how shells
/// are to go on, in the numbers kubectl understands.
pub(crate) async fn complete(verb: &Complete) -> Result<Outcome> {
    let mut command = args::command();
    command.build();
    let spot = spot::find(&command, &verb.words);
    let Offers { mut values, files, goes_on } = offer::offers(&spot).await;
    values.retain(|(value, _)| value.starts_with(spot.word));
    let reported = values.iter().map(|(value, meaning)| match meaning.lines().next() {
        Some(meaning) if !meaning.is_empty() => format!("{}{value}\t{meaning}", spot.before),
        _ => format!("{}{value}", spot.before),
    });
    let directive = if files { 0 } else { 4 } + if goes_on { 2 } else { 0 };
    say(&lines(reported.chain([format!(":{directive}")])))?;
    Ok(Outcome::Good)
}

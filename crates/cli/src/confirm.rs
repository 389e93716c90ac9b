//! Asking before something is lost.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Result, bail};

/// Whether to go on without asking.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation. Required without a terminal.
    #[arg(short, long, aliases = ["confirm", "assume-yes"])]
    yes: bool,
}

impl Consent {
    /// Whether the answer to this question is yes.
    pub(crate) fn given(&self, question: &str) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            bail!("confirmation needs a terminal; use --yes to skip it");
        }
        write!(anstream::stderr(), "{question} [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(is_yes(&answer))
    }
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_yes_is_yes() {
        assert!(super::is_yes(" Y\n") && super::is_yes("yes\n"));
        assert!(!super::is_yes("\n") && !super::is_yes("yellow\n"));
    }
}

//! `describe`: all details of an object on one page.

mod answer;
mod backup;
mod events;
mod location;
pub(crate) mod page;
mod restore;
mod results;
mod volumes;

pub(crate) use self::{backup::run as backup, location::run as location, restore::run as restore};

use crate::download::Fetching;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup describe daily
  kubectl nacre backup describe daily --details        with every error and warning Velero wrote down
  kubectl nacre backup describe daily -o json

Only users who may read the policy can see whether a field was added by the policy or by Velero.")]
pub(crate) struct Describe {
    /// Which one.
    name: String,

    /// Download every error and warning from the storage, if the policy allows downloads.
    #[arg(long)]
    details: bool,

    #[command(flatten)]
    fetching: Fetching,
}

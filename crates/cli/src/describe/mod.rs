//! `describe`: all details of an object on one page. Each kind has its own examples, at its command.

mod answer;
mod backup;
mod claims;
mod events;
mod location;
pub(crate) mod page;
mod restore;
mod results;
mod volumes;

pub(crate) use self::{backup::run as backup, location::run as location, restore::run as restore};

use crate::{download::Fetching, object_name::ObjectName};

#[derive(Debug, clap::Args)]
pub(crate) struct Describe {
    /// The name of what to describe, as `get` lists it.
    name: ObjectName,

    /// Download every error and warning from the storage, if the policy allows downloads.
    #[arg(long)]
    details: bool,

    #[command(flatten)]
    fetching: Fetching,
}

//! `describe`: all details of an object on one page. Each kind has its own examples, at its command.

mod answer;
pub(crate) mod backup;
pub(crate) mod claims;
mod events;
pub(crate) mod location;
pub(crate) mod page;
pub(crate) mod restore;
mod results;
mod volumes;

pub(crate) use self::{backup::run as backup, location::run as location, restore::run as restore};

use crate::{download::Fetching, object_name::ObjectName};

/// All details of an object.
pub(crate) struct Details<K> {
    pub(crate) object: K,
    /// For programs.
    answer: answer::Description,
    /// For people.
    pub(crate) page: page::Page,
}

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

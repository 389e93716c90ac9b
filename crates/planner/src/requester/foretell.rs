//! What somebody would not get of a request, before it is made.

use api::velero::{BackupSpec, RestoreSpec};

use super::access::{Access, Ask};
use super::message::create_role;
use super::verdict::Verdict;
use super::{location, of_backup, of_restore};
use crate::Policy;

/// A request, as somebody would make it.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'a> {
    /// A backup: the tenant's own spec, and the same with what the administrators add.
    Backup(&'a BackupSpec, &'a BackupSpec),
    /// A restore: the tenant's own spec, what Velero would be given, and whether it is from the administrators' storage.
    Restore(&'a RestoreSpec, &'a RestoreSpec, bool),
    /// A location with the key in this Secret.
    Location(&'a str),
}

/// What somebody would not get of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foretold {
    /// Kinds that would be left out, as group-resources.
    pub left_out: Vec<String>,
    /// Why it would not start at all.
    pub refusal: Option<String>,
    /// The commands by which an administrator would permit it.
    pub commands: Vec<String>,
}

/// What somebody would not get, or what has to be asked first.
pub fn foretell(access: &Access, wish: Wish<'_>, policy: &Policy) -> Result<Foretold, Vec<Ask>> {
    let verdict = match wish {
        Wish::Backup(asked, effective) => of_backup(access, asked, effective, policy),
        Wish::Restore(asked, spec, trusted) => of_restore(access, asked, spec, policy, trusted),
        Wish::Location(secret) => location::of_location(access, secret, policy),
    };
    match verdict {
        Verdict::Permitted(left_out) => Ok(Foretold {
            left_out: left_out.withheld().to_vec(),
            refusal: None,
            commands: if left_out.enforced { create_role(access, &left_out.lacking) } else { Vec::new() },
        }),
        Verdict::Ask(asks) => Err(asks),
        // The message has the commands.
        Verdict::Refused(refusal) => {
            Ok(Foretold { refusal: Some(refusal.to_string()), ..Foretold::default() })
        }
    }
}

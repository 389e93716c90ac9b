//! What somebody could back up and bring back in a namespace, before anything is asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, Ask, Attributes};
use super::backup::exec;
use super::kinds::{Selection, to_read, to_restore, without};
use crate::{Policy, fence};

/// What somebody could not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Kinds that a backup into storage of their own would leave out, as group-resources.
    pub not_backed_up: Vec<String>,
    /// Kinds that a restore from the administrators' storage would leave out.
    pub not_restored: Vec<String>,
    /// Whether their hooks may run commands in pods.
    pub may_run_commands: bool,
    /// The permissions that are missing.
    pub denied: Vec<Attributes>,
}

/// What somebody could back up and bring back, or what has to be asked first.
pub fn abilities(access: &Access, policy: &Policy) -> Result<Abilities, Vec<Ask>> {
    let Some(served) = &access.served else { return Err(vec![Ask::Served]) };
    let kinds = |excluded: &[String]| Selection { included: &[], excluded }.kinds(served);
    let read: BTreeMap<String, BTreeSet<Attributes>> = kinds(&fence::namespaced_out_of_backups())
        .into_iter()
        .map(|(name, kind)| (name, to_read(&kind)))
        .collect();
    let mut out = fence::out_of_restores();
    out.extend(policy.restore.excluded_from_platform_storage.iter().cloned());
    let free = policy.requester.roles_from_platform_storage;
    let write: BTreeMap<String, BTreeSet<Attributes>> =
        kinds(&out).into_iter().map(|(name, kind)| (name, to_restore(&kind, false, free))).collect();
    let needed = read.values().chain(write.values()).flatten().cloned().chain([exec()]).collect();
    let permits = access.check(&needed);
    if !permits.asks.is_empty() {
        return Err(permits.asks);
    }
    let named = |needed: &BTreeMap<String, BTreeSet<Attributes>>| {
        without(needed, &permits.denied).into_iter().map(str::to_owned).collect()
    };
    Ok(Abilities {
        not_backed_up: named(&read),
        not_restored: named(&write),
        may_run_commands: !permits.denied.contains(&exec()),
        denied: permits.denied,
    })
}

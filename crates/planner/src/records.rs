//! nacre's own ConfigMaps that make something survive a restart, or that the API server reads, each with what is missing where
//! nacre may not write it. nacre's log, `doctor` and the administrators' guide use the same sentences.

use crate::policy::IN_FORCE;
use crate::requester::LIST;
use crate::turns::LEDGER;
use crate::usage;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The ConfigMap's name, in Velero's namespace.
    pub name: &'static str,
    /// What is missing without it.
    pub missing: &'static str,
}

/// The policy in force, for when its source vanishes.
pub const POLICY: Record =
    Record { name: IN_FORCE, missing: "a policy that vanishes is not in force after a restart of nacre" };

/// What deleted backups and restores used today.
pub const USAGE: Record = Record {
    name: usage::RECORD,
    missing: "what deleted backups used today is forgotten after a restart of nacre",
};

/// What namespaces have used of Velero, which decides whose turn it is.
pub const TURNS: Record = Record {
    name: LEDGER,
    missing: "what a namespace has used of Velero is forgotten with its backups when nacre restarts",
};

/// Which extra fields of users are recorded. The API server reads it.
pub const EXTRA: Record = Record {
    name: LIST,
    missing: "the extra fields of users that are recorded are not those that the policy lists (requester.extra)",
};

/// All of them.
pub const ALL: [Record; 4] = [POLICY, USAGE, TURNS, EXTRA];

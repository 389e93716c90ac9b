//! Storage that namespace owners bring: a bucket of their own, with a key of their own.
//!
//! What a tenant writes into a location and its Secret is acted upon by Velero, in the administrators' namespace and
//! with the network and files of its pod. Everything here decides how little of it gets there:
//!
//! - [`check_spec`] says no to a location, [`check_credential`] to the credential it names; both ask the modules below
//! - [`credentials`] parses a credential, and generates a new one from the parsed fields
//! - [`config`] knows the config keys of each provider, and which of them Velero gets
//! - [`endpoint`] knows where Velero must not be sent
//! - `prefix` and `ca` know the place in the bucket and the certificates of the endpoint
//! - [`StoragePath`] says whether two locations are in each other's way
//! - [`fill`] sets what an administrator requires, as `policy::storage` has it
//! - [`observe`] and [`decide`] are the controller: `generate` holds the objects it creates, `status` the status,
//!   `conditions` the conditions, `times` when Velero's times are shown again, `neighbours` the other locations, `delete` the deletion, `import` whether Velero may
//!   import backups from the bucket
//! - [`review`] is what an approver is shown, and what follows from the decision
//! - [`table`] is what the administrators' guide is made of

mod admit;
mod ca;
mod check;
mod conditions;
pub mod config;
pub mod credentials;
mod decide;
mod delete;
pub mod endpoint;
mod enforce;
mod generate;
pub(crate) mod import;
mod neighbours;
mod observe;
mod prefix;
mod provider;
pub mod review;
mod status;
mod storage_path;
pub mod table;
pub(crate) mod times;

pub(crate) use admit::admit;
pub use check::{check_credential, check_limit, check_spec};
pub use decide::decide;
pub use enforce::fill;
pub(crate) use observe::gather;
pub use observe::{Observed, named_key, observe, references};
pub use prefix::stored as stored_prefix;
pub use provider::Provider;
pub use storage_path::{StoragePath, endpoint_of};

const PATH: &str = "spec.backupStorageLocationSpec";

fn field(name: &str) -> String {
    format!("{PATH}.{name}")
}

//! Storage that namespace owners bring: a bucket of their own, with a key of their own.
//!
//! What a tenant writes into a location and its Secret is acted upon by Velero, in the administrators' namespace and
//! with the network and files of its pod. Everything here decides how little of it gets there:
//!
//! - [`check_spec`] says no to a location, [`check_credential`] to the credential it names; both ask the modules below
//! - [`credentials`] reads a credential, and writes it anew from what was understood
//! - [`config`] knows the keys a provider is told things with, and what Velero gets of them
//! - [`endpoint`] knows where Velero must not be sent
//! - `prefix` and `ca` know the place in the bucket and the certificates of the endpoint
//! - [`Place`] says whether two locations are in each other's way
//! - [`fill`] sets what an administrator requires, as `policy::storage` has it
//! - [`observe`] and [`decide`] are the controller: `wanted` holds the objects it makes, `status` what the tenant is
//!   shown and `words` what they are told, `neighbours` the other locations, `delete` the end, `import` what Velero may
//!   find in the bucket
//! - [`review`] is what an approver is shown, and what becomes of their word
//! - [`table`] is what the administrators' guide is made of

mod admit;
mod ca;
mod check;
pub mod config;
pub mod credentials;
mod decide;
mod delete;
pub mod endpoint;
mod enforce;
pub(crate) mod import;
mod neighbours;
mod place;
mod prefix;
mod provider;
pub mod review;
mod status;
pub mod table;
mod wanted;
mod words;

pub(crate) use admit::admit;
pub use check::{check_credential, check_limit, check_spec};
pub(crate) use decide::gather;
pub use decide::{Observed, decide, named_key, observe, references};
pub use enforce::fill;
pub use place::{Place, endpoint_of};
pub use prefix::stored as stored_prefix;
pub use provider::Provider;

const PATH: &str = "spec.backupStorageLocationSpec";

fn field(name: &str) -> String {
    format!("{PATH}.{name}")
}

//! Whatever a tenant writes into a spec: what is accepted makes a Velero object that stays inside the fence.
//!
//! `arbitrary` generates specs, `accepted` passes them to nacre, `lint` checks the resulting objects, and `properties`
//! combines the three, with planted bugs that must be found.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod accepted;
mod arbitrary;
mod lint;
mod parsers;
mod properties;

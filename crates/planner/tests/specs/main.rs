//! Whatever a tenant writes into a spec: what is accepted makes a Velero object that stays inside the fence.
//!
//! `given` makes arbitrary specs, `accepted` asks nacre about them, `lint` says what is wrong with what came out, and
//! `properties` puts the three together, with bugs planted to show that they are found.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod accepted;
mod given;
mod lint;
mod parsers;
mod properties;

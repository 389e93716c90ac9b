//! The decisions of nacre.
//!
//! The one rule of this crate: everything here is a synchronous, total function of what was seen. There is no
//! client, no clock and no randomness, so that every decision can be tested without a cluster, explained to a
//! user, and made again after a crash.
//!
//! For each controller there is one module with `observe` (what the decision reads), `decide` (what shall be
//! done) and the facts in between. [`view::View`] is what `observe` looks through: the engine's stores, or a
//! world in memory. [`concern`] says whom a change concerns.

pub mod admission;
pub mod backup;
mod common;
pub mod concern;
pub mod copies;
pub mod doctor;
pub mod download;
pub mod dpa_operator;
mod enforce;
mod fence;
mod filters;
pub mod gc;
pub mod install;
pub mod last_good;
pub mod lease;
pub mod location;
pub mod measure;
mod merge;
pub mod migration;
pub mod ownership;
pub mod plan;
pub mod policy;
pub mod queue;
pub mod refresh;
mod refusal;
pub mod restore;
pub mod sync;
mod tell;
mod trouble;
mod vap;
pub mod view;

pub use plan::{Action, Event, Key, Object, Plan, Target};
pub use policy::Policy;
pub use refusal::Refusal;
pub use trouble::Trouble;

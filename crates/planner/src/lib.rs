//! The decisions of nacre.
//!
//! The one rule of this crate: everything here is a synchronous, total function of the observed state. There is no
//! client, no clock and no randomness, so that every decision can be tested without a cluster, explained to a user, and
//! repeated after a crash.
//!
//! For each controller there is one module with `observe` (gathers what the decision reads) and `decide` (returns the
//! plan). [`State`] is what `observe` looks at: the cluster as it was last seen, kept current by the engine, or by a
//! simulated cluster in tests. [`affected`] says which objects a change affects.

pub mod admission;
pub mod affected;
pub mod backup;
mod bounds;
mod common;
mod config_map;
pub mod dedicated;
pub mod doctor;
pub mod download;
pub mod dpa_operator;
pub mod egress;
pub mod election;
mod enforce;
mod fence;
mod filters;
pub mod gc;
mod hex;
mod hook_timeout;
pub mod imports;
pub mod install;
pub mod kubevirt;
pub mod last_good;
pub mod lease;
pub mod location;
pub mod measure;
mod merge;
pub mod ownership;
pub mod plan;
pub mod policy;
pub mod queue;
pub mod rbac;
pub mod records;
pub mod refresh;
mod refusal;
mod rejected_write;
pub mod relocation;
pub mod replace;
mod request;
pub mod requester;
pub mod restore;
pub mod restore_preview;
pub mod results;
pub mod schedule;
mod selectors;
pub mod served;
pub mod state;
pub mod sync;
pub mod trial;
pub mod turns;
pub mod usage;
pub mod vap;
mod velero_status;
pub mod velero_view;
pub mod version;
pub mod view;
pub mod volumes;

pub use hex::hex;
pub use plan::{Action, Again, Event, Key, Object, Plan, Target};
pub use policy::Policy;
pub use refusal::{HealedBy, Refusal, healed_by};
pub use rejected_write::RejectedWrite;
pub use state::State;

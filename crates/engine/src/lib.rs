//! The effects of nacre: watching a cluster, caching what was observed and written, and executing plans.
//!
//! There is no choice here. [`Cluster`] holds the runtime, which decides; [`watch`] keeps it current, and [`Executor`]
//! sends what it asks for and passes on what the API server answers.

pub mod applications;
mod certificate;
mod client;
mod cluster;
mod credentials;
mod degraded;
mod error;
mod events;
mod execute;
mod fence;
pub mod install;
mod leadership;
mod lease;
mod lease_store;
mod link;
pub mod live_migration;
mod native_snapshots;
mod poll;
mod results;
mod reviews;
mod snapshot_classes;
mod supervisor;
mod term;
mod velero_log;
mod velero_view;
mod version;
mod watch;

pub use certificate::{CertificateSlot, Presenter, make as make_certificate, validity};
pub use client::{api_server, connect, connect_behind, everything, user_agent};
pub use cluster::{Cluster, Look};
pub use credentials::{watch_credentials, with_credential};
pub use degraded::Degraded;
pub use error::{Failure, chain};
pub use events::EventRecorder;
pub use execute::{Executor, MANAGER, Writes};
pub use fence::{is_fenced, poll_fence};
pub use leadership::{LeaderStatus, Leadership, NotLeading};
pub use lease::{LeaseConfig, identity, run_election};
pub use link::{Link, LinkError, Trust};
pub use native_snapshots::{poll_native_snapshots, snapshot_locations};
pub use results::read_results;
pub use reviews::{answer_asks, find_out, is_allowed, read_served};
pub use runtime::Retry;
pub use snapshot_classes::{poll_snapshot_classes, read_snapshot_classes};
pub use supervisor::{Supervisor, TaskEnded};
pub use term::begin_terms;
pub use velero_log::watch_velero_log;
pub use velero_view::run_velero_view;
pub use version::poll_velero_version;
pub use watch::{Progress, watch};

//! The effects of nacre: watching a cluster, remembering what was seen and written, and carrying out plans.
//!
//! There is no choice here. [`Cluster`] holds the runtime, which decides; [`watch`] keeps it current, and [`Executor`]
//! sends what it asks for and passes on what the API server answers.

pub mod applications;
mod certificate;
mod client;
mod cluster;
mod credentials;
mod error;
mod events;
mod execute;
pub mod install;
mod lacking;
mod leadership;
mod lease;
pub mod migration;
mod shown;
mod supervisor;
mod version;
mod watch;

pub use certificate::{Presenter, Which, make as make_certificate, soundness};
pub use client::{api_server, connect, connect_behind, everything, user_agent};
pub use cluster::{Cluster, Look};
pub use credentials::{look_after_credentials, with_credential};
pub use error::Failure;
pub use events::Teller;
pub use execute::{Executor, Writes};
pub use lacking::Lacking;
pub use leadership::{Leadership, NotLeading, Standing};
pub use lease::{Seat, campaign, identity};
pub use runtime::Retry;
pub use shown::show_velero;
pub use supervisor::{Supervisor, TaskEnded};
pub use version::ask_velero;
pub use watch::{Progress, watch};

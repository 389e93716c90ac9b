//! The effects of nacre: watching a cluster, remembering what was seen and written, and carrying out plans.
//!
//! There is no choice here. [`Cluster`] is what a decision looks at, [`watch`] keeps it current, [`execute`]
//! carries a plan out and lays its own writes over what the watches have yet to tell, and [`Work`] says which
//! object is decided about next.

pub mod applications;
mod certificate;
mod client;
mod cluster;
mod credentials;
mod error;
mod events;
mod execute;
mod guard;
mod index;
pub mod install;
mod kept;
mod lacking;
mod leadership;
mod lease;
mod measure;
pub mod migration;
mod policy;
mod shown;
mod store;
mod trouble;
mod version;
mod view;
mod watch;
mod work;

pub use certificate::{Presenter, Which, make as make_certificate, soundness};
pub use client::{api_server, connect, connect_behind, everything, user_agent};
pub use cluster::{Cluster, State};
pub use credentials::look_after_credentials;
pub use error::{Failure, Retry};
pub use events::Teller;
pub use execute::{Executor, Writes};
pub use kept::Kept;
pub use lacking::Lacking;
pub use leadership::{Leadership, NotLeading, Standing};
pub use lease::{Seat, campaign, identity};
pub use shown::show_velero;
pub use version::ask_velero;
pub use watch::{Progress, watch};
pub use work::Work;

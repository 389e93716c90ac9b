//! The effects of nacre: watching a cluster, remembering what was seen and written, and carrying out plans.
//!
//! There is no choice here. [`Cluster`] is what a decision looks at, [`watch`] keeps it current, [`execute`]
//! carries a plan out and lays its own writes over what the watches have yet to tell, and [`Work`] says which
//! object is decided about next.

mod client;
mod cluster;
mod credentials;
mod error;
mod events;
mod execute;
mod guard;
mod index;
mod kept;
pub mod migration;
mod shown;
mod store;
mod version;
mod watch;
mod work;

pub use client::{connect, user_agent};
pub use cluster::{Cluster, State};
pub use credentials::look_after_credentials;
pub use error::{Failure, Retry};
pub use events::Teller;
pub use execute::{Executor, Writes};
pub use kept::Kept;
pub use shown::show_velero;
pub use version::ask_velero;
pub use watch::{Progress, watch};
pub use work::Work;

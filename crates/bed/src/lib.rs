//! A real cluster in a folder: etcd, kube-apiserver, kube-controller-manager, an S3 store and Velero,
//! on free ports of 127.0.0.1, for tests, the demo and measurements.
//!
//! ```no_run
//! # async fn story() -> anyhow::Result<()> {
//! let bed = bed::Bed::builder().with_velero().start().await?;
//! bed.namespace("shop").await?;
//! bed.bind("shop", "ada", "admin").await?;
//! let ada = bed.client_as("ada", &[]).await?;
//! # Ok(()) }
//! ```
//!
//! A bed may be kept in a `static`, though nothing drops a static: its programs end when the process that
//! started them does, however that ends (see [`Process`]). It may be used from any async runtime.

mod access;
mod apply;
mod audit;
mod bed;
mod binaries;
mod control_plane;
mod existing;
mod folder;
mod node;
mod pki;
mod ports;
mod process;
mod run;
mod store;
mod tenants;
mod velero;
mod wait;

pub use access::USER_AGENT;
pub use apply::{parse_manifests, read_manifests};
pub use audit::{Audit, Follow, Mark, Request, Requests};
pub use bed::{Bed, Builder};
pub use binaries::programs;
pub use existing::ExistingCluster;
pub use node::{BUSYBOX, NODE, Node, STORAGE_CLASS, busybox_image};
pub use ports::free_ports;
pub use process::{Process, Program, Usage, send_signal};
pub use run::Output;
pub use store::{REGION, Store};
pub use velero::BUCKET;
pub use wait::{eventually, wait_until};

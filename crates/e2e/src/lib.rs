//! Stories on the real bed, black box: a real API server, real Velero, a real S3 store, and nacre as the program that
//! ships.

mod admission;
pub mod bench;
mod blackhole;
pub mod csi_driver;
mod database;
mod fault_proxy;
mod faults;
mod imports;
mod length;
pub mod load;
mod location;
mod node_cluster;
mod node_process;
mod node_tenant;
mod oadp;
pub mod played;
mod privileges;
mod release;
mod site;
mod tenant;
mod test_cluster;
pub mod two_replicas;

pub use admission::{before_1_36, refusal, refused_by};
pub use blackhole::Blackhole;
pub use database::{check_sqlite, sqlite_pod_spec};
pub use fault_proxy::FaultProxy;
pub use imports::imported;
pub use length::at_length;
pub use node_cluster::NodeCluster;
pub use node_process::memory_limit;
pub use node_tenant::{NodeTenant, claim, pod_spec};
pub use oadp::{OADP, oadp_controller};
pub use privileges::{Right, Rights};
pub use release::Release;
pub use site::Site;
pub use tenant::Tenant;
pub use test_cluster::{NACRE, Nacre, TestCluster, VELERO, command_line, deploy, root};

//! The program under load: nacre, or another controller to compare with.

use std::path::PathBuf;

use anyhow::Result;
use bed::Bed;

use super::meter::ACCOUNT;
use crate::{Nacre, TestCluster, VELERO};

/// A controller to measure.
#[derive(Debug, Clone)]
pub enum Contender {
    /// nacre as it ships.
    Nacre,
    /// The program at this path, which is started as OADP starts its non-admin controller.
    Peer(PathBuf),
}

impl Contender {
    /// A cluster of its own, as whoever installs it leaves it behind. Velero's server stands still.
    pub async fn test_cluster(&self) -> Result<TestCluster> {
        match self {
            Self::Nacre => {
                let test_cluster = TestCluster::build_with_idle_velero().await?;
                test_cluster.hand_over_at_once().await?;
                Ok(test_cluster)
            }
            Self::Peer(_) => {
                let test_cluster = TestCluster::build_as_oadp_on(Bed::builder().with_idle_velero()).await?;
                // It ends at once if it may not read its configuration yet.
                let kinds = [("oadp.openshift.io", "dataprotectionapplications"), ("velero.io", "backups")];
                for (group, kind) in kinds {
                    test_cluster.bed.wait_allowed(ACCOUNT, VELERO, "list", group, kind).await?;
                }
                Ok(test_cluster)
            }
        }
    }

    /// Starts it, and waits for nothing.
    pub async fn launch(&self, test_cluster: &TestCluster) -> Result<Nacre> {
        let account = test_cluster.account().await?;
        match self {
            Self::Nacre => {
                test_cluster.forget_lease().await?;
                // With its default log level.
                test_cluster.launch("nacre", VELERO, &account, &[("LOG_LEVEL", "4")])
            }
            Self::Peer(program) => test_cluster.launch_peer(program, &account),
        }
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn start(&self, test_cluster: &TestCluster) -> Result<Nacre> {
        let running = self.launch(test_cluster).await?;
        running.until_ready().await?;
        Ok(running)
    }
}

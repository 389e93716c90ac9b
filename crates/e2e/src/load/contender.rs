//! Who is put under load: nacre, or another controller that does the same.

use std::path::PathBuf;

use anyhow::Result;
use bed::Bed;

use super::meter::ACCOUNT;
use crate::{House, Nacre, VELERO};

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
    pub async fn house(&self) -> Result<House> {
        match self {
            Self::Nacre => House::build_with_idle_velero().await,
            Self::Peer(_) => {
                let house = House::build_as_oadp_on(Bed::builder().with_idle_velero()).await?;
                // It ends at once if it may not read its configuration yet.
                let kinds = [("oadp.openshift.io", "dataprotectionapplications"), ("velero.io", "backups")];
                for (group, kind) in kinds {
                    house.bed.wait_allowed(ACCOUNT, VELERO, "list", group, kind).await?;
                }
                Ok(house)
            }
        }
    }

    /// Starts it, and waits for nothing.
    pub async fn launch(&self, house: &House) -> Result<Nacre> {
        let account = house.account().await?;
        match self {
            Self::Nacre => {
                house.forget_lease().await?;
                // As talkative as it is unless told otherwise.
                house.launch("nacre", VELERO, &account, &[("LOG_LEVEL", "4")])
            }
            Self::Peer(program) => house.launch_peer(program, &account),
        }
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn start(&self, house: &House) -> Result<Nacre> {
        let running = self.launch(house).await?;
        running.until_ready().await?;
        Ok(running)
    }
}

//! `kubectl nacre` as its users run it: the program alone, with a tenant's rights and nothing more, on a real cluster.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod admin;
mod completion;
mod doctor;
mod last_good;
mod person;
#[path = "../migration/program.rs"]
mod program;
mod released;
mod screen;
mod storage;
mod tenant;
mod terminal;

use anyhow::Result;
use bed::Bed;
use e2e::{House, Nacre};
use tokio::sync::OnceCell;

/// One policy for all stories of this program; each has a namespace of its own. Nothing in it is risky for everybody.
const POLICY: &str = "
storageLocations: { requireApproval: true, endpoints: { allow: ['127.0.0.1'] } }
overrides:
  - selector: { matchLabels: { kubernetes.io/metadata.name: strict } }
    backup: { ttl: { max: 48h }, enforce: { snapshotVolumes: false }, maxPerNamespace: 3 }
    downloads: { platformStorage: logs }
  - selector: { matchExpressions: [{ key: kubernetes.io/metadata.name, operator: In, values: [asks, begs, waits] }] }
    storageLocations: { requireApproval: true }
  - selector: { matchExpressions: [{ key: kubernetes.io/metadata.name, operator: In, values: [cellar, released, asks-not] }] }
    storageLocations: { requireApproval: false }
";

/// A cluster with Velero and nacre as an installation sets it up, webhook included, shared by the stories that need both.
async fn house() -> Result<&'static House> {
    Ok(&house_and_nacre().await?.0)
}

/// The same, with the controller that runs in it.
async fn house_and_nacre() -> Result<&'static (House, Nacre)> {
    static HOUSE: OnceCell<(House, Nacre)> = OnceCell::const_new();
    HOUSE
        .get_or_try_init(|| async {
            let house = House::build().await?;
            house.set_policy(POLICY).await?;
            house.admission().await?;
            let (nacre, _) = house.start_answering(&house.tenant("first", "first").await?, &[]).await?;
            anyhow::Ok((house, nacre))
        })
        .await
}

/// A cluster with nacre's definitions and nobody who acts on them, so that a story can say what happens when.
async fn stage() -> Result<&'static House> {
    static STAGE: OnceCell<House> = OnceCell::const_new();
    STAGE.get_or_try_init(|| async { House::build_on(Bed::builder()).await }).await
}

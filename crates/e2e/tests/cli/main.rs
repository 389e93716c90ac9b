//! `kubectl nacre` as its users run it: with a tenant's permissions only, on a real cluster.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod admin;
mod completion;
mod doctor;
mod last_good;
mod person;
mod preview;
#[path = "../live_migration/program.rs"]
mod program;
mod released;
mod replace;
mod schedules;
mod screen;
mod storage;
mod tenant;
mod terminal;
mod usage;

use anyhow::Result;
use bed::Bed;
use e2e::{Nacre, TestCluster};
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
  - selector: { matchExpressions: [{ key: kubernetes.io/metadata.name, operator: In, values: [preview, preview-update] }] }
    downloads: { platformStorage: all }
  - selector: { matchLabels: { kubernetes.io/metadata.name: preview-names } }
    downloads: { platformStorage: logs }
  - selector: { matchLabels: { kubernetes.io/metadata.name: timed } }
    schedules: { spread: 0 }
";

/// A cluster with Velero and nacre as an installation sets it up, webhook included, shared by the stories that need both.
async fn test_cluster() -> Result<&'static TestCluster> {
    Ok(&cluster_and_nacre().await?.0)
}

/// The same, with the controller that runs in it.
async fn cluster_and_nacre() -> Result<&'static (TestCluster, Nacre)> {
    static SHARED: OnceCell<(TestCluster, Nacre)> = OnceCell::const_new();
    SHARED
        .get_or_try_init(|| async {
            let test_cluster = TestCluster::build().await?;
            test_cluster.set_policy(POLICY).await?;
            test_cluster.admission().await?;
            test_cluster.record_requesters().await?;
            let (nacre, _) =
                test_cluster.start_answering(&test_cluster.tenant("first", "first").await?, &[]).await?;
            anyhow::Ok((test_cluster, nacre))
        })
        .await
}

/// A cluster with nacre's definitions and nobody who acts on them, so that a story can say what happens when.
async fn stage() -> Result<&'static TestCluster> {
    static STAGE: OnceCell<TestCluster> = OnceCell::const_new();
    STAGE.get_or_try_init(|| async { TestCluster::build_on(Bed::builder()).await }).await
}

//! A volume that one Velero has saved comes back through another, which is tenants' alone. On a node of its own. Part of
//! `make long`.

use anyhow::Result;
use e2e::{NodeCluster, VELERO};

const TENANTS: &str = "velero-tenants";
const BYTES: u64 = 8 << 20;

#[tokio::test]
async fn a_volume_comes_back_through_the_velero_that_its_backup_was_moved_to() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start().await?;
    let node = cluster.site.node()?;
    let shop = cluster.tenant("moved", "mona").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;
    shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;

    // As the help of `relocate` says.
    node.another_velero(TENANTS, &["--disable-informer-cache"]).await?;
    let scale_down = ["scale", "deployment", "non-admin-controller", "-n", VELERO, "--replicas=0"];
    node.kubectl(&scale_down).await?.ok()?;
    cluster.nacre_pods_ready(0).await?;
    cluster.cli(&["relocate", "--from", VELERO, "--to", TENANTS, "--yes"]).await?.with_code(0)?;
    let locations = ["delete", "backupstoragelocations.velero.io", "-n", VELERO, "-l"];
    node.kubectl(&[&locations[..], &["openshift.io/oadp-nabsl-origin-nacuuid"]].concat()).await?.ok()?;
    cluster.cli(&["uninstall", "-n", VELERO, "--yes"]).await?.with_code(0)?;
    let image = ["--image", &cluster.image, "--wait", "--timeout", "4m"];
    let install = ["install", "--velero-namespace", TENANTS, "--fence"];
    cluster.cli(&[&install[..], &image].concat()).await?.with_code(0)?;

    // Nobody else can have done it.
    node.kubectl(&["scale", "deployment", "velero", "-n", VELERO, "--replicas=0"]).await?.ok()?;
    node.kubectl(&["delete", "daemonset", "node-agent", "-n", VELERO]).await?.ok()?;
    shop.lose_namespace_contents().await?;
    shop.cli(&["restore", "create", "--from-backup", "daily", "--wait"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);
    Ok(())
}

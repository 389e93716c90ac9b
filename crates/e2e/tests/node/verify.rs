//! `kubectl nacre verify` on the node.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::cluster;

#[tokio::test]
async fn verify_backs_up_loses_and_restores_a_volume_and_says_what_is_wrong_where_it_cannot() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let page = cluster.cli(&["verify"]).await?.with_code(0)?;
    assert!(page.contains("the volume has the same bytes as before: sha256 "), "{page}");
    assert!(page.ends_with("nacre works here: a volume was backed up, lost and restored\n"), "{page}");

    let broken = ["verify", "--image", "localhost/missing:1", "--timeout", "15s", "-o", "json"];
    let report: serde_json::Value = serde_json::from_str(&cluster.cli(&broken).await?.with_code(1)?)?;
    assert_eq!(report["ok"], false);
    let failed = &report["steps"][1];
    assert_eq!(failed["ok"], false);
    let message = failed["message"].as_str().unwrap_or_default();
    assert!(message.contains("localhost/missing:1"), "it names the image: {report:#}");

    // Both cleaned up after themselves.
    let namespaces = Api::<Namespace>::all(cluster.site.client().await?);
    let left = namespaces.list(&ListParams::default()).await?.items;
    let left: Vec<_> =
        left.iter().map(Namespace::name_any).filter(|name| name.starts_with("nacre-verify-")).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

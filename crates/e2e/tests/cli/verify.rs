//! `verify` where nacre is not installed. The round itself, on a node: `tests/node/verify.rs`.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::{program::nacre, stage};

#[tokio::test(flavor = "multi_thread")]
async fn verify_creates_nothing_where_nacre_is_not_installed() -> Result<()> {
    let bed = &stage().await?.bed;
    let ended = nacre(&bed.kubeconfig(), &["verify", "-n", "elsewhere"]).await?;
    ensure!(ended.stderr.contains("nacre is not installed in namespace elsewhere"), "{ended:#?}");
    ended.with(1)?;
    let namespaces = Api::<Namespace>::all(bed.client().await?).list(&ListParams::default()).await?.items;
    ensure!(!namespaces.iter().any(|namespace| namespace.name_any().contains("verify")), "one was created");
    Ok(())
}

//! nacre may not list namespaces: requests report that, and go on by themselves once it may.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use api::{NonAdminBackup, condition};
use bed::eventually;
use e2e::{TestCluster, VELERO};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(3);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_says_that_nacre_may_not_see_its_namespace_and_heals() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    let bed = &test_cluster.bed;
    let roles = Api::<ClusterRole>::all(bed.client().await?);
    let given = roles.get("nacre").await?.rules.context("rules")?;
    let mut fewer = given.clone();
    for rule in &mut fewer {
        rule.resources.iter_mut().for_each(|names| names.retain(|name| name != "namespaces"));
    }
    fewer.retain(|rule| rule.resources.as_ref().is_none_or(|names| !names.is_empty()));
    let set = async |rules: &_| {
        let patch = Patch::Merge(json!({ "rules": rules }));
        roles.patch("nacre", &PatchParams::default(), &patch).await.map(|_| ())
    };
    set(&fewer).await?;
    let account = format!("system:serviceaccount:{VELERO}:non-admin-controller");
    eventually("nacre not to be allowed", TIMEOUT, async || {
        let allowed = bed.allowed(&account, "", "list", "", "namespaces").await?;
        if allowed { Err(anyhow!("it is allowed")) } else { Ok(()) }
    })
    .await?;

    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("daily").await?;
    let accepted = |backup: Option<&NonAdminBackup>| {
        let status = backup?.status.as_ref()?;
        let found = condition::get(&status.conditions, condition::ACCEPTED)?;
        Some((found.status.clone(), found.reason.clone(), found.message.clone()))
    };
    let (status, reason, message) = shop.wait("a word about it", "daily", accepted).await?;
    ensure!((&*status, &*reason) == ("False", condition::NAMESPACE_NOT_SEEN), "{status} {reason} {message}");
    ensure!(message.contains("namespace shop") && message.contains("list and watch namespaces"), "{message}");
    ensure!(nacre.details().await?.contains("namespaces is not seen"), "{}", nacre.details().await?);

    set(&given).await?;
    let allowed = |backup: Option<&NonAdminBackup>| accepted(backup).filter(|(status, ..)| status == "True");
    shop.wait("it to go on", "daily", allowed).await?;
    Ok(())
}

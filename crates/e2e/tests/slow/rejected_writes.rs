//! Writes that the API server rejects in Velero's namespace are reported on the location, and retried.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::BackupStorageLocation;
use api::{NonAdminBackupStorageLocation, Phase, condition};
use bed::eventually;
use e2e::{NACRE, TestCluster};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::location::{OPEN, says};

const TIMEOUT: Duration = Duration::from_mins(2);

/// Rejects new Secrets in Velero's namespace, by a quota. The bed has no quota controller, so its status is set by
/// hand.
async fn fill(test_cluster: &TestCluster) -> Result<()> {
    let quotas = test_cluster.admin::<ResourceQuota>().await?;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"secrets": "1"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    let used = Patch::Merge(json!({"status": {"hard": {"secrets": "1"}, "used": {"secrets": "1"}}}));
    quotas.patch_status("few", &PatchParams::default(), &used).await?;
    let secrets = test_cluster.admin::<k8s_openapi::api::core::v1::Secret>().await?;
    let probe: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(json!({"metadata": {"name": "probe"}}))?;
    eventually("the quota to hold", TIMEOUT, async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let taken = secrets.create(&dry, &probe).await;
        if taken.is_err_and(|error| error.to_string().contains("exceeded quota")) {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await
}

/// Rejects new locations in Velero's namespace.
async fn forbid(test_cluster: &TestCluster) -> Result<()> {
    test_cluster
        .bed
        .apply_yaml(
            "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: no-more }
spec:
  matchConstraints:
    resourceRules:
    - { apiGroups: [velero.io], apiVersions: ['*'], operations: [CREATE], resources: [backupstoragelocations] }
  validations: [{ expression: 'false', message: no more stores }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: no-more }
spec: { policyName: no-more, validationActions: [Deny] }
",
        )
        .await?;
    takes(test_cluster, false).await
}

/// Waits until the API server accepts locations in Velero's namespace, or rejects them: an admission policy takes
/// effect with a delay.
async fn takes(test_cluster: &TestCluster, some: bool) -> Result<()> {
    let storages = test_cluster.admin::<BackupStorageLocation>().await?;
    let probe: BackupStorageLocation = serde_json::from_value(json!({
        "apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": {"name": "probe"},
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}},
    }))?;
    eventually("the policy to be heard of", TIMEOUT, async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        if storages.create(&dry, &probe).await.is_ok() == some { Ok(()) } else { Err("not yet") }
    })
    .await
}

/// If nacre is not permitted to read tenants' Secrets, conditions and readiness report it, and nothing else breaks.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_nacre_may_not_read_is_told() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.set_policy(OPEN).await?;
    let roles = Api::<ClusterRole>::all(test_cluster.bed.client().await?);
    let role = roles.get("nacre").await?;
    let reads = |rule: &PolicyRule| rule.resources.iter().flatten().any(|resource| resource == "secrets");
    let rest: Vec<_> = role.rules.iter().flatten().filter(|rule| !reads(rule)).collect();
    let merge = |rules: Value| Patch::Merge(json!({"rules": rules}));
    roles.patch("nacre", &PatchParams::default(), &merge(json!(rest))).await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "first", "keys").await?;
    shop.location_is("it to be told", "bucket", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(status, condition::ACCEPTED, condition::BSL_SPEC_VALIDATION, "not allowed")
    })
    .await?;
    ensure!(nacre.details().await?.contains("get secrets"), "readiness names the missing permission");

    roles.patch("nacre", &PatchParams::default(), &merge(json!(role.rules))).await?;
    let created = |status: &api::NonAdminBackupStorageLocationStatus| status.phase == Some(Phase::Created);
    shop.location_is("the location to mend itself", "bucket", created).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_or_closed_namespace_of_the_administrators_shows_on_the_location() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.set_policy(OPEN).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    let created = |status: &api::NonAdminBackupStorageLocationStatus| status.phase == Some(Phase::Created);

    forbid(&test_cluster).await?;
    shop.bring_bucket("closed", "second", "keys").await?;
    shop.location_is("the policy to be told", "closed", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(status, condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR, "no more stores")
    })
    .await?;
    fill(&test_cluster).await?;
    shop.bring_bucket("full", "first", "keys").await?;
    let reported = shop
        .location_is("the quota to be told", "full", |status| {
            status.phase == Some(Phase::BackingOff)
                && says(status, condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED, "a quota")
        })
        .await?;
    ensure!(
        !format!("{reported:?}").contains("few"),
        "the administrators' quota is none of the tenant's business"
    );

    // Retried, and not reported again until it succeeds.
    let mark = test_cluster.bed.audit().mark().await?;
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(test_cluster.bed.client().await?);
    bindings.delete("no-more", &DeleteParams::default()).await?;
    takes(&test_cluster, true).await?;
    test_cluster.admin::<ResourceQuota>().await?.delete("few", &DeleteParams::default()).await?;
    for (name, type_) in [("full", condition::SECRET_SYNCED), ("closed", condition::LOCATION_SYNCED)] {
        let healed = shop.location_is("the location to mend itself", name, created).await?;
        ensure!(condition::is_true(&healed.conditions, type_), "{healed:?}");
    }
    let writes = test_cluster.bed.audit().since(mark).await?.by(NACRE).writes();
    let statuses = writes.only(|write| write.resource == "nonadminbackupstoragelocations/status");
    ensure!(statuses.len() == 2, "{:?}", writes.tally());
    for name in ["full", "closed"] {
        shop.delete::<NonAdminBackupStorageLocation>(name).await?;
        shop.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    Ok(())
}

//! What the API server does not take beside Velero is told on the location, and mends itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::BackupStorageLocation;
use api::{NonAdminBackupStorageLocation, Phase, condition};
use bed::eventually;
use e2e::{House, NACRE};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::location::{OPEN, says};

const PATIENCE: Duration = Duration::from_secs(30);

/// Takes no more Secrets beside Velero. Nobody counts on the bed, so the count is given.
async fn fill(house: &House) -> Result<()> {
    let quotas = house.admin::<ResourceQuota>().await?;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"secrets": "1"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    let used = Patch::Merge(json!({"status": {"hard": {"secrets": "1"}, "used": {"secrets": "1"}}}));
    quotas.patch_status("few", &PatchParams::default(), &used).await?;
    let secrets = house.admin::<k8s_openapi::api::core::v1::Secret>().await?;
    let probe: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(json!({"metadata": {"name": "probe"}}))?;
    eventually("the quota to hold", PATIENCE, async || {
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

/// Takes no more locations beside Velero.
async fn forbid(house: &House) -> Result<()> {
    house
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
    takes(house, false).await
}

/// Waits until the API server takes locations beside Velero, or takes none: it hears of a policy a moment later.
async fn takes(house: &House, some: bool) -> Result<()> {
    let storages = house.admin::<BackupStorageLocation>().await?;
    let probe: BackupStorageLocation = serde_json::from_value(json!({
        "apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": {"name": "probe"},
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}},
    }))?;
    eventually("the policy to be heard of", PATIENCE, async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        if storages.create(&dry, &probe).await.is_ok() == some { Ok(()) } else { Err("not yet") }
    })
    .await
}

/// Where an administrator keeps nacre from tenants' Secrets, tenants and administrators are told, and nothing else breaks.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_nacre_may_not_read_is_told() -> Result<()> {
    let house = House::build_with_idle_velero().await?;
    house.set_policy(OPEN).await?;
    let roles = Api::<ClusterRole>::all(house.bed.client().await?);
    let role = roles.get("nacre").await?;
    let reads = |rule: &PolicyRule| rule.resources.iter().flatten().any(|resource| resource == "secrets");
    let rest: Vec<_> = role.rules.iter().flatten().filter(|rule| !reads(rule)).collect();
    let merge = |rules: Value| Patch::Merge(json!({"rules": rules}));
    roles.patch("nacre", &PatchParams::default(), &merge(json!(rest))).await?;
    let nacre = house.start_nacre().await?;
    let shop = house.tenant("shop", "ada").await?;
    shop.keep_keys("keys", &house.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "first", "keys").await?;
    shop.location_is("it to be told", "bucket", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(status, condition::ACCEPTED, condition::BSL_SPEC_VALIDATION, "not allowed")
    })
    .await?;
    ensure!(nacre.details().await?.contains("get secrets"), "readiness tells the administrators");

    roles.patch("nacre", &PatchParams::default(), &merge(json!(role.rules))).await?;
    let created = |status: &api::NonAdminBackupStorageLocationStatus| status.phase == Some(Phase::Created);
    shop.location_is("the location to mend itself", "bucket", created).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_or_closed_namespace_of_the_administrators_shows_on_the_location() -> Result<()> {
    let house = House::build_with_idle_velero().await?;
    house.set_policy(OPEN).await?;
    let _nacre = house.start_nacre().await?;
    let shop = house.tenant("shop", "ada").await?;
    shop.keep_keys("keys", &house.bed.store()?.credentials()).await?;
    let created = |status: &api::NonAdminBackupStorageLocationStatus| status.phase == Some(Phase::Created);

    forbid(&house).await?;
    shop.bring_bucket("closed", "second", "keys").await?;
    shop.location_is("the policy to be told", "closed", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(status, condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR, "no more stores")
    })
    .await?;
    fill(&house).await?;
    shop.bring_bucket("full", "first", "keys").await?;
    let told = shop
        .location_is("the quota to be told", "full", |status| {
            status.phase == Some(Phase::BackingOff)
                && says(status, condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED, "a quota")
        })
        .await?;
    ensure!(
        !format!("{told:?}").contains("few"),
        "the administrators' quota is none of the tenant's business"
    );

    // Tried again now and then, and told no more until it has mended itself.
    let mark = house.bed.audit().mark().await?;
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(house.bed.client().await?);
    bindings.delete("no-more", &DeleteParams::default()).await?;
    takes(&house, true).await?;
    house.admin::<ResourceQuota>().await?.delete("few", &DeleteParams::default()).await?;
    for (name, type_) in [("full", condition::SECRET_SYNCED), ("closed", condition::LOCATION_SYNCED)] {
        let healed = shop.location_is("the location to mend itself", name, created).await?;
        ensure!(condition::is_true(&healed.conditions, type_), "{healed:?}");
    }
    let writes = house.bed.audit().since(mark).await?.by(NACRE).writes();
    let statuses = writes.only(|write| write.resource == "nonadminbackupstoragelocations/status");
    ensure!(statuses.len() == 2, "{:?}", writes.tally());
    for name in ["full", "closed"] {
        shop.delete::<NonAdminBackupStorageLocation>(name).await?;
        shop.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    Ok(())
}

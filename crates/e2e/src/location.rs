//! Helpers for tenants' own storage and its approval.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{
    NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminBackupStorageLocationStatus,
    condition,
};
use bed::wait_until;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::Resource;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{Tenant, TestCluster};

/// Velero looks at a location at once, but a busy machine may take its time.
const TIMEOUT: Duration = Duration::from_mins(2);

impl TestCluster {
    /// A kind in the administrators' namespace, with an administrator's rights.
    pub async fn admin<K>(&self) -> Result<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Ok(Api::namespaced(self.bed.client().await?, self.velero()))
    }

    /// What the administrators allow from now on.
    pub async fn set_policy(&self, yaml: &str) -> Result<()> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nacre-policy"}, "data": {"policy.yaml": yaml},
        });
        let params = PatchParams::apply("administrator").force();
        self.admin::<ConfigMap>().await?.patch("nacre-policy", &params, &Patch::Apply(map)).await?;
        Ok(())
    }

    /// Everything is handed over at once: where Velero stands still, nothing else would make room.
    pub async fn hand_over_at_once(&self) -> Result<()> {
        self.set_policy("queue: { inFlight: 0 }\n").await
    }

    /// The queue is as it is without a policy: Velero is given a few at a time.
    pub async fn queue_by_default(&self) -> Result<()> {
        self.set_policy("queue: {}\n").await
    }

    /// An administrator decides about a location: approve, reject or pending.
    pub async fn decide(&self, request: &str, decision: &str) -> Result<()> {
        let requests = self.admin::<NonAdminBackupStorageLocationRequest>().await?;
        let said = json!({"spec": {"approvalDecision": decision}});
        requests.patch(request, &PatchParams::default(), &Patch::Merge(said)).await?;
        Ok(())
    }

    /// Waits until an object is gone from the administrators' namespace.
    pub async fn gone_from_velero<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + 'static,
    {
        let what = format!("{} {name} to be gone", K::kind(&()));
        wait_until(&what, TIMEOUT, self.admin::<K>().await?, name, |object| object.is_none().then_some(()))
            .await
    }
}

impl Tenant<'_> {
    /// Puts a credential for the store into a Secret of the tenant's, or changes it.
    pub async fn keep_keys(&self, secret: &str, keys: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"cloud": keys},
        });
        let params = PatchParams::apply("tenant").force();
        self.api::<Secret>().patch(secret, &params, &Patch::Apply(body)).await?;
        Ok(())
    }

    /// Asks for a bucket of the bed's store as a location, with the keys in this Secret.
    pub async fn bring_bucket(
        &self,
        name: &str,
        bucket: &str,
        secret: &str,
    ) -> Result<NonAdminBackupStorageLocation> {
        self.bring_bucket_at(self.bed.store()?.url(), name, bucket, secret).await
    }

    /// The same with the store at another address.
    pub async fn bring_bucket_at(
        &self,
        url: &str,
        name: &str,
        bucket: &str,
        secret: &str,
    ) -> Result<NonAdminBackupStorageLocation> {
        self.bed.store()?.make_bucket(bucket)?;
        let spec = json!({
            "provider": "aws",
            "objectStorage": {"bucket": bucket},
            "config": {"region": bed::REGION, "s3ForcePathStyle": "true", "s3Url": url},
            "credential": {"name": secret, "key": "cloud"},
        });
        self.create(name, json!({"spec": {"backupStorageLocationSpec": spec}})).await
    }

    /// Waits until a location of the tenant's has such a status.
    pub async fn location_is(
        &self,
        what: &str,
        name: &str,
        is: impl Fn(&NonAdminBackupStorageLocationStatus) -> bool,
    ) -> Result<NonAdminBackupStorageLocationStatus> {
        self.wait(what, name, |location: Option<&NonAdminBackupStorageLocation>| {
            location?.status.clone().filter(|status| is(status))
        })
        .await
        .with_context(|| format!("location {}/{name}", self.namespace))
    }

    /// Waits until a location waits for an administrator, and returns the name of the request for approval.
    pub async fn approval_pending(&self, name: &str) -> Result<String> {
        let pending = self
            .location_is("approval to be waited for", name, |status| {
                condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED)
                    .is_some_and(|found| found.reason == condition::BSL_SPEC_APPROVAL_PENDING)
            })
            .await?;
        pending.velero_backup_storage_location.and_then(|velero| velero.name).context("a name")
    }

    /// Waits until Velero can reach a location.
    pub async fn location_available(&self, name: &str) -> Result<NonAdminBackupStorageLocationStatus> {
        self.location_is("the location to be available", name, |status| {
            let velero = status.velero_backup_storage_location.as_ref();
            let phase = velero.and_then(|velero| velero.status.as_ref()?.phase.as_deref());
            status.phase == Some(api::Phase::Created) && phase == Some("Available")
        })
        .await
    }
}

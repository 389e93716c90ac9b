//! The cluster all scenarios share: a victim with a finished backup, and attackers with a namespace each.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, DeleteBackupRequest, DownloadRequest, Restore};
use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, Phase, labels};
use bed::wait_until;
use e2e::{Nacre, Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// The bed's store is on this machine; everything else on it stays out of bounds.
const POLICY: &str = "
backup: { ttl: { min: 1h, max: 720h } }
storageLocations:
  maxPerNamespace: 3
  endpoints:
    allow: ['127.0.0.1', '*.amazonaws.com', '*.googleapis.com', '*.windows.net', '*.example.com']
overrides:
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-c7 } }
    storageLocations: { endpoints: { allow: [] } }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-h12 } }
    storageLocations: { endpoints: { allow: [] } }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-weak } }
    storageLocations:
      maxPerNamespace: 20
      allowInsecureSkipTLSVerify: true
      endpoints: { allow: ['127.0.0.3'] }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-f1 } }
    backup: { maxPerNamespace: 5, maxActivePerNamespace: 2 }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-c13 } }
    storageLocations: { requireApproval: true }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-c15 } }
    storageLocations: { providers: [aws] }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-a11 } }
    restore: { fromTenantStorage: { maxItems: 2 } }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-b2 } }
    backup: { hooks: forbid }
  - selector: { matchLabels: { kubernetes.io/metadata.name: attacker-e3-weak } }
    backup: { ttl: { min: 1s } }
";

/// How long nacre and Velero may take on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// The victim's namespace.
pub(crate) const VICTIM: &str = "victim";

pub(crate) struct AttackCluster {
    pub(crate) test_cluster: TestCluster,
    /// What Velero calls the victim's backup.
    pub(crate) loot: String,
    nacre: Nacre,
}

/// Of the admission policies only those that hold Velero itself. Nothing else in these scenarios is stopped at the door:
/// the controllers must not need that.
async fn fence(test_cluster: &TestCluster) -> Result<()> {
    let mut policies = bed::read_manifests(&e2e::deploy("admission.yaml"))?;
    policies.retain(|policy| policy.name_any().starts_with("nacre-tenant-"));
    ensure!(policies.len() == 4, "two policies and their bindings, not {}", policies.len());
    test_cluster.bed.apply(&policies).await?;
    test_cluster.until_policies_are_in_force().await
}

impl AttackCluster {
    /// A victim with a finished backup of a Secret, in the cluster's own storage.
    pub(crate) async fn prepare() -> Result<Self> {
        let test_cluster = TestCluster::build().await?;
        test_cluster.set_policy(POLICY).await?;
        fence(&test_cluster).await?;
        let nacre = test_cluster.start_nacre().await?;
        let victim = test_cluster.tenant(VICTIM, "vera").await?;
        victim.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
        victim.back_up("daily").await?;
        ensure!(victim.backup_ends("daily").await? == "Completed", "the victim's backup did not complete");
        let loot = victim.backup_starts("daily").await?;
        Ok(Self { test_cluster, loot, nacre })
    }

    /// Somebody with the `admin` role of a namespace made for this scenario.
    pub(crate) async fn attacker(&self, scenario: &str) -> Result<Tenant<'_>> {
        self.test_cluster.tenant(&format!("attacker-{scenario}"), &format!("mallory-{scenario}")).await
    }

    /// An attacker whose own bucket Velero can reach, as location `own`.
    pub(crate) async fn attacker_with_bucket(&self, scenario: &str) -> Result<Tenant<'_>> {
        let mallory = self.attacker(scenario).await?;
        mallory.keep_keys("keys", &self.test_cluster.bed.store()?.credentials()).await?;
        mallory.bring_bucket("own", &mallory.namespace, "keys").await?;
        mallory.location_available("own").await?;
        Ok(mallory)
    }

    /// Sends an object as it is, also one that no client of ours could make.
    pub(crate) async fn send(
        &self,
        tenant: &Tenant<'_>,
        kind: Kind,
        name: &str,
        body: Value,
    ) -> kube::Result<DynamicObject> {
        let mut object = body;
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name());
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(tenant.namespace);
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        self.requests(tenant, kind).await?.create(&PostParams::default(), &object).await
    }

    /// A kind in a tenant's namespace with the tenant's rights, whatever the objects look like.
    pub(crate) async fn requests(&self, tenant: &Tenant<'_>, kind: Kind) -> kube::Result<Api<DynamicObject>> {
        let client = self.test_cluster.bed.client_as(&tenant.user, &[]).await;
        let client = client.map_err(|error| kube::Error::Service(error.into()))?;
        Ok(Api::namespaced_with(client, &tenant.namespace, &kind.resource()))
    }

    /// A kind in Velero's namespace, as an administrator sees it.
    pub(crate) async fn requests_in_velero(&self, kind: Kind) -> Result<Api<DynamicObject>> {
        let client = self.test_cluster.bed.client().await?;
        Ok(Api::namespaced_with(client, VELERO, &kind.resource()))
    }

    /// Sends an object and returns the words with which it is refused, at once or in its status.
    pub(crate) async fn refused(
        &self,
        tenant: &Tenant<'_>,
        kind: Kind,
        name: &str,
        spec: Value,
    ) -> Result<String> {
        match self.send(tenant, kind, name, json!({ "spec": spec })).await {
            Err(kube::Error::Api(answer)) => return Ok(answer.message),
            sent => sent?,
        };
        let api = self.requests(tenant, kind).await?;
        wait_until("it to be refused", TIMEOUT, api, name, |object| {
            let conditions = object?.data["status"]["conditions"].as_array()?;
            let refused = |one: &&Value| one["type"] == "Accepted" && one["status"] == "False";
            conditions.iter().find(refused)?["message"].as_str().map(str::to_owned)
        })
        .await
    }

    /// Fails if anything in Velero's namespace was made for this tenant.
    pub(crate) async fn nothing_made_for(&self, tenant: &Tenant<'_>) -> Result<()> {
        let marks = [labels::NAB_NAMESPACE, labels::NAR_NAMESPACE, labels::NADR_NAMESPACE];
        let ours = |notes: &std::collections::BTreeMap<String, String>| {
            marks.iter().any(|mark| notes.get(*mark) == Some(&tenant.namespace))
        };
        let backups = self.test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await?;
        ensure!(!backups.iter().any(|backup| ours(backup.annotations())), "a Backup was made");
        let restores = self.test_cluster.admin::<Restore>().await?.list(&ListParams::default()).await?;
        ensure!(!restores.iter().any(|restore| ours(restore.annotations())), "a Restore was made");
        let downloads =
            self.test_cluster.admin::<DownloadRequest>().await?.list(&ListParams::default()).await?;
        ensure!(!downloads.iter().any(|download| ours(download.annotations())), "a DownloadRequest was made");
        Ok(())
    }

    /// Waits until a location is refused, at once or in its status, and returns the words; nothing of it is at Velero.
    pub(crate) async fn location_refused(
        &self,
        tenant: &Tenant<'_>,
        name: &str,
        spec: Value,
    ) -> Result<String> {
        let kind = Kind::NonAdminBackupStorageLocation;
        let spec = json!({ "backupStorageLocationSpec": spec });
        let words = self.refused(tenant, kind, name, spec).await?;
        if let Some(location) = tenant.api::<NonAdminBackupStorageLocation>().get_opt(name).await? {
            let uid = location.uid().context("a uid")?;
            let secrets = self.test_cluster.admin::<Secret>().await?.list(&ListParams::default()).await?;
            ensure!(!secrets.iter().any(|secret| secret.name_any().ends_with(&uid)), "its Secret was copied");
            let storages = self.test_cluster.admin::<api::velero::BackupStorageLocation>().await?;
            let storages = storages.list(&ListParams::default()).await?;
            ensure!(!storages.iter().any(|storage| storage.name_any().ends_with(&uid)), "Velero has it");
        }
        Ok(words)
    }

    /// Whatever was tried: nacre lives, the victim has its backup and nothing else, and Velero was asked for nothing
    /// about it.
    pub(crate) async fn unharmed(&self) -> Result<()> {
        ensure!(self.nacre.process.is_running(), "nacre is dead");
        self.nacre.ready().await?;
        ensure!(
            self.test_cluster.admin::<Backup>().await?.get_opt(&self.loot).await?.is_some(),
            "the backup is gone"
        );
        let deletions =
            self.test_cluster.admin::<DeleteBackupRequest>().await?.list(&ListParams::default()).await?;
        ensure!(!deletions.iter().any(|one| one.spec.backup_name == self.loot), "its deletion was asked for");
        let downloads =
            self.test_cluster.admin::<DownloadRequest>().await?.list(&ListParams::default()).await?;
        ensure!(!downloads.iter().any(|one| one.spec.target.name == self.loot), "a link to it was asked for");
        let restores = self.test_cluster.admin::<Restore>().await?.list(&ListParams::default()).await?;
        let from_loot = |restore: &Restore| restore.spec.backup_name.as_deref() == Some(self.loot.as_str());
        ensure!(!restores.iter().any(from_loot), "it was restored");
        let client = self.test_cluster.bed.client().await?;
        let requests = Api::<NonAdminBackup>::namespaced(client.clone(), VICTIM);
        let requests = requests.list(&ListParams::default()).await?.items;
        ensure!(requests.len() == 1, "the victim has {} requests", requests.len());
        let phase = requests[0].status.as_ref().and_then(|status| status.phase);
        ensure!(phase == Some(Phase::Created), "the victim's request is {phase:?}");
        let maps = Api::<ConfigMap>::namespaced(client, VICTIM).list(&ListParams::default()).await?;
        ensure!(
            maps.iter().all(|map| map.name_any() == "kube-root-ca.crt"),
            "the victim was given something"
        );
        Ok(())
    }

    /// Puts an object into Velero's namespace as an administrator.
    pub(crate) async fn administrators_config_map(&self, name: &str, labels: Value) -> Result<()> {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": VELERO, "labels": labels}, "data": {"rules.yaml": "version: v1"}});
        self.test_cluster.bed.apply(&[serde_json::from_value(map)?]).await
    }
}

//! A cluster with the fence, a tenant with a backup in a bucket of its own, and nacre down: what holds here holds by the
//! API server alone. The Restores are wide open, as if every filter of nacre's had failed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{RestoredFrom, restore_name};
use bed::{Builder, eventually, wait_until};
use e2e::{Tenant, TestCluster, VELERO, refused_by};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::forged::{genuine_backup, tenant_storage};
use crate::tarball::Tarball;

pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// The policies around what Velero does for tenants.
const FENCE: [&str; 7] = [
    "nacre-restored-objects",
    "nacre-restored-sources",
    "nacre-restored-pods",
    "nacre-restored-namespaces",
    "nacre-restored-accounts",
    "nacre-restored-volumes",
    "nacre-deleted-snapshots",
];

pub(crate) struct Fenced {
    pub(crate) cluster: TestCluster,
    pub(crate) client: Client,
    /// What Velero calls the backup in the tenant's bucket.
    pub(crate) backup: String,
    /// Where its contents are.
    pub(crate) contents: PathBuf,
    uid: String,
    restores: AtomicU32,
}

impl Fenced {
    /// Velero is started once these definitions are there, since it looks for kinds when it starts.
    pub(crate) async fn prepare(bed: Builder, definitions: &[&str]) -> Result<Self> {
        let cluster = TestCluster::build_on(bed).await?;
        for yaml in definitions {
            cluster.bed.apply_yaml(yaml).await?;
        }
        cluster.admission().await?;
        cluster.bed.velero_start().await?;
        let client = cluster.bed.client().await?;
        let nacre = cluster.start_nacre().await?;
        let shop = cluster.tenant("shop", "ada").await?;
        tenant_storage(&cluster, &shop).await?;
        shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
        let (backup, contents) = genuine_backup(&cluster, &shop).await?;
        shop.delete::<ConfigMap>("prices").await?;
        drop(nacre);
        let uid = Api::<Namespace>::all(client.clone()).get("shop").await?.uid().context("a uid")?;
        drop(shop);
        Ok(Self::on(cluster, backup, uid).await?.with_contents(contents))
    }

    /// A cluster of the story's own, with a backup and the tenant's namespace, by its uid.
    pub(crate) async fn on(cluster: TestCluster, backup: String, uid: String) -> Result<Self> {
        let client = cluster.bed.client().await?;
        Ok(Self { cluster, client, backup, contents: PathBuf::new(), uid, restores: AtomicU32::new(0) })
    }

    /// The same, with the place of the backup's contents.
    pub(crate) fn with_contents(self, contents: PathBuf) -> Self {
        Self { contents, ..self }
    }

    /// Changes what is in the bucket, as its owner can.
    pub(crate) fn forge(&self, forge: impl FnOnce(&Tarball) -> Result<()>) -> Result<()> {
        let tarball = Tarball::open(&self.contents)?;
        forge(&tarball)?;
        tarball.save()
    }

    /// The tenant, to make room for another restore.
    pub(crate) async fn shop(&self) -> Result<Tenant<'_>> {
        self.cluster.tenant("shop", "ada").await
    }

    /// The name of the next Restore of the tenant's.
    fn next(&self, from: RestoredFrom) -> String {
        self.numbered(from, self.restores.fetch_add(1, Ordering::Relaxed))
    }

    /// The same, before it is made.
    pub(crate) fn upcoming(&self, from: RestoredFrom) -> String {
        self.numbered(from, self.restores.load(Ordering::Relaxed))
    }

    fn numbered(&self, from: RestoredFrom, number: u32) -> String {
        let uid = format!("00000000-0000-4000-8000-{number:012}");
        restore_name(from, ("shop", &self.uid), (&format!("back-{number}"), &uid))
    }

    /// Velero restores everything in a backup for the tenant, with no filter at all. Returns the phase it ended in.
    pub(crate) async fn restore(&self, from: RestoredFrom, backup: &str) -> Result<String> {
        let name = self.next(from);
        let spec =
            json!({"backupName": backup, "includedNamespaces": ["*"], "includeClusterResources": true});
        // Only nacre may give such a name.
        let nacre = self.cluster.bed.service_account_client(VELERO, "non-admin-controller").await?;
        self.run(nacre, &name, json!({"openshift.io/oadp-nar-origin-nacuuid": name}), spec).await
    }

    /// Velero restores a backup for the tenant as this spec says. Returns the Restore once it has ended; none if Velero
    /// does not end it within the time.
    pub(crate) async fn attempt(
        &self,
        from: RestoredFrom,
        spec: Value,
        within: Duration,
    ) -> Result<Option<DynamicObject>> {
        let name = self.next(from);
        let nacre = self.cluster.bed.service_account_client(VELERO, "non-admin-controller").await?;
        let labels = json!({"openshift.io/oadp-nar-origin-nacuuid": name});
        let restores = self.submit(nacre, &name, labels, spec).await?;
        let ended = wait_until("the restore to end", within, restores, &name, |restore| {
            let status = &restore?.data["status"];
            let over = status["completionTimestamp"].is_string() || status["phase"] == "FailedValidation";
            restore.filter(|_| over).cloned()
        });
        Ok(ended.await.ok())
    }

    /// The same by an administrator.
    pub(crate) async fn restore_as_administrator(&self, name: &str, spec: Value) -> Result<String> {
        self.run(self.client.clone(), name, json!({}), spec).await
    }

    async fn run(&self, client: Client, name: &str, labels: Value, spec: Value) -> Result<String> {
        let restores = self.submit(client, name, labels, spec).await?;
        wait_until("the restore to end", TIMEOUT, restores, name, |restore| {
            let status = &restore?.data["status"];
            status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
        })
        .await
    }

    async fn submit(
        &self,
        client: Client,
        name: &str,
        labels: Value,
        spec: Value,
    ) -> Result<Api<DynamicObject>> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", "v1", "Restore"));
        let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
            "metadata": {"name": name, "namespace": VELERO, "labels": labels}, "spec": spec});
        let restores = Api::<DynamicObject>::namespaced_with(client, VELERO, &kind);
        restores.create(&PostParams::default(), &serde_json::from_value(restore)?).await?;
        Ok(restores)
    }

    /// Whether an object is there.
    pub(crate) async fn has(
        &self,
        (group, version, kind): (&str, &str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<bool> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        Ok(api.get_opt(name).await?.is_some())
    }

    /// The planted weakness: the fence is taken away, and everything else stays.
    pub(crate) async fn take_the_fence_away(&self) -> Result<()> {
        let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(self.client.clone());
        // The one that is probed goes last: the API server hears of them in this order.
        for name in FENCE.iter().rev() {
            bindings.delete(name, &DeleteParams::default()).await?;
        }
        eventually("the fence to be gone", TIMEOUT, async || self.probe().await.map(drop)).await
    }

    /// The same around what Velero imports from tenants' storage.
    pub(crate) async fn take_imports_fence_away(&self) -> Result<()> {
        let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(self.client.clone());
        // The one that is probed goes last.
        for name in ["nacre-tenant-volumes", "nacre-tenant-backups"] {
            bindings.delete(name, &DeleteParams::default()).await?;
        }
        let velero = self.cluster.bed.service_account_client(VELERO, "velero").await?;
        let backups = Api::<DynamicObject>::namespaced_with(velero, VELERO, &api::Kind::Backup.resource());
        let mut probe = backups.get(&self.backup).await?;
        probe.metadata = serde_json::from_value(json!({"name": "probe"}))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the fence to be gone", TIMEOUT, async || backups.create(&dry, &probe).await.map(drop))
            .await
    }

    /// Waits until the fence is in force, and fails if it never is.
    pub(crate) async fn fence_is_there(&self) -> Result<()> {
        eventually("the fence to be in force", TIMEOUT, async || {
            refused_by("nacre-restored-objects", self.probe().await)
        })
        .await
    }

    /// What Velero would create outside the tenant's namespace, without creating it.
    async fn probe(&self) -> kube::Result<ConfigMap> {
        let velero = self.cluster.bed.service_account_client(VELERO, "velero").await;
        let velero = velero.map_err(|error| kube::Error::Service(error.into()))?;
        let label = restore_name(RestoredFrom::TenantStorage, ("shop", &self.uid), ("probe", &self.uid));
        let probe = json!({"metadata": {"name": "probe", "labels": {"velero.io/restore-name": label}}});
        let probe = serde_json::from_value(probe).map_err(kube::Error::SerdeError)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Api::<ConfigMap>::namespaced(velero, "default").create(&dry, &probe).await
    }
}

/// Fails unless the phase is one in which Velero reports that something was refused.
pub(crate) fn reported(phase: &str) -> Result<()> {
    ensure!(phase == "PartiallyFailed", "Velero says nothing of what was refused: {phase}");
    Ok(())
}

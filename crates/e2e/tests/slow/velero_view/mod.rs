//! Velero's own CLI, unmodified, used by a tenant.

mod off;
mod tenant;

use std::path::PathBuf;

use anyhow::{Context, Result};
use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore,
};
use api::{NonAdminBackup, NonAdminRestore, labels};
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Whoever runs Velero's command line in a namespace: a ServiceAccount with the `admin` role there.
struct Hands<'a> {
    test_cluster: &'a TestCluster,
    namespace: String,
    kubeconfig: PathBuf,
}

impl<'a> Hands<'a> {
    async fn new(test_cluster: &'a TestCluster, namespace: &str) -> Result<Self> {
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hands", "namespace": namespace}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "hands", "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                "subjects": [{"kind": "ServiceAccount", "name": "hands", "namespace": namespace}],
            }),
        ];
        let objects = objects.into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
        test_cluster.bed.apply(&objects).await?;
        let user = format!("system:serviceaccount:{namespace}:hands");
        test_cluster.bed.wait_allowed(&user, namespace, "create", "velero.io", "downloadrequests").await?;
        let kubeconfig = test_cluster.bed.service_account_kubeconfig(namespace, "hands").await?;
        Ok(Self { test_cluster, namespace: namespace.to_owned(), kubeconfig })
    }

    /// Runs `velero -n <namespace> ...`.
    async fn velero(&self, args: &[&str]) -> Result<bed::Output> {
        let args = [&["-n", &self.namespace], args].concat();
        self.test_cluster.bed.velero_cli_with(&self.kubeconfig, &args).await
    }

    /// The same, which must go well.
    async fn sees(&self, args: &[&str]) -> Result<String> {
        self.velero(args).await?.ok()
    }
}

async fn label(test_cluster: &TestCluster, namespace: &str, value: Value) -> Result<()> {
    let spaces = Api::<Namespace>::all(test_cluster.bed.client().await?);
    let label = json!({"metadata": {"labels": {labels::VELERO_VIEW: value}}});
    spaces.patch(namespace, &PatchParams::default(), &Patch::Merge(label)).await?;
    Ok(())
}

/// The name under which Velero has a backup.
async fn velero_backup(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let backup = tenant.api::<NonAdminBackup>().get(name).await?;
    backup.status.and_then(|status| status.velero_backup?.name).context("a reference")
}

/// The name under which Velero has a restore.
async fn velero_restore(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let restore = tenant.api::<NonAdminRestore>().get(name).await?;
    restore.status.and_then(|status| status.velero_restore?.name).context("a reference")
}

/// Everything of Velero's kinds in a namespace, as one text and as the number of objects.
async fn everything(test_cluster: &TestCluster, namespace: &str) -> Result<(String, usize)> {
    async fn all<K>(client: &Client, namespace: &str) -> Result<Vec<Value>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let list = Api::<K>::namespaced(client.clone(), namespace).list(&ListParams::default()).await?;
        Ok(list.items.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }
    let client = test_cluster.bed.client().await?;
    let kinds = [
        all::<Backup>(&client, namespace).await?,
        all::<Restore>(&client, namespace).await?,
        all::<BackupStorageLocation>(&client, namespace).await?,
        all::<DeleteBackupRequest>(&client, namespace).await?,
        all::<PodVolumeBackup>(&client, namespace).await?,
        all::<PodVolumeRestore>(&client, namespace).await?,
        all::<DataUpload>(&client, namespace).await?,
        all::<DataDownload>(&client, namespace).await?,
        all::<DownloadRequest>(&client, namespace).await?,
    ];
    let objects = kinds.concat();
    Ok((serde_json::to_string(&objects)?, objects.len()))
}

//! A tenant's days: two backups, a restore, one backup deleted with its data, the restore deleted. Velero is played by
//! hand, so that it is as fast as the API server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::{Backup, DeleteBackupRequest, Restore};
use api::{NonAdminBackup, NonAdminRestore, Phase};
use bed::eventually;
use e2e::{Tenant, TestCluster, VELERO};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Retries wait longer and longer, and the machine is busy.
const TIMEOUT: Duration = Duration::from_mins(2);

/// What is left: each object by kind and name, with what matters of it.
pub(crate) type End = BTreeMap<String, Value>;

/// Runs the story in a namespace of its own and returns what is left. In the middle something else may happen.
pub(crate) async fn run(
    test_cluster: &TestCluster,
    namespace: &str,
    in_the_middle: impl AsyncFnOnce() -> Result<()>,
) -> Result<End> {
    let tenant = test_cluster.tenant(namespace, "ada").await?;
    let velero = Velero { test_cluster, namespace };
    tenant.back_up("kept").await?;
    tenant.back_up("dropped").await?;
    for name in ["kept", "dropped"] {
        created(&tenant, name).await?;
        let backup = velero.made_for::<Backup>("nab", name).await?;
        velero.ends::<Backup>(&backup).await?;
        ensure!(tenant.backup_ends(name).await? == "Completed");
    }
    tenant.restore("again", "kept").await?;
    in_the_middle().await?;
    let restore = velero.made_for::<Restore>("nar", "again").await?;
    velero.ends::<Restore>(&restore).await?;
    ensure!(tenant.restore_ends("again").await? == "Completed");

    let dropped = velero.made_for::<Backup>("nab", "dropped").await?;
    tenant.edit::<NonAdminBackup>("dropped", json!({"spec": {"deleteBackup": true}})).await?;
    velero.deletes(&dropped).await?;
    tenant.gone::<NonAdminBackup>("dropped").await?;
    tenant.delete::<NonAdminRestore>("again").await?;
    tenant.gone::<NonAdminRestore>("again").await?;

    // What is left must be so, and stay so.
    eventually("everything of the restore to be gone", TIMEOUT, async || {
        let left = velero.all::<Restore>("nar").await.map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await?;
    end(&tenant, &velero).await
}

async fn created(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    tenant
        .wait("it to be Created", name, |backup: Option<&NonAdminBackup>| {
            (backup?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
        })
        .await
}

async fn end(tenant: &Tenant<'_>, velero: &Velero<'_>) -> Result<End> {
    let mut end = End::new();
    for backup in tenant.api::<NonAdminBackup>().list(&ListParams::default()).await? {
        let status = serde_json::to_value(&backup.status)?;
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let said: Vec<_> =
            conditions.iter().map(|one| json!([one["type"], one["status"], one["reason"]])).collect();
        let shown = json!({
            "phase": status["phase"], "conditions": said, "velero": status["veleroBackup"]["status"]["phase"],
            "position": status["queueInfo"], "finalizers": backup.metadata.finalizers,
        });
        end.insert(format!("nab {}", backup.metadata.name.unwrap_or_default()), shown);
    }
    for restore in tenant.api::<NonAdminRestore>().list(&ListParams::default()).await? {
        end.insert(format!("nar {}", restore.metadata.name.unwrap_or_default()), Value::Null);
    }
    let backups = velero.all::<Backup>("nab").await?;
    // Of a Backup that is gone, nacre may have heard first that the request to delete it is: it asks once more, in vain,
    // and the garbage collector takes that.
    for (name, _) in velero.all::<DeleteBackupRequest>("nab").await? {
        if backups.iter().any(|(kept, _)| *kept == name) {
            end.insert(format!("delete {name}"), Value::Null);
        }
    }
    for (name, _) in backups {
        end.insert(format!("backup {name}"), Value::Null);
    }
    Ok(end)
}

/// Velero, as far as one tenant is concerned.
struct Velero<'a> {
    test_cluster: &'a TestCluster,
    namespace: &'a str,
}

impl Velero<'_> {
    async fn api<K>(&self) -> Result<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Ok(Api::namespaced(self.test_cluster.bed.client().await?, VELERO))
    }

    /// What was made for requests of this tenant: the request's name and the object's.
    async fn all<K>(&self, of: &str) -> Result<Vec<(String, String)>>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let marks = ["namespace", "name"].map(|part| format!("openshift.io/oadp-{of}-origin-{part}"));
        let all = self.api::<K>().await?.list(&ListParams::default()).await?.items.into_iter();
        let own = all.filter_map(|object| {
            let annotations = object.meta().annotations.as_ref()?;
            (annotations.get(&marks[0])? == self.namespace)
                .then(|| Some((annotations.get(&marks[1])?.clone(), object.meta().name.clone()?)))?
        });
        Ok(own.collect())
    }

    /// The one object that was made for a request.
    async fn made_for<K>(&self, of: &str, request: &str) -> Result<String>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let found = eventually("Velero to be given it", TIMEOUT, async || {
            let mut all = self.all::<K>(of).await.map_err(|error| error.to_string())?;
            all.retain(|(name, _)| name == request);
            if all.is_empty() { Err("nothing yet".to_owned()) } else { Ok(all) }
        })
        .await?;
        ensure!(found.len() == 1, "{request} was made twice: {found:?}");
        Ok(found[0].1.clone())
    }

    async fn ends<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let now = "2026-01-01T00:00:00Z";
        // Velero writes down where it keeps a Backup when it takes it up.
        let kept = if K::kind(&()) == "Backup" { json!({"storageLocation": "default"}) } else { json!({}) };
        for status in [
            json!({"phase": "InProgress", "startTimestamp": now}),
            json!({"phase": "Completed", "completionTimestamp": now}),
        ] {
            let change = Patch::Merge(json!({"spec": kept, "status": status}));
            self.api::<K>().await?.patch(name, &PatchParams::default(), &change).await?;
        }
        Ok(())
    }

    /// Deletes a Backup when it is asked to, and every request for that.
    async fn deletes(&self, backup: &str) -> Result<()> {
        let requests = self.api::<DeleteBackupRequest>().await?;
        let named = async || -> Result<Vec<String>> {
            let all = requests.list(&ListParams::default()).await?.items.into_iter();
            Ok(all.filter(|one| one.spec.backup_name == backup).filter_map(|one| one.metadata.name).collect())
        };
        eventually("Velero to be asked to delete it", TIMEOUT, async || {
            let all = named().await.map_err(|error| error.to_string())?;
            if all.is_empty() { Err("nobody asks".to_owned()) } else { Ok(()) }
        })
        .await?;
        self.api::<Backup>().await?.delete(backup, &DeleteParams::default()).await?;
        for name in named().await? {
            requests.delete(&name, &DeleteParams::default()).await?;
        }
        Ok(())
    }
}

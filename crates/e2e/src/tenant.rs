//! A tenant: a user who owns a namespace and nothing else.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use api::{NonAdminBackup, NonAdminRestore, Phase, condition};
use bed::{Bed, wait_until};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long real Velero may take on a busy machine. Where several backups end at once it can overlook one that waits,
/// and looks again a minute later.
const TIMEOUT: Duration = Duration::from_mins(3);

/// A tenant: a user who owns a namespace and nothing else.
pub struct Tenant<'a> {
    /// The cluster.
    pub bed: &'a Bed,
    /// The namespace.
    pub namespace: String,
    /// The user.
    pub user: String,
    client: Client,
}

impl<'a> Tenant<'a> {
    pub(crate) async fn new(bed: &'a Bed, namespace: &str, user: &str) -> Result<Self> {
        let client = bed.client_as(user, &[]).await?;
        Ok(Self { bed, namespace: namespace.to_owned(), user: user.to_owned(), client })
    }

    /// A kind, in the tenant's namespace, with the tenant's rights.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The same in somebody else's namespace, with the tenant's rights.
    pub fn api_in<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes an object of the tenant's.
    pub async fn create<K>(&self, name: &str, body: Value) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let mut body = body;
        body["apiVersion"] = json!(K::api_version(&()));
        body["kind"] = json!(K::kind(&()));
        body["metadata"]["name"] = json!(name);
        Ok(self.api::<K>().create(&PostParams::default(), &serde_json::from_value(body)?).await?)
    }

    /// Asks for a backup of everything.
    pub async fn back_up(&self, name: &str) -> Result<NonAdminBackup> {
        self.create(name, json!({"spec": {"backupSpec": {}}})).await
    }

    /// Asks for a restore.
    pub async fn restore(&self, name: &str, backup: &str) -> Result<NonAdminRestore> {
        self.create(name, json!({"spec": {"restoreSpec": {"backupName": backup}}})).await
    }

    /// Merges a change into an object of the tenant's.
    pub async fn edit<K>(&self, name: &str, change: Value) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        Ok(self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(change)).await?)
    }

    /// Deletes an object of the tenant's.
    pub async fn delete<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until an object of the tenant's looks as it should; `None` means that it is not there.
    pub async fn wait<K, T>(
        &self,
        what: &str,
        name: &str,
        looks: impl FnMut(Option<&K>) -> Option<T>,
    ) -> Result<T>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + 'static,
    {
        wait_until(what, TIMEOUT, self.api::<K>(), name, looks).await
    }

    /// Waits until Velero has been given a backup, and returns what Velero calls it.
    pub async fn backup_starts(&self, name: &str) -> Result<String> {
        self.wait("the backup to be handed over", name, |backup: Option<&NonAdminBackup>| {
            let status = backup?.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
            status.velero_backup.as_ref()?.name.clone()
        })
        .await
    }

    /// Waits until Velero has ended a backup, and returns how.
    pub async fn backup_ends(&self, name: &str) -> Result<String> {
        self.wait("the backup to end", name, |backup: Option<&NonAdminBackup>| {
            let velero = backup?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
            velero.completion_timestamp.as_ref().and_then(|_| velero.phase.clone())
        })
        .await
    }

    /// Waits until Velero has ended a restore, and returns how.
    pub async fn restore_ends(&self, name: &str) -> Result<String> {
        self.wait("the restore to end", name, |restore: Option<&NonAdminRestore>| {
            let velero = restore?.status.as_ref()?.velero_restore.as_ref()?.status.as_ref()?;
            velero.completion_timestamp.as_ref().and_then(|_| velero.phase.clone())
        })
        .await
    }

    /// Waits until a restore is refused, and returns why.
    pub async fn restore_refused(&self, name: &str) -> Result<String> {
        self.wait("the restore to be refused", name, |restore: Option<&NonAdminRestore>| {
            let accepted = condition::get(&restore?.status.as_ref()?.conditions, condition::ACCEPTED)?;
            (accepted.status == "False").then(|| accepted.message.clone())
        })
        .await
    }

    /// Waits until a request is gone.
    pub async fn gone<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + 'static,
    {
        self.wait("it to be gone", name, |object: Option<&K>| object.is_none().then_some(())).await
    }
}

//! The kinds of the load: backups and restores. The only file that distinguishes them.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use api::velero::{Backup, Restore};
use api::{NonAdminBackup, NonAdminRestore, Phase, labels};
use bed::{Bed, wait_until};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{TestCluster, VELERO};

/// How many tenants there are.
pub const NAMESPACES: usize = 20;

/// A kind that tenants ask with.
pub trait LoadKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
    /// Velero's kind for it.
    type Velero: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize;
    /// Where Velero's object names the request: its namespace and its name.
    const ORIGIN: [&str; 2];
    /// Where Velero counts what is done.
    const ITEMS: &str;
    /// Where the status shows what became of Velero's object.
    const SHOWN: &str;

    /// What is asked for; of restores, from a backup that is in the same namespace.
    fn spec(number: usize) -> Value;
    /// What Velero's object is called, once nacre has handed it over.
    fn created_as(&self) -> Option<String>;
    /// What is shown of Velero's status.
    fn velero(&self) -> Value;
    /// The shown place in the queue.
    fn position(&self) -> Option<i64>;

    /// The object a tenant creates.
    fn request(name: &str, number: usize) -> Result<Self> {
        let body = json!({"apiVersion": Self::api_version(&()), "kind": Self::kind(&()),
            "metadata": {"name": name}, "spec": Self::spec(number)});
        Ok(serde_json::from_value(body)?)
    }
}

impl LoadKind for NonAdminBackup {
    type Velero = Backup;
    const ORIGIN: [&str; 2] = [labels::NAB_NAMESPACE, labels::NAB_NAME];
    const ITEMS: &str = "itemsBackedUp";
    const SHOWN: &str = "veleroBackup";

    fn spec(_: usize) -> Value {
        json!({"backupSpec": {"ttl": "24h"}})
    }

    fn created_as(&self) -> Option<String> {
        let status = self.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
        status.velero_backup.as_ref()?.name.clone()
    }

    fn velero(&self) -> Value {
        let shown = self.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        json!(shown)
    }

    fn position(&self) -> Option<i64> {
        Some(self.status.as_ref()?.queue_info.as_ref()?.estimated_queue_position)
    }
}

impl LoadKind for NonAdminRestore {
    type Velero = Restore;
    const ORIGIN: [&str; 2] = [labels::NAR_NAMESPACE, labels::NAR_NAME];
    const ITEMS: &str = "itemsRestored";
    const SHOWN: &str = "veleroRestore";

    fn spec(number: usize) -> Value {
        json!({"restoreSpec": {"backupName": numbered(number % NAMESPACES)}})
    }

    fn created_as(&self) -> Option<String> {
        let status = self.status.as_ref().filter(|status| status.phase == Some(Phase::Created))?;
        status.velero_restore.as_ref()?.name.clone()
    }

    fn velero(&self) -> Value {
        let shown = self.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
        json!(shown)
    }

    fn position(&self) -> Option<i64> {
        Some(self.status.as_ref()?.queue_info.as_ref()?.estimated_queue_position)
    }
}

/// What nacre writes for one request, so that the bare client writes the same.
pub struct Sample {
    /// Velero's object, without a name.
    pub velero: Value,
    /// The status of the request.
    pub status: Value,
}

/// What the sample is called; what a load asks for is called otherwise.
pub const SAMPLE: &str = "sample";

/// Asks for one, and takes what becomes of it as a sample.
pub async fn sample<K: LoadKind + Send + 'static>(bed: &Bed) -> Result<Sample> {
    let requests = Api::<K>::namespaced(bed.client().await?, &namespace(SHOPS, 0));
    requests.create(&PostParams::default(), &K::request(SAMPLE, 0)?).await?;
    let created = |request: Option<&K>| Some((request?.created_as()?, request?.clone()));
    let within = Duration::from_secs(30);
    let (name, request) = wait_until("the sample to be created", within, requests, SAMPLE, created).await?;
    let objects = Api::<K::Velero>::namespaced(bed.client().await?, VELERO);
    let made = serde_json::to_value(objects.get(&name).await?)?;
    let metadata =
        json!({"labels": made["metadata"]["labels"], "annotations": made["metadata"]["annotations"]});
    let velero = json!({"apiVersion": K::Velero::api_version(&()), "kind": K::Velero::kind(&()),
        "metadata": metadata, "spec": made["spec"]});
    Ok(Sample { velero, status: serde_json::to_value(request)?["status"].clone() })
}

/// The tenants that are under load.
pub const SHOPS: &str = "shop";

/// The namespace that is this one's turn.
pub fn namespace(series: &str, number: usize) -> String {
    format!("{series}-{}", number % NAMESPACES)
}

/// Makes a series of namespaces.
pub async fn make_namespaces(bed: &Bed, series: &str) -> Result<()> {
    for number in 0..NAMESPACES {
        bed.namespace(&namespace(series, number)).await?;
    }
    Ok(())
}

/// Plays Velero by hand: merges this into the status of one of its objects.
pub async fn velero_says<V>(objects: &Api<V>, name: &str, status: Value) -> Result<()>
where
    V: Resource + Clone + Debug + DeserializeOwned,
{
    let change = Patch::Merge(json!({ "status": status }));
    objects.patch(name, &PatchParams::default(), &change).await?;
    Ok(())
}

/// A finished backup in every namespace, for restores; Velero is played.
pub async fn finished_backups(test_cluster: &TestCluster, within: Duration) -> Result<()> {
    let client = test_cluster.bed.client().await?;
    let objects = test_cluster.admin::<Backup>().await?;
    for number in 0..NAMESPACES {
        let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace(SHOPS, number));
        let name = numbered(number);
        requests.create(&PostParams::default(), &NonAdminBackup::request(&name, number)?).await?;
        let created = |request: Option<&NonAdminBackup>| request?.created_as();
        let velero = wait_until("the backup to be created", within, requests, &name, created).await?;
        velero_says(&objects, &velero, done()).await?;
    }
    Ok(())
}

/// How Velero says that it is done.
pub fn done() -> Value {
    // Now, in whole seconds: what ended long ago is labelled once more, which is not what a load measures.
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap_or_default();
    json!({"phase": "Completed", "startTimestamp": now, "completionTimestamp": now})
}

/// What a load calls its requests.
pub fn numbered(number: usize) -> String {
    format!("b{number}")
}

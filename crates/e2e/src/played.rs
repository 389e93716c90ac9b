//! A replacement in place of which a story plays nacre and Velero, so that each step can be looked at.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore};
use bed::eventually;
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use crate::Tenant;

const TIMEOUT: Duration = Duration::from_mins(2);

/// Writes a status, as nacre would.
pub async fn play<K>(tenant: &Tenant<'_>, name: &str, status: Value) -> Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api = Api::<K>::namespaced(tenant.bed.client().await?, &tenant.namespace);
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
    Ok(())
}

/// One condition.
pub fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": reason, "message": format!("because {reason}"),
        "lastTransitionTime": "2026-11-16T11:50:00Z"}])
}

/// A backup that is over, and holds the data of every claim.
pub fn complete(phase: &str, protected: &str) -> Value {
    let now = Timestamp::now();
    let reason = if protected == "True" { "AllClaimsSaved" } else { "ClaimsNotSaved" };
    json!({"phase": "Created", "conditions": condition("DataProtected", protected, reason),
        "veleroBackup": {"name": "v", "status": {"phase": phase, "progress": {"totalItems": 3, "itemsBackedUp": 3},
            "startTimestamp": now + SignedDuration::from_mins(1), "completionTimestamp": now,
            "expiration": now + SignedDuration::from_hours(700)}}})
}

/// Refuses every download, as the default policy does.
pub async fn refuse_downloads(client: kube::Client, namespace: String) {
    let requests = Api::<NonAdminDownloadRequest>::namespaced(client, &namespace);
    let events = watcher(requests.clone(), watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Ok(request) = event else { continue };
        if request.status.is_none() {
            let status = json!({"phase": "BackingOff",
                "conditions": condition("NonAdminBackupStorageLocationNotUsed", "True", "Error")});
            let name = request.metadata.name.unwrap_or_default();
            // The program may have given up.
            let _ = requests
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
                .await;
        }
    }
}

/// A claim, a Deployment and a pod of it that use it, and a good backup.
pub async fn shop(tenant: &Tenant<'_>, more: &Value) -> Result<()> {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    tenant.create::<PersistentVolumeClaim>("files", claim).await?;
    let spec = json!({"containers": [{"name": "c", "image": "x"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    let mut web =
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    web["metadata"] = more["metadata"].clone();
    let web: Deployment = tenant.create("web", web).await?;
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.metadata.uid, "controller": true}]);
    tenant.create::<Pod>("web-a", json!({"metadata": {"ownerReferences": owner}, "spec": spec})).await?;
    tenant.back_up("good").await?;
    play::<NonAdminBackup>(tenant, "good", complete("Completed", "True")).await
}

/// Waits for the safety backup, and returns its name.
pub async fn safety_backup(tenant: &Tenant<'_>) -> Result<String> {
    eventually("the safety backup", TIMEOUT, async || {
        let backups = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?;
        let names: Vec<String> =
            backups.items.into_iter().filter_map(|backup| backup.metadata.name).collect();
        let name = names.iter().find(|name| name.starts_with("before-good-"));
        name.cloned().with_context(|| format!("only {names:?}"))
    })
    .await
}

/// Waits for the restore, and returns its name.
pub async fn restore_of(tenant: &Tenant<'_>) -> Result<String> {
    eventually("the restore", TIMEOUT, async || {
        let restores = tenant.api::<NonAdminRestore>().list(&ListParams::default()).await?.items;
        restores.into_iter().find_map(|restore| restore.metadata.name).context("there is none")
    })
    .await
}

/// Velero brings the claim and the Deployment back, and the restore is over.
pub async fn bring_back(tenant: &Tenant<'_>, restore: &str) -> Result<()> {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    tenant.create::<PersistentVolumeClaim>("files", claim).await?;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    let web =
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    tenant.create::<Deployment>("web", web).await?;
    play::<Deployment>(tenant, "web", json!({"observedGeneration": 1})).await?;
    let status = json!({"phase": "Created", "conditions": condition("DataRestored", "True", "AllVolumesRestored"),
        "veleroRestore": {"name": "r", "status": {"phase": "Completed", "completionTimestamp": Timestamp::now(),
            "progress": {"totalItems": 3, "itemsRestored": 3}}}});
    play::<NonAdminRestore>(tenant, restore, status).await
}

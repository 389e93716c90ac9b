//! A new cluster on the same buckets: the namespaces have the same names and are others. What is in a tenant's own bucket
//! comes back by itself, what is in the cluster's own storage when an administrator says so, and nothing is lost
//! meanwhile.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::NonAdminBackup;
use api::velero::Backup;
use bed::{BUCKET, eventually};
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// Leftovers are collected all the time: what must not go has every chance to.
const POLICY: &str =
    "storageLocations:\n  endpoints:\n    allow: [\"127.0.0.1\"]\ngarbageCollection: { period: 2s }\n";
const TIMEOUT: Duration = Duration::from_mins(2);

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &target)? } else { fs::copy(&path, &target).map(|_| ())? }
    }
    Ok(())
}

/// Who has what: a tenant, and a bucket of its own.
const TENANTS: [(&str, &str, &str); 3] =
    [("shop", "ada", "shop-bucket"), ("rival", "bob", "rival-bucket"), ("farm", "eve", "farm-bucket")];
/// Backups of each tenant, and the location: two in each storage, each with content of its own.
const BACKUPS: [(&str, Option<&str>); 4] =
    [("mine", Some("bucket")), ("mine-later", Some("bucket")), ("platform", None), ("platform-later", None)];
/// Objects in each backup.
const OBJECTS: usize = 3;

/// What one object of a backup holds. No two are alike, so that content of another backup or tenant is noticed.
fn content(tenant: &Tenant<'_>, backup: &str, number: usize) -> Value {
    json!({"of": tenant.namespace, "backup": backup, "number": number.to_string()})
}

fn object(number: usize) -> String {
    format!("prices-{number}")
}

/// Puts the content into the namespace, and backs it up.
async fn backs_up(tenant: &Tenant<'_>, backup: &str, location: Option<&str>) -> Result<()> {
    for number in 0..OBJECTS {
        tenant.create::<ConfigMap>(&object(number), json!({"data": content(tenant, backup, number)})).await?;
    }
    tenant
        .create::<NonAdminBackup>(backup, json!({"spec": {"backupSpec": {"storageLocation": location}}}))
        .await?;
    ensure!(tenant.backup_ends(backup).await? == "Completed");
    loses(tenant).await
}

async fn loses(tenant: &Tenant<'_>) -> Result<()> {
    for number in 0..OBJECTS {
        tenant.delete::<ConfigMap>(&object(number)).await?;
        tenant.gone::<ConfigMap>(&object(number)).await?;
    }
    Ok(())
}

/// Restores a backup into the empty namespace, and compares every object with what was backed up.
async fn restores(tenant: &Tenant<'_>, backup: &str) -> Result<()> {
    ensure!(tenant.backup_ends(backup).await? == "Completed");
    ensure!(tenant.api::<ConfigMap>().get_opt(&object(0)).await?.is_none());
    let restore = format!("from-{backup}");
    tenant.restore(&restore, backup).await?;
    let phase = tenant.restore_ends(&restore).await?;
    ensure!(phase == "Completed", "{}/{restore} ended as {phase}", tenant.namespace);
    for number in 0..OBJECTS {
        let found = tenant.api::<ConfigMap>().get(&object(number)).await?;
        let wanted = content(tenant, backup, number);
        ensure!(json!(found.data) == wanted, "{}/{restore}: {:?}", tenant.namespace, found.data);
    }
    loses(tenant).await
}

async fn names(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let found = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?;
    let mut names: Vec<String> = found.into_iter().map(|backup| backup.name_any()).collect();
    names.sort();
    Ok(names)
}

async fn tenants(test_cluster: &TestCluster) -> Result<Vec<Tenant<'_>>> {
    let mut all = Vec::new();
    for (namespace, user, _) in TENANTS {
        all.push(test_cluster.tenant(namespace, user).await?);
    }
    Ok(all)
}

async fn bring_bucket(test_cluster: &TestCluster, tenant: &Tenant<'_>, bucket: &str) -> Result<()> {
    tenant.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    tenant.bring_bucket("bucket", bucket, "keys").await?;
    tenant.location_available("bucket").await.map(drop)
}

fn buckets() -> impl Iterator<Item = &'static str> {
    TENANTS.iter().map(|(_, _, bucket)| *bucket).chain([BUCKET])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_owner_finds_their_own_in_a_new_cluster() -> Result<()> {
    // A cluster that comes to its end; only the buckets are kept.
    let kept = tempfile::tempdir()?;
    {
        let test_cluster = TestCluster::build().await?;
        test_cluster.set_policy(POLICY).await?;
        let _nacre = test_cluster.start_nacre().await?;
        for (tenant, (_, _, bucket)) in tenants(&test_cluster).await?.iter().zip(TENANTS) {
            bring_bucket(&test_cluster, tenant, bucket).await?;
            for (backup, location) in BACKUPS {
                backs_up(tenant, backup, location).await?;
            }
        }
        for bucket in buckets() {
            copy(&test_cluster.bed.store()?.path(bucket, ""), &kept.path().join(bucket))?;
        }
    }

    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy(POLICY).await?;
    test_cluster.bed.velero_stop()?;
    for bucket in buckets() {
        copy(&kept.path().join(bucket), &test_cluster.bed.store()?.path(bucket, ""))?;
    }
    // As if Velero had never looked at the empty bucket: it looks at once.
    test_cluster
        .bed
        .velero_status("BackupStorageLocation", "default", json!({"lastSyncedTime": null}))
        .await?;
    test_cluster.bed.velero_start().await?;
    let all = tenants(&test_cluster).await?;
    let nacre = test_cluster.start_nacre().await?;
    let of = |own: bool| BACKUPS.into_iter().filter(move |(_, at)| at.is_some() == own).map(|(name, _)| name);
    let own: Vec<&str> = of(true).collect();

    // A tenant's own storage: asked for again, and everything in it is there.
    for (tenant, (_, _, bucket)) in all.iter().zip(TENANTS) {
        bring_bucket(&test_cluster, tenant, bucket).await?;
        for backup in &own {
            restores(tenant, backup).await?;
        }
    }

    // The cluster's own: Velero has found it, and it is held back for an administrator.
    let backups = test_cluster.admin::<Backup>().await?;
    eventually("Velero to find every backup", TIMEOUT, async || {
        let found =
            backups.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if found == TENANTS.len() * BACKUPS.len() { Ok(()) } else { Err(format!("{found} so far")) }
    })
    .await?;
    let client = test_cluster.bed.client().await?;
    for tenant in &all {
        let events = Api::<Event>::namespaced(client.clone(), &tenant.namespace);
        eventually("the Event that a backup is held back", TIMEOUT, async || {
            let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let mut reasons = events.iter().filter_map(|event| event.reason.as_deref());
            if reasons.any(|reason| reason == "BackupHeldBack") { Ok(()) } else { Err("no Event".to_owned()) }
        })
        .await?;
        ensure!(names(tenant).await? == own);
    }

    // Handed over to one of them.
    let (adopted, others) = all.split_first().context("a tenant")?;
    let uid = Api::<Namespace>::all(client).get(&adopted.namespace).await?.uid();
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nacre-adoptions"},
        "data": {&adopted.namespace: uid}});
    let params = PatchParams::apply("administrator").force();
    test_cluster.admin::<ConfigMap>().await?.patch("nacre-adoptions", &params, &Patch::Apply(record)).await?;
    for backup in of(false) {
        restores(adopted, backup).await?;
    }
    for tenant in others {
        ensure!(names(tenant).await? == own);
    }

    // To everybody who has the name.
    test_cluster.set_policy(&format!("{POLICY}sync: {{ adoption: name }}\n")).await?;
    for tenant in others {
        for backup in of(false) {
            restores(tenant, backup).await?;
        }
    }

    for tenant in &all {
        ensure!(names(tenant).await? == BACKUPS.map(|(name, _)| name));
    }
    let left = backups.list(&ListParams::default()).await?.items.len();
    let log = fs::read_to_string(nacre.process.log())?;
    let expected = TENANTS.len() * BACKUPS.len();
    ensure!(left == expected && !log.contains("whose owner is gone"), "{left} Velero Backups are left");
    Ok(())
}

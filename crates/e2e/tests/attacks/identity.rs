//! Claims to be somebody else, or to own what somebody else owns.

use anyhow::{Context, Result, ensure};
use api::velero::Backup;
use api::{Kind, NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, Phase, labels};
use bed::wait_until;
use e2e::VELERO;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::attack_cluster::{AttackCluster, TIMEOUT, VICTIM};

/// C11: a re-created namespace asks for the backups of the deleted one
pub(crate) async fn c11_a_namespace_that_bears_a_dead_ones_name(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let first = attack_cluster.test_cluster.tenant("reused", "first").await?;
    first.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    first.back_up("daily").await?;
    ensure!(first.backup_ends("daily").await? == "Completed", "the backup did not complete");
    let velero = first.backup_starts("daily").await?;
    let stored = attack_cluster.test_cluster.admin::<Backup>().await?.get(&velero).await?;
    let namespaces = Api::<Namespace>::all(attack_cluster.test_cluster.bed.client().await?);
    namespaces.delete("reused", &DeleteParams::default()).await?;
    wait_until("the namespace to be gone", TIMEOUT, namespaces, "reused", |found| {
        found.is_none().then_some(())
    })
    .await?;

    // Velero finds it again in the cluster's own storage, as after a disaster; the new owner gets nothing.
    let second = attack_cluster.test_cluster.tenant("reused", "second").await?;
    let mut again = serde_json::to_value(&stored)?;
    again["metadata"] = json!({"name": velero, "namespace": VELERO,
        "labels": stored.metadata.labels, "annotations": stored.metadata.annotations});
    let backups = attack_cluster.test_cluster.admin::<Backup>().await?;
    if backups.get_opt(&velero).await?.is_none() {
        attack_cluster.test_cluster.bed.apply(&[serde_json::from_value(again)?]).await?;
    }
    ensure!(second.restore("back", "daily").await.is_ok(), "a restore can be asked for");
    let words = second.restore_refused("back").await?;
    ensure!(words.contains("daily"), "{words}");
    ensure!(
        second.api::<NonAdminBackup>().list(&ListParams::default()).await?.items.is_empty(),
        "it was shown"
    );
    ensure!(second.api::<ConfigMap>().get_opt("plans").await?.is_none(), "it was restored");
    Ok(())
}

fn copied(attack_cluster: &AttackCluster) -> serde_json::Value {
    json!({"labels": {labels::SYNCED_FROM: attack_cluster.loot, labels::NAB_NACUUID: attack_cluster.loot},
        "annotations": {labels::NAB_NAME: "daily", labels::NAB_NAMESPACE: VICTIM}})
}

/// D1: a label copied from another tenant's backup, with `deleteBackup: true`
/// D4: names of Velero objects, which leak through metrics and logs, used to reach them
pub(crate) async fn d1_d4_a_copied_label_and_the_wish_to_delete(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker("d1").await?;
    let body = json!({"metadata": copied(attack_cluster), "spec": {"backupSpec": {}, "deleteBackup": true}});
    let sent = attack_cluster.send(&mallory, Kind::NonAdminBackup, "theft", body).await;
    // A policy of the API server's may refuse the label already; the controller must not need it.
    let Ok(_) = sent else { return Ok(()) };
    mallory.gone::<NonAdminBackup>("theft").await
}

/// D2: a label copied from another tenant's backup, with a download request
pub(crate) async fn d2_a_copied_label_and_the_wish_to_download(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("d2").await?;
    let body =
        json!({"metadata": copied(attack_cluster), "spec": {"backupSpec": {"storageLocation": "own"}}});
    attack_cluster.send(&mallory, Kind::NonAdminBackup, "theft", body).await?;
    let downloads =
        [("by-label", "theft"), ("by-name", "daily"), ("by-velero", attack_cluster.loot.as_str())];
    for (name, of) in downloads {
        let target = json!({"spec": {"target": {"kind": "BackupContents", "name": of}}});
        mallory.create::<NonAdminDownloadRequest>(name, target).await?;
    }
    mallory.restore("by-restore", "theft").await?;
    // Each is decided about: refused, or about a backup of its own. What it was pointed at stays out of reach (see
    // `unharmed`).
    for (name, _) in downloads {
        let status = mallory
            .wait("the download to be decided about", name, |request: Option<&NonAdminDownloadRequest>| {
                let status = request?.status.as_ref()?;
                status.phase.filter(|phase| *phase != Phase::New).map(|_| status.clone())
            })
            .await?;
        let reported = serde_json::to_string(&status)?;
        // The name itself it knows; a link would have it twice.
        let file = format!("{}/{}", attack_cluster.loot, attack_cluster.loot);
        ensure!(!reported.contains(&file), "{name}: {reported}");
    }
    mallory
        .wait("the restore to be decided about", "by-restore", |restore: Option<&NonAdminRestore>| {
            restore?.status.as_ref()?.phase.filter(|phase| *phase != Phase::New)
        })
        .await?;
    Ok(())
}

/// D3: a forged status that names another tenant's backup
pub(crate) async fn d3_a_forged_status(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("d3").await?;
    let made = mallory.back_up("own").await?;
    ensure!(mallory.backup_ends("own").await? == "Completed", "the backup did not complete");
    // The `admin` role does not reach statuses; somebody with more rights in the namespace might.
    let forged = json!({"status": {"phase": "Created", "veleroBackup":
        {"nacuuid": attack_cluster.loot, "name": attack_cluster.loot, "namespace": VELERO}}});
    let own = mallory.api::<NonAdminBackup>();
    let refused = own.patch_status("own", &PatchParams::default(), &Patch::Merge(forged.clone())).await;
    ensure!(refused.is_err(), "a tenant can write statuses");
    let as_root = Api::<NonAdminBackup>::namespaced(
        attack_cluster.test_cluster.bed.client().await?,
        &mallory.namespace,
    );
    as_root.patch_status("own", &PatchParams::default(), &Patch::Merge(forged)).await?;
    mallory.restore("theft", "own").await?;
    // Either its own data comes back or nothing does; what it was pointed at stays out of reach (see `unharmed`).
    mallory
        .wait("the restore to be decided about", "theft", |restore: Option<&NonAdminRestore>| {
            restore?.status.as_ref()?.phase.map(|_| ())
        })
        .await?;
    mallory.edit::<NonAdminBackup>("own", json!({"spec": {"deleteBackup": true}})).await?;
    mallory.gone::<NonAdminBackup>("own").await?;
    let uid = made.metadata.uid.context("a uid")?;
    let left = attack_cluster.test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await?;
    let own_left =
        left.iter().any(|backup| backup.metadata.name.as_deref().is_some_and(|name| name.ends_with(&uid)));
    ensure!(!own_left, "its own backup was not deleted");
    Ok(())
}

/// D9: requests in Velero's own namespace and in `kube-*`
pub(crate) async fn d9_requests_in_veleros_own_namespace(attack_cluster: &AttackCluster) -> Result<()> {
    // Tenants have no rights there; whoever got some, by a mistake, still gets nothing out of nacre.
    for namespace in [VELERO, "kube-system", "kube-public"] {
        let requests =
            Api::<NonAdminBackup>::namespaced(attack_cluster.test_cluster.bed.client().await?, namespace);
        let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "all"}, "spec": {"backupSpec": {}}});
        requests.create(&kube::api::PostParams::default(), &serde_json::from_value(body)?).await?;
        wait_until("it to be refused", TIMEOUT, requests.clone(), "all", |request| {
            let status = request?.status.as_ref()?;
            let accepted = api::condition::get(&status.conditions, api::condition::ACCEPTED)?;
            (accepted.status == "False" && accepted.message.contains("metadata.namespace")).then_some(())
        })
        .await?;
        requests.delete("all", &DeleteParams::default()).await?;
        wait_until("it to be gone", TIMEOUT, requests, "all", |request| request.is_none().then_some(()))
            .await?;
    }
    Ok(())
}

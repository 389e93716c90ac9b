//! Exceeding limits, and invalid objects.

use anyhow::{Result, ensure};
use api::velero::{Backup, DownloadRequest};
use api::{
    Kind, NonAdminBackup, NonAdminDownloadRequest, NonAdminDownloadRequestStatus, Phase, condition, labels,
};
use e2e::Tenant;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::attack_cluster::AttackCluster;

/// E1: download of contents and logs from the cluster's own storage
pub(crate) async fn e1_contents_of_the_clusters_own_storage(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("e1").await?;
    mallory.create::<ConfigMap>("mine", json!({})).await?;
    mallory.back_up("own").await?;
    ensure!(mallory.backup_ends("own").await? == "Completed", "the backup did not complete");
    for kind in ["BackupContents", "BackupResults"] {
        let name = kind.to_ascii_lowercase();
        let target = json!({"spec": {"target": {"kind": kind, "name": "own"}}});
        mallory.create::<NonAdminDownloadRequest>(&name, target).await?;
        mallory
            .wait("it to be refused", &name, |request: Option<&NonAdminDownloadRequest>| {
                let status = request?.status.as_ref()?;
                let reported = condition::get(&status.conditions, condition::LOCATION_NOT_USED)?;
                (status.phase == Some(Phase::BackingOff)).then(|| reported.message.clone())
            })
            .await?;
    }
    // nacre reads the list of objects and the log itself, and publishes what is about the namespace and nothing else.
    let list = read_by_nacre(&mallory, "BackupResourceList").await?;
    let names = list.objects.unwrap_or_default().names;
    ensure!(names.get("v1/ConfigMap").is_some_and(|names| names.contains(&"mine".to_owned())), "{names:?}");
    ensure!(!names.contains_key("v1/Namespace"), "it is not in the namespace: {names:?}");
    let log = read_by_nacre(&mallory, "BackupLog").await?.log.unwrap_or_default();
    ensure!(log.lines.iter().any(|line| line.contains("name=mine")), "{log:#?}");
    ensure!(!log.lines.iter().any(|line| line.contains("velero/") || line.contains("://")), "{log:#?}");
    let links =
        attack_cluster.test_cluster.admin::<DownloadRequest>().await?.list(&ListParams::default()).await?;
    let mine =
        |link: &DownloadRequest| link.annotations().get(labels::NADR_NAMESPACE) == Some(&mallory.namespace);
    ensure!(!links.iter().any(mine), "a link was asked for");
    Ok(())
}

/// What nacre publishes of a file of the backup `own`; never with a link.
async fn read_by_nacre(mallory: &Tenant<'_>, kind: &str) -> Result<NonAdminDownloadRequestStatus> {
    let name = format!("{}-read", kind.to_ascii_lowercase());
    let target = json!({"spec": {"target": {"kind": kind, "name": "own"}}});
    mallory.create::<NonAdminDownloadRequest>(&name, target).await?;
    let published = mallory
        .wait("what nacre reads", &name, |request: Option<&NonAdminDownloadRequest>| {
            let status = request?.status.as_ref()?;
            condition::is_true(&status.conditions, condition::PROCESSED).then(|| status.clone())
        })
        .await?;
    let link = published.velero.as_ref().and_then(|velero| velero.status.as_ref()?.download_url.as_ref());
    ensure!(link.is_none(), "{published:#?}");
    Ok(published)
}

/// E3: `ttl: 1s`, below the policy's minimum, so that the backup expires at once
/// planted: a policy without `ttl.min`
pub(crate) async fn b7_e3_a_ttl_below_the_minimum_is_refused(attack_cluster: &AttackCluster) -> Result<()> {
    // Whoever steals a right to ask for backups cannot make them vanish by their own age, where there is a bound.
    let mallory = attack_cluster.attacker("e3").await?;
    let spec = json!({"backupSpec": {"ttl": "1s"}});
    let words = attack_cluster.refused(&mallory, Kind::NonAdminBackup, "brief", spec.clone()).await?;
    ensure!(words.contains("spec.backupSpec.ttl") && words.contains("1h"), "{words}");
    attack_cluster.nothing_made_for(&mallory).await?;

    // The planted weakness: without the bound Velero is given a backup that it deletes at once.
    let other = attack_cluster.attacker("e3-weak").await?;
    other.create::<NonAdminBackup>("brief", json!({ "spec": spec })).await?;
    let name = other.backup_starts("brief").await?;
    let brief = attack_cluster.requests_in_velero(Kind::Backup).await?.get(&name).await?;
    ensure!(brief.data["spec"]["ttl"] == "1s", "{}", brief.data["spec"]);
    Ok(())
}

/// F1: more backups at a time than the limit
/// planted: a policy without the limit
pub(crate) async fn f1_more_backups_than_their_share(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("f1").await?;
    for number in 0..12 {
        mallory.back_up(&format!("b{number}")).await?;
    }
    for number in 0..12 {
        mallory
            .wait("it to be decided about", &format!("b{number}"), |backup: Option<&NonAdminBackup>| {
                let status = backup?.status.as_ref()?;
                let reported = condition::get(&status.conditions, condition::ACCEPTED)?;
                (status.phase == Some(Phase::Created) || reported.status == "False").then_some(())
            })
            .await?;
    }
    let backups = attack_cluster.test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await?;
    let mine = |backup: &&Backup| backup.annotations().get(labels::NAB_NAMESPACE) == Some(&mallory.namespace);
    let count = backups.iter().filter(mine).count();
    ensure!(count <= 5, "{count} backups at once where five are allowed");
    ensure!(count > 0, "none at all");

    // The planted weakness: without the limit there are more.
    let other = attack_cluster.attacker("f1-weak").await?;
    for number in 0..6 {
        other.back_up(&format!("b{number}")).await?;
    }
    for number in 0..6 {
        other.backup_starts(&format!("b{number}")).await?;
    }
    Ok(())
}

/// F5: many download requests for backups that do not exist
pub(crate) async fn f5_a_flood_of_downloads(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("f5").await?;
    let body =
        |number: usize| json!({"spec": {"target": {"kind": "BackupLog", "name": format!("no-{number}")}}});
    for number in 0..50 {
        mallory.create::<NonAdminDownloadRequest>(&format!("d{number}"), body(number)).await?;
    }
    for number in 0..50 {
        mallory
            .wait("it to be told", &format!("d{number}"), |request: Option<&NonAdminDownloadRequest>| {
                (request?.status.as_ref()?.phase == Some(Phase::BackingOff)).then_some(())
            })
            .await?;
    }
    attack_cluster.nothing_made_for(&mallory).await
}

/// X1: malformed and oversized objects
pub(crate) async fn x1_objects_that_are_not_what_they_should_be(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker("x1").await?;
    let long = "x".repeat(200_000);
    let odd = [
        (
            Kind::NonAdminBackup,
            json!({"spec": {"backupSpec": {"labelSelector": {"matchLabels": {"a": long}}}}}),
        ),
        (Kind::NonAdminBackup, json!({"spec": {}})),
        (Kind::NonAdminRestore, json!({"spec": {"restoreSpec": {}}})),
        (
            Kind::NonAdminBackupStorageLocation,
            json!({"spec": {"backupStorageLocationSpec": {
            "provider": "aws", "objectStorage": {"bucket": "b"}}}}),
        ),
        (Kind::NonAdminDownloadRequest, json!({"spec": {"target": {"kind": "BackupLog", "name": long}}})),
        (
            Kind::NonAdminBackup,
            json!({"metadata": {"finalizers": [labels::NAB_FINALIZER]}, "spec": {"backupSpec": {}}}),
        ),
    ];
    for (number, (kind, body)) in odd.into_iter().enumerate() {
        let name = format!("odd-{number}");
        // What the API server refuses is refused.
        if attack_cluster.send(&mallory, kind, &name, body).await.is_err() {
            continue;
        }
        let api = attack_cluster.requests(&mallory, kind).await?;
        api.delete(&name, &kube::api::DeleteParams::default()).await?;
        let gone = |object: Option<&DynamicObject>| object.is_none().then_some(());
        bed::wait_until("it to be gone", crate::attack_cluster::TIMEOUT, api, &name, gone).await?;
    }
    // An arbitrary Secret and a location without a credential have stopped other controllers.
    let own = mallory.api::<k8s_openapi::api::core::v1::Secret>();
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "odd"}, "data": {"x": "AA=="}});
    own.patch("odd", &PatchParams::apply("mallory").force(), &Patch::Apply(secret)).await?;
    mallory.back_up("fine").await?;
    mallory.backup_starts("fine").await?;
    Ok(())
}

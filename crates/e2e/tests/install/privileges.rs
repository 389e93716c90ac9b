//! Least privilege, by the API server's own account: tenants go through every story while reads are logged too; each right in
//! `deploy/nacre.yaml` is needed by some request, and no request is forbidden.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore, Phase, condition,
};
use bed::{Bed, Request, Requests, eventually, wait_until};
use e2e::{House, Nacre, Rights, Tap, Tenant, VELERO};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::watched;

const PATIENCE: Duration = Duration::from_secs(90);
const ENDPOINTS: &str = "endpoints: {allow: ['127.0.0.1']}";
const MODIFIERS: [&str; 2] = ["nacre-restore-from-tenant-storage", "nacre-restore-from-tenant-storage-pods"];

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_and_none_is_missing() -> Result<()> {
    let house = House::build_on(Bed::builder().with_velero().audit_reads()).await?;
    let mark = house.bed.audit().mark().await?;
    // Conflicts are rare, and what they need is needed: the first write to each kind meets one.
    let tap = Tap::open(&house.account().await?).await?;
    tap.contradict();
    let way = tap.kubeconfig(house.bed.folder())?;
    policy(&house, true, false).await?;
    house.admission().await?;
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    house.ask_at(address).await?;
    let webhook = address.to_string();
    let told = [("WEBHOOK_BIND_ADDRESS", webhook.as_str())];
    let nacre = house.start_nacre_in(&way, &told).await?;
    let shop = house.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    let location = Box::pin(a_bucket_is_brought_and_used(&house, &shop)).await?;
    Box::pin(files_are_fetched(&house, &shop)).await?;
    Box::pin(things_are_deleted(&house, &shop)).await?;
    Box::pin(watched::a_broken_policy_is_seen_in_three_places(&house, &nacre)).await?;
    Box::pin(watched::what_ships_names_what_there_is(&nacre)).await?;

    // While nacre is away, everything becomes as the Go controller leaves it, and requests are lost.
    nacre.process.terminate(Duration::from_secs(15)).await?;
    drop(nacre);
    as_the_go_controller_leaves_it(&house, &shop, &location).await?;
    let nacre = house.start_nacre_in(&way, &told).await?;
    Box::pin(all_is_taken_over(&house, &shop, &location, &nacre)).await?;
    nacre.process.terminate(Duration::from_secs(15)).await?;
    drop(nacre);

    // A watch is in the log once it has ended.
    let rights = Rights::shipped("non-admin-controller")?;
    let all_used = async || {
        let requests = by_nacre(&house, mark).await?;
        let unused: Vec<_> = rights.unused(&requests).iter().map(ToString::to_string).collect();
        ensure!(unused.is_empty(), "granted and not used: {unused:#?}");
        Ok(requests)
    };
    let requests = eventually("every right to be used", Duration::from_secs(20), all_used).await?;
    let forbidden = requests.only(|request| request.code == 403 && !is_migration(request));
    ensure!(forbidden.is_empty(), "{:#?}", forbidden.tally());
    let beyond = rights.beyond(&requests.only(|request| request.code < 400 && !is_migration(request)));
    ensure!(beyond.is_empty(), "allowed by something else: {:#?}", beyond.tally());
    // It can fail: without the deletions, the right to delete is found idle.
    let fewer = rights.unused(&requests.only(|request| request.verb != "delete"));
    ensure!(fewer.iter().filter(|right| right.verb == "delete").count() >= 8, "{fewer:#?}");
    Ok(())
}

async fn by_nacre(house: &House, mark: bed::Mark) -> Result<Requests> {
    let account = format!("system:serviceaccount:{VELERO}:non-admin-controller");
    let all = house.bed.audit().since(mark).await?;
    Ok(all.only(|request| request.user == account && !request.resource.is_empty()))
}

/// Looking after migration rights is an extra with rights of its own, which `kubectl nacre migration install` gives; until
/// then nacre asks now and then whether it has them.
fn is_migration(request: &Request) -> bool {
    let about = ["rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apps"];
    about.contains(&request.group.as_str()) && request.resource != "validatingwebhookconfigurations"
        || (request.resource == "configmaps" && request.namespace != VELERO)
}

async fn policy(house: &House, approval: bool, pods: bool) -> Result<()> {
    house
        .set_policy(&format!(
            "storageLocations: {{requireApproval: {approval}, {ENDPOINTS}}}\n\
             restore: {{fromTenantStorage: {{pods: {pods}}}}}\ndownloads: {{platformStorage: logs}}\n"
        ))
        .await
}

async fn a_bucket_is_brought_and_used(house: &House, shop: &Tenant<'_>) -> Result<String> {
    let keys = house.bed.store()?.credentials();
    shop.keep_keys("keys", &keys).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let waiting = shop
        .location_is("approval to be waited for", "bucket", |status| {
            condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED)
                .is_some_and(|found| found.reason == condition::BSL_SPEC_APPROVAL_PENDING)
        })
        .await?;
    let name = waiting.velero_backup_storage_location.and_then(|velero| velero.name).context("a name")?;
    house.decide(&name, "approve").await?;
    shop.location_available("bucket").await?;

    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("mine", own).await?;
    for backup in ["daily", "extra"] {
        shop.back_up(backup).await?;
    }
    for backup in ["mine", "daily", "extra"] {
        ensure!(shop.backup_ends(backup).await? == "Completed", "{backup}");
    }
    for (restore, backup) in [("back", "daily"), ("again", "daily"), ("home", "mine")] {
        shop.restore(restore, backup).await?;
    }
    for restore in ["back", "again", "home"] {
        shop.restore_ends(restore).await?;
    }
    // Without pods and with them; and each modifier is mended if somebody has changed it.
    policy(house, true, true).await?;
    shop.restore("pods", "mine").await?;
    shop.restore_ends("pods").await?;
    let maps = house.admin::<ConfigMap>().await?;
    for modifier in MODIFIERS {
        let odd = Patch::Merge(json!({"data": {"odd": "x"}}));
        maps.patch(modifier, &PatchParams::default(), &odd).await?;
    }
    shop.restore("pods-again", "mine").await?;
    shop.restore_ends("pods-again").await?;
    policy(house, true, false).await?;
    shop.restore("home-again", "mine").await?;
    shop.restore_ends("home-again").await?;
    // Rotated: the copy and the location are changed.
    shop.keep_keys("keys", &format!("# rotated\n{keys}aws_session_token = x\n")).await?;
    let secrets = house.admin::<Secret>().await?;
    wait_until("the rotated key", PATIENCE, secrets, &name, |copy: Option<&Secret>| {
        let cloud = copy?.data.as_ref()?.get("cloud")?.clone();
        String::from_utf8_lossy(&cloud.0).contains("session_token").then_some(())
    })
    .await?;
    shop.keep_keys("keys", &keys).await?;
    Ok(name)
}

async fn files_are_fetched(house: &House, shop: &Tenant<'_>) -> Result<()> {
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    shop.create::<NonAdminDownloadRequest>("log", target).await?;
    shop.wait("the link", "log", |request: Option<&NonAdminDownloadRequest>| {
        let status = request?.status.as_ref()?;
        let done = status.phase == Some(Phase::Created)
            && condition::is_true(&status.conditions, condition::PROCESSED);
        done.then_some(())
    })
    .await?;
    // It has run out: request and Velero's request go.
    let links = house.admin::<DownloadRequest>().await?;
    let made = links.list(&kube::api::ListParams::default()).await?.items;
    let link = made.first().context("a DownloadRequest")?.name_any();
    house.bed.velero_status("DownloadRequest", &link, json!({"expiration": "2020-01-01T00:00:00Z"})).await?;
    shop.gone::<NonAdminDownloadRequest>("log").await
}

async fn things_are_deleted(house: &House, shop: &Tenant<'_>) -> Result<()> {
    shop.delete::<NonAdminRestore>("back").await?;
    shop.gone::<NonAdminRestore>("back").await?;
    // With its data: the restore of it goes too.
    let with_data = |so: bool| json!({"spec": {"deleteBackup": so}});
    shop.edit::<NonAdminBackup>("daily", with_data(true)).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    shop.gone::<NonAdminRestore>("again").await?;
    // Withdrawn before Velero has begun.
    house.bed.velero_stop()?;
    shop.edit::<NonAdminBackup>("extra", with_data(true)).await?;
    let request = shop
        .wait("the request to delete", "extra", |backup: Option<&NonAdminBackup>| {
            backup?.status.as_ref()?.velero_delete_backup_request.as_ref()?.name.clone()
        })
        .await?;
    shop.edit::<NonAdminBackup>("extra", with_data(false)).await?;
    house.gone_from_velero::<DeleteBackupRequest>(&request).await?;
    shop.delete::<NonAdminBackup>("extra").await?;
    shop.gone::<NonAdminBackup>("extra").await?;
    house.bed.velero_start().await
}

/// Takes the uid marks off everything beside Velero, and loses a backup's request.
async fn as_the_go_controller_leaves_it(house: &House, shop: &Tenant<'_>, location: &str) -> Result<()> {
    unmark::<BackupStorageLocation>(house, location).await?;
    unmark::<Secret>(house, location).await?;
    unmark::<NonAdminBackupStorageLocationRequest>(house, location).await?;
    let home = shop.api::<NonAdminRestore>().get("home").await?;
    let name = home.status.and_then(|status| status.velero_restore?.name).context("a Restore")?;
    unmark::<Restore>(house, &name).await?;
    shop.back_up("kept").await?;
    // Nobody is there to see it yet: it is handed to Velero as the Go controller would have.
    free(shop, "mine").await
}

async fn free(shop: &Tenant<'_>, backup: &str) -> Result<()> {
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    shop.api::<NonAdminBackup>().patch(backup, &PatchParams::default(), &free).await?;
    shop.delete::<NonAdminBackup>(backup).await?;
    shop.gone::<NonAdminBackup>(backup).await
}

async fn unmark<K>(house: &House, name: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let marks = json!({"nacre.dev/origin-uid": null, "nacre.dev/origin-namespace-uid": null});
    let unmarked = Patch::Merge(json!({"metadata": {"annotations": marks}}));
    house.admin::<K>().await?.patch(name, &PatchParams::default(), &unmarked).await?;
    Ok(())
}

/// Stamps, sync, garbage collection, a pending location approved by a change of policy, and the end of a location.
async fn all_is_taken_over(house: &House, shop: &Tenant<'_>, location: &str, nacre: &Nacre) -> Result<()> {
    ensure!(
        shop.backup_ends("mine").await? == "Completed",
        "the lost request does not come back from storage"
    );
    ensure!(shop.backup_ends("kept").await? == "Completed");
    let kept = shop.api::<NonAdminBackup>().get("kept").await?;
    let kept = kept.status.and_then(|status| status.velero_backup?.name).context("a Backup")?;
    unmark::<Backup>(house, &kept).await?;
    for (what, name) in [("Backup", kept.as_str()), ("BackupStorageLocation", location)] {
        let stamped = async || {
            let found = house.bed.velero_api(what).await?.get(name).await?;
            ensure!(found.annotations().contains_key("nacre.dev/origin-uid"), "{what} {name} is not stamped");
            Ok(())
        };
        eventually("a stamp", PATIENCE, stamped).await?;
    }
    // Another location waits for approval, and approval is switched off.
    shop.bring_bucket("second", "second-bucket", "keys").await?;
    shop.location_is("approval to be waited for", "second", |status| {
        condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED)
            .is_some_and(|found| found.reason == condition::BSL_SPEC_APPROVAL_PENDING)
    })
    .await?;
    policy(house, false, false).await?;
    shop.location_available("second").await?;
    for name in ["second", "bucket"] {
        shop.delete::<NonAdminBackupStorageLocation>(name).await?;
        shop.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    house.gone_from_velero::<NonAdminBackupStorageLocationRequest>(location).await?;
    shop.gone::<NonAdminBackup>("mine").await?;
    ensure!(nacre.process.is_running());
    Ok(())
}

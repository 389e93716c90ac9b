//! Least privilege, by the API server's audit log: all stories run with every optional feature; each rule of nacre's
//! roles is used by some request, and no request is forbidden.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, Restore, Schedule};
use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore, NonAdminSchedule, Phase, condition, labels,
};
use bed::{Bed, Request, Requests, eventually, wait_until};
use e2e::{FaultProxy, Nacre, Rights, Tenant, TestCluster, VELERO};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::traces::traces;
use crate::{life, privileges_of_live_migration, privileges_of_operator, privileges_of_view, watched};

const TIMEOUT: Duration = Duration::from_mins(2);
const ENDPOINTS: &str = "endpoints: {allow: ['127.0.0.1']}";
const VOLUME_POLICY: &str = "nacre-volumes";
const USAGE: &str = "nacre-usage";
/// The record of whose turn it is.
const QUEUE: &str = "nacre-queue";
/// The extra fields of users that are recorded.
const EXTRA: &str = "nacre-requester";
const MODIFIERS: [&str; 2] = ["nacre-restore-from-tenant-storage", "nacre-restore-from-tenant-storage-pods"];

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_and_none_is_missing() -> Result<()> {
    let test_cluster = TestCluster::build_on(Bed::builder().with_velero().audit_reads()).await?;
    test_cluster.allow_velero_view().await?;
    privileges_of_live_migration::set_up(&test_cluster).await?;
    test_cluster.bed.wait_allowed(&account(), "", "watch", "velero.io", "datadownloads").await?;
    test_cluster.bed.wait_allowed(&account(), "kube-system", "list", "apps", "deployments").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    // Conflicts are rare, and what they need is needed: the first write to each kind meets one.
    let fault_proxy = FaultProxy::open(&test_cluster.account().await?).await?;
    fault_proxy.contradict();
    let way = fault_proxy.kubeconfig(test_cluster.bed.folder())?;
    policy(&test_cluster, true, false).await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let [port] = bed::free_ports()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    test_cluster.ask_at(address).await?;
    let webhook = address.to_string();
    let reported = [("WEBHOOK_BIND_ADDRESS", webhook.as_str())];
    velero_is_a_pod(&test_cluster).await?;
    let nacre = test_cluster.start_nacre_in(&way, &reported).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    Box::pin(volumes_can_be_saved(&test_cluster, &shop)).await?;

    let migration = Box::pin(privileges_of_live_migration::is_looked_after(&test_cluster));
    let bucket = Box::pin(a_bucket_is_brought_and_used(&test_cluster, &shop));
    let (location, ()) = tokio::try_join!(bucket, migration)?;
    Box::pin(files_are_fetched(&shop)).await?;
    Box::pin(schedules_are_made_and_taken_over(&test_cluster, &shop)).await?;
    Box::pin(stuck_volumes_are_cancelled(&test_cluster, &shop)).await?;
    Box::pin(privileges_of_view::is_kept_true(&test_cluster, &shop)).await?;
    Box::pin(what_deleted_backups_used_is_kept(&test_cluster, &shop)).await?;
    Box::pin(things_are_deleted(&test_cluster, &shop)).await?;
    Box::pin(watched::a_broken_policy_is_seen_in_three_places(&test_cluster, &nacre)).await?;
    Box::pin(watched::what_ships_names_what_there_is(&nacre)).await?;

    // While nacre is away, everything becomes as the Go controller leaves it, and requests are lost.
    nacre.process.terminate(Duration::from_mins(2)).await?;
    drop(nacre);
    as_the_go_controller_leaves_it(&test_cluster, &shop, &location).await?;
    let nacre = test_cluster.start_nacre_in(&way, &reported).await?;
    Box::pin(all_is_taken_over(&test_cluster, &shop, &location, &nacre)).await?;
    privileges_of_view::label(&test_cluster, json!("true")).await?;
    shop.wait("a copy", "kept", |copy: Option<&Backup>| copy.map(|_| ())).await?;
    nacre.process.terminate(Duration::from_mins(2)).await?;
    drop(nacre);

    let shipped = Rights::shipped(&["nacre.yaml"], ACCOUNT)?;
    let view = Rights::shipped(&["velero-view.yaml"], ACCOUNT)?;
    let migration = privileges_of_live_migration::rights(&test_cluster.bed).await?;
    // In Velero's namespace, the permissions for copies are not needed.
    let elsewhere = |request: &Request| request.namespace != VELERO || request.resource == "configmaps";
    let all = |_: &Request| true;
    prove(&test_cluster, mark, &account(), &[(&shipped, &all), (&view, &elsewhere), (&migration, &all)])
        .await?;
    // It can fail: without the deletions, the right to delete is found idle.
    let requests = by(&test_cluster, mark, &account()).await?;
    let fewer = shipped.unused(&requests.only(|request| request.verb != "delete"));
    ensure!(fewer.iter().filter(|right| right.verb == "delete").count() >= 8, "{fewer:#?}");

    nothing_is_left(&test_cluster).await?;
    Box::pin(privileges_of_operator::every_right_is_used_and_none_is_missing(&test_cluster, &shop)).await
}

/// Where Velero runs as a process of its own, nobody would ask for its log. This pod never starts.
async fn velero_is_a_pod(test_cluster: &TestCluster) -> Result<()> {
    let pod = json!({"metadata": {"name": "velero", "labels": {"deploy": "velero"}},
        "spec": {"containers": [{"name": "velero", "image": "velero"}]}});
    let pods = test_cluster.admin::<Pod>().await?;
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}

const ACCOUNT: &str = "non-admin-controller";

fn account() -> String {
    format!("system:serviceaccount:{VELERO}:{ACCOUNT}")
}

async fn by(test_cluster: &TestCluster, mark: bed::Mark, user: &str) -> Result<Requests> {
    let all = test_cluster.bed.audit().since(mark).await?;
    Ok(all.only(|request| request.user == user && !request.resource.is_empty()))
}

/// Rights, and the requests that count for them.
type Claim<'a> = (&'a Rights, &'a (dyn Fn(&Request) -> bool + Sync));

/// Each right was needed by some request since, nothing was forbidden, and nothing was allowed by anything else.
pub(crate) async fn prove(
    test_cluster: &TestCluster,
    mark: bed::Mark,
    user: &str,
    claims: &[Claim<'_>],
) -> Result<()> {
    // A watch is in the log once it has ended.
    let all_used = async || {
        let requests = by(test_cluster, mark, user).await?;
        let idle = claims.iter().flat_map(|(rights, counts)| {
            let unused = rights.unused(&requests.only(counts)).into_iter().map(ToString::to_string);
            unused.collect::<Vec<_>>()
        });
        let idle: Vec<_> = idle.collect();
        ensure!(idle.is_empty(), "granted and not used: {idle:#?}");
        Ok(requests)
    };
    let requests = eventually("every right to be used", Duration::from_mins(2), all_used).await?;
    let forbidden = requests.only(|request| request.code == 403);
    ensure!(forbidden.is_empty(), "{:#?}", forbidden.tally());
    let none = Rights::read(&[], user)?;
    let granted = claims.iter().fold(none, |all, (rights, _)| all.and((*rights).clone()));
    let beyond = granted.beyond(&requests.only(|request| request.code < 400));
    ensure!(beyond.is_empty(), "allowed by something else: {:#?}", beyond.tally());
    Ok(())
}

/// What `uninstall` keeps, and says so: the administrators' policy, and what manages machines.
pub(crate) fn is_kept(trace: &str) -> bool {
    let name = trace.rsplit('/').next().unwrap_or_default();
    ["nacre-policy", "nacre-migration", "nacre:migration-infrastructure"].contains(&name)
        || name.starts_with("nacre-migration-")
}

/// Out of the cluster with every extra on: what nacre made for itself goes too, and so do copies in tenants' namespaces.
async fn nothing_is_left(test_cluster: &TestCluster) -> Result<()> {
    let there = traces(&test_cluster.bed).await?;
    for trace in ["Secret velero/nacre-webhook", "ConfigMap velero/nacre-velero-view", "Backup shop/kept"] {
        ensure!(there.iter().any(|one| one == trace), "no {trace} to begin with: {there:#?}");
    }
    let (success, said, words) = life::nacre(&test_cluster.bed, &["uninstall"]).await?;
    ensure!(success && words.contains("kept: KubeVirt roles, grants and guard"), "{said}{words}");
    let left: Vec<_> = traces(&test_cluster.bed).await?.into_iter().filter(|one| !is_kept(one)).collect();
    ensure!(left.is_empty(), "{left:#?}");
    // What tenants asked for is held by nobody. Their rights went with the rest, so an administrator deletes it.
    let gone = ["delete", "nonadminbackup", "kept", "-n", "shop", "--timeout", "20s"];
    test_cluster.bed.kubectl(&gone).await?.ok().map(drop)
}

async fn policy(test_cluster: &TestCluster, approval: bool, pods: bool) -> Result<()> {
    test_cluster
        .set_policy(&format!(
            "storageLocations: {{requireApproval: {approval}, {ENDPOINTS}}}\n\
             restore: {{fromTenantStorage: {{pods: {pods}}}}}\ndownloads: {{platformStorage: logs}}\n\
             requester: {{extra: [example.com/team]}}\n\
             schedules: {{defaults: [{{name: yearly, selector: {{matchLabels: {{tier: gold}}}}, schedule: '0 0 1 1 *'}}]}}\n"
        ))
        .await
}

/// A claim, and a node agent that says it runs: nacre's volume policy is made for the first backup. No pod runs here, so
/// the claim has no volume, and there is nothing to save.
async fn volumes_can_be_saved(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    let labels = json!({"name": "node-agent"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let agent = json!({"spec": {"selector": {"matchLabels": labels}, "template": pod}});
    let agents = test_cluster.admin::<DaemonSet>().await?;
    let mut agent: DaemonSet = serde_json::from_value(agent)?;
    agent.metadata.name = Some("node-agent".to_owned());
    agents.create(&PostParams::default(), &agent).await?;
    let status = json!({"status": {"currentNumberScheduled": 1, "numberMisscheduled": 0,
        "desiredNumberScheduled": 1, "numberReady": 1}});
    agents.patch_status("node-agent", &PatchParams::default(), &Patch::Merge(status)).await?;
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}}}});
    shop.create::<PersistentVolumeClaim>("data", claim).await?;
    let maps = test_cluster.admin::<ConfigMap>().await?;
    // Velero is asked for its version, and until it has answered there is no volume policy.
    let made = async || {
        let name = format!("first-{}", jiff::Timestamp::now().as_millisecond());
        shop.back_up(&name).await?;
        let ended = shop.backup_ends(&name).await?;
        ensure!(ended == "Completed", "{name}: {ended}");
        ensure!(maps.get_opt(VOLUME_POLICY).await?.is_some(), "no {VOLUME_POLICY}");
        let status = shop.api::<NonAdminBackup>().get(&name).await?.status.context("a status")?;
        let found = condition::get(&status.conditions, condition::DATA_PROTECTED).context("DataProtected")?;
        ensure!(found.reason == condition::ALL_CLAIMS_SAVED, "{found:?}");
        Ok(())
    };
    eventually("a backup with nacre's volume policy", TIMEOUT, made).await
}

/// Velero has worked on a backup that is deleted on the same day: that is recorded, and mended if somebody changes it.
async fn what_deleted_backups_used_is_kept(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    shop.back_up("brief").await?;
    ensure!(shop.backup_ends("brief").await? == "Completed");
    let backup = shop.api::<NonAdminBackup>().get("brief").await?;
    let velero = backup.status.and_then(|status| status.velero_backup?.name).context("a Velero Backup")?;
    // Velero may have been done within the second.
    let later = json!({"status": {"completionTimestamp": "2100-01-01T00:00:00Z"}});
    let backups = test_cluster.admin::<Backup>().await?;
    let velero = backups.patch(&velero, &PatchParams::default(), &Patch::Merge(later)).await?;
    let start = velero.status.and_then(|status| status.start_timestamp).context("a start")?.0;
    let worked = async || {
        ensure!(jiff::Timestamp::now().duration_since(start).as_secs() > 0);
        Ok(())
    };
    eventually("a second of work", TIMEOUT, worked).await?;
    shop.api::<NonAdminBackup>().delete("brief", &DeleteParams::default()).await?;
    let maps = test_cluster.admin::<ConfigMap>().await?;
    let kept = |map: Option<&ConfigMap>| {
        map.filter(|map| map.data.as_ref().is_some_and(|data| !data.contains_key("odd"))).map(|_| ())
    };
    let odd = Patch::Merge(json!({"data": {"odd": "x"}}));
    // The record of the queue is written at most once a minute.
    for name in [USAGE, EXTRA, QUEUE] {
        wait_until("the record", TIMEOUT, maps.clone(), name, kept).await?;
        maps.patch(name, &PatchParams::default(), &odd).await?;
        wait_until("the record to be corrected", TIMEOUT, maps.clone(), name, kept).await?;
    }
    Ok(())
}

/// Objects about volumes that nobody works on, of a backup and a restore that are over: nacre cancels them.
async fn stuck_volumes_are_cancelled(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    // As Velero makes them: without the owner, nobody in Velero's namespace may write to them.
    let of = |kind: Kind, name: &str, uid: &str, name_label: &str, uid_label: &str| {
        let owner = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "name": name, "uid": uid});
        json!({"labels": {name_label: name, uid_label: uid}, "ownerReferences": [owner]})
    };
    let backup = shop.api::<NonAdminBackup>().get("daily").await?;
    let backup = backup.status.and_then(|status| status.velero_backup?.name).context("a Velero Backup")?;
    let uid = test_cluster.admin::<Backup>().await?.get(&backup).await?.uid().unwrap_or_default();
    let of_backup = of(Kind::Backup, &backup, &uid, labels::VELERO_BACKUP_NAME, labels::VELERO_BACKUP_UID);
    let restore = shop.api::<NonAdminRestore>().get("home-again").await?;
    let restore =
        restore.status.and_then(|status| status.velero_restore?.name).context("a Velero Restore")?;
    let uid = test_cluster.admin::<Restore>().await?.get(&restore).await?.uid().unwrap_or_default();
    let of_restore =
        of(Kind::Restore, &restore, &uid, labels::VELERO_RESTORE_NAME, labels::VELERO_RESTORE_UID);
    let pod = json!({"namespace": "shop", "name": "db", "uid": "gone"});
    let target = json!({"pvc": "data", "pv": "", "namespace": "shop"});
    let snapshot = json!({"volumeSnapshot": "none", "storageClass": "none", "snapshotClass": "none"});
    let volumes = [
        (
            Kind::PodVolumeBackup,
            &of_backup,
            json!({"node": "none", "pod": pod, "volume": "data", "repoIdentifier": "none", "uploaderType": "kopia"}),
        ),
        (
            Kind::PodVolumeRestore,
            &of_restore,
            json!({"pod": pod, "volume": "data", "repoIdentifier": "none", "uploaderType": "kopia",
                "snapshotID": "none", "sourceNamespace": "shop"}),
        ),
        (
            Kind::DataUpload,
            &of_backup,
            json!({"snapshotType": "CSI", "csiSnapshot": snapshot, "sourcePVC": "data", "sourceNamespace": "shop",
                "operationTimeout": "10m"}),
        ),
        (
            Kind::DataDownload,
            &of_restore,
            json!({"targetVolume": target, "snapshotID": "none", "sourceNamespace": "shop", "operationTimeout": "10m"}),
        ),
    ];
    for (kind, metadata, mut spec) in volumes {
        spec["backupStorageLocation"] = json!("default");
        let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "spec": spec, "metadata": metadata});
        object["metadata"]["name"] = json!("stuck");
        object["metadata"]["namespace"] = json!(VELERO);
        test_cluster.bed.apply(&[serde_json::from_value(object)?]).await?;
        let api: Api<DynamicObject> =
            Api::namespaced_with(test_cluster.bed.client().await?, VELERO, &kind.resource());
        eventually(&format!("{} to be cancelled", kind.name()), TIMEOUT, async || {
            let found = api.get("stuck").await?;
            ensure!(found.data["spec"]["cancel"] == json!(true), "{}", found.data);
            anyhow::Ok(())
        })
        .await?;
        api.delete("stuck", &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn a_bucket_is_brought_and_used(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<String> {
    let keys = test_cluster.bed.store()?.credentials();
    shop.keep_keys("keys", &keys).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let name = shop.approval_pending("bucket").await?;
    test_cluster.decide(&name, "approve").await?;
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
    policy(test_cluster, true, true).await?;
    shop.restore("pods", "mine").await?;
    shop.restore_ends("pods").await?;
    let maps = test_cluster.admin::<ConfigMap>().await?;
    for own in MODIFIERS.into_iter().chain([VOLUME_POLICY]) {
        let odd = Patch::Merge(json!({"data": {"odd": "x"}}));
        maps.patch(own, &PatchParams::default(), &odd).await?;
    }
    // The volume policy is mended for the next backup.
    shop.back_up("mended").await?;
    ensure!(shop.backup_ends("mended").await? == "Completed");
    shop.restore("pods-again", "mine").await?;
    shop.restore_ends("pods-again").await?;
    policy(test_cluster, true, false).await?;
    shop.restore("home-again", "mine").await?;
    shop.restore_ends("home-again").await?;
    // Rotated: the copy and the location are changed.
    shop.keep_keys("keys", &format!("# rotated\n{keys}aws_session_token = x\n")).await?;
    let secrets = test_cluster.admin::<Secret>().await?;
    wait_until("the rotated key", TIMEOUT, secrets, &name, |copy: Option<&Secret>| {
        let cloud = copy?.data.as_ref()?.get("cloud")?.clone();
        String::from_utf8_lossy(&cloud.0).contains("session_token").then_some(())
    })
    .await?;
    shop.keep_keys("keys", &keys).await?;
    Ok(name)
}

async fn files_are_fetched(shop: &Tenant<'_>) -> Result<()> {
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    shop.create::<NonAdminDownloadRequest>("log", target).await?;
    shop.wait("the link", "log", |request: Option<&NonAdminDownloadRequest>| {
        let status = request?.status.as_ref()?;
        let done = status.phase == Some(Phase::Created)
            && condition::is_true(&status.conditions, condition::PROCESSED);
        done.then_some(())
    })
    .await
}

/// A namespace gets a schedule by the policy; its next run is skipped; and a Velero Schedule of the Go controller goes.
async fn schedules_are_made_and_taken_over(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    let spaces = Api::<Namespace>::all(test_cluster.bed.client().await?);
    let gold = |value| Patch::Merge(json!({"metadata": {"labels": {"tier": value}}}));
    spaces.patch("shop", &PatchParams::default(), &gold(json!("gold"))).await?;
    let runs = |schedule: Option<&NonAdminSchedule>| schedule?.status.as_ref()?.next_run.clone();
    shop.wait("the schedule of the policy", "yearly", runs).await?;
    shop.edit::<NonAdminSchedule>("yearly", json!({"spec": {"skipImmediately": true}})).await?;
    let is_reset =
        |schedule: Option<&NonAdminSchedule>| (schedule?.spec.skip_immediately == Some(false)).then_some(());
    shop.wait("the skip to be noted", "yearly", is_reset).await?;
    let velero = test_cluster.admin::<Schedule>().await?;
    let made = json!({"metadata": {"name": "shop-yearly",
        "labels": {labels::MANAGED_BY: labels::MANAGED_BY_VALUE, labels::NAS_NACUUID: "shop-yearly"},
        "annotations": {labels::NAS_NAME: "yearly", labels::NAS_NAMESPACE: "shop"}},
        "spec": {"schedule": "0 0 1 1 *", "template": {}}});
    velero.create(&PostParams::default(), &serde_json::from_value(made)?).await?;
    let is_gone = |schedule: Option<&Schedule>| schedule.is_none().then_some(());
    wait_until("the Velero Schedule to go", TIMEOUT, velero, "shop-yearly", is_gone).await?;
    spaces.patch("shop", &PatchParams::default(), &gold(json!(null))).await?;
    shop.delete::<NonAdminSchedule>("yearly").await?;
    shop.gone::<NonAdminSchedule>("yearly").await
}

async fn things_are_deleted(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    shop.delete::<NonAdminRestore>("back").await?;
    shop.gone::<NonAdminRestore>("back").await?;
    // With its data: the restore of it goes too.
    let with_data = |so: bool| json!({"spec": {"deleteBackup": so}});
    shop.edit::<NonAdminBackup>("daily", with_data(true)).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    shop.gone::<NonAdminRestore>("again").await?;
    // Withdrawn before Velero has begun.
    test_cluster.bed.velero_stop()?;
    shop.edit::<NonAdminBackup>("extra", with_data(true)).await?;
    let request = shop
        .wait("the request to delete", "extra", |backup: Option<&NonAdminBackup>| {
            backup?.status.as_ref()?.velero_delete_backup_request.as_ref()?.name.clone()
        })
        .await?;
    shop.edit::<NonAdminBackup>("extra", with_data(false)).await?;
    test_cluster.gone_from_velero::<DeleteBackupRequest>(&request).await?;
    shop.delete::<NonAdminBackup>("extra").await?;
    shop.gone::<NonAdminBackup>("extra").await?;
    test_cluster.bed.velero_start().await
}

/// Removes the uid annotations in Velero's namespace, and deletes a backup's request.
async fn as_the_go_controller_leaves_it(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    location: &str,
) -> Result<()> {
    unmark::<BackupStorageLocation>(test_cluster, location).await?;
    unmark::<Secret>(test_cluster, location).await?;
    unmark::<NonAdminBackupStorageLocationRequest>(test_cluster, location).await?;
    let home = shop.api::<NonAdminRestore>().get("home").await?;
    let name = home.status.and_then(|status| status.velero_restore?.name).context("a Restore")?;
    unmark::<Restore>(test_cluster, &name).await?;
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

async fn unmark<K>(test_cluster: &TestCluster, name: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let marks = json!({"nacre.dev/origin-uid": null, "nacre.dev/origin-namespace-uid": null});
    let unmarked = Patch::Merge(json!({"metadata": {"annotations": marks}}));
    test_cluster.admin::<K>().await?.patch(name, &PatchParams::default(), &unmarked).await?;
    Ok(())
}

/// Stamps, sync, garbage collection, a pending location approved by a change of policy, and the end of a location.
async fn all_is_taken_over(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    location: &str,
    nacre: &Nacre,
) -> Result<()> {
    ensure!(
        shop.backup_ends("mine").await? == "Completed",
        "the lost request does not come back from storage"
    );
    ensure!(shop.backup_ends("kept").await? == "Completed");
    let kept = shop.api::<NonAdminBackup>().get("kept").await?;
    let kept = kept.status.and_then(|status| status.velero_backup?.name).context("a Backup")?;
    unmark::<Backup>(test_cluster, &kept).await?;
    for (what, name) in [("Backup", kept.as_str()), ("BackupStorageLocation", location)] {
        let stamped = async || {
            let found = test_cluster.bed.velero_api(what).await?.get(name).await?;
            ensure!(found.annotations().contains_key("nacre.dev/origin-uid"), "{what} {name} is not stamped");
            Ok(())
        };
        eventually("a stamp", TIMEOUT, stamped).await?;
    }
    // Another location waits for approval, and approval is switched off.
    shop.bring_bucket("second", "second-bucket", "keys").await?;
    shop.approval_pending("second").await?;
    policy(test_cluster, false, false).await?;
    shop.location_available("second").await?;
    for name in ["second", "bucket"] {
        shop.delete::<NonAdminBackupStorageLocation>(name).await?;
        shop.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    test_cluster.gone_from_velero::<NonAdminBackupStorageLocationRequest>(location).await?;
    shop.gone::<NonAdminBackup>("mine").await?;
    ensure!(nacre.process.is_running());
    Ok(())
}

//! What Velero imports from a tenant's bucket, with real Velero and nacre down: it keeps nothing that nacre did not give.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bed::{Bed, eventually, wait_until};
use e2e::{VELERO, refused_by};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::fence::cluster::{Fenced, TIMEOUT};

/// A backup of another tenant.
const SOMEBODY_ELSES: &str = "victim-daily-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

pub(crate) fn shaped(name: &str) -> String {
    format!("shop-{name}-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f")
}

fn plant(fenced: &Fenced, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
    plant_next_to(&fenced.contents, name, change)
}

/// A copy of the genuine backup's metadata under another name, changed.
pub(crate) fn plant_next_to(contents: &Path, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
    let genuine = contents.parent().context("a folder")?;
    let mut backup: Value = serde_json::from_slice(&std::fs::read(genuine.join("velero-backup.json"))?)?;
    backup["metadata"]["name"] = json!(name);
    backup["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] = json!(name);
    change(&mut backup);
    let folder = genuine.parent().context("the folder of all backups")?.join(name);
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(contents, folder.join(format!("{name}.tar.gz")))?;
    Ok(std::fs::write(folder.join("velero-backup.json"), backup.to_string())?)
}

/// Volumes of a planted backup, of a pod in this namespace: one that is over, one as Velero creates those that it is about to
/// run, and one that says by name alone that it is of somebody else's backup.
fn plant_volumes(fenced: &Fenced, backup: &str, name: &str, namespace: &str) -> Result<()> {
    let volume = |name: String, status: Value| {
        json!({"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": name, "finalizers": ["x.example/y"],
            "labels": {"velero.io/backup-name": backup, "velero.io/backup-uid": "old", "app.example.com/team": "a"},
            "ownerReferences": [
                {"apiVersion": "velero.io/v1", "kind": "Backup", "name": backup, "uid": "old"},
                {"apiVersion": "v1", "kind": "Namespace", "name": "victim", "uid": "u"}]},
        "spec": {"node": "n", "pod": {"kind": "Pod", "namespace": namespace, "name": "till"}, "volume": "data",
            "backupStorageLocation": "x", "repoIdentifier": "r"}, "status": status})
    };
    let mut by_name = volume(format!("{name}-by-name"), json!({"phase": "Completed"}));
    by_name["metadata"]["labels"] = json!({"velero.io/backup-name": SOMEBODY_ELSES});
    let volumes = json!([
        volume(name.to_owned(), json!({"phase": "Completed"})),
        volume(format!("{name}-new"), json!({})),
        by_name,
    ]);
    let genuine = fenced.contents.parent().and_then(Path::parent).context("a folder")?;
    let file =
        std::fs::File::create(genuine.join(backup).join(format!("{backup}-podvolumebackups.json.gz")))?;
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(volumes.to_string().as_bytes())?;
    Ok(packed.finish().map(drop)?)
}

/// Makes Velero look at every location when it starts, however lately it did.
pub(crate) async fn forget_looks(bed: &Bed) -> Result<()> {
    let locations = bed.velero_api("BackupStorageLocation").await?;
    for location in locations.list(&ListParams::default()).await? {
        bed.velero_status("BackupStorageLocation", &location.name_any(), json!({"lastSyncedTime": null}))
            .await?;
    }
    Ok(())
}

/// Has Velero look at the bucket now, and waits until it has imported this one and whatever else it imports.
async fn look(fenced: &Fenced, control: &str) -> Result<DynamicObject> {
    let bed = &fenced.cluster.bed;
    bed.velero_stop()?;
    forget_looks(bed).await?;
    bed.velero_start().await?;
    e2e::imported(bed, control, 2 * TIMEOUT).await
}

/// Waits until the API server strips what Velero imports.
async fn stripping_is_there(fenced: &Fenced) -> Result<()> {
    fenced.cluster.bed.apply_path(&e2e::deploy("requester.yaml")).await?;
    let velero = fenced.cluster.bed.service_account_client(VELERO, "velero").await?;
    let genuine = fenced.cluster.bed.velero_api("Backup").await?.get(&fenced.backup).await?;
    let backups = Api::<DynamicObject>::namespaced_with(velero, VELERO, &api::Kind::Backup.resource());
    let mut probe = genuine;
    let name = shaped("probe");
    probe.metadata = serde_json::from_value(json!({"name": name, "labels": {
        "openshift.io/oadp-nab-origin-nacuuid": name, "velero.io/schedule-name": "nightly"}}))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("what Velero imports to be stripped", TIMEOUT, async || {
        let made = backups.create(&dry, &probe).await?;
        ensure!(!made.labels().contains_key("velero.io/schedule-name"), "{:?}", made.labels());
        Ok(())
    })
    .await
}

/// Waits until it strips neither backups nor volumes any more.
async fn stripping_is_gone(fenced: &Fenced) -> Result<()> {
    let velero = fenced.cluster.bed.service_account_client(VELERO, "velero").await?;
    let backups =
        Api::<DynamicObject>::namespaced_with(velero.clone(), VELERO, &api::Kind::Backup.resource());
    let genuine = backups.get(&fenced.backup).await?;
    let location = genuine.data["spec"]["storageLocation"].clone();
    let name = shaped("probe");
    let mut backup = genuine;
    backup.metadata = serde_json::from_value(json!({"name": name, "finalizers": ["x.example/y"],
        "labels": {"openshift.io/oadp-nab-origin-nacuuid": name}}))?;
    let volume = json!({"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": "probe", "finalizers": ["x.example/y"], "labels": {"velero.io/backup-uid": "u"}},
        "spec": {"node": "n", "pod": {"kind": "Pod", "namespace": "shop", "name": "till"}, "volume": "data",
            "backupStorageLocation": location, "repoIdentifier": "r"}, "status": {"phase": "Completed"}});
    let volume: DynamicObject = serde_json::from_value(volume)?;
    let volumes =
        Api::<DynamicObject>::namespaced_with(velero, VELERO, &api::Kind::PodVolumeBackup.resource());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("nothing to be stripped", TIMEOUT, async || {
        refused_by("nacre-tenant-backups", backups.create(&dry, &backup).await)?;
        refused_by("nacre-tenant-volumes", volumes.create(&dry, &volume).await)
    })
    .await
}

/// The API server counts what it refused, as the alert that ships asks it.
async fn refusal_is_counted(fenced: &Fenced) -> Result<()> {
    let counter = "apiserver_validating_admission_policy_check_total";
    let alerts = std::fs::read_to_string(e2e::deploy("monitoring/alerts.yaml"))?;
    let asked =
        format!("{counter}{{policy=~\"nacre-tenant-(backups|volumes)\",enforcement_action=\"deny\"}}");
    ensure!(alerts.contains(&asked), "no alert asks for it");
    let metrics = fenced.client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut samples = metrics.lines().filter(|line| line.starts_with(counter));
    let of_backups =
        |line: &str| line.contains("policy=\"nacre-tenant-backups\"") && line.contains("\"deny\"");
    ensure!(samples.any(of_backups), "the refusal is not counted");
    Ok(())
}

/// H2
/// A2
/// A4
/// A6
/// H8: own bucket: a planted PodVolumeBackup with the name of another tenant's backup
/// planted: the policies for imports are not in force
#[tokio::test(flavor = "multi_thread")]
async fn h2_a2_a4_a6_h8_what_velero_imports_from_a_tenants_bucket_is_stripped() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    stripping_is_there(&fenced).await?;
    // As a schedule of the Go controller's made it, honestly or not; and one that claims to be somebody else's.
    let (scheduled, foreign) = (shaped("a-scheduled"), "nightly-20300101000000");
    plant(&fenced, &scheduled, |backup| {
        backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly");
        backup["metadata"]["labels"]["app.example.com/a~b"] = json!("x");
        backup["metadata"]["finalizers"] = json!(["x.example/y"]);
        backup["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": "victim", "uid": "u"}]);
    })?;
    plant_volumes(&fenced, &scheduled, "stripped", "shop")?;
    plant(&fenced, foreign, |_| ())?;
    plant(&fenced, &shaped("z-control"), |_| ())?;
    plant_volumes(&fenced, &shaped("z-control"), "stolen", "victim")?;
    look(&fenced, &shaped("z-control")).await?;
    let backups = fenced.cluster.bed.velero_api("Backup").await?;
    let imported = backups.get(&scheduled).await.context("the rest of it is honest")?;
    ensure!(
        imported.finalizers().is_empty() && imported.owner_references().is_empty(),
        "{:?}",
        imported.metadata
    );
    let labels: Vec<&String> = imported.labels().keys().collect();
    ensure!(
        labels.iter().all(|key| !key.contains("schedule-name") && !key.contains("example.com")),
        "{labels:?}"
    );
    ensure!(imported.labels().contains_key("velero.io/storage-location"), "{labels:?}");
    ensure!(backups.get_opt(foreign).await?.is_none(), "a name is nothing to strip");
    refusal_is_counted(&fenced).await?;
    let volumes = fenced.cluster.bed.velero_api("PodVolumeBackup").await?;
    for name in ["stolen", "stolen-new", "stolen-by-name", "stripped-by-name"] {
        ensure!(volumes.get_opt(name).await?.is_none(), "Velero was given a volume of the victim's");
    }
    for name in ["stripped", "stripped-new"] {
        let volume = volumes.get(name).await?;
        ensure!(volume.finalizers().is_empty(), "{:?}", volume.metadata);
        let owners: Vec<&str> = volume.owner_references().iter().map(|owner| owner.uid.as_str()).collect();
        assert_eq!(owners, [imported.uid().context("a uid")?]);
        ensure!(!volume.labels().contains_key("app.example.com/team"), "{:?}", volume.labels());
    }

    // Where the API server knows no such policies, the same is refused, and the rest is imported.
    let bindings = Api::<MutatingAdmissionPolicyBinding>::all(fenced.client.clone());
    for name in ["nacre-imported-backups", "nacre-imported-volumes"] {
        bindings.delete(name, &DeleteParams::default()).await?;
    }
    stripping_is_gone(&fenced).await?;
    let again = shaped("b-scheduled");
    plant(&fenced, &again, |backup| {
        backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly");
    })?;
    plant(&fenced, &shaped("z-again"), |_| ())?;
    plant_volumes(&fenced, &shaped("z-again"), "refused", "shop")?;
    look(&fenced, &shaped("z-again")).await?;
    ensure!(backups.get_opt(&again).await?.is_none(), "it kept the label of a schedule");
    for name in ["refused", "refused-new", "refused-by-name"] {
        ensure!(volumes.get_opt(name).await?.is_none(), "it kept a finalizer, or another's name");
    }

    // The planted weakness: with no policy at all, everything arrives as it was written.
    fenced.take_imports_fence_away().await?;
    let bare = shaped("c-scheduled");
    plant(&fenced, &bare, |backup| {
        backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly");
    })?;
    plant_volumes(&fenced, &bare, "loot", "victim")?;
    let imported = look(&fenced, &bare).await?;
    assert_eq!(imported.labels()["velero.io/schedule-name"], "nightly", "the forgery is a good one");
    backups.get(foreign).await.context("it lies in the bucket as before")?;
    let loot = volumes.get("loot").await.context("a volume of the victim's")?;
    assert_eq!(loot.data["spec"]["pod"]["namespace"], "victim");
    let by_name = volumes.get("loot-by-name").await.context("a volume by another's name")?;
    assert_eq!(by_name.labels()["velero.io/backup-name"], SOMEBODY_ELSES);
    Ok(())
}

/// A backup of the whole cluster, as a Velero before 1.18.3 imports it: Velero itself leaves it alone since then.
async fn import_greedy(fenced: &Fenced, name: &str, status: Value) -> Result<kube::Result<DynamicObject>> {
    let velero = fenced.cluster.bed.service_account_client(VELERO, "velero").await?;
    let backups = Api::<DynamicObject>::namespaced_with(velero, VELERO, &api::Kind::Backup.resource());
    let location = backups.get(&fenced.backup).await?.data["spec"]["storageLocation"].clone();
    let greedy = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": name,
            "labels": {"openshift.io/oadp-nab-origin-nacuuid": name}},
        "spec": {"storageLocation": location, "includedNamespaces": ["*"], "includeClusterResources": true},
        "status": status});
    Ok(backups.create(&PostParams::default(), &serde_json::from_value(greedy)?).await)
}

/// planted: the policies for imports are not in force
#[tokio::test(flavor = "multi_thread")]
async fn a1_no_backup_of_the_whole_cluster_runs_although_velero_found_it_in_a_tenants_bucket() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    fenced.cluster.bed.namespace("victim").await?;
    let pin = json!({"metadata": {"name": "till"}, "stringData": {"pin": "1234"}});
    let secrets = Api::<Secret>::namespaced(fenced.client.clone(), "victim");
    secrets.create(&PostParams::default(), &serde_json::from_value(pin)?).await?;
    let phases =
        ["New", "Queued", "ReadyToStart", "InProgress", "Completed"].map(|phase| json!({"phase": phase}));
    for (number, status) in phases.into_iter().chain([json!({})]).enumerate() {
        let said = status.to_string();
        let made = import_greedy(&fenced, &shaped(&format!("greedy-{number}")), status).await?;
        refused_by("nacre-tenant-backups", made).context(said)?;
    }

    // The planted weakness: without the policies Velero copies everybody's Secrets into the tenant's bucket.
    fenced.take_imports_fence_away().await?;
    let name = shaped("greedy");
    import_greedy(&fenced, &name, json!({"phase": "New"})).await??;
    let backups = fenced.cluster.bed.velero_api("Backup").await?;
    wait_until("the backup to end", TIMEOUT, backups, &name, |backup| {
        backup?.data["status"]["completionTimestamp"].as_str().map(|_| ())
    })
    .await?;
    let folder = fenced.contents.parent().and_then(Path::parent).context("a folder")?;
    let listed = folder.join(&name).join(format!("{name}-resource-list.json.gz"));
    let mut list = String::new();
    GzDecoder::new(std::fs::File::open(listed)?).read_to_string(&mut list)?;
    ensure!(list.contains("victim/till"), "the forgery is a good one: {list}");
    Ok(())
}

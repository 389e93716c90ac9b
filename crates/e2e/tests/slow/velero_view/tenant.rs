//! Each command, compared with what an administrator sees of the same backup.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, PodVolumeBackup, Restore};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use bed::{eventually, wait_until};
use e2e::{NACRE, Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{Hands, everything, label, velero_backup, velero_restore};

const TIMEOUT: Duration = Duration::from_mins(2);
const POLICY: &str =
    "downloads: { platformStorage: all }\nstorageLocations: { endpoints: { allow: [\"127.0.0.1\"] } }\n";

/// What somebody sees, under the tenant's names, without the marks that only a copy has, or only Velero's object.
fn plain(text: &str, names: &[(&str, &str)]) -> String {
    let text = names.iter().fold(text.to_owned(), |text, (velero, own)| text.replace(velero, own));
    // Columns are as wide as the longest name, and the first label stands behind the word.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = text.lines().map(words).map(|line| match line.strip_prefix("Labels: ") {
        Some(first) => first.to_owned(),
        None => line.replace("Namespace: velero", "Namespace: shop"),
    });
    let own = ["nacre.dev/shown=", "nacre.dev/queue-tag=", "velero.io/exclude-from-backup=", "team=tea"];
    let lines = lines.filter(|line| !line.is_empty() && !own.iter().any(|mark| line.starts_with(mark)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Without a time such as `2026-11-15 20:00:00 +0000 UTC`.
fn without_time(text: &str) -> String {
    let is_time = |word: &&str| {
        *word == "UTC"
            || (word.starts_with(|c: char| c.is_ascii_digit() || c == '+') && word.contains(['-', ':', '0']))
    };
    let lines =
        text.lines().map(|line| line.split(' ').filter(|word| !is_time(word)).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares a command in both hands; a name of the tenant's is Velero's in an administrator's.
async fn compare(
    test_cluster: &TestCluster,
    hands: &Hands<'_>,
    words: &[&str],
    names: &[(&str, &str)],
) -> Result<String> {
    let theirs = hands.sees(words).await?;
    let renamed =
        words.iter().map(|word| names.iter().find(|(_, own)| own == word).map_or(*word, |named| named.0));
    let admins = test_cluster.bed.velero_cli(&renamed.collect::<Vec<_>>()).await?.ok()?;
    // A list shows when the object was created, and Velero's is another one that may be a second younger.
    let lists = words.get(1) == Some(&"get");
    let looked = |text: &str| {
        let text = plain(text, names);
        if lists { without_time(&text) } else { text }
    };
    let (seen, wanted) = (looked(&theirs), looked(&admins));
    ensure!(seen == wanted, "velero {words:?}: the tenant sees\n{seen}\nand the administrator\n{wanted}");
    ensure!(!seen.is_empty(), "velero {words:?} says nothing");
    Ok(theirs)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unmodified_velero_command_line_works_for_a_tenant() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.allow_velero_view().await?;
    test_cluster.set_policy(POLICY).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rival = test_cluster.tenant("rival", "bob").await?;
    let hands = Hands::new(&test_cluster, "shop").await?;
    label(&test_cluster, "shop", json!("true")).await?;
    rival.back_up("theirs").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // Requested with Velero's command line, with nothing but `-n` added.
    let said = hands.sees(&["backup", "create", "daily", "--labels", "team=tea", "--wait"]).await?;
    ensure!(said.contains("Backup completed with status: Completed"), "{said}");
    let velero = velero_backup(&shop, "daily").await?;
    let uid =
        Api::<Backup>::namespaced(test_cluster.bed.client().await?, VELERO).get(&velero).await?.metadata.uid;
    play_a_volume(&test_cluster, &velero, uid.as_deref().unwrap_or_default()).await?;
    wait_until("the volume's copy", TIMEOUT, shop.api::<PodVolumeBackup>(), "volume", |copy| {
        copy.map(|_| ())
    })
    .await?;
    let names = [(velero.as_str(), "daily")];
    compare(&test_cluster, &hands, &["backup", "describe", "daily"], &names).await?;
    let details =
        compare(&test_cluster, &hands, &["backup", "describe", "daily", "--details"], &names).await?;
    ensure!(details.contains("prices"), "{details}");
    ensure!(details.contains("Completed:") && details.contains("shop/web"), "{details}");
    compare(&test_cluster, &hands, &["backup", "logs", "daily"], &names).await?;
    let got = hands.sees(&["backup", "get", "--selector", "team=tea"]).await?;
    ensure!(got.lines().count() == 2 && got.contains("daily") && got.contains("Completed"), "{got}");
    compare(&test_cluster, &hands, &["backup", "get", "daily"], &names).await?;
    downloads_are_the_same(&test_cluster, &hands, &velero).await?;

    // And back.
    shop.delete::<ConfigMap>("prices").await?;
    let said = hands.sees(&["restore", "create", "back", "--from-backup", "daily", "--wait"]).await?;
    ensure!(said.contains("Restore completed with status: Completed"), "{said}");
    shop.api::<ConfigMap>().get("prices").await?;
    let restored = velero_restore(&shop, "back").await?;
    let names = [(restored.as_str(), "back"), (velero.as_str(), "daily")];
    compare(&test_cluster, &hands, &["restore", "get", "back"], &names).await?;
    compare(&test_cluster, &hands, &["restore", "describe", "back", "--details"], &names).await?;
    compare(&test_cluster, &hands, &["restore", "logs", "back"], &names).await?;

    schedules(&shop, &hands).await?;
    own_storage(&test_cluster, &shop, &hands).await?;
    forgeries_lead_nowhere(&test_cluster, &shop, &hands).await?;
    let (text, _) = everything(&test_cluster, "shop").await?;
    ensure!(!text.contains("rival"), "something of another tenant's is in {text}");

    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(2)).await?;

    // Deleted with Velero's command line, the data goes; what is left vanishes with the label.
    hands.sees(&["backup", "delete", "daily", "--confirm"]).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    test_cluster.gone_from_velero::<Backup>(&velero).await?;
    wait_until("the copy to go", TIMEOUT, shop.api::<Backup>(), "daily", |copy| copy.is_none().then_some(()))
        .await?;
    label(&test_cluster, "shop", json!(null)).await?;
    test_cluster.gone_from_velero::<ConfigMap>("nacre-velero-view").await?;
    let left = hands.sees(&["backup", "get"]).await?;
    ensure!(left.lines().all(|line| line.starts_with("NAME") || line.starts_with("stolen")), "{left}");
    ensure!(hands.sees(&["restore", "get"]).await?.lines().count() <= 1);
    ensure!(hands.sees(&["backup-location", "get"]).await?.lines().count() <= 1);
    Ok(())
}

/// Made, shown, paused, resumed and deleted with Velero's command line.
async fn schedules(shop: &Tenant<'_>, hands: &Hands<'_>) -> Result<()> {
    hands.sees(&["schedule", "create", "yearly", "--schedule", "0 3 1 1 *", "--ttl", "48h"]).await?;
    let shows = async |word: &str| {
        eventually(word, TIMEOUT, async || {
            let shown = hands.sees(&["schedule", "get", "yearly"]).await?;
            ensure!(shown.contains(word), "{shown}");
            anyhow::Ok(())
        })
        .await
    };
    shows("Enabled").await?;
    let is_paused = |paused: bool| {
        move |schedule: Option<&NonAdminSchedule>| {
            (schedule?.spec.paused.unwrap_or_default() == paused).then_some(())
        }
    };
    hands.sees(&["schedule", "pause", "yearly"]).await?;
    shop.wait("the schedule to be paused", "yearly", is_paused(true)).await?;
    eventually("the copy to be settled", TIMEOUT, async || {
        let said = hands.sees(&["schedule", "unpause", "yearly"]).await?;
        ensure!(said.contains("unpaused successfully"), "{said}");
        anyhow::Ok(())
    })
    .await?;
    shop.wait("the schedule to be resumed", "yearly", is_paused(false)).await?;
    let described = hands.sees(&["schedule", "describe", "yearly"]).await?;
    ensure!(described.contains("0 3 1 1 *"), "{described}");
    hands.sees(&["schedule", "delete", "yearly", "--confirm"]).await?;
    shop.gone::<NonAdminSchedule>("yearly").await?;

    hands.sees(&["schedule", "create", "never", "--schedule", "0 25 * * *"]).await?;
    eventually("the refusal", TIMEOUT, async || {
        let described = hands.sees(&["schedule", "describe", "never"]).await?;
        ensure!(described.contains("FailedValidation") && described.contains("is not a hour"), "{described}");
        anyhow::Ok(())
    })
    .await?;
    hands.sees(&["schedule", "delete", "never", "--confirm"]).await?;
    Ok(())
}

/// A volume saved from inside a pod, which needs a kubelet: played.
async fn play_a_volume(test_cluster: &TestCluster, backup: &str, uid: &str) -> Result<()> {
    let volume = json!({
        "apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": "volume", "namespace": VELERO, "labels": {labels::VELERO_BACKUP_NAME: backup, labels::VELERO_BACKUP_UID: uid}},
        "spec": {
            "backupStorageLocation": "default", "node": "one", "repoIdentifier": "", "volume": "data",
            "pod": {"kind": "Pod", "namespace": "shop", "name": "web", "uid": "u"}, "uploaderType": "kopia",
        },
        "status": {"phase": "Completed", "path": "/data", "snapshotID": "s"},
    });
    test_cluster.bed.apply(&[serde_json::from_value(volume)?]).await
}

/// `velero backup download` gives the tenant the very bytes an administrator gets.
async fn downloads_are_the_same(test_cluster: &TestCluster, hands: &Hands<'_>, velero: &str) -> Result<()> {
    let file = |name: &str| test_cluster.bed.folder().join(name).display().to_string();
    let (theirs, admins) = (file("tenant.tar.gz"), file("admin.tar.gz"));
    hands.sees(&["backup", "download", "daily", "--output", &theirs]).await?;
    test_cluster.bed.velero_cli(&["backup", "download", velero, "--output", &admins]).await?.ok()?;
    ensure!(std::fs::read(theirs)? == std::fs::read(admins)?);
    Ok(())
}

/// A tenant's bucket is shown under its own name, without the credential; what lies in it can be read.
async fn own_storage(test_cluster: &TestCluster, shop: &Tenant<'_>, hands: &Hands<'_>) -> Result<()> {
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "mine", "keys").await?;
    let status = shop.location_available("bucket").await?;
    let velero = status.velero_backup_storage_location.and_then(|velero| velero.name).unwrap_or_default();
    wait_until("the location's copy", TIMEOUT, shop.api::<BackupStorageLocation>(), "bucket", |copy| {
        (copy?.phase() == "Available").then_some(())
    })
    .await?;
    let got = hands.sees(&["backup-location", "get"]).await?;
    ensure!(got.lines().count() == 2 && got.contains("bucket") && got.contains("Available"), "{got}");
    // Velero notes every minute when it last looked, which alone is not worth a write: it may differ.
    let names = [(velero.as_str(), "bucket")];
    let looked = |text: &str| without_time(&plain(text, &names));
    let theirs = hands.sees(&["backup-location", "get", "bucket"]).await?;
    let admins = test_cluster.bed.velero_cli(&["backup-location", "get", &velero]).await?.ok()?;
    ensure!(looked(&theirs) == looked(&admins), "the tenant sees\n{theirs}\nand the administrator\n{admins}");
    ensure!(looked(&theirs).contains("bucket aws mine/shop Available"), "{theirs}");
    let said = hands.sees(&["backup", "create", "own", "--storage-location", "bucket", "--wait"]).await?;
    ensure!(said.contains("status: Completed"), "{said}");
    let backup = velero_backup(shop, "own").await?;
    let names = [(backup.as_str(), "own"), (velero.as_str(), "bucket")];
    let details = compare(test_cluster, hands, &["backup", "describe", "own", "--details"], &names).await?;
    // Copies are in nobody's backup: not in the tenant's, and not in an administrator's of the same namespace.
    test_cluster
        .bed
        .velero_cli(&["backup", "create", "admins", "--include-namespaces", "shop", "--wait"])
        .await?
        .ok()?;
    let admins = test_cluster.bed.velero_cli(&["backup", "describe", "admins", "--details"]).await?.ok()?;
    for (whose, details) in [("the tenant's", details), ("the administrator's", admins)] {
        let full = details.contains("v1/ConfigMap") && !details.contains("velero.io/v1/");
        ensure!(full, "{whose} backup: {details}");
    }
    compare(test_cluster, hands, &["backup", "logs", "own"], &names).await?;
    let (text, count) = everything(test_cluster, "shop").await?;
    let keys = test_cluster.bed.store()?.credentials();
    // A signed link names the key by its id, as all of them do.
    let secret = keys.lines().find_map(|line| line.strip_prefix("aws_secret_access_key"));
    let secret = secret.map(|value| value.trim_start_matches([' ', '=']).trim()).context("a key")?;
    ensure!(!secret.is_empty() && !text.contains(secret), "a credential is among {count} objects in shop");
    ensure!(!text.contains("\"credential\""), "{text}");
    Ok(())
}

/// Edited copies and forged objects change nothing outside the tenant namespace.
async fn forgeries_lead_nowhere(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    hands: &Hands<'_>,
) -> Result<()> {
    let client = test_cluster.bed.client().await?;
    let copies = Api::<Backup>::namespaced(client.clone(), "shop");
    let truth = Api::<Backup>::namespaced(client.clone(), VELERO);
    let before = copies.get("daily").await?;
    let velero = velero_backup(shop, "daily").await?;
    let true_before = truth.get(&velero).await?;
    // The tenant's own role does not even let them; somebody with more rights tries.
    ensure!(shop.api::<Backup>().delete("daily", &DeleteParams::default()).await.is_err());
    let forged = json!({
        "metadata": {"labels": {labels::SHOWN: null}, "annotations": {labels::NAB_NAMESPACE: "elsewhere"}},
        "spec": {"includedNamespaces": ["elsewhere"], "storageLocation": "elsewhere"},
        "status": {"phase": "Failed"},
    });
    copies.patch("daily", &PatchParams::default(), &Patch::Merge(forged)).await?;
    let mended = |copy: Option<&Backup>| {
        let copy = copy?;
        (copy.spec == before.spec
            && copy.status == before.status
            && copy.metadata.annotations == before.metadata.annotations)
            .then_some(())
    };
    wait_until("the copy to be mended", TIMEOUT, copies.clone(), "daily", mended).await?;
    copies.delete("daily", &DeleteParams::default()).await?;
    wait_until("the copy to come back", TIMEOUT, copies.clone(), "daily", mended).await?;

    // One that was never made, said to be complete, and in somebody else's name.
    let mut stolen = before.clone();
    stolen.metadata =
        kube::core::ObjectMeta { name: Some("stolen".into()), ..kube::core::ObjectMeta::default() };
    stolen.spec.included_namespaces = Some(vec!["elsewhere".into()]);
    copies.create(&PostParams::default(), &stolen).await?;
    let said = hands.sees(&["restore", "create", "theft", "--from-backup", "stolen", "--wait"]).await?;
    ensure!(said.contains("status: FailedValidation"), "{said}");
    let why = hands.sees(&["restore", "describe", "theft"]).await?;
    ensure!(why.contains("there is no NonAdminBackup \"stolen\""), "{why}");
    let log = hands.velero(&["backup", "logs", "stolen"]).await?;
    ensure!(!log.success && log.stderr.contains("there is no NonAdminBackup"), "{log:?}");

    // Other namespaces in a request are refused where Velero's command line looks.
    let said =
        hands.sees(&["backup", "create", "more", "--include-namespaces", "shop,elsewhere", "--wait"]).await?;
    ensure!(said.contains("status: FailedValidation"), "{said}");
    let why = hands.sees(&["backup", "describe", "more"]).await?;
    ensure!(why.contains("spec.includedNamespaces: only \"shop\""), "{why}");
    eventually("the refusals to be all there is", TIMEOUT, async || {
        let made = [
            shop.api::<NonAdminBackup>().get_opt("more").await?.is_some(),
            shop.api::<api::NonAdminRestore>().get_opt("theft").await?.is_some(),
        ];
        if made == [false, false] { anyhow::Ok(()) } else { anyhow::bail!("{made:?}") }
    })
    .await?;

    let true_after = truth.get(&velero).await?;
    ensure!(true_after.spec == true_before.spec && true_after.status == true_before.status);
    let restores =
        Api::<Restore>::namespaced(client.clone(), VELERO).list(&ListParams::default()).await?.items.len();
    let deletions = Api::<DeleteBackupRequest>::namespaced(client, VELERO)
        .list(&ListParams::default())
        .await?
        .items
        .len();
    ensure!((restores, deletions) == (1, 0), "Velero has {restores} restores and {deletions} deletions");
    Ok(())
}

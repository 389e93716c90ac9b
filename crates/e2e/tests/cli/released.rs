//! Released clients: what oadp-cli writes and reads, kubectl, and the velero command line of an administrator.

use anyhow::{Context as _, Result};
use api::{
    ApprovalDecision, NonAdminBackup, NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest,
    NonAdminRestore, condition,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{person::Person, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn what_oadp_cli_writes_is_understood_and_what_it_reads_is_there() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let zoe = Person::new(test_cluster, "released", "zoe").await?;
    let store = test_cluster.bed.store()?;
    zoe.tenant.keep_keys("keys", &store.credentials()).await?;
    zoe.tenant.bring_bucket("bsl", "released-bucket", "keys").await?;
    zoe.tenant.location_available("bsl").await?;

    // `nonadmin backup create`: the own namespace by name, `*`, and Go's zero values.
    zoe.tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let spec = json!({
        "includedNamespaces": ["released"], "includedResources": ["*"], "storageLocation": "bsl", "ttl": "0s",
        "hooks": {}, "metadata": {}, "csiSnapshotTimeout": "0s", "itemOperationTimeout": "0s",
    });
    zoe.tenant.create::<NonAdminBackup>("b", json!({"spec": {"backupSpec": spec}})).await?;
    assert_eq!(zoe.tenant.backup_ends("b").await?, "Completed");
    let read = serde_json::to_value(zoe.tenant.api::<NonAdminBackup>().get("b").await?)?;
    for path in [
        "/status/phase",
        "/status/veleroBackup/name",
        "/status/veleroBackup/nacuuid",
        "/status/veleroBackup/namespace",
        "/status/veleroBackup/spec/includedNamespaces/0",
        "/status/veleroBackup/status/phase",
        "/status/veleroBackup/status/progress/totalItems",
        "/status/queueInfo/estimatedQueuePosition",
    ] {
        assert!(read.pointer(path).is_some_and(|value| !value.is_null()), "{path}: {read:#}");
    }

    // `nonadmin backup logs`: a generated name, and a poll for Processed=True and the link.
    let request: NonAdminDownloadRequest = serde_json::from_value(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminDownloadRequest",
        "metadata": {"generateName": "b-logs-"}, "spec": {"target": {"kind": "BackupLog", "name": "b"}},
    }))?;
    let made = zoe.tenant.api::<NonAdminDownloadRequest>().create(&PostParams::default(), &request).await?;
    let ready = |request: Option<&NonAdminDownloadRequest>| -> Option<Value> {
        let read = serde_json::to_value(request?).ok()?;
        let conditions = read["status"]["conditions"].as_array()?;
        let done = conditions.iter().any(|one| one["type"] == "Processed" && one["status"] == "True");
        Some(read["status"]["velero"]["status"]["downloadURL"].clone()).filter(|url| done && url.is_string())
    };
    zoe.tenant.wait("a link", &made.name_any(), ready).await?;
    zoe.tenant.delete::<NonAdminDownloadRequest>(&made.name_any()).await?;

    // A restore, with what `--wait` of the new program expects of the old one's objects.
    zoe.tenant.restore("r", "b").await?;
    zoe.says(&["restore", "wait", "r"]).await?;

    // `nonadmin backup delete`: an update of the whole object.
    let api = zoe.tenant.api::<NonAdminBackup>();
    let mut whole = api.get("b").await?;
    whole.spec.delete_backup = Some(true);
    api.replace("b", &PostParams::default(), &whole).await?;
    zoe.tenant.gone::<NonAdminBackup>("b").await?;
    zoe.tenant.gone::<NonAdminRestore>("r").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_as_oadp_cli_gives_it_counts() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let una = Person::new(test_cluster, "waits", "una").await?;
    una.tenant.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    una.tenant.bring_bucket("bsl", "waits-bucket", "keys").await?;
    let status = una
        .tenant
        .location_is("the request to be made", "bsl", |status| {
            let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
            approved.is_some_and(|approved| approved.reason == condition::BSL_SPEC_APPROVAL_PENDING)
        })
        .await?;

    // `nabsl-request get`: by the UUID in the location's status, and by the request's name.
    let uuid = status.velero_backup_storage_location.and_then(|velero| velero.nacuuid).context("a UUID")?;
    let requests = test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
    let read = serde_json::to_value(requests.get(&uuid).await?)?;
    let reported = &read["status"]["nonAdminBackupStorageLocation"];
    assert_eq!(
        (&reported["name"], &reported["namespace"], &reported["nacuuid"]),
        (&json!("bsl"), &json!("waits"), &json!(uuid))
    );
    assert_eq!(
        (&read["spec"]["approvalDecision"], &read["status"]["phase"]),
        (&json!("pending"), &json!("Pending"))
    );
    assert_eq!(reported["requestedSpec"]["objectStorage"]["bucket"], "waits-bucket");

    // `nabsl-request reject --reason`: an update of the whole object, and a reason that the tenant gets to read.
    let mut whole = requests.get(&uuid).await?;
    whole.spec.approval_decision = Some(ApprovalDecision::Reject);
    let reason = ("openshift.io/oadp-rejection-reason".to_owned(), "not that bucket".to_owned());
    whole.metadata.annotations.get_or_insert_default().extend([reason]);
    requests.replace(&uuid, &PostParams::default(), &whole).await?;
    una.tenant
        .location_is("the rejection to be told", "bsl", |status| {
            let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
            approved.is_some_and(|approved| approved.message.ends_with(": not that bucket"))
        })
        .await?;

    // `nabsl-request approve`: likewise.
    let mut whole = requests.get(&uuid).await?;
    whole.spec.approval_decision = Some(ApprovalDecision::Approve);
    requests.replace(&uuid, &PostParams::default(), &whole).await?;
    una.tenant.location_available("bsl").await?;
    let read = serde_json::to_value(requests.get(&uuid).await?)?;
    assert_eq!(read["status"]["phase"], "Approved");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_and_velero_see_what_nacre_made() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let kim = Person::new(test_cluster, "plain", "kim").await?;
    kim.says(&["backup", "create", "daily", "--wait"]).await?;
    let kubectl = async |arguments: &[&str]| {
        test_cluster.bed.kubectl(&[arguments, &["--as=kim", "-n", "plain"]].concat()).await?.ok()
    };
    let table = kubectl(&["get", "nab"]).await?;
    assert!(
        table.contains("REQUEST-PHASE") && table.contains("Created") && table.contains("Completed"),
        "{table}"
    );
    assert!(kubectl(&["describe", "nab", "daily"]).await?.contains("BackupCompleted"));
    assert!(kubectl(&["explain", "nab.spec.backupSpec.ttl"]).await?.contains("720h"));

    // An administrator's velero, in Velero's namespace.
    let backup = kim.tenant.api::<NonAdminBackup>().get("daily").await?;
    let name = backup.status.and_then(|status| status.velero_backup?.name).context("a Velero Backup")?;
    assert!(test_cluster.bed.velero_cli(&["backup", "get"]).await?.ok()?.contains(&name));
    assert!(test_cluster.bed.velero_cli(&["backup", "describe", &name]).await?.ok()?.contains("Completed"));
    assert!(test_cluster.bed.velero_cli(&["backup", "logs", &name]).await?.ok()?.contains("level=info"));

    // Deleted by kubectl as the README says.
    let gone = json!({"spec": {"deleteBackup": true}});
    kim.tenant.api::<NonAdminBackup>().patch("daily", &PatchParams::default(), &Patch::Merge(gone)).await?;
    kim.tenant.gone::<NonAdminBackup>("daily").await
}

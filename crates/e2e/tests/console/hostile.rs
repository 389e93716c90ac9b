//! Text that is made to become markup, in every field that a tenant can set and that nacre or Velero may repeat. Nobody acts on
//! these objects, so all of them are there.

use anyhow::{Result, ensure};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminRestore,
    NonAdminSchedule,
};
use e2e::Tenant;
use e2e::played::{condition, play};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::browser::Driver;
use crate::cluster::{laptop, stage};

const EVIL: &str = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>";

/// A condition whose message repeats what the tenant wrote.
fn repeated(type_: &str, reason: &str) -> Value {
    let mut found = condition(type_, "False", reason);
    found[0]["message"] = json!(EVIL);
    found
}

async fn hostile(tenant: &Tenant<'_>) -> Result<()> {
    let notes = json!({"annotations": {"note": EVIL}});
    let backup = json!({"metadata": notes, "spec": {"backupSpec": {"storageLocation": "hostile", "labelSelector": {"matchLabels": {"app": "x"}}}}});
    tenant.create::<NonAdminBackup>("hostile", backup).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidBackupSpec")});
    play::<NonAdminBackup>(tenant, "hostile", status).await?;
    let restore = json!({"metadata": notes, "spec": {"restoreSpec": {"backupName": "hostile"}}});
    tenant.create::<NonAdminRestore>("hostile", restore).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidRestoreSpec")});
    play::<NonAdminRestore>(tenant, "hostile", status).await?;
    let schedule = json!({"metadata": notes, "spec": {"schedule": EVIL, "timeZone": EVIL, "template": {"backupSpec": {}}}});
    tenant.create::<NonAdminSchedule>("hostile", schedule).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidScheduleSpec")});
    play::<NonAdminSchedule>(tenant, "hostile", status).await?;
    let storage = json!({"provider": "aws", "objectStorage": {"bucket": EVIL, "prefix": EVIL}, "config": {"region": EVIL, "s3Url": EVIL},
        "credential": {"name": "keys", "key": "cloud"}});
    let location = json!({"metadata": notes, "spec": {"backupStorageLocationSpec": storage}});
    tenant.create::<NonAdminBackupStorageLocation>("hostile", location).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidSpec")});
    play::<NonAdminBackupStorageLocation>(tenant, "hostile", status).await?;

    // What nacre would write down of it for the administrators.
    let requests: Api<NonAdminBackupStorageLocationRequest> =
        Api::namespaced(tenant.bed.client().await?, "velero");
    let origin = json!({"openshift.io/oadp-nabsl-origin-name": "hostile", "openshift.io/oadp-nabsl-origin-namespace": tenant.namespace});
    let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocationRequest",
        "metadata": {"name": "hostile-request", "namespace": "velero", "annotations": origin}, "spec": {"approvalDecision": "pending"}});
    requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
    let asked = json!({"name": "hostile", "namespace": tenant.namespace, "nacuuid": "hostile-request", "requestedSpec": storage});
    let status = json!({"status": {"phase": "Pending", "nonAdminBackupStorageLocation": asked}});
    requests.patch_status("hostile-request", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_tenants_is_text_for_everybody() -> Result<()> {
    let cluster = stage().await?;
    let tenant = &cluster.tenant("browser-loud", "mal").await?;
    hostile(tenant).await?;
    let driver = Driver::start().await?;
    let owner = laptop(&cluster.bed, "browser-loud", Some("mal")).await?;
    let admin = laptop(&cluster.bed, "velero", None).await?;
    let (theirs, his) = (driver.browser("mal", 1280, 900).await?, driver.browser("admin", 1280, 900).await?);
    theirs.open(&owner.link).await?;
    his.open(&admin.link).await?;
    let namespace = "/ns/browser-loud";
    // Where the text must be seen, and where it may not even be.
    let pages = [
        ("", true),
        ("/backups", true),
        ("/backups/hostile", true),
        ("/restores/hostile", true),
        ("/schedules", true),
        ("/schedules/hostile", true),
        ("/locations/hostile", true),
        ("/locations", false),
        ("/restores", false),
        ("/new-backup", false),
    ];
    let pages = pages.map(|(path, shown)| (&theirs, owner.page(&format!("{namespace}{path}")), shown));
    // The others read Velero's objects, which are not here: unit tests of the console open them.
    let administrators = [
        ("/admin/requests", false),
        ("/admin/requests/browser-loud/hostile", true),
        ("/admin/doctor", false),
        (namespace, true),
    ];
    let administrators = administrators.map(|(path, shown)| (&his, admin.page(path), shown));
    for (browser, page, shown) in pages.into_iter().chain(administrators) {
        browser.open(&page).await?;
        browser.sees("kubectl nacre").await?;
        if shown {
            browser.sees("<script>document.title='owned'</script>").await?;
        }
        let seen = browser
            .script("return [document.title, document.querySelectorAll('img[src=x], main script').length]")
            .await?;
        ensure!(seen[0] != "owned" && seen[1] == 0, "{page}: text became markup: {seen}");
    }
    Ok(())
}

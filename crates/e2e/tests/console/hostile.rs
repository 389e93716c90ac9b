//! Text that is made to become markup, in every field that a tenant can set and that nacre or Velero may repeat. Nobody acts on
//! these objects, so all of them are there.

use anyhow::{Result, ensure};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminRestore,
    NonAdminSchedule, labels,
};
use e2e::Tenant;
use e2e::played::{condition, play, refuse_downloads};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::browser::{Browser, Driver};
use crate::cluster::{laptop, stage};

const EVIL: &str = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>";
/// The same for names of roles and bindings, which have no slash.
const EVIL_NAME: &str = "<img src=x onerror=document.title='owned'>";

/// A condition whose message repeats what the tenant wrote.
fn repeated(type_: &str, reason: &str) -> Value {
    let mut found = condition(type_, "False", reason);
    found[0]["message"] = json!(EVIL);
    found
}

async fn hostile(tenant: &Tenant<'_>) -> Result<()> {
    let notes = json!({"annotations": {"note": EVIL}});
    let exec = json!({"exec": {"container": EVIL, "command": [EVIL]}});
    let hooks =
        |when: &str| json!({"resources": [{"name": EVIL, "includedResources": [EVIL], when: [exec]}]});
    let backup = json!({"metadata": notes, "spec": {"backupSpec": {"storageLocation": "hostile", "labelSelector": {"matchLabels": {"app": "x"}},
        "includedResources": [EVIL], "hooks": hooks("pre"), "resourcePolicy": {"kind": "ConfigMap", "name": EVIL}}}});
    tenant.create::<NonAdminBackup>("hostile", backup).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidBackupSpec")});
    play::<NonAdminBackup>(tenant, "hostile", status).await?;
    let restore = json!({"metadata": notes, "spec": {"restoreSpec": {"backupName": "hostile", "includedResources": [EVIL],
        "hooks": hooks("postHooks"), "resourceModifier": {"kind": "ConfigMap", "name": EVIL}}}});
    tenant.create::<NonAdminRestore>("hostile", restore).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidRestoreSpec")});
    play::<NonAdminRestore>(tenant, "hostile", status).await?;
    let schedule = json!({"metadata": notes, "spec": {"schedule": EVIL, "timeZone": EVIL, "template": {"backupSpec": {}}}});
    tenant.create::<NonAdminSchedule>("hostile", schedule).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidScheduleSpec")});
    play::<NonAdminSchedule>(tenant, "hostile", status).await?;
    let storage = json!({"provider": "aws", "objectStorage": {"bucket": EVIL, "prefix": EVIL}, "config": {"region": EVIL, "s3Url": EVIL, EVIL: EVIL},
        "credential": {"name": EVIL, "key": EVIL}});
    let location = json!({"metadata": notes, "spec": {"backupStorageLocationSpec": storage}});
    tenant.create::<NonAdminBackupStorageLocation>("hostile", location).await?;
    let status = json!({"phase": "BackingOff", "conditions": repeated("Accepted", "InvalidSpec")});
    play::<NonAdminBackupStorageLocation>(tenant, "hostile", status).await?;

    // A backup that is over: what Velero reported, and what became of the claims.
    let over = json!({"metadata": notes, "spec": {"backupSpec": {}}});
    tenant.create::<NonAdminBackup>("over", over).await?;
    let mut status = json!({"phase": "Created", "conditions": repeated("DataProtected", "ClaimsNotSaved"),
        "results": {"errors": [EVIL], "warnings": [EVIL]},
        "claims": [{"name": EVIL, "state": "NotSaved", "message": EVIL}],
        "veleroBackup": {"name": "over", "namespace": "velero", "status": {"phase": "Completed", "warnings": 1, "errors": 1,
            "completionTimestamp": "2026-11-16T11:50:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
    play::<NonAdminBackup>(tenant, "over", status.clone()).await?;
    let restore = json!({"metadata": notes, "spec": {"restoreSpec": {"backupName": "over"}}});
    tenant.create::<NonAdminRestore>("over", restore).await?;
    let velero = status["veleroBackup"].take();
    status["veleroRestore"] = json!({"name": "over", "namespace": "velero", "status": velero["status"]});
    status["conditions"] = repeated("DataRestored", "VolumesFailed");
    status["claims"] = json!([{"name": EVIL, "state": "Failed", "message": EVIL}]);
    status.as_object_mut().map(|status| status.remove("veleroBackup"));
    play::<NonAdminRestore>(tenant, "over", status).await?;
    let made = tenant.api::<NonAdminBackup>().get("over").await?;
    let event = json!({"metadata": {"name": "over", "namespace": tenant.namespace}, "type": "Warning", "reason": "Loud", "message": EVIL,
        "involvedObject": {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup", "namespace": tenant.namespace,
            "name": "over", "uid": made.metadata.uid}, "lastTimestamp": "2026-11-16T11:50:00Z"});
    let events: Api<Event> = Api::namespaced(tenant.bed.client().await?, &tenant.namespace);
    events.create(&PostParams::default(), &serde_json::from_value(event)?).await?;

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

/// What reaches the queue: a request that waits, and a backup that runs, as an object of the tenant's bucket may describe it.
async fn hostile_queue(tenant: &Tenant<'_>) -> Result<()> {
    let waiting = json!({"metadata": {"annotations": {labels::QUEUE: EVIL, "note": EVIL}},
        "spec": {"backupSpec": {"storageLocation": EVIL}}});
    tenant.create::<NonAdminBackup>("waiting", waiting).await?;
    let waiting = json!({"metadata": {"annotations": {labels::QUEUE: EVIL}}, "spec": {"restoreSpec": {"backupName": EVIL}}});
    tenant.create::<NonAdminRestore>("waiting", waiting).await?;
    let origins = [
        ("Backup", labels::NAB_NAMESPACE, labels::NAB_NAME),
        ("Restore", labels::NAR_NAMESPACE, labels::NAR_NAME),
    ];
    for (kind, namespace, name) in origins {
        let running = json!({"apiVersion": "velero.io/v1", "kind": kind,
            "metadata": {"name": "running", "namespace": "velero", "annotations": {namespace: EVIL, name: EVIL}},
            "spec": {"backupName": EVIL, "storageLocation": EVIL}, "status": {"phase": "InProgress"}});
        let api = tenant.bed.velero_api(kind).await?;
        api.create(&PostParams::default(), &serde_json::from_value(running)?).await?;
    }
    Ok(())
}

/// What reaches the page of who can migrate: an administrator of a namespace names roles, bindings and people there.
async fn hostile_roles(tenant: &Tenant<'_>) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    // To evict a pod is to migrate its virtual machine. The role admin permits it, so it can be given to others.
    let rules = json!([{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]);
    tenant.create::<Role>(EVIL_NAME, json!({ "rules": rules })).await?;
    let people = ["User", "Group"].map(|kind| json!({"apiGroup": group, "kind": kind, "name": EVIL}));
    for (name, kind, role) in [(EVIL_NAME, "Role", EVIL_NAME), ("<u>", "ClusterRole", "admin")] {
        let role = json!({"apiGroup": group, "kind": kind, "name": role});
        tenant.create::<RoleBinding>(name, json!({"roleRef": role, "subjects": people})).await?;
    }
    Ok(())
}

/// The page is there, shows the text if it must, as text, and needs no scrolling because of it. No
/// page of the console has an element `u` of its own.
async fn is_harmless(browser: &Browser<'_>, page: &str, shown: bool) -> Result<()> {
    browser.sees("kubectl nacre").await?;
    if shown {
        browser.sees("<script>document.title='owned'</script>").await?;
    }
    let seen = browser
        .script(
            "return [document.title, document.querySelectorAll('img[src=x], main script, main u').length]",
        )
        .await?;
    ensure!(seen[0] != "owned" && seen[1] == 0, "{page}: text became markup: {seen}");
    browser.fits_a_narrow_screen().await
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_tenants_is_text_for_everybody() -> Result<()> {
    let cluster = stage().await?;
    let tenant = &cluster.tenant("browser-loud", "mal").await?;
    hostile(tenant).await?;
    hostile_queue(tenant).await?;
    hostile_roles(tenant).await?;
    // Nobody waits for files that do not come.
    let refuses = tokio::spawn(refuse_downloads(cluster.bed.client().await?, "browser-loud".to_owned()));
    let driver = Driver::start().await?;
    let owner = laptop(&cluster.bed, "browser-loud", Some("mal")).await?;
    let admin = laptop(&cluster.bed, "velero", None).await?;
    let (theirs, his) = (driver.browser("mal").await?, driver.browser("admin").await?);
    theirs.open(&owner.link).await?;
    his.open(&admin.link).await?;
    let namespace = "/ns/browser-loud";
    // Where the text must be seen, and where it may not even be.
    let pages = [
        ("", true),
        ("/backups", true),
        ("/backups/hostile", true),
        ("/backups/over", true),
        ("/restores/hostile", true),
        ("/restores/over", true),
        ("/restore", true),
        ("/restore/over", false),
        ("/restore/hostile", false),
        ("/replace/over", false),
        ("/replace/hostile", false),
        ("/schedules", true),
        ("/schedules/hostile", true),
        ("/locations/hostile", true),
        ("/locations", false),
        ("/restores", false),
        ("/new-backup", false),
    ];
    let pages = pages.map(|(path, shown)| (&theirs, owner.page(&format!("{namespace}{path}")), shown));
    let administrators = [
        ("/admin/requests", true),
        ("/admin/requests/browser-loud/hostile", true),
        ("/admin/queue", true),
        ("/admin/usage", true),
        ("/admin/policy", false),
        ("/admin/migration", true),
        ("/admin/doctor", false),
        (namespace, true),
    ];
    let administrators = administrators.map(|(path, shown)| (&his, admin.page(path), shown));
    for (browser, page, shown) in pages.into_iter().chain(administrators) {
        browser.open(&page).await?;
        is_harmless(browser, &page, shown).await?;
    }

    // Not only the people, also the names on the way there.
    his.open(&admin.page("/admin/migration")).await?;
    his.sees(&format!("rolebinding/{EVIL_NAME} -> role/{EVIL_NAME}")).await?;
    his.sees("rolebinding/<u> -> clusterrole/admin").await?;

    // Another policy, tried on what there is, repeats it in what it would refuse.
    his.open(&admin.page("/admin/policy")).await?;
    his.write("#policy", "storageLocations: { endpoints: { allow: ['127.0.0.1'] } }").await?;
    his.click("form[action='/admin/policy'] button").await?;
    his.sees("would refuse ").await?;
    is_harmless(&his, "a policy that is tried", true).await?;

    // What would happen repeats what somebody wrote.
    let written = EVIL.replace('\'', "%27").replace('=', "%3D").replace(' ', "%20");
    theirs.open(&owner.page(&format!("{namespace}/new-backup?name=loud&resources={written}"))).await?;
    theirs.click("button[value=check]").await?;
    is_harmless(&theirs, "what would happen", true).await?;

    refuses.abort();

    // Markup would be noticed.
    for markup in [EVIL, "<u>"] {
        his.open(&admin.page("/admin/usage")).await?;
        his.script(&format!("document.querySelector('main').innerHTML += {}", json!(markup))).await?;
        let found = is_harmless(&his, "a page with markup", false).await;
        let is_noticed = found.as_ref().is_err_and(|why| why.to_string().contains("text became markup"));
        ensure!(is_noticed, "{markup} is not noticed: {found:?}");
    }
    Ok(())
}

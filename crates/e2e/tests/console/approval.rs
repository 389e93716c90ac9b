//! Two people side by side: one asks for storage, the other decides.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::browser::Driver;
use crate::cluster::{laptop, owner, test_cluster};
use crate::times;

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_asked_for_and_approved() -> Result<()> {
    let cluster = test_cluster().await?;
    let cat = owner("browser-mill", "cat").await?;
    let store = cluster.bed.store()?;
    cat.keep_keys("keys", &store.credentials()).await?;
    store.make_bucket("browser-mill")?;

    // She asks by the form: the Secret is chosen by its name, and nothing of it is on the page.
    let driver = Driver::start().await?;
    let tenant = laptop(&cluster.bed, "browser-mill", Some("cat")).await?;
    let hers = driver.browser("cat").await?;
    hers.open(&tenant.link).await?;
    hers.does_not_see("Doctor").await?;
    hers.open(&tenant.page("/ns/browser-mill/new-location")).await?;
    let config = format!("s3ForcePathStyle=true,s3Url={}", store.url());
    for (field, text) in
        [("#name", "mine"), ("#bucket", "browser-mill"), ("#region", bed::REGION), ("#config", &config)]
    {
        hers.write(field, text).await?;
    }
    let secrets =
        hers.script("return [...document.querySelector('#secret').options].map((one) => one.value)").await?;
    ensure!(secrets == json!(["keys"]), "{secrets}");
    let page = hers.script("return document.documentElement.outerHTML").await?;
    ensure!(!page.as_str().unwrap_or_default().contains("aws_secret_access_key"), "{page}");
    hers.inspect("37-new-location").await?;
    hers.click("button[value=create]").await?;
    hers.sees("waiting for an administrator to approve it").await?;
    hers.inspect("38-pending").await?;

    let admin = laptop(&cluster.bed, "velero", None).await?;
    let his = driver.browser("admin").await?;
    his.open(&admin.link).await?;
    his.sees("Doctor").await?;
    his.finds(&admin.page("/admin/requests"), "browser-mill").await?;
    his.inspect("29-requests").await?;
    his.click("a[href='/admin/requests/browser-mill/mine']").await?;
    his.sees("Approving means").await?;
    his.inspect("31-request").await?;
    times::reads_elsewhere(&his).await?;
    his.open(&admin.page("/admin/requests/browser-mill/mine")).await?;
    // When it was asked for, and when it was decided last.
    let times = times::are_the_readers(&his).await?;
    ensure!(times == 2, "{times} times");
    times::reads_at_home(&his).await?;
    his.write("#reason", "ticket 7").await?;
    his.click("button[value=approve]").await?;
    // nacre takes a moment, and this page does not follow it.
    his.sees("ticket 7").await?;
    his.finds(&admin.page("/admin/requests/browser-mill/mine"), "Approved - Velero may use it").await?;
    his.sees("ticket 7").await?;

    // Her page follows: nobody loads it again.
    hers.sees("ready: Velero can use it").await?;

    // What is held waits in the queue until he releases it.
    let annotations = json!({"annotations": {"nacre.dev/queue": "hold"}});
    let held = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "held", "namespace": "browser-mill", "annotations": annotations["annotations"]},
        "spec": {"backupSpec": {"ttl": "900h"}}});
    cluster.bed.apply_yaml(&held.to_string()).await?;
    his.finds(&admin.page("/admin/queue"), "Held").await?;
    his.inspect("32-queue").await?;
    his.write("#reason", "ticket 8").await?;
    his.click("button[value='release backup browser-mill/held']").await?;
    cat.backup_starts("held").await?;

    // Another policy, tried on what there is.
    his.open(&admin.page("/admin/policy")).await?;
    his.script(
        "const policy = document.querySelector('#policy');
         policy.value = policy.value.replace('backup: {', 'backup: { ttl: { max: 48h },')",
    )
    .await?;
    his.click("form[action='/admin/policy'] button").await?;
    his.sees("would refuse ").await?;
    his.sees("allows backups to be kept at most 48h").await?;
    his.does_not_see("s3Url").await?;
    his.inspect("39-policy-tried").await?;
    // What the console does not take is said on a page, also if the browser was not done sending it.
    his.script("document.querySelector('#policy').value = '#'.repeat(8 << 20)").await?;
    his.click("form[action='/admin/policy'] button").await?;
    his.sees("This form is too large").await?;
    his.open(&admin.page("/")).await?;
    his.sees("Namespaces you can see").await?;
    his.inspect("27-namespaces").await?;
    for (path, name, words) in [
        ("usage", "33-usage", "browser-mill"),
        ("policy", "34-policy", "storageLocations.requireApproval"),
        ("doctor", "35-doctor", "admission policies are there and current"),
        ("migration", "30-migration", "rolebinding/admin-cat -> clusterrole/admin"),
    ] {
        his.open(&admin.page(&format!("/admin/{path}"))).await?;
        his.sees(words).await?;
        his.inspect(name).await?;
    }

    cat.location_is("the location to be available", "mine", |status| {
        let velero = status.velero_backup_storage_location.as_ref();
        velero.and_then(|velero| velero.status.as_ref()).is_some_and(|status| status.phase.is_some())
    })
    .await?;
    hers.finds(&tenant.page("/ns/browser-mill/locations/mine"), "Available").await?;
    hers.inspect("36-location").await?;
    hers.open(&tenant.page("/ns/browser-mill/locations")).await?;
    hers.sees("mine").await?;
    hers.inspect("28-locations").await
}

//! Live progress of a real backup: it runs for as long as its bucket accepts nothing.

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use e2e::Tenant;
use serde_json::json;

use crate::browser::{Browser, Driver};
use crate::cluster::{laptop, owner, test_cluster};
use crate::gate::Gate;

/// A location of the tenant's own behind a closed gate, approved.
async fn gated_location(tenant: &Tenant<'_>) -> Result<Gate> {
    let store = tenant.bed.store()?;
    let gate = Gate::closed(store.url()).await?;
    tenant.keep_keys("keys", &store.credentials()).await?;
    tenant.bring_bucket_at(&gate.url, "gated", &tenant.namespace, "keys").await?;
    test_cluster().await?.decide(&tenant.approval_pending("gated").await?, "approve").await?;
    tenant.location_available("gated").await?;
    Ok(gate)
}

/// From here on the page must follow by itself.
async fn stay(browser: &Browser<'_>) -> Result<()> {
    browser.script("window.stayed = true").await.map(drop)
}

async fn stayed(browser: &Browser<'_>) -> Result<()> {
    let stayed = browser.script("return window.stayed === true").await?;
    ensure!(stayed == true, "the page was loaded again instead of following the watch");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_backup_is_seen_running_and_then_complete() -> Result<()> {
    let cluster = test_cluster().await?;
    let eli = owner("browser-pace", "eli").await?;
    let gate = gated_location(&eli).await?;
    let console = laptop(&cluster.bed, "browser-pace", Some("eli")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("eli").await?;

    // Somebody looks before there is a backup, and sees it appear and run.
    browser.open(&console.link).await?;
    browser.sees("Not safe: there is no good backup").await?;
    browser.does_not_see("paced").await?;
    stay(&browser).await?;
    let backup = json!({"spec": {"backupSpec": {"storageLocation": "gated"}}});
    eli.create::<NonAdminBackup>("paced", backup).await?;
    let items = eli
        .wait("Velero to have counted the items", "paced", |backup: Option<&NonAdminBackup>| {
            let velero = backup?.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()?;
            let progress = velero.progress.as_ref()?;
            progress.total_items.filter(|total| progress.items_backed_up == Some(*total))
        })
        .await?;
    browser.sees(&format!("paced: {items} of {items} items")).await?;
    stayed(&browser).await?;

    // Velero cannot end it yet. Its own page shows how far it is, and the end once it comes.
    browser.open(&console.page("/ns/browser-pace/backups/paced")).await?;
    browser.sees("InProgress").await?;
    browser.sees(&format!("{items} of {items} items")).await?;
    browser.does_not_see("Completed").await?;
    let bar = "const bar = document.querySelector('#progress'); return bar && [bar.value, bar.max]";
    let running = browser.script(bar).await?;
    ensure!(running == json!([items, items]), "{running}");
    stay(&browser).await?;
    gate.open();
    browser.sees("Completed").await?;
    browser.sees(&format!("complete, {items} items")).await?;
    stayed(&browser).await?;
    let over = browser.script(bar).await?;
    ensure!(over.is_null(), "the bar is still there: {over}");
    Ok(())
}

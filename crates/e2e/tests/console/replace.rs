//! Back to a backup, in place: what would be removed, the question, each step, and the end. The story plays nacre and Velero.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminRestore};
use bed::wait_until;
use e2e::played::{bring_back, complete, condition, play, refuse_downloads, restore_of, safety_backup, shop};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use crate::browser::Driver;
use crate::cluster::{laptop, stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_replaced_after_its_namespace_was_written() -> Result<()> {
    let cluster = stage().await?;
    let tenant = &cluster.tenant("browser-undo", "ada").await?;
    let downloads = tokio::spawn(refuse_downloads(cluster.bed.client().await?, "browser-undo".to_owned()));
    shop(tenant, &json!({})).await?;
    let console = laptop(&cluster.bed, "browser-undo", Some("ada")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("ada").await?;
    browser.open(&console.link).await?;
    browser.open(&console.page("/ns/browser-undo/replace/good")).await?;
    browser.sees("claim files, with the data in it").await?;
    browser.sees("after a safety backup").await?;
    browser.inspect("12-replace").await?;

    // Another name is no consent.
    browser.write("#confirm", "shop").await?;
    browser.click("button[value=replace]").await?;
    browser.sees("write the name of the namespace, browser-undo, to confirm").await?;
    ensure!(tenant.api::<PersistentVolumeClaim>().get_opt("files").await?.is_some());
    // Neither is it to agree to something else than what was shown: no claim, or no safety backup.
    let page = console.page("/ns/browser-undo/replace/good");
    for (choice, words) in [
        ("input[name=claim]", "tick at least one of files"),
        ("input[name=unsafe][value=yes]", "you have changed what the page showed"),
    ] {
        browser.open(&page).await?;
        browser.click(choice).await?;
        browser.write("#confirm", "browser-undo").await?;
        browser.click("button[value=replace]").await?;
        browser.sees(words).await?;
    }
    browser.sees("WITHOUT a safety backup").await?;
    ensure!(tenant.api::<PersistentVolumeClaim>().get_opt("files").await?.is_some());
    browser.open(&page).await?;
    browser.write("#confirm", "browser-undo").await?;
    browser.click("button[value=replace]").await?;
    browser.sees("Replacing from good").await?;
    browser.script("window.stayed = true").await?;
    let safety = safety_backup(tenant).await?;
    browser.sees(&safety).await?;
    browser.inspect("13-replacing").await?;

    play::<NonAdminBackup>(tenant, &safety, complete("Completed", "True")).await?;
    tenant.gone::<Deployment>("web").await?;
    let deleting =
        |claim: Option<&PersistentVolumeClaim>| claim?.metadata.deletion_timestamp.as_ref().map(|_| ());
    wait_until("the claim to be deleted", Duration::from_mins(2), tenant.api(), "files", deleting).await?;
    browser.sees("waiting until these are gone").await?;
    tenant.edit::<PersistentVolumeClaim>("files", json!({"metadata": {"finalizers": null}})).await?;

    // Velero brings everything back.
    let restore = restore_of(tenant).await?;
    bring_back(tenant, &restore).await?;
    browser.sees("the data of files is back as in good").await?;
    let stayed = browser.script("return window.stayed === true").await?;
    ensure!(stayed == true, "the page was loaded again instead of following what happens");
    browser.inspect("14-replaced").await?;

    // The page of the restore has what came back and what did not, claim by claim.
    let claims = json!([{"name": "files", "state": "Restored", "bytes": 8_388_608},
        {"name": "cache", "state": "Kept", "message": "the claim exists"}]);
    let status = json!({"conditions": condition("DataRestored", "False", "ClaimsKept"), "claims": claims});
    play::<NonAdminRestore>(tenant, &restore, status).await?;
    browser.open(&console.page(&format!("/ns/browser-undo/restores/{restore}"))).await?;
    for words in ["3/3", "files: restored, 8 MiB", "cache: NOT restored: the claim exists"] {
        browser.sees(words).await?;
    }
    browser.inspect("15-not-all-restored").await?;
    downloads.abort();
    Ok(())
}

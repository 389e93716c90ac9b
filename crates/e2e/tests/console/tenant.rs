//! The owner of a namespace: from the first look to what was lost and is back.

use anyhow::{Context as _, Result, ensure};
use api::NonAdminRestore;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::json;

use crate::browser::Driver;
use crate::cluster::{laptop, owner, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn from_the_first_look_to_restored() -> Result<()> {
    let cluster = test_cluster().await?;
    let ada = owner("browser-shop", "ada").await?;
    let console = laptop(&cluster.bed, "browser-shop", Some("ada")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("ada").await?;

    // The link leads to the namespace, and its code is gone from the address.
    browser.open(&console.link).await?;
    browser.sees("Not safe: there is no good backup").await?;
    ensure!(!browser.url().await?.contains("code="), "{}", browser.url().await?);
    browser.inspect("1-not-safe").await?;
    // In this browser the link goes on leading here, and signs nobody out.
    browser.open(&console.link).await?;
    browser.leads_to("/ns/browser-shop").await?;
    browser.sees("Not safe: there is no good backup").await?;

    // What would happen, then a backup, whose progress is seen without loading the page again. A keyboard is enough.
    browser.tabs_to("main a[href$='/new-backup']").await?;
    browser.enter().await?;
    browser.sees("Back up namespace browser-shop").await?;
    browser.sees("csiSnapshotTimeout: 12m").await?;
    browser.inspect("2-new-backup").await?;
    browser.tabs_to("#name").await?;
    browser.types("first").await?;
    browser.tabs_to("button[value=check]").await?;
    browser.enter().await?;
    browser.sees("What would happen").await?;
    // The administrators' field, and the answer of nacre's webhook, since she may not read the policy.
    browser.sees("This backup would pass.").await?;
    browser.sees("nacre's webhook was asked").await?;
    browser.sees("csiSnapshotTimeout").await?;
    let parts = "return [document.querySelectorAll('main table').length > 0, document.querySelectorAll('main pre').length]";
    ensure!(browser.script(parts).await? == json!([true, 0]), "it is not a page: {}", browser.text().await?);
    browser.inspect("3-what-would-happen").await?;
    browser.tabs_to("button[value=create]").await?;
    browser.enter().await?;
    // The page of before has the name, too.
    browser.leads_to("/ns/browser-shop/backups/first").await?;
    browser.script("window.stayed = true").await?;
    browser.sees("Completed").await?;
    browser.sees("complete, ").await?;
    let stayed = browser.script("return window.stayed === true").await?;
    ensure!(stayed == true, "the page was loaded again instead of following the watch");
    // The log comes through the console, from the administrators' storage.
    let log = browser
        .script(
            "const form = document.querySelector(\"form[action$='/files']\");
             const fields = new URLSearchParams(new FormData(form));
             fields.set('do', 'BackupLog');
             return fetch(form.action, {method: 'POST', body: fields}).then(async (answer) =>
               [answer.status, answer.headers.get('content-disposition'), (await answer.arrayBuffer()).byteLength > 100])",
        )
        .await?;
    ensure!(log == json!([200, "attachment; filename=\"first-log.gz\"", true]), "{log}");
    browser.inspect("4-backup").await?;
    browser.open(&console.page("/ns/browser-shop")).await?;
    browser.sees("Safe: this namespace could be brought back").await?;
    browser.sees("kubectl nacre status -n browser-shop").await?;
    browser.inspect("5-safe").await?;
    browser.colours("dark").await?;
    browser.inspect("5-safe-dark").await?;
    browser.colours("light").await?;

    // Something is lost, and the path leads to where it is back.
    ada.delete::<ConfigMap>("prices").await?;
    browser.click("a[href$='/restore']").await?;
    browser.sees("When: choose a backup").await?;
    browser.inspect("6-when").await?;
    browser.click("a[href$='/restore/first']").await?;
    browser.sees("Restore from first").await?;
    browser.sees("created").await?;
    browser.sees("prices").await?;
    browser.inspect("7-preview").await?;
    browser.click("button[value=restore]").await?;
    browser.sees("Completed").await?;
    // What came back: so many objects, and the data of no claim, since there was none.
    let restores = ada.api::<NonAdminRestore>().list(&ListParams::default()).await?.items;
    let status = restores.first().and_then(|restore| restore.status.as_ref()?.velero_restore.as_ref());
    let progress = status.and_then(|velero| velero.status.as_ref()?.progress.as_ref());
    let items = progress.and_then(|progress| progress.items_restored).context("no items")?;
    browser.sees(&format!("complete, {items} item")).await?;
    browser.sees(&format!("{items}/{items}")).await?;
    browser.sees("there is no volume data to restore").await?;
    browser.inspect("8-restored").await?;
    ensure!(ada.api::<ConfigMap>().get_opt("prices").await?.is_some(), "prices is back");

    let none = "Nothing is backed up by itself in this namespace";
    for (path, name, words) in [
        ("/backups", "9-backups", "complete, "),
        ("/restores", "10-restores", "Completed"),
        ("/schedules", "11-schedules", none),
    ] {
        browser.open(&console.page(&format!("/ns/browser-shop{path}"))).await?;
        browser.sees(words).await?;
        browser.inspect(name).await?;
    }

    // The code was for one browser.
    let other = driver.browser("eve").await?;
    other.open(&console.link).await?;
    other.sees("This link was used before").await?;
    other.open(&console.page("/ns/browser-shop")).await?;
    other.sees("Sign in").await?;
    other.does_not_see("first").await
}

//! Somebody who may only look, a stranger, and links that are made to become markup.

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use serde_json::json;

use crate::browser::Driver;
use crate::cluster::{laptop, owner, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_clicks_nothing_and_a_stranger_sees_nothing() -> Result<()> {
    let cluster = test_cluster().await?;
    let ben = owner("browser-farm", "ben").await?;
    let spec = json!({"backupSpec": {"ttl": "1h", "labelSelector": {"matchLabels": {"app": "none"}}}});
    ben.create::<NonAdminBackup>("part", json!({ "spec": spec })).await?;
    cluster.bed.bind("browser-farm", "vic", "view").await?;
    cluster.bed.wait_allowed("vic", "browser-farm", "list", "oadp.openshift.io", "nonadminbackups").await?;

    let driver = Driver::start().await?;
    let vic = laptop(&cluster.bed, "browser-farm", Some("vic")).await?;
    let browser = driver.browser("vic").await?;
    browser.open(&vic.link).await?;
    browser.sees("You can look, and not change anything").await?;
    browser.inspect_narrow("20-viewer-narrow").await?;
    let evil = "%3Cimg%20src=x%20onerror=%22document.title='owned'%22%3E";
    let filled_in = format!("/new-schedule?name={evil}&schedule={evil}&zone={evil}&daily={evil}");
    for path in [
        "",
        "/backups",
        "/backups/part",
        "/new-backup",
        "/restore",
        "/restores",
        "/locations",
        "/new-location",
        "/schedules",
        &filled_in,
        &format!("/replace/part?claim={evil}&selector={evil}"),
    ] {
        browser.open(&vic.page(&format!("/ns/browser-farm{path}"))).await?;
        browser.sees("kubectl nacre").await?;
        let forms =
            browser.script("return document.querySelectorAll('main form[method=post]').length").await?;
        ensure!(forms == 0, "{path}: {forms} forms");
        let title = browser.script("return document.title").await?;
        ensure!(title != "owned", "{path}: text became markup");
        browser.fits_a_narrow_screen().await?;
    }
    browser.open(&vic.page("/ns/browser-farm/backups/part")).await?;
    browser.inspect_narrow("21-viewer-backup-narrow").await?;

    // A stranger learns nothing: neither that the namespace exists nor what is in it.
    let eve = laptop(&cluster.bed, "default", Some("eve")).await?;
    let browser = driver.browser("eve").await?;
    browser.open(&eve.link).await?;
    browser.sees("Nothing here").await?;
    let mut pages = Vec::new();
    for namespace in ["browser-farm", "browser-nowhere"] {
        browser.open(&eve.page(&format!("/ns/{namespace}"))).await?;
        browser.sees("Nothing here").await?;
        pages.push(browser.script("return document.documentElement.outerHTML").await?);
    }
    ensure!(pages[0] == pages[1], "{pages:?}");
    browser.inspect("22-stranger").await
}

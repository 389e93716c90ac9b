//! How fast the first page is with many backups in the namespace.

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use e2e::played::{complete, play};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::browser::Driver;
use crate::cluster::{laptop, stage};

const BACKUPS: usize = 1000;
/// How long a page may take, in milliseconds, from the request until all of it is loaded.
const LONGEST: f64 = 300.0;
/// The one in the middle of so many counts.
const LOADS: usize = 9;
/// The event at the end of a load may come after the driver has the page.
const LOADED: &str = "return new Promise((done) => {
    const look = () => {
        const load = performance.getEntriesByType('navigation')[0];
        if (load.loadEventEnd > 0) done(load.loadEventEnd - load.requestStart); else setTimeout(look, 5);
    };
    look();
})";

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_of_a_thousand_backups_is_fast() -> Result<()> {
    let cluster = stage().await?;
    let max = &cluster.tenant("browser-many", "max").await?;
    let made = (0..BACKUPS).map(|number| async move {
        let name = format!("daily-{number:04}");
        max.back_up(&name).await?;
        play::<NonAdminBackup>(max, &name, complete("Completed", "True")).await
    });
    stream::iter(made).buffer_unordered(16).try_collect::<Vec<()>>().await?;

    let console = laptop(&cluster.bed, "browser-many", Some("max")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("max").await?;
    browser.open(&console.link).await?;
    browser.sees("Safe: this namespace could be brought back").await?;
    for path in ["", "/backups"] {
        let mut took = Vec::new();
        for _ in 0..LOADS {
            browser.open(&console.page(&format!("/ns/browser-many{path}"))).await?;
            took.push(browser.script(LOADED).await?.as_f64().unwrap_or(f64::MAX));
        }
        took.sort_by(f64::total_cmp);
        let (best, median) = (took[0], took[LOADS / 2]);
        let page = if path.is_empty() { "the overview" } else { "the first page of the list" };
        println!("{BACKUPS} backups: {page} takes {best:.0} ms at best, {median:.0} ms in the middle");
        ensure!(median < LONGEST, "{page} takes {took:?} ms");
    }
    Ok(())
}

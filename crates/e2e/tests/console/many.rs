//! How fast the first page is with many backups in the namespace.

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use e2e::played::{complete, play};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::browser::Driver;
use crate::cluster::{laptop, stage};

const BACKUPS: usize = 1000;
/// How long the first page may take, in milliseconds.
const LONGEST: f64 = 300.0;
/// The machine may be busy with something else: the fastest of so many counts.
const LOADS: usize = 9;

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
            let script = "const all = performance.getEntriesByType('navigation')[0];
                return all.responseEnd - all.requestStart";
            took.push(browser.script(script).await?.as_f64().unwrap_or(f64::MAX));
        }
        took.sort_by(f64::total_cmp);
        let (best, median) = (took[0], took[LOADS / 2]);
        let page = if path.is_empty() { "the overview" } else { "the first page of the list" };
        println!("{BACKUPS} backups: {page} takes {best:.0} ms at best, {median:.0} ms in the middle");
        ensure!(best < LONGEST, "{page} takes {took:?} ms");
    }
    Ok(())
}

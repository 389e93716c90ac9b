//! A schedule: the calendar before it exists, its buttons, and its end.

use anyhow::{Result, ensure};
use api::NonAdminSchedule;

use crate::browser::Driver;
use crate::cluster::{laptop, owner, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_created_paused_and_deleted() -> Result<()> {
    let cluster = test_cluster().await?;
    let dora = owner("browser-timed", "dora").await?;
    let console = laptop(&cluster.bed, "browser-timed", Some("dora")).await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("dora").await?;
    browser.open(&console.link).await?;
    browser.open(&console.page("/ns/browser-timed/schedules")).await?;
    browser.click("a[href$='/new-schedule']").await?;
    browser.sees("at set times").await?;
    browser.write("#daily", "7").await?;
    browser.write("#weekly", "4").await?;
    browser.inspect("50-new-schedule").await?;
    browser.click("button[value=check]").await?;
    browser.sees("The API server would accept this schedule").await?;
    browser.inspect("51-calendar").await?;
    browser.click("button[value=create]").await?;
    browser.finds(&console.page("/ns/browser-timed/schedules/nightly"), "Enabled").await?;
    browser.inspect("52-schedule").await?;
    // The page shows what nacre makes of a button, without being loaded again.
    browser.click("button[value=pause]").await?;
    browser.sees("Paused").await?;
    browser.click("button[value=resume]").await?;
    browser.sees("Enabled").await?;
    browser.click("details.delete summary").await?;
    browser.write("#confirm", "nightly").await?;
    browser.click("button[value=delete]").await?;
    browser.sees("Nothing is backed up by itself in this namespace").await?;
    ensure!(dora.api::<NonAdminSchedule>().get_opt("nightly").await?.is_none(), "it is gone");

    // She signs out in another window. The page finds out at once, and says so.
    let script = "const form = document.querySelector(\"form[action='/logout']\");
        return fetch('/logout', {method: 'POST', body: new URLSearchParams(new FormData(form))})
            .then((answer) => answer.status)";
    let status = browser.script(script).await?;
    ensure!(status == 401, "{status}");
    browser.sees("Open the link that kubectl nacre console printed").await
}

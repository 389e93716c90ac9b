//! Times as the reader's clock and language have them.

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};

use crate::browser::Browser;

/// A zone without summer time, and its distance from UTC.
const ZONE: &str = "Asia/Kolkata";
const AHEAD: SignedDuration = SignedDuration::from_mins(5 * 60 + 30);

/// From now on somebody reads who is in that zone, and whose system is German.
pub(crate) async fn reads_elsewhere(browser: &Browser<'_>) -> Result<()> {
    browser.reader(ZONE, "de-DE").await
}

/// The reader is at home again, as the pictures show it.
pub(crate) async fn reads_at_home(browser: &Browser<'_>) -> Result<()> {
    browser.reader("UTC", "en-US").await
}

/// Every time on the page is that reader's, and the one in UTC is one look away; returns how many there are.
pub(crate) async fn are_the_readers(browser: &Browser<'_>) -> Result<usize> {
    let times = browser
        .script("return [...document.querySelectorAll('time')].map((one) => [one.dateTime, one.textContent, one.title])")
        .await?;
    let times: Vec<[String; 3]> = serde_json::from_value(times)?;
    for [time, shown, title] in &times {
        let time: Timestamp = time.parse().context("a time")?;
        let local = (time + AHEAD).strftime("%d.%m.%Y, %H:%M").to_string();
        let utc = time.strftime("%Y-%m-%d %H:%M").to_string();
        ensure!(*shown == local && title.starts_with(&utc), "{time} is shown as {shown:?}, {title:?}");
    }
    browser.does_not_see("UTC").await?;
    Ok(times.len())
}

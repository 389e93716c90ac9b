//! What must be true of every page: it is accessible and fits a narrow screen. And how a page looks to different readers.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::json;

use crate::browser::Browser;

/// The width of a small phone.
const NARROW: u32 = 360;

/// What a reader would have to scroll sideways: parts of the page, and the page itself with what is too wide in it.
const TOO_WIDE: &str = "
    const scrolls = (one) => ['auto', 'scroll'].includes(getComputedStyle(one).overflowX);
    const all = [...document.querySelectorAll('body *')];
    const parts = all.filter((one) => one.tagName !== 'TEXTAREA' && scrolls(one) && one.scrollWidth > one.clientWidth);
    const page = document.documentElement;
    const over = page.scrollWidth <= window.innerWidth ? [] : [page,
        ...all.filter((one) => one.getBoundingClientRect().right > window.innerWidth)];
    return [window.innerWidth, [...parts, ...over].map((one) => one.cloneNode(false).outerHTML + ' ' + one.scrollWidth)]";

/// That accessibility is not checked is said once.
static SAID: Once = Once::new();

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| e2e::root().join("target"), PathBuf::from)
}

impl Browser<'_> {
    /// A picture of the page, which must be accessible and fit a narrow screen.
    pub(crate) async fn inspect(&self, name: &str) -> Result<()> {
        self.picture(name).await?;
        self.is_accessible().await?;
        self.fits_a_narrow_screen().await
    }

    /// Whether people who use a keyboard or a screen reader can use the page: axe-core has nothing serious to say. Without
    /// axe-core, which tools/browser.sh fetches, this cannot be checked, and the tests say so.
    /// Colours are looked at for dark and light.
    async fn is_accessible(&self) -> Result<()> {
        let file = target().join("axe/package/axe.min.js");
        if !file.is_file() {
            let must = std::env::var_os("CI").is_some() || e2e::at_length(false, true);
            ensure!(!must, "{} is not there: tools/browser.sh fetches it with npm", file.display());
            SAID.call_once(|| {
                // Past the test runner, which keeps to itself what a passing test prints.
                let _ = writeln!(
                    std::io::stderr(),
                    "== Accessibility not checked: {} is not there",
                    file.display()
                );
            });
            return Ok(());
        }
        self.script(&std::fs::read_to_string(file)?).await?;
        let script = "const [rules, done] = arguments;
            axe.run(document, {resultTypes: ['violations'], ...rules}).then((found) => done(found.violations
                .filter((one) => ['serious', 'critical'].includes(one.impact))
                .map((one) => one.id + ': ' + one.nodes.map((node) => node.html).join(' | '))));";
        for (scheme, rules) in [("dark", json!({"runOnly": ["color-contrast"]})), ("light", json!({}))] {
            self.colours(scheme).await?;
            let body = json!({"script": script, "args": [rules]});
            let found = self.ask("POST", "/execute/async", Some(body)).await?;
            ensure!(found == json!([]), "{scheme}, at {}: {found:#}", self.url().await?);
        }
        Ok(())
    }

    /// Nothing has to be scrolled sideways on a phone.
    pub(crate) async fn fits_a_narrow_screen(&self) -> Result<()> {
        self.narrow().await?;
        let found = self.script(TOO_WIDE).await?;
        self.wide().await?;
        ensure!(found == json!([NARROW, []]), "too wide at {}: {found:#}", self.url().await?);
        Ok(())
    }

    /// The same as [`Browser::inspect`], with a picture of how it looks on a phone.
    pub(crate) async fn inspect_narrow(&self, name: &str) -> Result<()> {
        self.narrow().await?;
        self.picture(name).await?;
        self.is_accessible().await?;
        self.fits_a_narrow_screen().await
    }

    /// As wide as a phone. A window cannot be that narrow.
    async fn narrow(&self) -> Result<()> {
        let size = json!({"width": NARROW, "height": 740, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size).await.map(drop)
    }

    /// As wide as the window again.
    async fn wide(&self) -> Result<()> {
        self.command("Emulation.clearDeviceMetricsOverride", json!({})).await.map(drop)
    }

    /// Light or dark, as the reader's system would say.
    pub(crate) async fn colours(&self, scheme: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await.map(drop)
    }

    /// Where the reader is, and what language their system has.
    pub(crate) async fn reader(&self, zone: &str, locale: &str) -> Result<()> {
        self.command("Emulation.setTimezoneOverride", json!({ "timezoneId": zone })).await?;
        self.command("Emulation.setLocaleOverride", json!({ "locale": locale })).await.map(drop)
    }

    /// A picture of the whole page, kept for whoever wants to look at it.
    async fn picture(&self, name: &str) -> Result<()> {
        let size = self
            .script("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            .await?;
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1});
        let params = json!({"captureBeyondViewport": true, "clip": clip});
        let picture = self.command("Page.captureScreenshot", params).await?;
        let picture = picture["data"].as_str().context("no picture")?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture)?;
        let folder = target().join("console");
        std::fs::create_dir_all(&folder)?;
        Ok(std::fs::write(folder.join(format!("{name}.png")), bytes)?)
    }
}

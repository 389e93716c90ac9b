//! A real browser: Debian's chromium, driven by its own driver over the WebDriver protocol, which is JSON over HTTP.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bed::{Process, Program, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long a page may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);
/// Keys, by the protocol.
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';
/// The key of an element's identifier, by the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The program that drives browsers; each browser is somebody else's.
pub(crate) struct Driver {
    port: u16,
    folder: TempDir,
    // Ends with it, and its browsers with it.
    _process: Process,
}

impl Driver {
    pub(crate) async fn start() -> Result<Self> {
        let [port] = bed::free_ports()?;
        let folder = tempfile::tempdir()?;
        let path = ["/usr/bin/chromedriver", "/usr/lib/chromium/chromedriver"];
        let path = path.iter().map(Path::new).find(|path| path.is_file());
        let path = path.context("chromedriver is not there: tools/browser.sh installs it")?;
        let program = Program::new(path, folder.path().join("chromedriver.log"));
        let process = program.arg(format!("--port={port}")).start()?;
        let driver = Self { port, folder, _process: process };
        eventually("the driver of the browser", PATIENCE, async || {
            let status = driver.call("GET", "/status", None).await?;
            ensure!(status["ready"] == true, "{status}");
            Ok(())
        })
        .await?;
        Ok(driver)
    }

    /// A browser with nothing in it.
    pub(crate) async fn browser(&self, name: &str) -> Result<Browser<'_>> {
        let data = self.folder.path().join(name);
        let args = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--window-size=1280,900".to_owned(),
            format!("--user-data-dir={}", data.display()),
        ];
        let options = json!({"args": args, "binary": "/usr/bin/chromium"});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let session = self.call("POST", "/session", Some(wanted)).await?;
        let id = session["sessionId"].as_str().context("no session")?.to_owned();
        Ok(Browser { driver: self, id })
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let work = async {
            let body = body.map(|body| body.to_string()).unwrap_or_default();
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n",
                self.port,
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await?;
            let mut answer = Vec::new();
            let mut part = vec![0; 64 << 10];
            // The driver keeps connections open, whatever it is asked: the length says when it is over.
            loop {
                let read = stream.read(&mut part).await?;
                answer.extend_from_slice(&part[..read]);
                if let Some(body) = whole(&answer) {
                    return Ok(body);
                }
                ensure!(read > 0, "the driver's answer is cut off: {}", String::from_utf8_lossy(&answer));
            }
        };
        let answer: Value = tokio::time::timeout(PATIENCE, work).await.context("the driver is silent")??;
        let value = answer["value"].clone();
        if let Some(error) = value["error"].as_str() {
            bail!("{error}: {}", value["message"].as_str().unwrap_or_default());
        }
        Ok(value)
    }
}

/// The body of an HTTP answer, once all of it is there.
fn whole(answer: &[u8]) -> Option<Value> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length: usize =
        head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    let body = answer.get(end..end + length)?;
    serde_json::from_slice(body).ok()
}

/// One browser.
pub(crate) struct Browser<'a> {
    driver: &'a Driver,
    id: String,
}

impl Browser<'_> {
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        self.driver.call(method, &format!("/session/{}{path}", self.id), body).await
    }

    /// A command of chromium's own, of which the protocol knows nothing.
    pub(crate) async fn command(&self, name: &str, params: Value) -> Result<Value> {
        self.ask("POST", "/goog/cdp/execute", Some(json!({"cmd": name, "params": params}))).await
    }

    pub(crate) async fn open(&self, url: &str) -> Result<()> {
        self.ask("POST", "/url", Some(json!({ "url": url }))).await.map(drop)
    }

    pub(crate) async fn url(&self) -> Result<String> {
        Ok(self.ask("GET", "/url", None).await?.as_str().unwrap_or_default().to_owned())
    }

    /// What a script returns, run in the page.
    pub(crate) async fn script(&self, script: &str) -> Result<Value> {
        self.ask("POST", "/execute/sync", Some(json!({"script": script, "args": []}))).await
    }

    async fn find(&self, selector: &str) -> Result<String> {
        let query = json!({"using": "css selector", "value": selector});
        let found = self.ask("POST", "/element", Some(query)).await?;
        Ok(found[ELEMENT].as_str().context("no element")?.to_owned())
    }

    pub(crate) async fn click(&self, selector: &str) -> Result<()> {
        let work = async || {
            let element = self.find(selector).await?;
            self.ask("POST", &format!("/element/{element}/click"), Some(json!({}))).await.map(drop)
        };
        eventually(&format!("{selector} to be clicked"), PATIENCE, work).await
    }

    /// Writes into a field once it is there. A page that follows what happens may replace it just then: nothing was
    /// written into it yet.
    pub(crate) async fn write(&self, selector: &str, text: &str) -> Result<()> {
        let work = async || {
            let element = self.find(selector).await?;
            let path = format!("/element/{element}/value");
            match self.ask("POST", &path, Some(json!({ "text": text }))).await {
                Err(error) if error.to_string().starts_with("stale element") => Err(error),
                written => Ok(written),
            }
        };
        eventually(&format!("{selector} to be there"), PATIENCE, work).await?.map(drop)
    }

    /// Waits until the browser is at the page with this path.
    pub(crate) async fn leads_to(&self, path: &str) -> Result<()> {
        eventually(&format!("the page {path}"), PATIENCE, async || {
            let url = self.url().await?;
            ensure!(url.ends_with(path), "the browser is at {url}");
            Ok(())
        })
        .await
    }

    /// Presses a key: a character, or one of the protocol's own.
    async fn press(&self, key: char) -> Result<()> {
        let strokes = ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        self.ask("POST", "/actions", Some(json!({"actions": [keyboard]}))).await.map(drop)
    }

    /// Goes on from one element to the next with the key Tab until this one has the focus, which must be seen.
    pub(crate) async fn tabs_to(&self, selector: &str) -> Result<()> {
        let found = format!(
            "const [here, at] = [document.activeElement, document.querySelector({})];
             return here !== at ? null : getComputedStyle(here).outlineStyle",
            json!(selector)
        );
        for _ in 0..60 {
            self.press(TAB).await?;
            let outline = self.script(&found).await?;
            if !outline.is_null() {
                ensure!(outline != "none", "nobody sees that {selector} has the focus");
                return Ok(());
            }
        }
        bail!("{selector} cannot be reached with the keyboard at {}", self.url().await?)
    }

    /// Does what the element that has the focus is for.
    pub(crate) async fn enter(&self) -> Result<()> {
        self.press(ENTER).await
    }

    /// Writes where the focus is.
    pub(crate) async fn types(&self, text: &str) -> Result<()> {
        for letter in text.chars() {
            self.press(letter).await?;
        }
        Ok(())
    }

    /// What the page says.
    pub(crate) async fn text(&self) -> Result<String> {
        let text = self.script("return document.body ? document.body.innerText : ''").await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the page says this, without being loaded again by the test.
    pub(crate) async fn sees(&self, words: &str) -> Result<()> {
        eventually(&format!("the page to show {words:?}"), PATIENCE, async || {
            let text = self.text().await?;
            ensure!(text.contains(words), "at {}: {text}", self.url().await?);
            Ok(())
        })
        .await
    }

    /// Opens a page until it shows this: for pages that do not follow what happens by themselves.
    pub(crate) async fn finds(&self, url: &str, words: &str) -> Result<()> {
        eventually(&format!("{url} to show {words:?}"), PATIENCE, async || {
            self.open(url).await?;
            let text = self.text().await?;
            ensure!(text.contains(words), "{text}");
            Ok(())
        })
        .await
    }

    pub(crate) async fn does_not_see(&self, words: &str) -> Result<()> {
        let text = self.text().await?;
        ensure!(!text.contains(words), "{words:?} is shown: {text}");
        Ok(())
    }
}

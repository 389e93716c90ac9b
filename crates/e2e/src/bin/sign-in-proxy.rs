//! A proxy as a site puts before the console: people sign in to it with a password, and it passes on their own token.
//! What a browser sends as a token itself is dropped. For the stories on a node.
//!
//! `sign-in-proxy HOST:PORT`, with a file for each person in `/people`: the first line is the `Authorization` header they
//! sign in with, the second their token.

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const LISTEN: &str = "0.0.0.0:4180";
const PEOPLE: &str = "/people";
const LONGEST: usize = 64 << 10;
const ASK: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"site\"\r\n\
                   Content-Length: 0\r\nConnection: close\r\n\r\n";
/// Headers that are the proxy's own to write.
const OWN: [&str; 4] = ["authorization", "x-forwarded-access-token", "connection", "forwarded"];

#[tokio::main]
async fn main() -> Result<()> {
    let console = std::env::args().nth(1).context("say where the console is: HOST:PORT")?;
    let listener = TcpListener::bind(LISTEN).await?;
    loop {
        let (browser, _) = listener.accept().await?;
        let console = console.clone();
        // A connection that breaks is the browser's to notice.
        tokio::spawn(async move { serve(browser, &console).await });
    }
}

/// One request on one connection.
async fn serve(mut browser: TcpStream, console: &str) -> Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        anyhow::ensure!(read.len() < LONGEST && browser.read_buf(&mut read).await? > 0, "no whole request");
    };
    let head = std::str::from_utf8(&read[..end])?;
    let Some(token) = token_of(head)? else {
        return Ok(browser.write_all(ASK.as_bytes()).await?);
    };
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kept: Vec<&str> = head.split("\r\n").filter(|line| !OWN.contains(&name(line).as_str())).collect();
    let head = format!("{}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n", kept.join("\r\n"));
    let mut console = TcpStream::connect(console).await?;
    console.write_all(head.as_bytes()).await?;
    console.write_all(&read[end + 4..]).await?;
    copy_bidirectional(&mut browser, &mut console).await?;
    Ok(())
}

/// The token of whoever signs in.
fn token_of(head: &str) -> Result<Option<String>> {
    let given = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("authorization").then(|| value.trim())
    });
    for file in std::fs::read_dir(PEOPLE)? {
        let path = file?.path();
        if path.is_file() {
            let text = std::fs::read_to_string(path)?;
            let mut lines = text.lines();
            if lines.next() == given {
                return Ok(lines.next().map(str::to_owned));
            }
        }
    }
    Ok(None)
}

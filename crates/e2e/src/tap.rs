//! A tap on the line between a program and the API server: it passes everything on, counts writes, and can fall silent
//! after any of them, so that a story can kill the program between any two. It can also lose, refuse, delay and cut what
//! passes through it, by seed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::faults::{self, Fate, Faults};

/// The largest request that is passed on: more than the API server takes.
const LARGEST: usize = 4 << 20;
/// How long a line hangs before it is cut: long enough that others go by.
const HANGS: Duration = Duration::from_secs(2);

/// A tap, listening.
pub struct Tap {
    line: Arc<Line>,
    address: SocketAddr,
}

struct Line {
    client: Client,
    /// How many more writes are passed on before it falls silent; `usize::MAX` for ever.
    left: AtomicUsize,
    /// Told when it falls silent.
    silent: Notify,
    faults: Faults,
}

impl Tap {
    /// Listens, and talks to the API server as this kubeconfig says.
    pub async fn open(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let line = Arc::new(Line {
            client,
            left: AtomicUsize::new(usize::MAX),
            silent: Notify::new(),
            faults: Faults::new(0, 0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let routes = Router::new().fallback(pass).with_state(line.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { line, address })
    }

    /// Writes a kubeconfig file that leads through the tap.
    pub fn kubeconfig(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("tap.kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "tap",
            "clusters": [{"name": "tap", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "tap", "user": {}}],
            "contexts": [{"name": "tap", "context": {"cluster": "tap", "user": "tap"}}],
        });
        std::fs::write(&path, config.to_string()).context("writing the tap's kubeconfig")?;
        Ok(path)
    }

    /// Falls silent once so many writes have reached the API server: whoever sent the last is never answered.
    pub fn cut_after(&self, writes: usize) {
        self.line.left.store(writes, Ordering::SeqCst);
    }

    /// Waits until it falls silent.
    pub async fn silent(&self) {
        self.line.silent.notified().await;
    }

    /// So many writes go wrong from now on, by this seed, and watches with them until then.
    pub fn disturb(&self, seed: u64, many: u32) {
        self.line.faults.reset(seed, many);
    }

    /// How many writes went wrong since then.
    pub fn struck(&self) -> u32 {
        self.line.faults.struck()
    }

    /// Passes everything on from now on.
    pub fn relent(&self) {
        self.disturb(0, 0);
        self.line.left.store(usize::MAX, Ordering::SeqCst);
    }
}

async fn pass(State(line): State<Arc<Line>>, request: Request) -> Response {
    // Events tell a story and hold nothing up: they are no step of any path.
    let write = *request.method() != Method::GET && !request.uri().path().contains("/events");
    if write && line.left.load(Ordering::SeqCst) == 0 {
        return std::future::pending().await;
    }
    let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    let fate = if write { line.faults.fate() } else { Fate::Passes(Duration::ZERO) };
    match fate {
        Fate::Passes(delay) => tokio::time::sleep(delay).await,
        Fate::Lost => return faults::cut(),
        Fate::Hangs => {
            tokio::time::sleep(HANGS).await;
            return faults::cut();
        }
        Fate::Refused(code) => return faults::refusal(code),
        Fate::Unanswered => {}
    }
    let quality = line.faults.line();
    if watch && quality.expired {
        return faults::refusal(410);
    }
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let request = kube::client::Body::from(body.to_vec());
    let answer = match line.client.send(Request::from_parts(parts, request)).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    let left = line.left.load(Ordering::SeqCst);
    if write && left != usize::MAX {
        line.left.store(left.saturating_sub(1), Ordering::SeqCst);
        if left <= 1 {
            // The write has happened; nobody will hear of it.
            line.silent.notify_one();
            return std::future::pending().await;
        }
    }
    match fate {
        Fate::Unanswered => faults::cut(),
        _ if watch => faults::disturbed(answer, quality),
        _ => answer,
    }
}

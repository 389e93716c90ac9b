//! A tap on the line between nacre and the API server: it passes everything on, counts writes, and can pull the plug
//! after any of them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bed::send_signal;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;

/// The largest request that is passed on: more than the API server takes.
const LARGEST: usize = 4 << 20;

/// A tap, listening.
pub struct Tap {
    line: Arc<Line>,
    address: SocketAddr,
}

struct Line {
    client: Client,
    /// How many more writes are passed on before the plug is pulled; `usize::MAX` for ever.
    left: AtomicUsize,
    /// Whom to kill.
    victim: AtomicU32,
}

impl Tap {
    /// Listens, and talks to the API server as this kubeconfig says.
    pub async fn open(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let line = Arc::new(Line { client, left: AtomicUsize::new(usize::MAX), victim: AtomicU32::new(0) });
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

    /// Kills this process with no warning once so many writes have reached the API server, before it hears of the last.
    pub fn kill_after(&self, writes: usize, victim: u32) {
        self.line.victim.store(victim, Ordering::SeqCst);
        self.line.left.store(writes, Ordering::SeqCst);
    }

    /// Passes everything on from now on.
    pub fn relent(&self) {
        self.line.left.store(usize::MAX, Ordering::SeqCst);
    }
}

async fn pass(State(line): State<Arc<Line>>, request: Request) -> Response {
    // Events tell a story and hold nothing up: they are no step of any path.
    let write = *request.method() != Method::GET && !request.uri().path().contains("/events");
    if write && line.left.load(Ordering::SeqCst) == 0 {
        return cut();
    }
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let Ok(body) = to_bytes(body, LARGEST).await else { return cut() };
    let request = kube::client::Body::from(body.to_vec());
    let answer = match line.client.send(Request::from_parts(parts, request)).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    if write {
        let left = line.left.load(Ordering::SeqCst);
        if left != usize::MAX {
            line.left.store(left.saturating_sub(1), Ordering::SeqCst);
        }
        if left == 1 {
            // The write has happened; nobody will hear of it.
            let _ = send_signal(line.victim.load(Ordering::SeqCst), "KILL");
            return cut();
        }
    }
    answer
}

fn cut() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the line is cut").into_response()
}

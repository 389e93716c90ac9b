//! A proxy between a program and the API server. It counts writes and can stop after any of them, so that a story can
//! kill the program between any two. It can also lose, reject, delay and cut requests, by seed.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The proxy, listening.
pub struct FaultProxy {
    line: Arc<Line>,
    address: SocketAddr,
}

struct Line {
    client: Client,
    /// How many more writes are passed on before it falls silent; `usize::MAX` for ever.
    left: AtomicUsize,
    /// Which writes count: those with this in their path or body.
    about: Mutex<String>,
    /// Notified when it falls silent.
    silent: Notify,
    /// The sorts of writes of which the first met a conflict that nobody made, if that is wanted.
    contradicted: Mutex<Option<HashSet<String>>>,
    /// Which writes are answered late: those with this in their body; and how late.
    late: Mutex<Option<(String, Duration)>>,
    faults: Faults,
}

impl FaultProxy {
    /// Listens, and talks to the API server as this kubeconfig says.
    pub async fn open(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let line = Arc::new(Line {
            client,
            left: AtomicUsize::new(usize::MAX),
            about: Mutex::default(),
            silent: Notify::new(),
            contradicted: Mutex::default(),
            late: Mutex::default(),
            faults: Faults::new(0, 0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let routes = Router::new().fallback(pass).with_state(line.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { line, address })
    }

    /// Writes a kubeconfig file that leads through the proxy.
    pub fn kubeconfig(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(format!("fault-proxy-{}.kubeconfig", self.address.port()));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "fault-proxy",
            "clusters": [{"name": "fault-proxy", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "fault-proxy", "user": {}}],
            "contexts": [{"name": "fault-proxy", "context": {"cluster": "fault-proxy", "user": "fault-proxy"}}],
        });
        std::fs::write(&path, config.to_string()).context("writing the proxy's kubeconfig")?;
        Ok(path)
    }

    /// Falls silent once so many writes have reached the API server: whoever sent the last is never answered.
    pub fn cut_after(&self, writes: usize) {
        self.cut_after_writes_about("", writes);
    }

    /// The same, but only writes count that have this text in their path or body.
    pub fn cut_after_writes_about(&self, about: &str, writes: usize) {
        about.clone_into(&mut self.line.about.lock().unwrap_or_else(PoisonError::into_inner));
        self.line.left.store(writes, Ordering::SeqCst);
    }

    /// Whether it has fallen silent.
    pub fn is_silent(&self) -> bool {
        self.line.left.load(Ordering::SeqCst) == 0
    }

    /// Waits until it falls silent.
    pub async fn silent(&self) {
        // An earlier silence may have left its word behind.
        while !self.is_silent() {
            self.line.silent.notified().await;
        }
    }

    /// Answers the first write to each kind in each namespace with a conflict, from now on, and the first delete, so that
    /// whoever wrote has to look again.
    pub fn contradict(&self) {
        *self.line.contradicted.lock().unwrap_or_else(PoisonError::into_inner) = Some(HashSet::new());
    }

    /// Answers writes that have this text in their body so much later than the API server has made them.
    pub fn answer_late(&self, about: &str, delay: Duration) {
        let late = Some((about.to_owned(), delay));
        *self.line.late.lock().unwrap_or_else(PoisonError::into_inner) = late;
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

impl Line {
    /// Whether this write is the first of its sort to its kind in this namespace.
    fn contradicts(&self, path: &str, method: &Method) -> bool {
        let mut contradicted = self.contradicted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(met) = contradicted.as_mut() else { return false };
        let sort = if *method == Method::DELETE { "delete" } else { "write" };
        let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        // `/api/v1/...` or `/apis/group/v1/...`.
        let lead = if parts.first() == Some(&"api") { 2 } else { 3 };
        parts.drain(..lead.min(parts.len()));
        let (namespace, kind) = match parts.as_slice() {
            ["namespaces", namespace, kind, ..] => (*namespace, *kind),
            [kind, ..] => ("", *kind),
            [] => return false,
        };
        // These are made once and read by name anyway.
        kind != "serverstatusrequests" && met.insert(format!("{sort} {namespace} {kind}"))
    }

    fn delay(&self, body: &[u8]) -> Duration {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let is_about = |about: &str| String::from_utf8_lossy(body).contains(about);
        late.as_ref().filter(|(about, _)| is_about(about)).map_or(Duration::ZERO, |(_, delay)| *delay)
    }

    fn is_about(&self, path: &str, body: &[u8]) -> bool {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        path.contains(&*about) || String::from_utf8_lossy(body).contains(&*about)
    }
}

async fn pass(State(line): State<Arc<Line>>, request: Request) -> Response {
    // Events and lease renewals are not counted: no decision depends on them.
    let path = request.uri().path();
    let aside = path.contains("/events") || path.contains("/leases");
    let write = *request.method() != Method::GET && !aside;
    if write && line.left.load(Ordering::SeqCst) == 0 {
        return std::future::pending().await;
    }
    if write && line.contradicts(request.uri().path(), request.method()) {
        let words = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict",
            "code": 409, "message": "a story says so"});
        return (StatusCode::CONFLICT, words.to_string()).into_response();
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
    let counts = write && line.is_about(parts.uri.path(), &body);
    let delay = if write { line.delay(&body) } else { Duration::ZERO };
    let request = kube::client::Body::from(body.to_vec());
    let answer = match line.client.send(Request::from_parts(parts, request)).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    tokio::time::sleep(delay).await;
    let left = line.left.load(Ordering::SeqCst);
    if counts && left != usize::MAX {
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

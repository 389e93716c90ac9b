//! A door before the API server that shuts for ever behind a given number of writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;

struct Door {
    client: Client,
    writes: AtomicUsize,
    limit: usize,
    shut: Arc<Notify>,
}

/// Opens a door and returns a kubeconfig that leads through it, and what tells that it has shut: the last write is done by then, and
/// whoever asked for it has not been told.
pub(crate) async fn open(client: Client, folder: &Path, limit: usize) -> Result<(PathBuf, Arc<Notify>)> {
    let shut = Arc::new(Notify::new());
    let door = Arc::new(Door { client, writes: AtomicUsize::new(0), limit, shut: shut.clone() });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(pass).with_state(door);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "door",
        "clusters": [{ "name": "door", "cluster": { "server": server } }],
        "users": [{ "name": "door", "user": {} }],
        "contexts": [{ "name": "door", "context": { "cluster": "door", "user": "door" } }],
    });
    let path = folder.join(format!("door-{limit}"));
    std::fs::write(&path, config.to_string())?;
    Ok((path, shut))
}

async fn pass(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_write = parts.method != http::Method::GET;
    let mut onward = http::Request::builder().method(parts.method).uri(parts.uri);
    for name in [http::header::CONTENT_TYPE, http::header::ACCEPT] {
        if let Some(value) = parts.headers.get(&name) {
            onward = onward.header(name, value);
        }
    }
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let answer = door.client.send(onward.body(kube::client::Body::from(body)).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect_bytes().await.unwrap();
    if is_write && door.writes.fetch_add(1, Ordering::SeqCst) + 1 >= door.limit {
        door.shut.notify_one();
        std::future::pending::<()>().await;
    }
    let mut back = Response::builder().status(parts.status);
    if let Some(kind) = parts.headers.get(http::header::CONTENT_TYPE) {
        back = back.header(http::header::CONTENT_TYPE, kind);
    }
    back.body(Body::from(body)).unwrap()
}

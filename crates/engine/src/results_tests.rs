use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use api::Kind;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;

/// An API server with one DownloadRequest, whose link leads to this address; it counts how often that is deleted.
#[derive(Clone)]
struct Linked {
    url: Option<String>,
    deleted: Arc<AtomicUsize>,
}

impl tower::Service<Request<Body>> for Linked {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.method() == Method::DELETE {
            self.deleted.fetch_add(1, Ordering::Relaxed);
        }
        let found = json!({
            "apiVersion": "velero.io/v1", "kind": "DownloadRequest",
            "metadata": {"namespace": "velero", "name": "nacre-results-1"},
            "spec": {"target": {"kind": "RestoreResults", "name": "back"}},
            "status": {"downloadURL": self.url},
        });
        ready(Ok(Response::new(Body::from(found.to_string().into_bytes()))))
    }
}

async fn read_from(url: Option<String>) -> (Result<Results, String>, usize) {
    let deleted = Arc::new(AtomicUsize::new(0));
    let server = Linked { url, deleted: deleted.clone() };
    let requests = Api::namespaced(Client::new(server, "velero"), "velero");
    let (velero, backup) = ("back".to_owned(), "daily".to_owned());
    let file = ResultsFile { kind: "RestoreResults", velero, backup, location: None };
    let key = Key::new(Kind::NonAdminRestore, "shop", "back");
    let patience = Duration::from_millis(100);
    let cluster = Cluster::new("velero");
    let read = read(&requests, &cluster, &key, &file, patience);
    let read = timeout(Duration::from_secs(20), read).await.expect("it takes no longer than its patience");
    (read, deleted.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_storage_that_never_answers_is_given_up_and_the_request_is_deleted() {
    // Connections are taken by the kernel, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/results.gz", silent.local_addr().unwrap());
    let (read, deleted) = Box::pin(read_from(Some(url))).await;
    assert_eq!(read.unwrap_err(), "Velero or the storage did not answer");
    assert_eq!(deleted, 1);
}

#[tokio::test]
async fn so_is_a_velero_that_never_gives_a_link() {
    let (read, deleted) = Box::pin(read_from(None)).await;
    assert_eq!(read.unwrap_err(), "Velero or the storage did not answer");
    assert_eq!(deleted, 1);
}

/// Parsing runs on a thread of its own, which nobody can stop: a log of many megabytes ends by itself.
#[tokio::test]
async fn a_log_that_takes_too_long_to_read_is_given_up() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for _ in 0..1000 {
        encoder.write_all(b"time=\"2026-11-18T07:00:00Z\" level=info msg=a backup=velero/daily\n").unwrap();
    }
    let compressed = encoder.finish().unwrap();
    let cluster = Cluster::new("velero");
    let daily = || "daily".to_owned();
    let file = ResultsFile { kind: "BackupLog", velero: daily(), backup: daily(), location: None };
    let read = log(&cluster, "shop", &file, compressed.clone(), PATIENCE).await;
    assert!(read.unwrap().is_ok());
    let read = log(&cluster, "shop", &file, compressed, Duration::ZERO).await;
    assert_eq!(read.unwrap_err(), "reading the file took too long");
}

//! The webhook: checks requests before the API server stores them, and records who asks where the API server cannot do
//! that by itself. Its certificate is made and renewed here.
//!
//! It is optional. Without its configurations, which the installation creates, or without permission to read them, nacre
//! does not listen. The controllers then report the same refusals in the status of the request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use api::{HiddenSecret, Kind};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use engine::{
    CertificateSlot, Cluster, Executor, Presenter, Supervisor, chain, find_out, make_certificate, validity,
    with_credential,
};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{Api, Client};
use planner::admission::certificate::{self, Configuration, Observed, SECRET, Validity};
use planner::admission::{Recorder, webhook, wire};
use planner::{Key, Plan};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::admin::Readiness;
use crate::args::{Args, Bind};
use crate::tls::secured;

/// How often configuration and certificate are checked.
const INTERVAL: Duration = Duration::from_secs(10);
/// Retry period while a permission is missing.
const OFF: Duration = Duration::from_mins(1);
/// How long API servers get to load a new CA before it is used.
const SETTLE: Duration = Duration::from_mins(1);
/// Minimum time between two rounds, also after errors.
const DEBOUNCE: Duration = Duration::from_millis(500);

/// An object is at most 1.5 MiB in etcd, an AdmissionReview holds two of them, and the API server writes some characters
/// with six. Whoever sends a larger one would not be recorded.
const LARGEST: usize = 20 * 1024 * 1024;
/// Maximum number of AdmissionReviews read at the same time, which bounds memory.
const AT_A_TIME: usize = 4;
/// Timeout of a request; longer than the API server waits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the webhook does not work, reported in `/readyz`.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookStatus(Arc<Mutex<Option<String>>>);

impl WebhookStatus {
    /// Adds it to the other readiness details.
    pub(crate) fn add_to(self, inner: impl Fn() -> Readiness) -> impl Fn() -> Readiness {
        move || {
            let mut readiness = inner();
            readiness.details.extend(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
            readiness
        }
    }

    /// Sets the current problem, and logs it if it is new.
    fn set(&self, error: Option<String>) {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *reported != error {
            if let Some(error) = &error {
                warn!("{error}");
            } else {
                info!("webhook: configuration and certificate are current");
            }
            *reported = error;
        }
    }
}

/// The webhook's state.
pub(crate) struct Webhook {
    bind: Bind,
    lifetime: Duration,
    namespace: String,
    reviewing: Api<ValidatingWebhookConfiguration>,
    recording: Api<MutatingWebhookConfiguration>,
    secrets: Api<HiddenSecret>,
    cluster: Arc<Cluster>,
    client: Client,
    executor: Executor,
    presenter: Arc<Presenter>,
    reported_status: WebhookStatus,
    supervisor: Supervisor,
    listening: bool,
}

impl Webhook {
    pub(crate) fn new(
        args: &Args,
        client: &Client,
        namespace: &str,
        cluster: &Arc<Cluster>,
        executor: &Executor,
        reported_status: WebhookStatus,
        supervisor: &Supervisor,
    ) -> Self {
        Self {
            bind: args.webhook_bind_address,
            lifetime: args.webhook_certificate_lifetime,
            namespace: namespace.to_owned(),
            reviewing: Api::all(client.clone()),
            recording: Api::all(client.clone()),
            secrets: Api::namespaced(client.clone(), namespace),
            cluster: cluster.clone(),
            client: client.clone(),
            executor: executor.clone(),
            presenter: Arc::default(),
            reported_status,
            supervisor: supervisor.clone(),
            listening: false,
        }
    }

    /// Runs the webhook for the lifetime of the process.
    pub(crate) async fn keep(mut self) {
        loop {
            let pause = match self.round().await {
                Ok(requeue_after) => {
                    self.reported_status.set(None);
                    requeue_after.unwrap_or(INTERVAL).min(self.look())
                }
                Err(error) => {
                    let forbidden = code(&error) == Some(403);
                    self.reported_status
                        .set(Some(format!("the webhook does not work: {}", chain(error.as_ref()))));
                    if forbidden { OFF } else { self.look() }
                }
            };
            sleep(pause.max(DEBOUNCE)).await;
        }
    }

    fn look(&self) -> Duration {
        INTERVAL.min(self.lifetime / 12)
    }

    /// One round: observe, decide, execute. Standbys decide too; the gate in `Leadership` keeps them from writing.
    async fn round(&mut self) -> Result<Option<Duration>> {
        let configurations = self.configurations().await?;
        if configurations.is_empty() {
            return Ok(None);
        }
        let names = certificate::names(&configurations);
        anyhow::ensure!(!names.is_empty(), "its configuration has neither service nor url");
        let secret = self.secrets.get_opt(SECRET).await.context("cannot read its certificate")?;
        let judged = |which| {
            secret
                .as_ref()
                .map_or(Validity::Invalid, |secret| validity(secret, which, &names, self.lifetime / 3))
        };
        let (current, next) = (judged(CertificateSlot::Current), judged(CertificateSlot::Next));
        if let Some(secret) = secret.as_ref().filter(|_| current > Validity::Invalid) {
            self.presenter.show(secret).context("cannot show its certificate")?;
            self.listen().await?;
        }
        let fresh = certificate::needs_fresh(current, next)
            .then(|| make_certificate(&names, self.lifetime).context("cannot make a certificate"))
            .transpose()?;
        let seen = Observed {
            namespace: &self.namespace,
            secret: secret.as_ref(),
            current,
            next,
            configurations: &configurations,
            fresh: fresh.as_ref(),
            settle: SETTLE.min(self.lifetime / 12),
            now: Timestamp::now(),
        };
        self.execute_plan(&certificate::decide(&seen)).await
    }

    /// Whom the API server asks, as far as nacre may look.
    async fn configurations(&self) -> Result<Vec<Configuration>> {
        let reviewing = self.reviewing.get_opt(webhook::CONFIGURATION).await;
        let reviewing = reviewing.context("cannot read its configuration")?;
        // Where the API server records by itself there is none. With OADP's role nacre is not permitted to look.
        let recording = match self.recording.get_opt(webhook::RECORDER).await {
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            other => other.context("cannot read the configuration by which it records who asks")?,
        };
        let reviewing =
            reviewing.map(|found| Configuration::of(Kind::ValidatingWebhookConfiguration, &found));
        let recording = recording.map(|found| Configuration::of(Kind::MutatingWebhookConfiguration, &found));
        Ok(reviewing.into_iter().chain(recording).collect())
    }

    async fn execute_plan(&self, plan: &Plan) -> Result<Option<Duration>> {
        let about = Key::new(Kind::Secret, &self.namespace, SECRET);
        match self.executor.execute(&about, plan).await {
            Ok(()) => Ok(plan.delay()),
            // Another replica wrote first; its result is read in the next round.
            Err(failure) if failure.status().is_some_and(|status| status.code == 409) => {
                Ok(Some(Duration::ZERO))
            }
            Err(failure) if failure.status().is_some() => Err(failure.into()),
            // No answer, or another replica is leader and writes instead. Either way the next round checks again.
            Err(failure) => {
                debug!(failure = %chain(&failure), "webhook: not updated; retrying");
                Ok(None)
            }
        }
    }

    /// Listens, once there is a certificate.
    async fn listen(&mut self) -> Result<()> {
        let Some(address) = self.bind.filter(|_| !self.listening) else { return Ok(()) };
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let listener = secured(listener, self.presenter.acceptor()?, &self.supervisor)?;
        let reviewer = Reviewer {
            cluster: self.cluster.clone(),
            client: Some(self.client.clone()),
            namespace: self.namespace.as_str().into(),
        };
        let routes = routes(&reviewer);
        self.supervisor.spawn("webhook server", async move {
            // Serving ends only with the process.
            let _ = axum::serve(listener, routes).await;
        });
        info!(%address, "webhook: listening");
        self.listening = true;
        Ok(())
    }
}

fn code(error: &anyhow::Error) -> Option<u16> {
    error.chain().find_map(|cause| match cause.downcast_ref::<kube::Error>()? {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    })
}

/// Whether the Content-Length is larger than any valid AdmissionReview; a body without that header is cut off while it
/// is read.
fn too_large(request: &Request) -> bool {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > LARGEST)
}

/// Answers the API server.
#[derive(Clone)]
struct Reviewer {
    cluster: Arc<Cluster>,
    /// None in tests: then no credential is fetched.
    client: Option<Client>,
    /// Velero's namespace.
    namespace: Arc<str>,
}

/// Each path has its own places: a review may wait for other answers, and a record that waits is lost.
fn routes(reviewer: &Reviewer) -> Router {
    let review = in_turn(webhook::PATH, post(answer), reviewer);
    review.merge(in_turn(webhook::RECORDER_PATH, post(record), reviewer))
}

/// A path where so many are read and answered at a time.
fn in_turn(path: &str, method: MethodRouter<Reviewer>, reviewer: &Reviewer) -> Router {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let in_turn = move |request: Request, next: Next| {
        let places = places.clone();
        async move {
            if too_large(&request) {
                return StatusCode::PAYLOAD_TOO_LARGE.into_response();
            }
            let answer = async {
                // The permit covers reading the body, not only answering. The semaphore is never closed.
                let _place = places.acquire().await;
                next.run(request).await
            };
            let late = || StatusCode::REQUEST_TIMEOUT.into_response();
            timeout(TIMEOUT, answer).await.unwrap_or_else(|_| late())
        }
    };
    Router::new()
        .route(path, method)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn(in_turn))
        .with_state(reviewer.clone())
}

/// Records who asks.
async fn record(State(Reviewer { cluster, namespace, .. }): State<Reviewer>, body: Bytes) -> Response {
    let question = match wire::read(&body) {
        Ok(question) => question,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    // The list that the API server compares with, also while it is not yet what the policy says.
    let extra = cluster.look().requester_extra();
    let recorder = Recorder { admin_namespace: &namespace, extra: &extra };
    ([(header::CONTENT_TYPE, "application/json")], question.record(&recorder).to_string()).into_response()
}

async fn answer(State(Reviewer { cluster, client, .. }): State<Reviewer>, body: Bytes) -> Response {
    let question = match wire::read(&body) {
        Ok(question) => question,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    if let Some(client) = &client {
        learn(client, &cluster, &question).await;
    }
    // If a review panics, the request gets no answer, and the API server continues without nacre (failurePolicy:
    // Ignore).
    let review = || catch_unwind(AssertUnwindSafe(|| question.answer(&cluster.look())));
    // Only a location that nobody knows yet names a credential that nobody has fetched.
    let verdict = match (catch_unwind(AssertUnwindSafe(|| question.credential())), client) {
        (Ok(Some(name)), Some(client)) => with_credential(&client, &cluster, &name, review).await,
        _ => review(),
    };
    match verdict {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A wildcard, what is served, and the rest: more rounds of questions there are not.
const ROUNDS: usize = 3;

/// Finds out what the requester is permitted, so that the answer can name what is not.
async fn learn(client: &Client, cluster: &Cluster, question: &wire::Question) {
    for _ in 0..ROUNDS {
        let asks = catch_unwind(AssertUnwindSafe(|| question.asks(&cluster.look()))).unwrap_or_default();
        if asks.is_empty() {
            return;
        }
        find_out(client, cluster, asks).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use engine::Cluster;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::{LARGEST, Reviewer, routes};

    async fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cluster = Arc::new(Cluster::new("velero"));
        let routes = routes(&Reviewer { cluster, client: None, namespace: "velero".into() });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    /// Sends this and returns the answer's head and body.
    async fn send(address: SocketAddr, method: &str, length: usize, body: &[u8]) -> (String, String) {
        send_to("/review", address, method, length, body).await
    }

    async fn send_to(
        path: &str,
        address: SocketAddr,
        method: &str,
        length: usize,
        body: &[u8],
    ) -> (String, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: nacre\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Whoever is turned away may not be listened to until the end.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.to_owned(), body.to_owned())
    }

    fn question(object: &Value) -> Vec<u8> {
        let request = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "name": "a", "object": object,
            "kind": {"group": "oadp.openshift.io", "version": "v1alpha1", "kind": "NonAdminBackup"}});
        serde_json::to_vec(&json!({ "request": request })).unwrap()
    }

    #[tokio::test]
    async fn a_question_is_answered_and_anything_else_is_turned_away() {
        let address = server().await;
        let asked =
            question(&json!({"metadata": {"name": "a", "namespace": "shop"}, "spec": {"backupSpec": {}}}));
        let (head, body) = send(address, "POST", asked.len(), &asked).await;
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        // Nothing is known of the policy yet, which is no reason to refuse.
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u"), &json!(true)));
        assert!(answer["response"]["warnings"][0].as_str().unwrap().contains("cannot be read at the moment"));

        let garbage = b"\x00\xff{";
        assert!(send(address, "POST", garbage.len(), garbage).await.0.starts_with("HTTP/1.1 400"));
        assert!(send(address, "GET", 0, b"").await.0.starts_with("HTTP/1.1 405"));
    }

    #[tokio::test]
    async fn who_asks_is_recorded_as_a_patch() {
        let address = server().await;
        let mut asked: Value =
            serde_json::from_slice(&question(&json!({"metadata": {}, "spec": {}}))).unwrap();
        asked["request"]["userInfo"] = json!({"username": "ann", "groups": ["g"], "extra": {"other": ["b"]}});
        let asked = asked.to_string().into_bytes();
        let (head, body) = send_to("/record", address, "POST", asked.len(), &asked).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&answer["response"]["allowed"], &answer["response"]["patchType"]),
            (&json!(true), &json!("JSONPatch"))
        );
        let patch: ByteString = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
        let patch: Value = serde_json::from_slice(&patch.0).unwrap();
        let record = r#"{"user":"ann","uid":"","groups":["g"],"scopes":[]}"#;
        assert_eq!(
            patch[1],
            json!({"op": "add", "path": "/metadata/annotations/nacre.dev~1requester", "value": record})
        );
        assert!(send_to("/record", address, "POST", 1, b"{").await.0.starts_with("HTTP/1.1 400"));
    }

    #[tokio::test]
    async fn what_is_too_large_is_not_read() {
        let address = server().await;
        let large = question(&json!({"spec": {"backupSpec": {"ttl": "1".repeat(LARGEST)}}}));
        assert!(send(address, "POST", large.len(), &large).await.0.starts_with("HTTP/1.1 413"));
        // However little of it comes.
        assert!(send(address, "POST", 1 << 40, b"{").await.0.starts_with("HTTP/1.1 413"));
        // And a question of the largest size an object can have is answered.
        let fine = question(&json!({"spec": {"backupSpec": {"ttl": "1".repeat(1_500_000)}}}));
        assert!(send(address, "POST", fine.len(), &fine).await.0.starts_with("HTTP/1.1 200"));
    }
}

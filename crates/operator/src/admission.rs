//! The webhook: answering the API server before it stores a request, with a certificate that looks after itself.
//!
//! It is an extra. Without its configuration, which an installation makes, and without the right to look at that, nacre
//! does not listen at all, and the controllers say afterwards what would have been said before.

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
use axum::routing::post;
use engine::{Cluster, Executor, Presenter, Supervisor, Which, make_certificate, soundness, with_credential};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, Client};
use planner::admission::certificate::{self, Observed, SECRET, Soundness};
use planner::admission::{webhook, wire};
use planner::{Key, Plan};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::admin::Readiness;
use crate::args::{Args, Bind};
use crate::tls::secured;

/// How often to look whether everything is as it should be.
const LOOK: Duration = Duration::from_secs(10);
/// How often to ask again for a right that nobody gave.
const OFF: Duration = Duration::from_mins(1);
/// How long every API server has to see a new authority.
const SETTLE: Duration = Duration::from_mins(1);
/// The shortest time between two rounds, whatever goes wrong.
const BREATH: Duration = Duration::from_millis(500);

/// An object is at most 1.5 MiB in etcd, and a question holds two of them.
const LARGEST: usize = 4 * 1024 * 1024;
/// So many questions are read at a time, so that large ones cannot fill the memory.
const AT_A_TIME: usize = 4;
/// The API server has long given up by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What keeps the webhook from working, for `/readyz`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note(Arc<Mutex<Option<String>>>);

impl Note {
    /// Says it beside what is said anyway.
    pub(crate) fn beside(self, said: impl Fn() -> Readiness) -> impl Fn() -> Readiness {
        move || {
            let mut readiness = said();
            readiness.details.extend(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
            readiness
        }
    }

    /// Says this from now on, and logs what is new.
    fn set(&self, trouble: Option<String>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != trouble {
            if let Some(trouble) = &trouble {
                warn!("{trouble}");
            } else {
                info!("the webhook is as it should be");
            }
            *told = trouble;
        }
    }
}

/// All that the webhook needs.
pub(crate) struct Webhook {
    bind: Bind,
    lifetime: Duration,
    namespace: String,
    configurations: Api<ValidatingWebhookConfiguration>,
    secrets: Api<HiddenSecret>,
    cluster: Arc<Cluster>,
    client: Client,
    executor: Executor,
    presenter: Arc<Presenter>,
    note: Note,
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
        note: Note,
        supervisor: &Supervisor,
    ) -> Self {
        Self {
            bind: args.webhook_bind_address,
            lifetime: args.webhook_certificate_lifetime,
            namespace: namespace.to_owned(),
            configurations: Api::all(client.clone()),
            secrets: Api::namespaced(client.clone(), namespace),
            cluster: cluster.clone(),
            client: client.clone(),
            executor: executor.clone(),
            presenter: Arc::default(),
            note,
            supervisor: supervisor.clone(),
            listening: false,
        }
    }

    /// Keeps it at work for as long as the process runs.
    pub(crate) async fn keep(mut self) {
        loop {
            let pause = match self.round().await {
                Ok(wake) => {
                    self.note.set(None);
                    wake.unwrap_or(LOOK).min(self.look())
                }
                Err(trouble) => {
                    let forbidden = code(&trouble) == Some(403);
                    self.note.set(Some(format!("the webhook does not work: {trouble:#}")));
                    if forbidden { OFF } else { self.look() }
                }
            };
            sleep(pause.max(BREATH)).await;
        }
    }

    fn look(&self) -> Duration {
        LOOK.min(self.lifetime / 12)
    }

    /// One look, one decision, one hand. Standbys decide too; whether their writes go through is not for here.
    async fn round(&mut self) -> Result<Option<Duration>> {
        let found = self.configurations.get_opt(webhook::CONFIGURATION).await;
        let Some(configuration) = found.context("cannot look at its configuration")? else {
            return Ok(None);
        };
        let names = certificate::names(&configuration);
        anyhow::ensure!(!names.is_empty(), "its configuration says neither service nor url");
        let secret = self.secrets.get_opt(SECRET).await.context("cannot look at its certificate")?;
        let judged = |which| {
            secret
                .as_ref()
                .map_or(Soundness::Useless, |secret| soundness(secret, which, &names, self.lifetime / 3))
        };
        let (current, next) = (judged(Which::Current), judged(Which::Next));
        if let Some(secret) = secret.as_ref().filter(|_| current > Soundness::Useless) {
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
            configuration: &configuration,
            fresh: fresh.as_ref(),
            settle: SETTLE.min(self.lifetime / 12),
            now: Timestamp::now(),
        };
        self.carry_out(&certificate::decide(&seen)).await
    }

    async fn carry_out(&self, plan: &Plan) -> Result<Option<Duration>> {
        let about = Key::new(Kind::Secret, &self.namespace, SECRET);
        match self.executor.execute(&about, plan).await {
            Ok(()) => Ok(plan.delay()),
            // Another replica was faster: what it wrote is looked at next.
            Err(failure) if failure.status().is_some_and(|status| status.code == 409) => {
                Ok(Some(Duration::ZERO))
            }
            Err(failure) if failure.status().is_some() => Err(failure.into()),
            // Nobody answered, or another replica leads and its hand is the one that counts. Either way it is looked at again.
            Err(failure) => {
                debug!(%failure, "left as it is for now");
                Ok(None)
            }
        }
    }

    /// Listens, once there is something to show.
    async fn listen(&mut self) -> Result<()> {
        let Some(address) = self.bind.filter(|_| !self.listening) else { return Ok(()) };
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let listener = secured(listener, self.presenter.acceptor()?, &self.supervisor)?;
        let routes = routes(Reviewer { cluster: self.cluster.clone(), client: Some(self.client.clone()) });
        self.supervisor.spawn("webhook server", async move {
            // Serving ends only with the process.
            let _ = axum::serve(listener, routes).await;
        });
        info!(%address, "answering the API server");
        self.listening = true;
        Ok(())
    }
}

fn code(trouble: &anyhow::Error) -> Option<u16> {
    trouble.chain().find_map(|cause| match cause.downcast_ref::<kube::Error>()? {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    })
}

/// Whether a question says that it is larger than any can be; one that says nothing is cut off while it is read.
fn too_large(request: &Request) -> bool {
    let said = request.headers().get(header::CONTENT_LENGTH).and_then(|said| said.to_str().ok());
    said.and_then(|said| said.parse::<usize>().ok()).is_some_and(|said| said > LARGEST)
}

/// Answers the API server.
#[derive(Clone)]
struct Reviewer {
    cluster: Arc<Cluster>,
    /// None in tests: then no credential is fetched.
    client: Option<Client>,
}

fn routes(reviewer: Reviewer) -> Router {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let in_turn = move |request: Request, next: Next| {
        let places = places.clone();
        async move {
            if too_large(&request) {
                return StatusCode::PAYLOAD_TOO_LARGE.into_response();
            }
            let answer = async {
                // Held while the question is read, not only while it is answered. It is never closed.
                let _place = places.acquire().await;
                next.run(request).await
            };
            let late = || StatusCode::REQUEST_TIMEOUT.into_response();
            timeout(PATIENCE, answer).await.unwrap_or_else(|_| late())
        }
    };
    Router::new()
        .route(webhook::PATH, post(answer))
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn(in_turn))
        .with_state(reviewer)
}

async fn answer(State(Reviewer { cluster, client }): State<Reviewer>, body: Bytes) -> Response {
    let question = match wire::read(&body) {
        Ok(question) => question,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    // No question is meant to make us panic; one that does is not answered, and the API server goes on without.
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use engine::Cluster;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::{LARGEST, Reviewer, routes};

    async fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = routes(Reviewer { cluster: Arc::new(Cluster::new("velero")), client: None });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    /// Sends this and returns the answer's head and body.
    async fn send(address: SocketAddr, method: &str, length: usize, body: &[u8]) -> (String, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "{method} /review HTTP/1.1\r\nhost: nacre\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
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

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use api::{Kind, NonAdminBackup};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use planner::{Action, Key, Object, Plan, Target};
use serde_json::{Value, json};

use super::Executor;
use crate::cluster::Cluster;

/// An API server with one answer to each method.
#[derive(Clone)]
struct Server(fn(&Method) -> (StatusCode, Value));

impl tower::Service<Request<Body>> for Server {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (code, body) = self.0(request.method());
        let answer = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        ready(Ok(answer.unwrap()))
    }
}

fn error(code: StatusCode) -> (StatusCode, Value) {
    (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16()}))
}

/// It executes every request, and its answers to writes get lost.
fn mute(method: &Method) -> (StatusCode, Value) {
    let done = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"namespace": "shop", "name": "daily", "uid": "1", "resourceVersion": "7"},
        "spec": {"backupSpec": {}}, "status": {"phase": "Created"},
    });
    if *method == Method::GET { (StatusCode::OK, done) } else { error(StatusCode::GATEWAY_TIMEOUT) }
}

fn daily() -> Target {
    Target {
        kind: Kind::NonAdminBackup,
        namespace: "shop".to_owned(),
        name: "daily".to_owned(),
        uid: "1".to_owned(),
        resource_version: "6".to_owned(),
        finalizers: Vec::new(),
    }
}

/// A write that counts as not done could be repeated.
#[tokio::test]
async fn after_any_write_without_an_answer_it_is_looked_at_what_is_there() {
    let about = Key::new(Kind::NonAdminBackup, "shop", "daily");
    let made = json!({"metadata": {"namespace": "shop", "name": "daily"}});
    for action in [
        Action::PatchStatus(daily(), json!({"status": {"phase": "Created"}})),
        Action::Patch(daily(), json!({})),
        Action::AddFinalizer(daily(), "held"),
        Action::Create(Object { kind: Kind::NonAdminBackup, body: made }),
    ] {
        let cluster = Arc::new(Cluster::new("velero"));
        let executor = Executor::new(Client::new(Server(mute), "velero"), cluster.clone());
        assert!(executor.reconcile(&about).await.1.is_none());
        assert!(
            cluster.look().get::<NonAdminBackup>("shop", "daily").is_none(),
            "nothing is fetched without a reason"
        );
        executor.execute(&about, &Plan::done().then(action.clone())).await.unwrap_err();
        executor.reconcile(&about).await;
        let found = cluster.look().get::<NonAdminBackup>("shop", "daily");
        let found = found.unwrap_or_else(|| panic!("nobody looked after {action:?}"));
        assert_eq!(found.status.as_ref().unwrap().phase, Some(api::Phase::Created));
    }
}

/// The next decision reports what persists, and its `times` say for how long.
#[tokio::test]
async fn trouble_in_a_row_is_counted_until_all_that_was_wanted_is_done() {
    let about = Key::new(Kind::NonAdminBackup, "shop", "daily");
    let cluster = Arc::new(Cluster::new("velero"));
    let executor = Executor::new(Client::new(Server(mute), "velero"), cluster.clone());
    let body = json!({"metadata": {"namespace": "velero", "name": "shop-daily"}});
    let plan = Plan::done().then(Action::Create(Object { kind: Kind::Backup, body }));
    for times in 1..=3 {
        executor.execute(&about, &plan).await.unwrap_err();
        assert_eq!(cluster.look().rejected_write(&about).unwrap().times, times);
    }
    executor.execute(&about, &Plan::done()).await.unwrap();
    assert_eq!(cluster.look().rejected_write(&about), None);
}

/// Otherwise an outage would be logged as a cached object that was out of date.
#[tokio::test]
async fn a_failure_is_the_one_that_ended_the_plan() {
    let about = Key::new(Kind::NonAdminBackup, "shop", "daily");
    let server = Server(|method| match *method {
        Method::DELETE => error(StatusCode::CONFLICT),
        Method::GET => error(StatusCode::NOT_FOUND),
        _ => error(StatusCode::SERVICE_UNAVAILABLE),
    });
    let executor = Executor::new(Client::new(server, "velero"), Arc::new(Cluster::new("velero")));
    let body = json!({"metadata": {"namespace": "velero", "name": "shop-daily"}});
    let plan =
        Plan::done().then(Action::Delete(daily())).then(Action::Create(Object { kind: Kind::Backup, body }));
    let failure = executor.execute(&about, &plan).await.unwrap_err();
    assert_eq!(failure.status().map(|status| status.code), Some(503), "{failure}");
}

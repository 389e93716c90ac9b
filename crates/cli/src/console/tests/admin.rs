//! The administrators' pages: the queue, and another policy tried on all requests.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::*;

fn waiting(name: &str, spec: &Value, queue: Option<&str>) -> Value {
    let annotations = queue.map_or_else(|| json!({}), |queue| json!({"nacre.dev/queue": queue}));
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-15T12:00:00Z",
            "annotations": annotations},
        "spec": {"backupSpec": spec}, "status": {"phase": "New"}})
}

fn cluster() -> ApiServer {
    let backups = vec![
        waiting("first", &json!({"ttl": "10h"}), None),
        waiting("held", &json!({"ttl": "900h"}), Some("hold")),
    ];
    ApiServer { is_admin: true, ..ApiServer::with(backups) }
}

#[tokio::test]
async fn what_waits_is_promoted_held_and_released() {
    let server = cluster();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/admin/queue", &cookie)).await.text;
    for button in ["promote backup shop/first", "hold backup shop/first", "release backup shop/held"] {
        assert!(page.contains(&format!("value=\"{button}\"")), "{button}: {page}");
    }
    assert!(!page.contains("hold backup shop/held"), "{page}");
    let token = csrf(&page);
    let mark = |name: &str| {
        let found = server.get(&format!("{OWN}nonadminbackups"), name).unwrap();
        found["metadata"]["annotations"]["nacre.dev/queue"].clone()
    };
    let press = async |what: &str| {
        let form = format!("csrf={token}&reason=ticket+7&do={}", what.replace(' ', "+"));
        send(&router, post("/admin/queue", &cookie, &form)).await
    };
    let answer = press("hold backup shop/first").await;
    assert_eq!(answer.headers[header::LOCATION], "/admin/queue", "{}", answer.text);
    assert_eq!(mark("first"), "hold");
    press("promote backup shop/first").await;
    press("release backup shop/held").await;
    assert_eq!((mark("first"), mark("held")), (json!("front"), Value::Null));
    let events = server.all("/api/v1/namespaces/shop/events");
    assert!(events.iter().any(|event| event["message"].as_str().unwrap().contains("ticket 7")), "{events:?}");
    for odd in
        ["", "hold backup", "nonsense backup shop/first", "hold secret shop/first", "hold backup ../first"]
    {
        assert_eq!(press(odd).await.status, StatusCode::NOT_FOUND, "{odd}");
    }
    assert_eq!(
        send(&router, post("/admin/queue", &cookie, "do=hold+backup+shop/first")).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn who_may_not_change_the_queue_gets_no_button() {
    let server = ApiServer { read_only: true, ..cluster() };
    let router = on_laptop(&server);
    let page = send(&router, get("/admin/queue", &enter(&router).await)).await.text;
    assert!(page.contains("first") && !page.contains("value=\"hold"), "{page}");
    assert_eq!(page.matches("method=\"post\"").count(), 1, "only signing out: {page}");
}

#[tokio::test]
async fn another_policy_is_tried_on_all_requests_and_not_applied() {
    let server = cluster();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/admin/policy", &cookie)).await.text;
    assert!(page.contains("<textarea"), "{page}");
    let token = csrf(&page);
    let try_it = async |text: &str| {
        let form = format!("csrf={token}&policy={}", crate::console::pages::escaped(text));
        send(&router, post("/admin/policy", &cookie, &form)).await.text
    };
    let page = try_it("backup: { ttl: { max: 48h } }").await;
    for words in ["would refuse 1 of 2 requests", "held", "accepted", "48h", "--requests"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let page = try_it("backup: { ttl: { max: 9000h } }").await;
    assert!(page.contains("would refuse 0 of 2 requests: none that is accepted now"), "{page}");
    let page = try_it(&format!("backup: {{ tll: 1 }} # {EVIL}")).await;
    assert!(page.contains("there is no such field") && page.contains("would not count"), "{page}");
    assert!(!page.contains("<script>"), "{page}");
    let calls = server.calls.lock().unwrap();
    assert!(!calls.iter().any(|call| call.starts_with("PATCH") || call.starts_with("PUT")), "{calls:?}");
}

//! The administrators' pages: the queue, and another policy tried on all requests.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{form::Form, *};

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

const REQUESTS: &str =
    "/apis/oadp.openshift.io/v1alpha1/namespaces/velero/nonadminbackupstoragelocationrequests";
const REQUEST: &str = "/admin/requests/shop/mine";

/// A namespace that asks for storage, with a text in every field that it can set.
pub(super) fn with_request(text: &str) -> ApiServer {
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": text, "prefix": text}, "config": {"region": text}});
    let asked = json!({"name": "mine", "namespace": "shop", "nacuuid": "shop-mine", "requestedSpec": spec});
    let annotations = json!({"openshift.io/oadp-nabsl-origin-name": "mine", "openshift.io/oadp-nabsl-origin-namespace": "shop"});
    let server = cluster();
    let policy = json!({"metadata": {"name": planner::policy::CONFIG_MAP, "namespace": "velero"},
        "data": {planner::policy::KEY: "storageLocations: { requireApproval: true }"}});
    server.put("/api/v1/namespaces/velero/configmaps", policy);
    server.put(
        REQUESTS,
        json!({"metadata": {"name": "shop-mine", "namespace": "velero", "resourceVersion": "7", "annotations": annotations},
        "spec": {"approvalDecision": "pending"}, "status": {"phase": "Pending", "nonAdminBackupStorageLocation": asked}}),
    );
    server.put(
        &format!("{OWN}nonadminbackupstoragelocations"),
        json!({"metadata": {"name": "mine", "namespace": "shop", "annotations": {"note": text}},
        "spec": {"backupStorageLocationSpec": spec}}),
    );
    server
}

fn decision(server: &ApiServer) -> (Value, Value) {
    let found = server.get(REQUESTS, "shop-mine").unwrap();
    let reason = found["metadata"]["annotations"]["openshift.io/oadp-rejection-reason"].clone();
    (found["spec"]["approvalDecision"].clone(), reason)
}

#[tokio::test]
async fn a_request_is_rejected_approved_and_revoked() {
    let server = with_request("bucket");
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(REQUEST, &cookie)).await.text;
    assert!(page.contains("value=\"approve\"") && page.contains("value=\"reject\""), "{page}");
    let token = csrf(&page);
    let press = async |word: &str, reason: &str| {
        let form = format!("csrf={token}&version=7&reason={reason}&do={word}");
        send(&router, post(REQUEST, &cookie, &form)).await
    };
    let answer = press("reject", "too+far").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(answer.headers[header::LOCATION], REQUEST, "{}", answer.text);
    assert_eq!(decision(&server), (json!("reject"), json!("too far")));
    press("approve", "").await;
    assert_eq!(decision(&server), (json!("approve"), Value::Null));
    let mut approved = server.get(REQUESTS, "shop-mine").unwrap();
    approved["status"]["phase"] = json!("Approved");
    server.put(REQUESTS, approved);
    let page = send(&router, get(REQUEST, &cookie)).await.text;
    assert!(page.contains("Revoke the approval"), "{page}");
    press("revoke", "").await;
    assert_eq!(decision(&server).0, "pending");
    assert_eq!(press("nonsense", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_decision_is_about_what_was_shown() {
    let server = with_request("bucket");
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(REQUEST, &cookie)).await.text;
    let form = Form::with_button(&page, "approve");
    let mut changed = server.get(REQUESTS, "shop-mine").unwrap();
    changed["metadata"]["resourceVersion"] = json!("8");
    server.put(REQUESTS, changed);
    let answer = send(&router, post(REQUEST, &cookie, &form.press("approve"))).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text.contains("has changed since it was shown"), "{}", answer.text);
    assert_eq!(decision(&server).0, "pending");
}

#[tokio::test]
async fn who_may_only_read_requests_is_offered_no_decision() {
    let forbidden = vec![("patch", "nonadminbackupstoragelocationrequests")];
    let server = ApiServer { forbidden, ..with_request("bucket") };
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(REQUEST, &cookie)).await.text;
    assert!(page.contains("You can look, and not decide") && page.contains("bucket"), "{page}");
    assert!(!page.contains("Approve<") && !page.contains("Reject<"), "{page}");
    assert_eq!(page.matches("method=\"post\"").count(), 1, "only signing out: {page}");
}

#[tokio::test]
async fn text_of_tenants_never_becomes_markup_for_administrators() {
    let server = with_request(EVIL);
    server.put(
        &format!("{OWN}nonadminbackups"),
        waiting("loud", &json!({"storageLocation": EVIL}), Some(EVIL)),
    );
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    for path in ["requests", "requests/shop/mine", "queue", "usage", "policy", "doctor", "migration"] {
        let answer = send(&router, get(&format!("/admin/{path}"), &cookie)).await;
        let page = answer.text;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {page}");
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{path}: {page}");
    }
    let page = send(&router, get(REQUEST, &cookie)).await.text;
    assert!(page.contains("&lt;script&gt;alert(1)"), "it is shown as text: {page}");
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
async fn a_long_queue_is_shown_page_by_page() {
    let server = cluster();
    for number in 0..150 {
        server.put(&format!("{OWN}nonadminbackups"), waiting(&format!("more-{number:03}"), &json!({}), None));
    }
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let first = send(&router, get("/admin/queue", &cookie)).await.text;
    let second = send(&router, get("/admin/queue?page=1", &cookie)).await.text;
    assert!(first.contains("/admin/queue?page=1\"") && first.contains("52 more"), "{first}");
    assert!(!second.contains("Next page"), "{second}");
    let (rows, buttons) = ("<td data-heading=\"Kind\">", "value=\"promote backup shop/more-");
    assert_eq!((first.matches(rows).count(), second.matches(rows).count()), (100, 52));
    // Each row has its own buttons, on the second page too.
    let row = second.split("<tr>").find(|row| row.contains(">more-149<")).unwrap();
    assert!(row.contains("promote backup shop/more-149\""), "{row}");
    assert_eq!(first.matches(buttons).count() + second.matches(buttons).count(), 150);
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
    assert!(page.contains("<td data-heading=\"Field\">backup.tll</td>") && !page.contains("<pre"), "{page}");
    assert!(!page.contains("<script>"), "{page}");
    let calls = server.calls.lock().unwrap();
    assert!(!calls.iter().any(|call| call.starts_with("PATCH") || call.starts_with("PUT")), "{calls:?}");
}

#[tokio::test]
async fn a_large_policy_is_tried_too() {
    let server = cluster();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/admin/policy", &cookie)).await.text);
    let try_it = async |comment: usize| {
        let policy = format!("# {}\nbackup: {{ ttl: {{ max: 48h }} }}", "x".repeat(comment));
        let form = format!("csrf={token}&policy={}", crate::console::pages::escaped(&policy));
        send(&router, post("/admin/policy", &cookie, &form)).await
    };
    let tried = try_it(1 << 20).await;
    assert!(tried.text.contains("would refuse 1 of 2 requests"), "{}", tried.status);
    let tried = try_it(2 << 20).await;
    assert_eq!(tried.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(tried.text.contains("kubectl nacre policy check -f policy.yaml --requests"), "{}", tried.text);
}

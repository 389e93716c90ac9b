//! Bringing a bucket: the form, and whether it is approved.

use axum::http::StatusCode;
use serde_json::json;

use super::*;

fn with_secret() -> ApiServer {
    let server = ApiServer::default();
    let secret = json!({"metadata": {"name": "bucket-key", "namespace": "shop"}, "data": {"cloud": "c2VjcmV0LXZhbHVl"}});
    server.put("/api/v1/namespaces/shop/secrets", secret);
    server
}

#[tokio::test]
async fn a_secret_is_chosen_by_name_and_nothing_of_it_is_shown() {
    let server = with_secret();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/new-location?bucket=%3Cscript%3E", &cookie)).await.text;
    assert!(
        page.contains("<option value=\"bucket-key\">") && page.contains("value=\"&lt;script&gt;\""),
        "{page}"
    );
    assert!(!page.contains("c2VjcmV0") && !page.contains("secret-value"), "{page}");
    let calls = server.calls.lock().unwrap().clone();
    assert!(!calls.iter().any(|call| call.contains("/secrets/")), "only their names were listed: {calls:?}");
    let token = csrf(&page);
    let form = "name=mine&provider=aws&bucket=backups&region=here&secret=bucket-key&key=cloud&config=s3Url%3Dhttps://s3.example.com&mode=";
    let checked =
        send(&router, post("/ns/shop/locations", &cookie, &format!("csrf={token}&do=check&{form}"))).await;
    assert!(checked.text.contains("What would happen") && !checked.text.contains("<pre"), "{}", checked.text);
    assert!(!checked.text.contains("secret-value") && !checked.text.contains("c2VjcmV0"), "{}", checked.text);
    assert_eq!(server.made(), 0, "it was only looked at");
    let reads_secret = |call: &String| call.contains("/secrets/");
    assert!(server.calls.lock().unwrap().iter().any(reads_secret), "whether nacre could use it was checked");
    server.calls.lock().unwrap().clear();
    let answer =
        send(&router, post("/ns/shop/locations", &cookie, &format!("csrf={token}&do=create&{form}"))).await;
    assert_eq!(answer.headers[header::LOCATION], "/ns/shop/locations/mine", "{}", answer.text);
    let made = server.get(&format!("{OWN}nonadminbackupstoragelocations"), "mine").unwrap();
    assert_eq!(
        made["spec"]["backupStorageLocationSpec"],
        json!({"provider": "aws", "objectStorage": {"bucket": "backups"},
        "config": {"region": "here", "s3Url": "https://s3.example.com"}, "credential": {"name": "bucket-key", "key": "cloud"}})
    );
    let calls = server.calls.lock().unwrap().clone();
    assert!(!calls.iter().any(reads_secret), "it was only named: {calls:?}");

    // No value becomes a flag: no file of the console's machine can be named.
    for fields in ["secret=bucket-key", "name=other&secret=bucket-key&key=", "name=--cacert=/etc/passwd"] {
        let form = format!("csrf={token}&do=create&provider=aws&bucket=b&{fields}");
        let answer = send(&router, post("/ns/shop/locations", &cookie, &form)).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields}: {}", answer.text);
    }
}

#[tokio::test]
async fn the_approval_is_seen_in_one_look() {
    let server = with_secret();
    let pending = json!([{"type": "ClusterAdminApproved", "status": "False", "reason": "BslSpecApprovalPending", "message": EVIL,
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    let location = json!({"metadata": {"name": "mine", "namespace": "shop"}, "spec": {"backupStorageLocationSpec":
        {"provider": "aws", "objectStorage": {"bucket": EVIL, "prefix": EVIL}}}, "status": {"phase": "New", "conditions": pending}});
    server.put(&format!("{OWN}nonadminbackupstoragelocations"), location);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/locations/mine", &cookie)).await.text;
    assert!(
        page.contains("Pending") && page.contains("waiting for an administrator to approve it"),
        "{page}"
    );
    assert!(page.contains("data-watch=\"/ns/shop/locations/mine/live\""), "{page}");
    for path in ["/ns/shop/locations/mine", "/ns/shop/locations", "/ns/shop"] {
        let page = send(&router, get(path, &cookie)).await.text;
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{path}: {page}");
    }
}

#[tokio::test]
async fn whoever_is_signed_out_is_not_told_that_they_may_not_bring_storage() {
    let server = with_secret();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    *server.expired.lock().unwrap() = true;
    let answer = send(&router, get("/ns/shop/new-location", &cookie)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text);
    assert!(answer.text.contains("Signed out") && !answer.text.contains("not permitted"), "{}", answer.text);
}

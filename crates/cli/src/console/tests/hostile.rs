//! Text that is made to become markup, in every field that a tenant, its storage or Velero can write it into.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::*;

/// Condition, results and claims, each with the text.
fn status(velero: &str) -> Value {
    let condition = |type_: &str| {
        json!({"type": type_, "status": "False", "reason": "ClaimsNotSaved", "message": EVIL,
            "lastTransitionTime": "2026-11-15T12:00:01Z"})
    };
    json!({"phase": "Created",
        "conditions": [condition("Accepted"), condition("DataProtected"), condition("DataRestored"), condition("ResultsRead")],
        "results": {"errors": [EVIL], "warnings": [EVIL]},
        "claims": [{"name": EVIL, "state": "NotSaved", "message": EVIL}, {"name": "files", "state": "Failed", "message": EVIL}],
        velero: {"name": EVIL, "spec": {"storageLocation": EVIL}, "status": {"phase": "Completed", "failureReason": EVIL,
            "validationErrors": [EVIL], "completionTimestamp": "2026-11-15T12:10:00Z",
            "progress": {"totalItems": 3, "itemsBackedUp": 3}}}})
}

fn spec() -> Value {
    let exec = json!({"exec": {"container": EVIL, "command": [EVIL], "onError": "Fail"}});
    let hook = json!({"name": EVIL, "includedResources": [EVIL], "pre": [exec], "post": [exec], "postHooks": [exec]});
    json!({"includedResources": [EVIL], "excludedResources": [EVIL], "labelSelector": {"matchLabels": {EVIL: EVIL}},
        "orderedResources": {EVIL: EVIL}, "hooks": {"resources": [hook]}, "storageLocation": EVIL,
        "resourcePolicy": {"kind": EVIL, "name": EVIL}, "resourceModifier": {"kind": EVIL, "name": EVIL},
        "backupName": "daily", "namespaceMapping": {EVIL: EVIL}})
}

fn with_text_everywhere() -> ApiServer {
    let processed = json!([{"type": "Processed", "status": "True", "reason": "Success", "message": EVIL,
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    let names = json!({"v1/ConfigMap": [EVIL], "apps/v1/Deployment": [EVIL], EVIL: [EVIL]});
    let answer = json!({"phase": "Created", "conditions": processed, "velero": {"status": {}}, "objects": {"names": names}});
    let mut daily = backup("daily", EVIL);
    daily["metadata"]["labels"] = json!({EVIL: EVIL});
    daily["spec"]["backupSpec"] = spec();
    daily["status"] = status("veleroBackup");
    let server = ApiServer { download: Some(answer), ..ApiServer::with(vec![daily]) };
    let meta = |name: &str| json!({"name": name, "namespace": "shop", "uid": "u", "annotations": {"note": EVIL}, "creationTimestamp": "2026-11-15T12:00:00Z"});
    server.put(
        &format!("{OWN}nonadminrestores"),
        json!({"metadata": meta("back"), "spec": {"restoreSpec": spec()}, "status": status("veleroRestore")}),
    );
    let mut schedule = status("velero");
    schedule["lastGoodBackup"] = json!(EVIL);
    server.put(
        &format!("{OWN}nonadminschedules"),
        json!({"metadata": meta("nightly"), "status": schedule,
            "spec": {"schedule": EVIL, "timeZone": EVIL, "template": {"backupSpec": spec()}}}),
    );
    for (number, (kind, name)) in
        [("NonAdminBackup", "daily"), ("NonAdminRestore", "back"), ("NonAdminSchedule", "nightly")]
            .iter()
            .enumerate()
    {
        server.put(
            "/api/v1/namespaces/shop/events",
            json!({"metadata": {"name": format!("event-{number}"), "namespace": "shop"}, "type": "Warning", "reason": EVIL,
                "message": EVIL, "involvedObject": {"kind": kind, "name": name, "uid": "u"}, "count": 1,
                "lastTimestamp": "2026-11-15T12:00:01Z", "source": {"component": EVIL}}),
        );
    }
    let claim = json!({"metadata": {"name": "files", "namespace": "shop"}, "spec": {"volumeName": EVIL, "storageClassName": EVIL}});
    server.put("/api/v1/namespaces/shop/persistentvolumeclaims", claim);
    server
}

#[tokio::test]
async fn text_in_any_field_stays_text() {
    let router = on_laptop(&with_text_everywhere());
    let cookie = enter(&router).await;
    // Whether it must be seen there.
    let mut unexpected = Vec::new();
    for (path, is_shown) in [
        ("", true),
        ("/backups", false),
        ("/backups/daily", true),
        ("/restores", false),
        ("/restores/back", true),
        ("/restore", false),
        ("/restore/daily", true),
        ("/replace/daily", false),
        ("/schedules", false),
        ("/schedules/nightly", true),
    ] {
        let answer = send(&router, get(&format!("/ns/shop{path}"), &cookie)).await;
        let page = &answer.text;
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{path}: {page}");
        assert_ne!(answer.status, StatusCode::BAD_GATEWAY, "{path}: {page}");
        if page.contains("&lt;script&gt;alert(1)") != is_shown {
            unexpected.push((path, is_shown));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:?}");
}

/// Lines of a log are a file, which no browser takes for a page.
#[tokio::test]
async fn lines_of_a_log_are_a_file_of_plain_text() {
    let mut server = with_text_everywhere();
    server.download.as_mut().unwrap()["objects"] = Value::Null;
    server.download.as_mut().unwrap()["log"] = json!({"lines": [EVIL]});
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop/backups/daily", &cookie)).await.text);
    let form = format!("csrf={token}&do=BackupLog");
    let answer = send(&router, post("/ns/shop/backups/daily/files", &cookie, &form)).await;
    assert!(answer.text.contains(EVIL), "{}", answer.text);
    assert_eq!(answer.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert!(answer.headers[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment;"));
}

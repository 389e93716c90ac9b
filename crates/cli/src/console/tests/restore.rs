//! The guided restore: what is ticked is what is restored, and when there is something to choose from.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{form::Form, *};

const PAGE: &str = "/ns/shop/restore/good";
const RESTORES: &str = "/ns/shop/restores";

fn restores() -> String {
    format!("{OWN}nonadminrestores")
}

/// A good backup, whose objects nacre lists.
fn shop(read_only: bool) -> ApiServer {
    let processed = json!([{"type": "Processed", "status": "True", "reason": "Success", "message": "",
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    let names = json!({"v1/ConfigMap": ["prices"], "apps/v1/Deployment": ["web"], "v1/Pod": ["web-1"]});
    let listed = json!({"phase": "Created", "conditions": processed, "velero": {"status": {}}, "objects": {"names": names, "notListed": 40}});
    let mut good = backup("good", "");
    good["status"] = json!({"phase": "Created", "veleroBackup": {"name": "v", "status": {"phase": "Completed",
        "completionTimestamp": "2026-11-15T12:10:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
    ApiServer { read_only, download: Some(listed), ..ApiServer::with(vec![good]) }
}

fn spec(server: &ApiServer) -> Value {
    let mut made = server.all(&restores());
    assert_eq!(made.len(), 1, "{made:?}");
    made.remove(0)["spec"]["restoreSpec"].clone()
}

#[tokio::test]
async fn what_is_ticked_is_what_is_restored() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert!(page.contains("40 more objects are in the backup"), "{page}");
    let mut form = Form::with_button(&page, "restore");
    form.tick("resource", "configmaps", false);
    form.choose("existing", "update");

    // Nothing is done before what was changed is shown.
    let answer = send(&router, post(RESTORES, &cookie, &form.press("restore"))).await;
    let shown = answer.headers[header::LOCATION].to_str().unwrap().to_owned();
    assert!(shown.contains("changed=yes") && server.all(&restores()).is_empty(), "{shown}");
    let previewed = send(&router, post(RESTORES, &cookie, &form.press("preview"))).await;
    assert_eq!(shown.replace("changed=yes&", ""), previewed.headers[header::LOCATION].to_str().unwrap());
    let page = send(&router, get(&shown, &cookie)).await.text;
    assert!(page.contains("you have changed what the page showed"), "{page}");
    let form = Form::with_button(&page, "restore");
    let answer = send(&router, post(RESTORES, &cookie, &form.press("restore"))).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let spec = spec(&server);
    assert_eq!(spec["includedResources"], json!(["deployments.apps", "pods"]), "{spec}");
    assert_eq!(spec["existingResourcePolicy"], "update", "{spec}");
}

#[tokio::test]
async fn all_boxes_restrict_nothing_and_none_is_refused() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(&format!("{PAGE}?resource=configmaps"), &cookie)).await.text;
    let mut form = Form::with_button(&page, "restore");
    form.tick("resource", "configmaps", false);
    for button in ["restore", "preview"] {
        let answer = send(&router, post(RESTORES, &cookie, &form.press(button))).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{button}: {}", answer.text);
        assert!(answer.text.contains("tick at least one"), "{}", answer.text);
    }
    // Kinds that could not be listed come back as well.
    for kind in ["configmaps", "deployments.apps", "pods"] {
        form.tick("resource", kind, true);
    }
    let answer = send(&router, post(RESTORES, &cookie, &form.press("preview"))).await;
    assert_eq!(answer.headers[header::LOCATION], PAGE);
    let page = send(&router, get(PAGE, &cookie)).await.text;
    let form = Form::with_button(&page, "restore");
    send(&router, post(RESTORES, &cookie, &form.press("restore"))).await;
    assert_eq!(spec(&server)["includedResources"], Value::Null);
}

#[tokio::test]
async fn a_viewer_previews_and_restores_nothing() {
    let server = shop(true);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert_eq!(page.matches("method=\"post\"").count(), 1, "only signing out: {page}");
}

/// Velero is down: nothing answers. The page says what it does not know, and does not wait for minutes.
#[tokio::test(start_paused = true)]
async fn a_preview_does_not_wait_for_velero_as_long_as_a_command_does() {
    let server = ApiServer { download: Some(json!({"phase": "Created"})), ..shop(false) };
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let began = tokio::time::Instant::now();
    let page = send(&router, get(PAGE, &cookie)).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("is Velero running?"), "{}", page.text);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

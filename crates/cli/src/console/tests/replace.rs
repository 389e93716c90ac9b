//! Replacing in place: what is shown, what has to be agreed to, and each step.

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{form::Form, *};

const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const RECORDS: &str = "/api/v1/namespaces/shop/configmaps";
const PAGE: &str = "/ns/shop/replace/good";

fn condition(type_: &str, reason: &str) -> Value {
    json!([{"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-11-16T11:50:00Z"}])
}

/// A backup that is over, and holds the data of every claim.
fn complete() -> Value {
    let now = Timestamp::now();
    json!({"phase": "Created", "conditions": condition("DataProtected", "AllClaimsSaved"),
        "veleroBackup": {"name": "v", "status": {"phase": "Completed", "progress": {"totalItems": 3, "itemsBackedUp": 3},
            "startTimestamp": now + SignedDuration::from_mins(1), "completionTimestamp": now,
            "expiration": now + SignedDuration::from_hours(700)}}})
}

/// A claim, a Deployment that uses it, and a good backup.
fn shop(read_only: bool) -> ApiServer {
    let server = ApiServer { read_only, ..ApiServer::default() };
    let good = json!({"metadata": {"name": "good", "namespace": "shop"}, "spec": {"backupSpec": {}}, "status": complete()});
    server.put(&format!("{OWN}nonadminbackups"), good);
    server.put(CLAIMS, json!({"metadata": {"name": "files", "namespace": "shop", "creationTimestamp": "2026-11-15T12:00:00Z"}}));
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]);
    let template = json!({"spec": {"containers": [], "volumes": volumes}});
    server.put(
        DEPLOYMENTS,
        json!({"metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 0, "template": template}}),
    );
    server
}

/// The text that a form carries.
fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn nothing_is_removed_before_somebody_writes_the_namespace() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    for words in [
        "Removed first",
        "Deployment web",
        "claim files, with the data in it",
        "after a safety backup",
        "--replace",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let (token, shown) = (csrf(&page), hidden(&page, "shown"));
    for (form, why) in [
        (format!("do=replace&shown={shown}"), "write the name of the namespace"),
        (format!("do=replace&shown={shown}&confirm=Shop"), "write the name of the namespace"),
        ("do=replace&confirm=shop&shown=other".to_owned(), "has changed meanwhile"),
    ] {
        let answer = send(&router, post(PAGE, &cookie, &format!("csrf={token}&{form}"))).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(answer.text.contains(why), "{form}: {}", answer.text);
    }
    assert_eq!(
        send(&router, post(PAGE, &cookie, &format!("do=replace&shown={shown}&confirm=shop"))).await.status,
        StatusCode::FORBIDDEN
    );
    assert!(server.all(RECORDS).is_empty() && server.get(CLAIMS, "files").is_some());
    // Without the safety backup it is another question.
    let page = send(&router, get(&format!("{PAGE}?unsafe=yes&claim=files"), &cookie)).await.text;
    assert!(page.contains("WITHOUT a safety backup"), "{page}");
    assert!(page.contains("--only-claim=files --no-safety-backup"), "{page}");
    let page = send(&router, get(&format!("{PAGE}?claim=none"), &cookie)).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", page.text);
}

/// The same with a second claim.
fn with_two_claims() -> ApiServer {
    let server = shop(false);
    server.put(CLAIMS, json!({"metadata": {"name": "cache", "namespace": "shop", "creationTimestamp": "2026-11-15T12:00:00Z"}}));
    server
}

#[tokio::test]
async fn a_claim_that_is_not_ticked_stays() {
    let server = with_two_claims();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert!(page.contains("claim cache, with the data in it"), "{page}");
    let mut form = Form::with_button(&page, "replace");
    form.tick("claim", "cache", false);
    form.write("confirm", "shop");
    // It is shown before anything is removed.
    let answer = send(&router, post(PAGE, &cookie, &form.press("replace"))).await;
    assert_eq!(
        answer.headers[header::LOCATION],
        format!("{PAGE}?changed=yes&claim=files"),
        "{}",
        answer.text
    );
    assert!(server.all(RECORDS).is_empty());
    let page = send(&router, get(&format!("{PAGE}?changed=yes"), &cookie)).await.text;
    assert!(page.contains("you have changed what the page showed"), "{page}");
    // What was shown and not changed is what is done.
    let mut form = Form::with_button(&page, "replace");
    form.write("confirm", "shop");
    let answer = send(&router, post(PAGE, &cookie, &form.press("replace"))).await;
    assert_eq!(answer.headers[header::LOCATION], PAGE, "{}", answer.text);
    let record = server.all(RECORDS).remove(0).to_string();
    assert!(record.contains("files") && record.contains("cache"), "{record}");
}

#[tokio::test]
async fn the_safety_backup_is_made_or_not_as_the_form_says() {
    let server = with_two_claims();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(&format!("{PAGE}?unsafe=yes"), &cookie)).await.text;
    let mut form = Form::with_button(&page, "replace");
    form.choose("unsafe", "");
    form.write("confirm", "shop");
    let answer = send(&router, post(PAGE, &cookie, &form.press("replace"))).await;
    assert_eq!(answer.headers[header::LOCATION], format!("{PAGE}?changed=yes"), "{}", answer.text);
    assert!(server.all(RECORDS).is_empty());
}

#[tokio::test]
async fn no_claim_is_not_all_claims() {
    let server = with_two_claims();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    let mut form = Form::with_button(&page, "replace");
    form.tick("claim", "files", false);
    form.tick("claim", "cache", false);
    form.write("confirm", "shop");
    for button in ["replace", "preview"] {
        let answer = send(&router, post(PAGE, &cookie, &form.press(button))).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{button}: {}", answer.text);
        assert!(answer.text.contains("tick at least one"), "{}", answer.text);
    }
    assert!(server.all(RECORDS).is_empty());
    // All of them is no restriction.
    form.tick("claim", "files", true);
    form.tick("claim", "cache", true);
    let answer = send(&router, post(PAGE, &cookie, &form.press("preview"))).await;
    assert_eq!(answer.headers[header::LOCATION], PAGE);
}

#[tokio::test]
async fn a_link_confirms_nothing() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page =
        send(&router, get(&format!("{PAGE}?confirm=shop&csrf=x&shown=y&do=replace"), &cookie)).await.text;
    assert_eq!(page.matches("name=\"confirm\"").count(), 1, "{page}");
    let mut form = Form::with_button(&page, "replace");
    form.write("confirm", "anything");
    let answer = send(&router, post(PAGE, &cookie, &form.press("replace"))).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
    assert!(answer.text.contains("write the name of the namespace"), "{}", answer.text);
    assert!(server.all(RECORDS).is_empty());
}

/// The answer leads to the page that shows how the replacement goes.
fn leads_to_it(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(answer.headers[header::LOCATION], PAGE);
}

#[tokio::test]
async fn what_somebody_else_began_is_not_driven_by_a_form_that_did_not_show_it() {
    let server = with_two_claims();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let form = Form::with_button(&send(&router, get(PAGE, &cookie)).await.text, "replace");
    // Meanwhile somebody else begins one: the record is there, and no step was taken.
    server.put(RECORDS, begun_elsewhere().await);
    let mut none = form.clone();
    none.tick("claim", "files", false);
    none.tick("claim", "cache", false);
    let mut wrong = form.clone();
    wrong.write("confirm", "another");
    let mut agreed = form.clone();
    agreed.write("confirm", "shop");
    let csrf = form.value("csrf");
    for sent in [
        form.press("preview"),
        none.press("preview"),
        wrong.press("replace"),
        agreed.press("replace"),
        format!("csrf={csrf}&do=nonsense"),
    ] {
        leads_to_it(&send(&router, post(PAGE, &cookie, &sent)).await);
        let page = send(&router, get(PAGE, &cookie)).await.text;
        assert!(
            page.contains("this console does not work on it") && page.contains("Go on"),
            "{sent}: {page}"
        );
    }
    assert_eq!(server.all(&format!("{OWN}nonadminbackups")).len(), 1, "no safety backup");
    assert!(server.get(CLAIMS, "files").is_some() && server.get(DEPLOYMENTS, "web").is_some());
    // The button of the page that shows it does.
    let page = send(&router, get(PAGE, &cookie)).await.text;
    let resume = Form::with_button(&page, "resume").press("resume");
    leads_to_it(&send(&router, post(PAGE, &cookie, &resume)).await);
    until_shown(&router, PAGE, &cookie, "nacre has not processed it yet").await;
}

/// The record of a replacement, as another console writes it down.
async fn begun_elsewhere() -> Value {
    let server = with_two_claims();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let mut form = Form::with_button(&send(&router, get(PAGE, &cookie)).await.text, "replace");
    form.write("confirm", "shop");
    leads_to_it(&send(&router, post(PAGE, &cookie, &form.press("replace"))).await);
    server.all(RECORDS).remove(0)
}

#[tokio::test]
async fn a_double_click_begins_one_replacement() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let mut form = Form::with_button(&send(&router, get(PAGE, &cookie)).await.text, "replace");
    form.write("confirm", "shop");
    let sent = form.press("replace");
    // At the same time, and once more later.
    let (first, second) =
        tokio::join!(send(&router, post(PAGE, &cookie, &sent)), send(&router, post(PAGE, &cookie, &sent)));
    leads_to_it(&first);
    leads_to_it(&second);
    leads_to_it(&send(&router, post(PAGE, &cookie, &sent)).await);
    until_shown(&router, PAGE, &cookie, "nacre has not processed it yet").await;
    assert_eq!(server.all(RECORDS).len(), 1);
    assert_eq!(server.all(&format!("{OWN}nonadminbackups")).len(), 2, "one safety backup");
}

#[tokio::test]
async fn a_replacement_goes_step_by_step_and_its_end_is_shown() {
    let server = shop(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    let form = format!("csrf={}&do=replace&confirm=shop&shown={}", csrf(&page), hidden(&page, "shown"));
    let answer = send(&router, post(PAGE, &cookie, &form)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    until_shown(&router, PAGE, &cookie, "nacre has not processed it yet").await;
    assert!(server.get(CLAIMS, "files").is_some(), "the safety backup is not complete");

    // A console that knows nothing of it offers to go on, and another person of the namespace too.
    let other = on_laptop(&server);
    let page = send(&other, get(PAGE, &enter(&other).await)).await.text;
    assert!(page.contains("this console does not work on it") && page.contains("Go on"), "{page}");

    let backups = format!("{OWN}nonadminbackups");
    let mut safety =
        server.all(&backups).into_iter().find(|backup| backup["metadata"]["name"] != "good").unwrap();
    safety["status"] = complete();
    server.put(&backups, safety);
    let restores = format!("{OWN}nonadminrestores");
    until_shown(&router, PAGE, &cookie, "restore good-").await;
    assert!(server.get(CLAIMS, "files").is_none() && server.get(DEPLOYMENTS, "web").is_none());

    // Velero brings everything back.
    server.put(CLAIMS, json!({"metadata": {"name": "files", "namespace": "shop"}}));
    server.put(
        DEPLOYMENTS,
        json!({"metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {"replicas": 0, "template": {}}, "status": {"observedGeneration": 1}}),
    );
    let mut restore = server.all(&restores).remove(0);
    restore["status"] = json!({"phase": "Created", "conditions": condition("DataRestored", "AllVolumesRestored"),
        "veleroRestore": {"name": "r", "status": {"phase": "Completed", "completionTimestamp": Timestamp::now(),
            "progress": {"totalItems": 3, "itemsRestored": 3}}}});
    server.put(&restores, restore);
    let page = until_shown(&router, PAGE, &cookie, "the data of files is back as in good").await;
    assert!(page.contains("what was there before is in backup before-good-"), "{page}");
    assert!(server.all(RECORDS).is_empty(), "the record is gone");
}

#[tokio::test]
async fn a_viewer_replaces_nothing_and_a_stranger_learns_nothing() {
    let router = on_laptop(&shop(true));
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert_eq!(page.matches("method=\"post\"").count(), 1, "only signing out: {page}");
    let strange = send(&router, get("/ns/bank/replace/good", &cookie)).await;
    let nowhere = send(&router, get("/ns/nowhere/replace/good", &cookie)).await;
    assert_eq!((strange.status, &strange.text), (StatusCode::NOT_FOUND, &nowhere.text));
    assert_eq!(send(&router, get("/ns/bank/replace/good/live", &cookie)).await.status, StatusCode::NOT_FOUND);
}

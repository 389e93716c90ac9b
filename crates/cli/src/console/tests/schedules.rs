//! Schedules: creating one, and what its buttons do.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::*;

const PAGE: &str = "/ns/shop/schedules/nightly";

fn schedules() -> String {
    format!("{OWN}nonadminschedules")
}

fn with_schedule(read_only: bool) -> ApiServer {
    let server = ApiServer { read_only, ..ApiServer::default() };
    let schedule = json!({"metadata": {"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {"ttl": "72h"}}, "retention": {"keepLast": 2}},
        "status": {"phase": "Created"}});
    server.put(&schedules(), schedule);
    server
}

fn spec(server: &ApiServer) -> Value {
    server.get(&schedules(), "nightly").unwrap()["spec"].clone()
}

#[tokio::test]
async fn a_form_becomes_a_schedule_after_its_calendar_was_shown() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/new-schedule?name=%3Cscript%3E", &cookie)).await.text;
    assert!(page.contains("value=\"&lt;script&gt;\""), "{page}");
    let token = csrf(&page);
    let form = format!("csrf={token}&name=nightly&schedule=0+2+*+*+*&last=2&ttl=72h&zone=&daily=");
    let answer = send(&router, post("/ns/shop/schedules", &cookie, &format!("{form}&do=check"))).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    for words in [
        "In 30 days it has 2 backups",
        "02:0",
        "until ",
        "Deleted next: ",
        "Times are in UTC",
        "--keep-last=2 --ttl=72h --dry-run=server",
    ] {
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
    }
    assert!(server.all(&schedules()).is_empty(), "it was only looked at");
    let answer = send(&router, post("/ns/shop/schedules", &cookie, &format!("{form}&do=create"))).await;
    assert_eq!(answer.headers[header::LOCATION], PAGE, "{}", answer.text);
    assert_eq!(
        spec(&server),
        json!({"schedule": "0 2 * * *", "template": {"backupSpec": {"ttl": "72h"}},
        "retention": {"keepLast": 2}})
    );

    // What no policy allows is not sent, and no value becomes a flag.
    for fields in [
        "name=other&schedule=61+*+*+*+*",
        "name=--paused&schedule=",
        "name=other&schedule=0+2+*+*+*&last=--paused",
    ] {
        let form = format!("csrf={token}&do=create&{fields}");
        let answer = send(&router, post("/ns/shop/schedules", &cookie, &form)).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields}: {}", answer.text);
    }
    assert_eq!(server.all(&schedules()).len(), 1);
}

#[tokio::test]
async fn buttons_pause_resume_run_and_delete() {
    let server = with_schedule(false);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert!(page.contains("value=\"pause\"") && !page.contains("value=\"resume\""), "{page}");
    assert!(page.contains("table class=\"calendar\""), "{page}");
    let token = csrf(&page);
    let press = async |form: &str| send(&router, post(PAGE, &cookie, &format!("csrf={token}&{form}"))).await;
    assert_eq!(press("do=pause").await.headers[header::LOCATION], PAGE);
    assert_eq!(spec(&server)["paused"], true);
    let paused = send(&router, get(PAGE, &cookie)).await.text;
    assert!(paused.contains("value=\"resume\""), "{paused}");
    assert!(paused.contains("It is paused: no run is made until it is resumed."), "{paused}");
    assert!(paused.contains("In 30 days it has 0 backups"), "{paused}");
    press("do=resume").await;
    assert_eq!(spec(&server)["paused"], false);
    let made = press("do=run").await;
    assert!(made.headers[header::LOCATION].to_str().unwrap().starts_with("/ns/shop/backups/nightly-manual-"));
    assert_eq!(
        server.all(&format!("{OWN}nonadminbackups"))[0]["spec"],
        json!({"backupSpec": {"ttl": "72h"}})
    );
    assert_eq!(press("do=nonsense").await.status, StatusCode::NOT_FOUND);
    let without = send(&router, post(PAGE, &cookie, "do=delete&confirm=nightly")).await;
    assert_eq!(without.status, StatusCode::FORBIDDEN, "not from a form of ours");
    let wrong = press("do=delete&confirm=other").await;
    assert_eq!((wrong.status, server.all(&schedules()).len()), (StatusCode::UNPROCESSABLE_ENTITY, 1));
    let gone = press("do=delete&confirm=nightly&backups=delete").await;
    assert_eq!(gone.headers[header::LOCATION], "/ns/shop/schedules", "{}", gone.text);
    assert!(server.all(&schedules()).is_empty());
    assert_eq!(server.all(&format!("{OWN}nonadminbackups"))[0]["spec"]["deleteBackup"], true);
}

#[tokio::test]
async fn until_when_it_is_to_be_confirmed_is_shown_as_a_time() {
    let server = with_schedule(false);
    let mut schedule = server.get(&schedules(), "nightly").unwrap();
    let until = "2026-12-01T08:30:00Z";
    schedule["metadata"]["resourceVersion"] = json!("17");
    schedule["status"]["confirmation"] =
        json!({"generation": 1, "time": "2026-11-01T00:00:00Z", "until": until});
    schedule["status"]["conditions"] = json!([{"type": "RequesterConfirmed", "status": "False", "reason": "ConfirmationDue",
        "message": format!("\"ann\" asks for the runs, which has to be confirmed until {until}: run it"),
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    server.put(&schedules(), schedule);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let time = "until <time datetime=\"2026-12-01T08:30:00Z\">2026-12-01 08:30:00 UTC</time>";
    // As a field and in the condition's message.
    let page = send(&router, get(PAGE, &cookie)).await.text;
    assert_eq!(page.matches(time).count(), 2, "{page}");
    assert!(page.contains("value=\"confirm\""), "{page}");
    let overview = send(&router, get("/ns/shop", &cookie)).await.text;
    assert!(overview.contains(time) && !overview.contains(&format!("until {until}")), "{overview}");
    // The page follows what nacre makes of a button.
    assert!(page.contains("data-watch=\"/ns/shop/live?nonadminschedules=17\""), "{page}");
    let list = send(&router, get("/ns/shop/schedules", &cookie)).await.text;
    assert!(list.contains("data-watch=\"/ns/shop/live?nonadminschedules=1\""), "{list}");
}

#[tokio::test]
async fn a_viewer_sees_the_calendar_and_no_button() {
    let router = on_laptop(&with_schedule(true));
    let cookie = enter(&router).await;
    for path in [PAGE, "/ns/shop/schedules", "/ns/shop/new-schedule"] {
        let page = send(&router, get(path, &cookie)).await.text;
        assert_eq!(page.matches("method=\"post\"").count(), 1, "{path}: only signing out: {page}");
        assert!(!page.contains("/new-schedule\""), "{path}: {page}");
    }
    assert!(send(&router, get(PAGE, &cookie)).await.text.contains("In 30 days it has 2 backups"));
}

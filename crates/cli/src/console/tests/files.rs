//! Files: passed through from the administrators' storage, and a link to a tenant's own.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const PAGE: &str = "/ns/shop/backups/daily/files";

/// Storage that answers everything with these bytes, and counts who connects.
async fn storage(head: &'static str, body: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/bucket/file?signature=x", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut asked).await.unwrap_or_default() == 0 {
                    break;
                }
            }
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n");
            // Whoever asks may go away early.
            let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
        }
    });
    (url, seen)
}

fn cluster(url: &str, wanted: Option<&str>) -> ApiServer {
    let processed = json!([{"type": "Processed", "status": "True", "reason": "Success", "message": "",
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    let status =
        json!({"phase": "Created", "conditions": processed, "velero": {"status": {"downloadURL": url}}});
    let mut daily = backup("daily", "");
    daily["spec"]["backupSpec"]["storageLocation"] = wanted.map_or(Value::Null, |wanted| json!(wanted));
    daily["status"] = json!({"phase": "Created", "veleroBackup": {"name": "v", "spec": {"storageLocation": "default"},
        "status": {"phase": "Completed", "completionTimestamp": "2026-11-15T12:10:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
    ApiServer { download: Some(status), follows_links: true, ..ApiServer::with(vec![daily]) }
}

async fn press(router: &Router, kind: &str) -> Result<Answer, axum::Error> {
    let cookie = enter(router).await;
    let token = csrf(&send(router, get("/ns/shop/backups/daily", &cookie)).await.text);
    let request = post(PAGE, &cookie, &format!("csrf={token}&do={kind}"));
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await?.to_bytes();
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

#[tokio::test]
async fn files_of_the_administrators_storage_are_passed_through() {
    let (url, seen) = storage("Content-Length: 5", b"hello".to_vec()).await;
    let server = cluster(&url, None);
    let router = on_laptop(&server);
    let answer = press(&router, "BackupLog").await.unwrap();
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "hello"));
    assert_eq!(answer.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"daily-log.gz\"");
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert!(server.all(&format!("{OWN}nonadmindownloadrequests")).is_empty(), "the request is removed again");
    assert_eq!(press(&on_laptop(&server), "RestoreLog").await.unwrap().status, StatusCode::NOT_FOUND);
}

/// The policy hands out no links: nacre has read the log, and the console connects to nothing.
#[tokio::test]
async fn the_lines_about_the_namespace_are_a_file_too() {
    let (url, seen) = storage("Content-Length: 5", b"hello".to_vec()).await;
    let mut server = cluster(&url, None);
    if let Some(status) = &mut server.download {
        status["velero"]["status"]["downloadURL"] = Value::Null;
        status["log"] = json!({"lines": ["level=info msg=done"], "leftOut": 3});
    }
    let answer = press(&on_laptop(&server), "BackupLog").await.unwrap();
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(
        answer.text.starts_with("# this is the line of the log about namespace shop; 3 about"),
        "{}",
        answer.text
    );
    assert!(answer.text.ends_with("\nlevel=info msg=done\n"), "{}", answer.text);
    assert_eq!(answer.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"daily-log.txt\"");
    assert_eq!(seen.load(Ordering::Relaxed), 0, "nobody connected");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_or_cut_off() {
    let (url, _) = storage("Content-Length: 999999999999", b"x".to_vec()).await;
    let answer = press(&on_laptop(&cluster(&url, None)), "BackupContents").await.unwrap();
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer.text.contains("at most 1.00 MiB")
            && answer.text.contains("kubectl nacre backup download daily"),
        "{}",
        answer.text
    );
    // Without a length it breaks off at the limit.
    let (url, _) = storage("Content-Type: text/plain", vec![0; (1 << 20) + 1]).await;
    assert!(press(&on_laptop(&cluster(&url, None)), "BackupContents").await.is_err(), "it was passed on");
}

#[tokio::test]
async fn to_a_tenants_own_storage_the_console_never_connects() {
    let (url, seen) = storage("Content-Length: 5", b"hello".to_vec()).await;
    let answer = press(&on_laptop(&cluster(&url, Some("mine"))), "BackupContents").await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text.contains(&format!("href=\"{url}\" rel=\"noreferrer\"")), "{}", answer.text);
    // In the cluster neither, if whoever asks could have written the answer.
    let router = in_cluster(&{
        let mut server = cluster(&url, None);
        server.follows_links = false;
        server
    });
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    let token = csrf(&send(&router, get("/ns/shop/backups/daily", &cookie)).await.text);
    let answer = send(&router, post(PAGE, &cookie, &format!("csrf={token}&do=BackupLog"))).await;
    assert!(answer.text.contains("rel=\"noreferrer\""), "{}", answer.text);
    // A link is a link.
    let odd = press(&on_laptop(&cluster("javascript:alert(1)", Some("mine"))), "BackupLog").await.unwrap();
    assert!(
        odd.status == StatusCode::UNPROCESSABLE_ENTITY && !odd.text.contains("javascript:"),
        "{}",
        odd.text
    );
    assert_eq!(seen.load(Ordering::Relaxed), 0, "nobody connected");
}

#[tokio::test]
async fn in_a_cluster_files_of_the_administrators_storage_are_passed_through() {
    let (url, seen) = storage("Content-Length: 5", b"hello".to_vec()).await;
    let answers =
        ["nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests"];
    let forbidden = answers.iter().flat_map(|answer| [("patch", *answer), ("update", *answer)]).collect();
    let router = in_cluster(&ApiServer { follows_links: false, forbidden, ..cluster(&url, None) });
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    let token = csrf(&send(&router, get("/ns/shop/backups/daily", &cookie)).await.text);
    let answer = send(&router, post(PAGE, &cookie, &format!("csrf={token}&do=BackupLog"))).await;
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "hello"));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

const RESTORES: &str = "/ns/shop/restores/back";
const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

/// A finished restore from storage of this letter, whose request names the backup in the administrators' storage: its owner
/// has edited it.
fn restored(url: &str, letter: char) -> ApiServer {
    let server = cluster(url, None);
    server.put(
        &format!("{OWN}nonadminrestores"),
        json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore",
            "metadata": {"name": "back", "namespace": "shop", "uid": UID, "creationTimestamp": "2026-11-15T12:00:00Z"},
            "spec": {"restoreSpec": {"backupName": "daily"}},
            "status": {"phase": "Created", "veleroRestore": {"name": format!("shop-back-{letter}1c2b3a4d-5e6f-{UID}"),
                "status": {"phase": "Completed", "completionTimestamp": "2026-11-15T12:10:00Z"}}}}),
    );
    server
}

async fn press_log_of_restore(router: &Router, cookie: &str) -> Answer {
    let page = send(router, get(RESTORES, cookie)).await.text;
    let form = format!("csrf={}&do=RestoreLog", csrf(&page));
    send(router, post(&format!("{RESTORES}/files"), cookie, &form)).await
}

#[tokio::test]
async fn a_restore_whose_backup_was_edited_does_not_lead_the_console_to_a_tenants_storage() {
    let (url, seen) = storage("Content-Length: 5", b"hello".to_vec()).await;
    let router = on_laptop(&restored(&url, 't'));
    let answer = press_log_of_restore(&router, &enter(&router).await).await;
    assert!(answer.text.contains("rel=\"noreferrer\""), "{}", answer.text);
    let kinds = ["nonadminbackups", "nonadminbackupstoragelocations", "nonadmindownloadrequests"];
    let all = kinds.iter().chain(&["nonadminrestores"]);
    let forbidden = |kinds: &mut dyn Iterator<Item = &&'static str>| {
        kinds.flat_map(|kind| [("patch", *kind), ("update", *kind)]).collect::<Vec<_>>()
    };
    // In the cluster, and also with a name that whoever asks could have written.
    for (letter, forbidden) in [('t', forbidden(&mut all.clone())), ('p', forbidden(&mut kinds.iter()))] {
        let server = ApiServer { follows_links: false, forbidden, ..restored(&url, letter) };
        let router = in_cluster(&server);
        let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
        let answer = press_log_of_restore(&router, &cookie).await;
        assert!(answer.text.contains("rel=\"noreferrer\""), "{letter}: {}", answer.text);
    }
    assert_eq!(seen.load(Ordering::Relaxed), 0, "nobody connected");

    // What was restored from the administrators' storage is passed through.
    let server =
        ApiServer { follows_links: false, forbidden: forbidden(&mut all.clone()), ..restored(&url, 'p') };
    let router = in_cluster(&server);
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    let answer = press_log_of_restore(&router, &cookie).await;
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "hello"));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[test]
fn a_container_trusts_public_authorities_and_those_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let trusted = || match Storage::Container(Some(file.clone())).trust() {
        engine::Trust::PublicAnd(pem) => pem,
        other => panic!("the image has no files of a system: {other:?}"),
    };
    assert_eq!(trusted(), None, "the file need not exist");
    std::fs::write(&file, "pem").unwrap();
    assert_eq!(trusted().as_deref(), Some(b"pem".as_slice()), "it is read when it is needed");
}

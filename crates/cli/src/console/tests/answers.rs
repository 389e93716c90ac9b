//! Whatever a browser asks for, it gets a page.

use axum::http::StatusCode;

use super::*;

#[tokio::test]
async fn there_is_no_empty_page() {
    let router = on_laptop(&ApiServer::default());
    let cookie = enter(&router).await;
    for path in
        ["/nothing", "/ns", "/ns/", "/ns/shop/nothing", "/ns/shop/backups/daily/files", "/assets/none"]
    {
        for cookie in [cookie.as_str(), ""] {
            let answer = send(&router, get(path, cookie)).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
            assert!(answer.text.contains("Nothing here"), "{path}: {}", answer.text);
        }
    }
    let answer = send(&router, post("/ns/shop", &cookie, "")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.text.contains("Nothing here"), "{}", answer.text);
    for path in ["/login", "/logout"] {
        let answer = send(&router, get(path, &cookie)).await;
        assert_eq!(
            (answer.status, &answer.headers[header::LOCATION]),
            (StatusCode::SEE_OTHER, &"/".parse().unwrap())
        );
        assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_form_that_is_too_large_is_answered_with_a_page() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop/new-backup", &cookie)).await.text);
    let large = format!("csrf={token}&do=create&selector={}", "x".repeat(65 << 10));
    let answer = send(&router, post("/ns/shop/backups", &cookie, &large)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.text.contains("<h1>This form is too large</h1>"), "{}", answer.text);
    assert_eq!(server.made(), 0);
}

//! Sessions: who is signed in, for how long, and who cannot end that of others.

use axum::http::StatusCode;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::*;

fn with_token(path: &str, token: &str) -> Request<Body> {
    let mut request = get(path, "");
    request.headers_mut().insert("x-forwarded-access-token", token.parse().unwrap());
    request
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let answer = send(&router, post("/login", "", "token=abc")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let cookie = cookie_of(&answer);
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
    *server.expired.lock().unwrap() = true;
    let answer = send(&router, get("/ns/shop", &cookie)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    // Also when the API server would know the person again, the console does not.
    *server.expired.lock().unwrap() = false;
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::UNAUTHORIZED);
    *server.expired.lock().unwrap() = true;
    let answer = send(&router, post("/login", "", "token=abc")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text.contains("does not accept this token"), "{}", answer.text);
}

#[tokio::test]
async fn the_page_that_leads_to_the_link_is_gone_once_it_is_of_no_use() {
    let written = || {
        let mut link = Link::with_code(7000, "code".to_owned());
        let page = link.write_page().unwrap().to_owned();
        assert!(page.exists());
        (laptop(&ApiServer::default(), link), page)
    };
    let (console, page) = written();
    let router = router(console.clone());
    send(&router, get("/start?code=wrong", "")).await;
    assert!(page.exists(), "nobody has used the link");
    enter(&router).await;
    assert!(!page.exists(), "the link was used");
    // Or the console ends before. Connections that are still open keep nothing.
    let (console, page) = written();
    console.logins.withdraw();
    assert!(!page.exists());
    assert_eq!(console.logins.exchange("code"), None);
}

#[tokio::test]
async fn a_token_that_is_wrong_ends_no_session() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    let answer = send(&router, post("/login", &cookie, "token=")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text.contains("That is not a token"), "{}", answer.text);
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn in_a_cluster_everybody_comes_with_their_own_token() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    assert_eq!(send(&router, get("/ns/shop", "")).await.status, StatusCode::UNAUTHORIZED);
    for (name, value) in [("authorization", "Bearer ann"), ("x-forwarded-access-token", "bob")] {
        let mut request = get("/ns/shop", "");
        request.headers_mut().insert(name, value.parse().unwrap());
        let answer = send(&router, request).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}");
        assert!(!answer.text.contains("bob"), "a token is on no page");
    }
    let calls = server.calls.lock().unwrap();
    assert!(calls.contains(&"token ann".to_owned()) && calls.contains(&"token bob".to_owned()), "{calls:?}");
}

#[tokio::test]
async fn tokens_of_nobody_displace_nobody() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    for number in 0..1100 {
        let mut request = get("/ns/NOT-A-NAME", "");
        request.headers_mut().insert("x-forwarded-access-token", format!("t{number}").parse().unwrap());
        send(&router, request).await;
    }
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn signing_out_forgets_the_browser() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop", &cookie)).await.text);
    send(&router, post("/logout", &cookie, &format!("csrf={token}"))).await;
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn nobody_displaces_everybody_by_signing_in_again_and_again() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let other = cookie_of(&send(&router, post("/login", "", "token=other")).await);
    let first = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    for _ in 0..1001 {
        send(&router, post("/login", "", "token=abc")).await;
    }
    assert_eq!(send(&router, get("/ns/shop", &other)).await.status, StatusCode::OK);
    assert_eq!(send(&router, get("/ns/shop", &first)).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_that_the_api_server_does_not_know_is_not_kept() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let connected = |token: &str| {
        let calls = server.calls.lock().unwrap();
        calls.iter().filter(|call| **call == format!("token {token}")).count()
    };
    for _ in 0..3 {
        assert_eq!(send(&router, with_token("/ns/shop", "good")).await.status, StatusCode::OK);
    }
    assert_eq!(connected("good"), 1, "its connection is used again");
    *server.expired.lock().unwrap() = true;
    for _ in 0..3 {
        // The page itself would ask the API server nothing.
        let answer = send(&router, with_token("/ns/NOT-A-NAME", "bad")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(connected("bad"), 3, "nothing is kept of it");
}

#[tokio::test]
async fn a_link_on_another_site_signs_nobody_out() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let from_elsewhere = |path: &str, cookie: &str, mode: &str| {
        let mut request = get(path, cookie);
        request.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
        request.headers_mut().insert("sec-fetch-mode", mode.parse().unwrap());
        request
    };
    // The browser sends no cookie along such a link, and opens the page again from here.
    let answer = send(&router, from_elsewhere("/ns/shop/backups?from=%22x", "", "navigate")).await;
    assert!(!answer.headers.contains_key(header::SET_COOKIE), "{:?}", answer.headers);
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text.contains("content=\"0; url=/ns/shop/backups?from=%22x\""), "{}", answer.text);
    // Only to pages of its own, and not for what is no page.
    for (path, mode) in
        [("//evil.example", "navigate"), ("/start?code=x", "navigate"), ("/ns/shop", "no-cors")]
    {
        let answer = send(&router, from_elsewhere(path, "", mode)).await;
        assert!(!answer.text.contains("refresh"), "{path}: {}", answer.text);
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{path}: {:?}", answer.headers);
    }
    // Somebody who is not signed in sees that then.
    assert_eq!(send(&router, get("/ns/shop", "")).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
    // A cookie that is of no session is deleted.
    let answer = send(&router, get("/ns/shop", "nacre-console-7000=old")).await;
    assert!(answer.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn with_an_encrypted_address_the_cookie_stays_there() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster_at(&server, Address::of_url("https://console.example.com").unwrap());
    let named = |mut request: Request<Body>| {
        request.headers_mut().insert(header::HOST, "console.example.com".parse().unwrap());
        request.headers_mut().insert(header::ORIGIN, "https://console.example.com".parse().unwrap());
        request
    };
    let answer = send(&router, named(post("/login", "", "token=abc"))).await;
    let set = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.starts_with("__Host-nacre-console=") && set.contains("; Path=/; Secure"), "{set}");
    let cookie = cookie_of(&answer);
    assert_eq!(send(&router, named(get("/ns/shop", &cookie))).await.status, StatusCode::OK);
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::FORBIDDEN, "another host");
    *server.expired.lock().unwrap() = true;
    let answer = send(&router, named(get("/ns/shop", &cookie))).await;
    let gone = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(gone.starts_with("__Host-nacre-console=;") && gone.contains("Secure; Max-Age=0"), "{gone}");
}

#[tokio::test]
async fn behind_a_proxy_there_is_nothing_to_sign_out_of() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let page = send(&router, with_token("/ns/shop/new-backup", "good")).await.text;
    assert!(!page.contains("Sign out"), "{page}");
    let mut request = post("/logout", "", &format!("csrf={}", csrf(&page)));
    request.headers_mut().insert("x-forwarded-access-token", "good".parse().unwrap());
    let answer = send(&router, request).await;
    assert!(
        answer.text.contains("sign out there") && !answer.text.contains("You are signed out"),
        "{}",
        answer.text
    );
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    assert!(send(&router, get("/ns/shop", &cookie)).await.text.contains("Sign out"));
}

#[tokio::test]
async fn a_stream_that_is_forbidden_says_that_it_is_over() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    for path in [
        "/ns/bank/live",
        "/ns/bank/live?nonadminbackups=7",
        "/ns/bank/live?nonadminschedules=7",
        "/ns/bank/live?nonadminbackupstoragelocations=7",
        "/ns/bank/backups/daily/live",
    ] {
        // It ends by itself: a browser that is not told would connect again for ever.
        let answer = send(&router, get(path, &cookie)).await;
        assert!(answer.text.trim_end().ends_with("event: over\ndata: {}"), "{path}: {:?}", answer.text);
    }
}

/// The last event of a stream, which ends by itself.
async fn last_event(answer: Response<Body>) -> String {
    assert_eq!(answer.status(), StatusCode::OK);
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.trim_end().rsplit("\n\n").next().unwrap_or_default().to_owned()
}

/// The page looks again, and finds out.
const CHANGED: &str = "event: changed\ndata: {}";
const STREAM: &str = "/ns/shop/live?nonadminbackups=7&nonadminrestores=7";

#[tokio::test]
async fn a_stream_ends_when_somebody_signs_out() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    for path in ["/ns/shop/live?nonadminschedules=7", "/ns/shop/backups/daily/live", STREAM] {
        let stream = router.clone().oneshot(get(path, &cookie)).await.unwrap();
        let ended = tokio::spawn(last_event(stream));
        if path == STREAM {
            let token = csrf(&send(&router, get("/ns/shop", &cookie)).await.text);
            send(&router, post("/logout", &cookie, &format!("csrf={token}"))).await;
            assert_eq!(ended.await.unwrap(), CHANGED, "{path}");
        } else {
            assert!(!ended.is_finished(), "{path}");
            ended.abort();
        }
    }
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_stream_ends_when_the_token_says_that_it_ends() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let ends = (jiff::Timestamp::now() + Duration::from_secs(10)).as_second();
    let claims = URL_SAFE_NO_PAD.encode(json!({"exp": ends}).to_string());
    let token = format!("e30.{claims}.x");
    let cookie = cookie_of(&send(&router, post("/login", "", &format!("token={token}"))).await);
    // Also where a proxy brings it.
    for request in [get(STREAM, &cookie), with_token(STREAM, &token)] {
        let stream = router.clone().oneshot(request).await.unwrap();
        assert_eq!(last_event(stream).await, CHANGED);
    }
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::UNAUTHORIZED);
}

/// A watch that runs goes on although its token was revoked: the API server is asked.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_soon_after_the_token_was_revoked() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
    let began = tokio::time::Instant::now();
    let mut stream = router.clone().oneshot(get(STREAM, &cookie)).await.unwrap();
    // The watches run when it has been kept alive for the first time.
    stream.body_mut().frame().await.unwrap().unwrap();
    *server.expired.lock().unwrap() = true;
    assert_eq!(last_event(stream).await, CHANGED);
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_form_is_good_for_the_token_that_a_proxy_has_renewed_and_for_nobody_else() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = in_cluster(&server);
    // Tokens of one user differ in case here.
    let form = csrf(&send(&router, with_token("/ns/shop/new-backup", "ann")).await.text);
    let sent = async |token: &str, csrf: &str| {
        let mut request = post("/ns/shop/backups", "", &format!("csrf={csrf}&do=create"));
        request.headers_mut().insert("x-forwarded-access-token", token.parse().unwrap());
        send(&router, request).await.status
    };
    assert_eq!(sent("ANN", &form).await, StatusCode::SEE_OTHER);
    assert_eq!(sent("bob", &form).await, StatusCode::FORBIDDEN);
    // Nor is it good with a cookie, whatever that is.
    let cookie = cookie_of(&send(&router, post("/login", "", "token=ann")).await);
    let answer = send(&router, post("/ns/shop/backups", &cookie, &format!("csrf={form}&do=create"))).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    // Another console has another secret.
    let other = in_cluster(&server);
    let other = csrf(&send(&other, with_token("/ns/shop/new-backup", "ann")).await.text);
    assert_eq!(sent("ann", &other).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_page_follows_from_the_version_that_it_shows_and_lists_nothing_again() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let stream = tokio::spawn(router.clone().oneshot(get("/ns/shop/live?nonadminbackups=41", &cookie)));
    let mut body = stream.await.unwrap().unwrap().into_body();
    let reads = tokio::spawn(async move { body.frame().await });
    let watches = || {
        let calls = server.calls.lock().unwrap();
        let found = calls
            .iter()
            .any(|call| call.contains("nonadminbackups?&watch") || call.contains("nonadminbackups?watch"));
        found.then(|| calls.clone())
    };
    let calls = loop {
        if let Some(calls) = watches() {
            break calls;
        }
        tokio::task::yield_now().await;
    };
    reads.abort();
    let of_backups: Vec<_> = calls.iter().filter(|call| call.contains("nonadminbackups")).collect();
    assert!(of_backups.iter().all(|call| call.contains("resourceVersion=41")), "{of_backups:?}");
    // The version of the other kind is learned from one object.
    let of_restores =
        calls.iter().filter(|call| call.contains("nonadminrestores") && !call.contains("watch"));
    assert!(of_restores.clone().all(|call| call.contains("limit=1")), "{calls:?}");
}

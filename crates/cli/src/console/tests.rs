//! The console as a browser sees it, before an API server that is made up. What a real one and a real browser add is in
//! `e2e/tests/console`.

mod admin;
mod answers;
mod commands;
mod files;
mod form;
mod hostile;
mod locations;
mod replace;
mod restore;
mod schedules;
mod sessions;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, Response, StatusCode, header},
};
use http_body_util::BodyExt as _;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{
    guard::Address,
    link::Link,
    login::{Logins, SignIn},
    serve::{Console, Storage, router},
};
use crate::{connect::Session, output::Format};

const HOST: &str = "127.0.0.1:7000";
const EVIL: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'";

/// An API server with the objects of one namespace, which writes down what it was asked.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is something else that a test sets")]
struct ApiServer {
    calls: Arc<Mutex<Vec<String>>>,
    /// The person may only look.
    read_only: bool,
    /// It does not know the person any more.
    expired: Arc<Mutex<bool>>,
    /// By the path of the collection and the name.
    objects: Arc<Mutex<BTreeMap<(String, String), Value>>>,
    /// The person is an administrator: everything can be read.
    is_admin: bool,
    /// Whether the console may follow links, as on a laptop.
    follows_links: bool,
    /// The status that nacre gives download requests; without one they are forbidden.
    download: Option<Value>,
    /// What it warns of when an object is created.
    warning: Option<&'static str>,
    /// Whom it takes the person for, if not for ann.
    user: Option<String>,
    /// There are too many objects to read them all.
    many: bool,
    /// What the person may not do, as verb and resource.
    forbidden: Vec<(&'static str, &'static str)>,
}

/// Where the requests of the namespace are.
const OWN: &str = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/";

impl ApiServer {
    fn with(backups: Vec<Value>) -> Self {
        let server = Self::default();
        for backup in backups {
            server.put(&format!("{OWN}nonadminbackups"), backup);
        }
        server
    }

    /// Adds an object to a collection, or takes the place of one.
    fn put(&self, collection: &str, mut object: Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut objects = self.objects.lock().unwrap();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-of-{name}-{}", objects.len()));
        }
        objects.insert((collection.to_owned(), name), object.clone());
        object
    }

    fn get(&self, collection: &str, name: &str) -> Option<Value> {
        self.objects.lock().unwrap().get(&(collection.to_owned(), name.to_owned())).cloned()
    }

    /// What is in a collection.
    fn all(&self, collection: &str) -> Vec<Value> {
        let objects = self.objects.lock().unwrap();
        let found = objects.iter().filter(|((of, _), _)| of == collection);
        found.map(|(_, object)| object.clone()).collect()
    }

    fn answer(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let status = |code: u16, reason: &str| {
            let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                "message": format!("{reason} {EVIL}")});
            (code, body)
        };
        if *self.expired.lock().unwrap() {
            return status(401, "Unauthorized");
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match path {
            path if path.ends_with("/selfsubjectaccessreviews") => {
                let asked = &body["spec"]["resourceAttributes"];
                let is_one = |(verb, resource): &(&str, &str)| {
                    asked["verb"] == **verb && asked["resource"] == **resource
                };
                let allowed = !self.read_only && !self.forbidden.iter().any(is_one);
                return (201, json!({"spec": {}, "status": {"allowed": allowed}}));
            }
            path if path.ends_with("/selfsubjectreviews") => {
                return (
                    201,
                    json!({"status": {"userInfo": {"username": self.user.as_deref().unwrap_or("ann")}}}),
                );
            }
            "/api" | "/apis" => return (200, served(path)),
            _ => {}
        }
        let writes = method != "GET";
        let is_own = path.contains("/namespaces/shop/");
        if self.is_admin && !is_own && !writes {
            return match self.everywhere(path) {
                Some(found) => (200, found),
                None => status(404, "NotFound"),
            };
        }
        if !(is_own || self.is_admin)
            || (writes && self.read_only)
            || (path.ends_with("/nonadmindownloadrequests") && self.download.is_none())
        {
            return status(403, "Forbidden");
        }
        let (before, last) = path.rsplit_once('/').unwrap();
        if before.ends_with("/namespaces/shop") {
            return match method {
                "GET" if query.contains("watch") => (200, json!({})),
                "GET" => (200, self.list(path, query)),
                "POST" if path.ends_with("/nonadmindownloadrequests") => {
                    let mut request = body.clone();
                    request["status"] = self.download.clone().unwrap_or_default();
                    (201, self.put(path, request))
                }
                _ if query.contains("dryRun") => (201, body.clone()),
                _ if self.get(path, body["metadata"]["name"].as_str().unwrap_or_default()).is_some() => {
                    status(409, "AlreadyExists")
                }
                _ => {
                    let mut made = body.clone();
                    made["metadata"]["creationTimestamp"] = json!(jiff::Timestamp::now());
                    (201, self.put(path, made))
                }
            };
        }
        let Some(found) = self.get(before, last) else { return status(404, "NotFound") };
        match method {
            "GET" => (200, found),
            "DELETE" => {
                self.objects.lock().unwrap().remove(&(before.to_owned(), last.to_owned()));
                (200, found)
            }
            "PATCH" => {
                let version = &body["metadata"]["resourceVersion"];
                if !version.is_null() && *version != found["metadata"]["resourceVersion"] {
                    return status(409, "Conflict");
                }
                let mut changed = found;
                merge(&mut changed, body);
                (200, self.put(before, changed))
            }
            _ => (200, self.put(before, body.clone())),
        }
    }

    /// What an administrator reads: an object, or a collection in all namespaces, which is that of the one namespace.
    fn everywhere(&self, path: &str) -> Option<Value> {
        let (before, last) = path.rsplit_once('/').unwrap();
        let is_object = path.split("/namespaces/").nth(1).is_some_and(|rest| rest.matches('/').count() == 2);
        if is_object || self.get(before, last).is_some() {
            return self.get(before, last);
        }
        let own = format!("{before}/namespaces/shop/{last}");
        let items = if before.contains("/namespaces/") { self.all(path) } else { self.all(&own) };
        Some(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
    }

    /// A collection; the first hundred are followed by more.
    fn list(&self, collection: &str, query: &str) -> Value {
        let meta = if self.many && query.contains("limit=") && !query.contains("continue") {
            json!({"resourceVersion": "1", "continue": "next+/=", "remainingItemCount": 7000})
        } else {
            json!({"resourceVersion": "1"})
        };
        json!({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": self.all(collection)})
    }

    fn session(&self) -> Session {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<KubeBody>| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let method = request.method().to_string();
            let token = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            let token = token.unwrap_or_default();
            server.calls.lock().unwrap().push(format!("{method} {path} {token}").trim_end().to_owned());
            let server = server.clone();
            async move {
                let sent = request.into_body().collect().await?.to_bytes();
                let sent = serde_json::from_slice(&sent).unwrap_or_default();
                let (code, body) = server.answer(&method, &path, &sent);
                let body = if code == 200 && path.contains("watch=true") {
                    // Nothing happens.
                    Body::from_stream(futures::stream::pending::<kube::Result<Bytes>>())
                } else {
                    Body::from(body.to_string())
                };
                let mut answer = Response::builder().status(code);
                if let Some(warning) = server.warning.filter(|_| method == "POST") {
                    answer = answer.header(header::WARNING, format!("299 - {warning:?}"));
                }
                Ok::<_, tower::BoxError>(answer.body(body)?)
            }
        });
        Session {
            client: kube::Client::new(service, "shop"),
            namespace: "shop".to_owned(),
            velero_namespace: "velero".to_owned(),
            format: Format::Table,
            follows_links: self.follows_links,
        }
    }

    fn made(&self) -> usize {
        let calls = self.calls.lock().unwrap();
        let made = calls.iter().filter(|call| call.starts_with("POST") && call.contains("nonadmin"));
        made.filter(|call| !call.contains("dryRun")).count()
    }
}

/// The resources that it serves, as discovery reports them.
fn served(path: &str) -> Value {
    let resource = |plural: &str, kind: &str| {
        json!({"resource": plural, "scope": "Namespaced", "responseKind": {"kind": kind},
            "verbs": ["get", "list", "create", "delete"], "singularResource": kind.to_lowercase()})
    };
    let group = |name: &str, resources: Vec<Value>| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]});
    let core = vec![
        resource("configmaps", "ConfigMap"),
        resource("persistentvolumeclaims", "PersistentVolumeClaim"),
        resource("pods", "Pod"),
    ];
    let groups = match path {
        "/api" => vec![group("", core)],
        _ => vec![group("apps", vec![resource("deployments", "Deployment")])],
    };
    json!({ "items": groups })
}

/// A merge patch.
fn merge(object: &mut Value, change: &Value) {
    let Some(fields) = change.as_object() else {
        *object = change.clone();
        return;
    };
    for (name, value) in fields {
        if let (true, Some(object)) = (value.is_null(), object.as_object_mut()) {
            object.remove(name);
            continue;
        }
        merge(&mut object[name.as_str()], value);
    }
}

/// Waits until a page shows this.
async fn until_shown(router: &Router, path: &str, cookie: &str, words: &str) -> String {
    let mut last = String::new();
    for _ in 0..2400 {
        last = send(router, get(path, cookie)).await.text;
        if last.contains(words) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path} never shows {words:?}: {last}");
}

fn backup(name: &str, message: &str) -> Value {
    json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": name, "namespace": "shop", "uid": "u", "creationTimestamp": "2026-11-15T12:00:00Z",
            "annotations": {"note": message}},
        "spec": {"backupSpec": {}},
        "status": {"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False", "reason": "InvalidBackupSpec",
            "message": message, "lastTransitionTime": "2026-11-15T12:00:01Z"}]},
    })
}

fn on_laptop(server: &ApiServer) -> Router {
    router(laptop(server, Link::with_code(7000, "code".to_owned())))
}

fn laptop(server: &ApiServer, link: Link) -> Arc<Console> {
    let sign_in = SignIn::Code { session: server.session(), link: Mutex::new(Some(link)) };
    Console::new(Logins::new(sign_in).unwrap(), Address::Loopback(7000), Storage::System)
}

/// The console in a cluster; the token of each session is written down with its calls.
fn in_cluster_at(server: &ApiServer, address: Address) -> Router {
    let (server, seen) = (server.clone(), server.calls.clone());
    let connect = move |token: &str| {
        seen.lock().unwrap().push(format!("token {token}"));
        Ok(ApiServer { user: Some(format!("user-of-{}", token.to_uppercase())), ..server.clone() }.session())
    };
    let logins = Logins::new(SignIn::Token(Box::new(connect))).unwrap();
    router(Console::new(logins, address, Storage::Container(None)))
}

fn in_cluster(server: &ApiServer) -> Router {
    in_cluster_at(server, Address::Any)
}

struct Answer {
    status: StatusCode,
    headers: axum::http::HeaderMap,
    text: String,
}

async fn send(router: &Router, request: Request<Body>) -> Answer {
    let answer = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(parts.headers.contains_key("content-security-policy"), "{:?}", parts.headers);
    Answer { status: parts.status, headers: parts.headers, text }
}

fn get(path: &str, cookie: &str) -> Request<Body> {
    let request = Request::get(path).header(header::HOST, HOST).header(header::COOKIE, cookie);
    request.body(Body::empty()).unwrap()
}

fn post(path: &str, cookie: &str, form: &str) -> Request<Body> {
    Request::post(path)
        .header(header::HOST, HOST)
        .header(header::ORIGIN, format!("http://{HOST}"))
        .header(header::COOKIE, cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form.to_owned()))
        .unwrap()
}

fn cookie_of(answer: &Answer) -> String {
    let set = answer.headers.get(header::SET_COOKIE).unwrap().to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

/// Signs in on a laptop.
async fn enter(router: &Router) -> String {
    cookie_of(&send(router, get("/start?code=code", "")).await)
}

/// The hidden text of the forms on a page.
fn csrf(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[tokio::test]
async fn the_link_works_once_and_nothing_works_without_it() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    for path in ["/", "/ns/shop", "/ns/shop/live", "/admin/doctor", "/start?code=wrong"] {
        let answer = send(&router, get(path, "nacre-console-7000=guess")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert!(server.calls.lock().unwrap().is_empty(), "nobody was let in");
    let cookie = enter(&router).await;
    assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
    // The second use is nobody's, and ends nobody's session: pages on other ports of this host can send it, too.
    for other in ["", "nacre-console-7000=guess"] {
        let answer = send(&router, get("/start?code=code", other)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{:?}", answer.headers);
    }
    for code in ["code", "wrong"] {
        let answer = send(&router, get(&format!("/start?code={code}"), &cookie)).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        assert_eq!(answer.headers[header::LOCATION], "/ns/shop");
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{:?}", answer.headers);
        assert_eq!(send(&router, get("/ns/shop", &cookie)).await.status, StatusCode::OK);
    }
    // A proxy's header is nobody's word on a laptop.
    let mut request = get("/ns/shop", "");
    request.headers_mut().insert(header::AUTHORIZATION, "Bearer t".parse().unwrap());
    assert_eq!(send(&router, request).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_name_bound_to_loopback_and_a_form_of_another_site_are_turned_away() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let mut rebound = get("/ns/shop", &cookie);
    rebound.headers_mut().insert(header::HOST, "evil.example:7000".parse().unwrap());
    assert_eq!(send(&router, rebound).await.status, StatusCode::FORBIDDEN);
    let token = csrf(&send(&router, get("/ns/shop/new-backup", &cookie)).await.text);
    let mut foreign = post("/ns/shop/backups", &cookie, &format!("csrf={token}"));
    foreign.headers_mut().insert(header::ORIGIN, "http://evil.example".parse().unwrap());
    assert_eq!(send(&router, foreign).await.status, StatusCode::FORBIDDEN);
    for form in ["", "csrf=", "csrf=0000"] {
        assert_eq!(
            send(&router, post("/ns/shop/backups", &cookie, form)).await.status,
            StatusCode::FORBIDDEN
        );
    }
    assert_eq!(server.made(), 0);
    let made = send(&router, post("/ns/shop/backups", &cookie, &format!("csrf={token}&do=create"))).await;
    assert_eq!((made.status, server.made()), (StatusCode::SEE_OTHER, 1), "{}", made.text);
    let made = made.headers[header::LOCATION].to_str().unwrap();
    assert!(made.starts_with("/ns/shop/backups/backup-"), "{made}");
}

#[tokio::test]
async fn text_of_tenants_never_becomes_markup() {
    let server = ApiServer::with(vec![backup("daily", EVIL)]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let paths = [
        "/ns/shop",
        "/ns/shop/backups",
        "/ns/shop/backups/daily",
        "/ns/shop/backups/none",
        "/ns/shop/restore",
        "/ns/shop/restore/daily?selector=%3Cscript%3Ealert(1)%3C/script%3E&resource=%3Cscript%3E",
        "/ns/%3Cscript%3E",
    ];
    for path in paths {
        let page = send(&router, get(path, &cookie)).await.text;
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{path}: {page}");
        // Nothing inline, which the policy would stop anyway.
        assert!(!page.contains(" style=") && !page.contains("javascript:"), "{path}: {page}");
    }
    let page = send(&router, get("/ns/shop/backups/daily", &cookie)).await.text;
    assert!(page.contains("&lt;script&gt;alert(1)"), "it is shown as text: {page}");
}

#[tokio::test]
async fn somebody_elses_namespace_looks_like_one_that_does_not_exist() {
    let server = ApiServer::with(vec![backup("daily", "")]);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let mut seen = Vec::new();
    for path in [
        "/ns/bank",
        "/ns/nowhere",
        "/ns/NOT-A-NAME",
        "/ns/bank/backups",
        "/ns/bank/backups/daily",
        "/ns/..%2Fbank",
    ] {
        let answer = send(&router, get(path, &cookie)).await;
        seen.push((answer.status, answer.text));
    }
    assert_eq!(seen[0].0, StatusCode::NOT_FOUND);
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    let calls = server.calls.lock().unwrap();
    assert!(!calls.iter().any(|call| call.contains("..")), "{calls:?}");
}

#[tokio::test]
async fn a_viewer_can_click_nothing() {
    let server = ApiServer { read_only: true, ..ApiServer::with(vec![backup("daily", "")]) };
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    for path in
        ["/ns/shop", "/ns/shop/backups", "/ns/shop/backups/daily", "/ns/shop/new-backup", "/ns/shop/restores"]
    {
        let page = send(&router, get(path, &cookie)).await.text;
        let forms = page.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "{path}: only signing out: {page}");
        let offers = ["Back up now", ">Restore<", "Restore from this", "/new-backup\""];
        assert!(!offers.iter().any(|offer| page.contains(offer)), "{path}: {page}");
        assert!(!page.contains("/admin/"), "{path}: {page}");
    }
    let token = csrf(&send(&router, get("/ns/shop", &cookie)).await.text);
    let answer = send(&router, post("/ns/shop/backups", &cookie, &format!("csrf={token}&do=create"))).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.text.contains("Forbidden"), "{}", answer.text);
}

#[tokio::test]
async fn lists_go_on_where_the_api_server_says() {
    let server = ApiServer { many: true, ..ApiServer::with(vec![backup("daily", "")]) };
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/backups", &cookie)).await.text;
    assert!(page.contains("/ns/shop/backups?from=next%2B%2F%3D") && page.contains("7000 more"), "{page}");
    assert!(page.contains("in the order of names"), "{page}");
    let page = send(&router, get("/ns/shop/restore", &cookie)).await.text;
    assert!(page.contains("No backup on this page can be restored") && page.contains("Next page"), "{page}");
    let page = send(&router, get("/ns/shop/backups?from=next%2B%2F%3D", &cookie)).await.text;
    assert!(!page.contains("Next page"), "{page}");
    let calls = server.calls.lock().unwrap();
    assert!(calls.iter().any(|call| call.contains("limit=100&continue=next%2B%2F%3D")), "{calls:?}");
}

#[tokio::test]
async fn the_newest_comes_first_whatever_it_is_called() {
    let done = |name: &str, day: u32| {
        let mut one = backup(name, "");
        one["metadata"]["creationTimestamp"] =
            json!(format!("2026-01-01T00:{:02}:{:02}Z", day / 60, day % 60));
        one["status"] = json!({"phase": "Created", "veleroBackup": {"name": "v", "status": {"phase": "Completed",
            "completionTimestamp": "2026-11-15T12:10:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
        one
    };
    // By name the oldest come first, and the only page would be full of backups that cannot be restored.
    let mut all: Vec<Value> = (0..150).map(|number| backup(&format!("a-{number:03}"), "")).collect();
    all.extend((0..150).map(|number| done(&format!("b-{number:03}"), number)));
    let router = on_laptop(&ApiServer::with(all));
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/restore", &cookie)).await.text;
    assert!(page.contains("/restore/b-149\"") && !page.contains("/restore/b-049\""), "{page}");
    assert!(page.find("b-149").unwrap() < page.find("b-148").unwrap() && page.contains("50 more"), "{page}");
    let page = send(&router, get("/ns/shop/restore?page=1", &cookie)).await.text;
    assert!(page.contains("/restore/b-049\"") && !page.contains("Next page"), "{page}");
    // The page follows what happens from the version of the list on.
    let page = send(&router, get("/ns/shop/backups", &cookie)).await.text;
    assert!(page.contains("data-watch=\"/ns/shop/live?nonadminbackups=1\""), "{page}");
}

#[tokio::test]
async fn a_namespace_is_safe_only_with_all_its_claims() {
    let now = jiff::Timestamp::now();
    let mut good = backup("good", "");
    good["status"] = json!({"phase": "Created", "claims": [{"name": "files", "state": "Saved"}],
        "conditions": [{"type": "DataProtected", "status": "True", "reason": "AllClaimsSaved", "message": "", "lastTransitionTime": now}],
        "veleroBackup": {"name": "v", "status": {"phase": "Completed", "startTimestamp": now, "completionTimestamp": now,
            "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
    let server = ApiServer::with(vec![good]);
    let claims = "/api/v1/namespaces/shop/persistentvolumeclaims";
    server.put(claims, json!({"metadata": {"name": "files", "namespace": "shop"}}));
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop", &cookie)).await.text;
    assert!(page.contains("Safe: this namespace could be brought back"), "{page}");
    server.put(claims, json!({"metadata": {"name": "new", "namespace": "shop"}}));
    let page = send(&router, get("/ns/shop", &cookie)).await.text;
    assert!(page.contains("There is a good backup, but claim new is not in it"), "{page}");
    assert!(!page.contains("Safe: "), "{page}");
    // Volume by volume, also without a good backup.
    server.objects.lock().unwrap().retain(|(collection, _), _| !collection.contains("nonadminbackups"));
    let page = send(&router, get("/ns/shop", &cookie)).await.text;
    assert!(page.contains("Not safe: there is no good backup"), "{page}");
    assert_eq!(page.matches("NOT in any good backup").count(), 2, "{page}");
}

#[tokio::test]
async fn a_value_of_a_form_never_becomes_a_flag() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop/new-backup", &cookie)).await.text);
    for field in ["ttl=--snapshot-volumes", "ttl=3+days", "ttl=0"] {
        let form = format!("csrf={token}&do=create&{field}");
        let answer = send(&router, post("/ns/shop/backups", &cookie, &form)).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}: {}", answer.text);
    }
    assert_eq!(server.made(), 0);
}

#[tokio::test]
async fn what_would_happen_is_shown_in_tables_and_nothing_is_made() {
    let server = ApiServer::default();
    let claim = json!({"metadata": {"name": "files", "namespace": "shop"}, "spec": {"volumeName": "pv"}});
    server.put("/api/v1/namespaces/shop/persistentvolumeclaims", claim);
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop/new-backup", &cookie)).await.text);
    let check = async |fields: &str| {
        let form = format!("csrf={token}&do=check&{fields}");
        send(&router, post("/ns/shop/backups", &cookie, &form)).await
    };
    let page = check("name=first&ttl=72h").await.text;
    for words in [
        "What would happen",
        "<td data-heading=\"Field\">includedNamespaces</td>",
        "<td data-heading=\"By\">nacre, always</td>",
        "<td data-heading=\"Claim\">files</td>",
        "<td data-heading=\"Asked\">the policy</td>",
        "kubectl nacre backup create first -n shop --ttl=72h --dry-run=server",
        "<input type=\"hidden\" name=\"ttl\" value=\"72h\">",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<pre"), "nothing of it is a terminal's: {page}");
    // What a tenant writes stays text there, too.
    let page = check("name=first&selector=app%3Dx&location=%3Cscript%3Ealert(1)%3C/script%3E").await.text;
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
    assert_eq!(server.made(), 0);
}

#[tokio::test]
async fn what_the_administrators_set_is_shown_as_set() {
    let warning = "spec.backupSpec.ttl: the administrators set this to 48h<script>";
    let router = on_laptop(&ApiServer { warning: Some(warning), ..ApiServer::default() });
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/new-backup?ttl=9h", &cookie)).await.text;
    assert!(page.contains("id=\"ttl\" value=\"48h&lt;script&gt;\" disabled"), "{page}");
    assert!(!page.contains("name=\"ttl\""), "{page}");
    let other = "spec.backupSpec.snapshotMoveData: the administrators set this to true";
    let router = on_laptop(&ApiServer { warning: Some(other), ..ApiServer::default() });
    let page = send(&router, get("/ns/shop/new-backup?ttl=9h", &enter(&router).await)).await.text;
    assert!(
        page.contains("<code>snapshotMoveData</code>: true") && page.contains("name=\"ttl\" value=\"9h\""),
        "{page}"
    );
}

#[tokio::test]
async fn a_form_that_is_sent_twice_asks_for_one_object() {
    let server = ApiServer::default();
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    let page = send(&router, get("/ns/shop/new-backup", &cookie)).await.text;
    let mut form = form::Form::with_button(&page, "create");
    let to = "/ns/shop/backups";
    let led = async |form: &form::Form| {
        let answer = send(&router, post(to, &cookie, &form.press("create"))).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        answer.headers[header::LOCATION].to_str().unwrap().to_owned()
    };
    // Also when nobody named it.
    let first = led(&form).await;
    assert_eq!((led(&form).await, server.all(&format!("{OWN}nonadminbackups")).len()), (first, 1));
    form.write("name", "mine");
    form.write("ttl", "72h");
    assert_eq!(led(&form).await, "/ns/shop/backups/mine");
    assert_eq!(led(&form).await, "/ns/shop/backups/mine");
    // Something else under the name is an error, and so is the same if it is old.
    form.write("ttl", "48h");
    let refused = send(&router, post(to, &cookie, &form.press("create"))).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("AlreadyExists"), "{}", refused.text);
    form.write("ttl", "72h");
    let backups = format!("{OWN}nonadminbackups");
    let mut old = server.get(&backups, "mine").unwrap();
    old["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    server.put(&backups, old.clone());
    let refused = send(&router, post(to, &cookie, &form.press("create"))).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    // Whoever goes back to a form that names nothing asks for another one.
    form.write("name", "");
    form.write("ttl", "");
    form.write("unnamed", "backup-20200101-000000");
    old["metadata"]["name"] = json!("backup-20200101-000000");
    server.put(&backups, old);
    assert_ne!(led(&form).await, "/ns/shop/backups/backup-20200101-000000");
}

#[tokio::test]
async fn a_console_for_everybody_reads_less_of_a_list() {
    let many = (0..2001).map(|number| backup(&format!("b-{number:04}"), "")).collect();
    let server = ApiServer { follows_links: true, ..ApiServer::with(many) };
    let router = on_laptop(&server);
    let page = send(&router, get("/ns/shop/backups", &enter(&router).await)).await.text;
    assert!(page.contains("?page=1\"") && !page.contains("in the order of names"), "{page}");
    let shared = async |server: &ApiServer| {
        server.calls.lock().unwrap().clear();
        let router = in_cluster(server);
        let cookie = cookie_of(&send(&router, post("/login", "", "token=abc")).await);
        let page = send(&router, get("/ns/shop/backups", &cookie)).await.text;
        assert!(page.contains("There are more than 2000, or they are very large"), "{page}");
        let overview = send(&router, get("/ns/shop", &cookie)).await.text;
        assert!(overview.contains("Too many backups to look at each"), "{overview}");
        let calls = server.calls.lock().unwrap();
        let lists: Vec<_> = calls.iter().filter(|call| call.contains("nonadminbackups?")).collect();
        assert!(!lists.is_empty() && lists.iter().all(|call| call.contains("limit=100")), "{lists:?}");
    };
    let shown = ApiServer { follows_links: false, ..server };
    shared(&shown).await;
    // Few, and each as large as it may be.
    let large = (0..40).map(|number| backup(&format!("b-{number}"), &"x".repeat(1 << 20))).collect();
    shared(&ApiServer::with(large)).await;
}

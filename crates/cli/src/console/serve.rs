//! The routes, and what stands around all of them.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    handler::Handler as _,
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use engine::Trust;

use super::{
    guard::{Address, is_from_another_site, protect},
    live,
    login::{self, Logins},
    pages::{
        Failed, admin, backup, files, home, locations, namespace, replace, restore, schedules, see, sign,
    },
    replacing::Replacements,
};

/// Forms are small.
const LARGEST_FORM: usize = 64 << 10;
/// But for a policy: a ConfigMap holds 1 MiB, and in a form a character may take three.
const LARGEST_POLICY: usize = 2 << 20;

/// What is sent there may be wrong, which is no reason to end a session that lives.
const SIGN_IN: [&str; 2] = ["/start", "/login"];

/// Everything the console knows. It writes none of it anywhere.
pub(super) struct Console {
    pub(super) logins: Logins,
    pub(super) address: Address,
    pub(super) replacements: Replacements,
    pub(super) storage: Storage,
}

/// Which storage of the administrators' is believed to be who it says it is.
pub(super) enum Storage {
    /// As on every laptop: what the system trusts.
    System,
    /// A container has no files of a system: public authorities, and those in this file if it is there.
    Container(Option<PathBuf>),
}

impl Storage {
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::System => Trust::System,
            Self::Container(file) => {
                Trust::PublicAnd(file.as_ref().and_then(|file| std::fs::read(file).ok()))
            }
        }
    }
}

impl Console {
    pub(super) fn new(logins: Logins, address: Address, storage: Storage) -> Arc<Self> {
        Arc::new(Self { logins, address, replacements: Replacements::default(), storage })
    }
}

pub(super) fn router(console: Arc<Console>) -> Router {
    Router::new()
        .route("/", get(home::show))
        .route("/go", get(home::go))
        .route("/start", get(sign::start))
        .route("/login", get(async || see("/")).post(sign::login))
        .route("/logout", get(async || see("/")).post(sign::logout))
        .route("/ns/{namespace}", get(namespace::show))
        .route("/ns/{namespace}/live", get(live::namespace))
        .route("/ns/{namespace}/backups", get(backup::list).post(backup::create))
        .route("/ns/{namespace}/backups/{name}", get(backup::show))
        .route("/ns/{namespace}/backups/{name}/live", get(live::backup))
        .route("/ns/{namespace}/backups/{name}/files", post(files::of_backup))
        .route("/ns/{namespace}/restores/{name}/files", post(files::of_restore))
        .route("/ns/{namespace}/new-backup", get(backup::form))
        .route("/ns/{namespace}/restores", get(restore::list).post(restore::create))
        .route("/ns/{namespace}/restores/{name}", get(restore::show))
        .route("/ns/{namespace}/restores/{name}/live", get(live::restore))
        .route("/ns/{namespace}/restore", get(restore::choose))
        .route("/ns/{namespace}/restore/{backup}", get(restore::preview))
        .route("/ns/{namespace}/replace/{backup}", get(replace::show).post(replace::begin))
        .route("/ns/{namespace}/replace/{backup}/live", get(live::replacement))
        .route("/ns/{namespace}/schedules", get(schedules::list).post(schedules::create))
        .route("/ns/{namespace}/schedules/{name}", get(schedules::show).post(schedules::act))
        .route("/ns/{namespace}/new-schedule", get(schedules::form))
        .route("/ns/{namespace}/locations", get(locations::list).post(locations::create))
        .route("/ns/{namespace}/locations/{name}", get(locations::show))
        .route("/ns/{namespace}/locations/{name}/live", get(live::location))
        .route("/ns/{namespace}/new-location", get(locations::form))
        .route("/admin/requests", get(admin::requests))
        .route("/admin/requests/{namespace}/{name}", get(admin::request).post(admin::decide))
        .route("/admin/queue", get(admin::queue).post(admin::mark))
        .route("/admin/usage", get(admin::usage))
        .route(
            "/admin/policy",
            get(admin::policy).post(admin::try_policy.layer(DefaultBodyLimit::max(LARGEST_POLICY))),
        )
        .route("/admin/migration", get(admin::migration))
        .route("/admin/doctor", get(admin::doctor))
        .route("/assets/console.css", get(async || asset("text/css", include_str!("assets/console.css"))))
        .route(
            "/assets/console.js",
            get(async || asset("text/javascript", include_str!("assets/console.js"))),
        )
        .route("/assets/icon.svg", get(async || asset("image/svg+xml", include_str!("assets/icon.svg"))))
        .route("/healthz", get(async || "ok"))
        .fallback(async || Failed::NotFound)
        .method_not_allowed_fallback(async || Failed::NotFound)
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(from_fn_with_state(console.clone(), guarded))
        .with_state(console)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "private, max-age=600")];
    (headers, text).into_response()
}

/// Turns away who may not call, and protects what is answered.
async fn guarded(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    // A kubelet calls by address, and learns nothing.
    let health = request.uri().path() == "/healthz";
    let refusal = console.address.refuses(request.method(), request.headers()).filter(|_| !health);
    let cookie = console.address.cookie();
    let headers = request.headers().clone();
    let has_cookie = login::cookie(&headers, &cookie).is_some();
    let same_page = same_page(&request).filter(|_| !has_cookie);
    let signs_in = SIGN_IN.contains(&request.uri().path());
    let mut answer = match refusal {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    if answer.status() == StatusCode::PAYLOAD_TOO_LARGE {
        answer = Failed::TooLarge.into_response();
    }
    if answer.status() == StatusCode::UNAUTHORIZED && !signs_in {
        // The API server rejects the token from now on, and so does the console.
        console.logins.forget(&headers, &cookie);
        if let Some(path) = same_page {
            answer = sign::lead_on("One moment", &path);
        } else if let Some(gone) = console.address.set_cookie(None).filter(|_| has_cookie) {
            answer.headers_mut().append(header::SET_COOKIE, gone);
        }
    }
    protect(answer.headers_mut());
    answer
}

/// The page that a link on another site led to: opened again from here, the browser brings its cookie.
fn same_page(request: &Request) -> Option<String> {
    let path = request.uri().path_and_query()?.as_str();
    let is_page = path == "/" || path.starts_with("/ns/") || path.starts_with("/admin/");
    (is_page && is_from_another_site(request.method(), request.headers())).then(|| path.to_owned())
}

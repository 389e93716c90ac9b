//! Signing in and out.

use std::sync::Arc;

use axum::{
    Form,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use jiff::Timestamp;
use maud::html;
use serde::Deserialize;

use super::{plain, see};
use crate::console::{
    login::{SignIn, end_of},
    person::{self, Posted},
    serve::Console,
};

#[derive(Deserialize)]
pub(in crate::console) struct Code {
    code: String,
}

/// The link that was printed: its code becomes a cookie. In a browser that has one the link goes on leading to the console.
pub(in crate::console) async fn start(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Query(given): Query<Code>,
) -> Response {
    let to = match &console.logins.sign_in {
        SignIn::Code { session, .. } if !session.namespace.is_empty() => format!("/ns/{}", session.namespace),
        _ => "/".to_owned(),
    };
    if let Some(cookie) = console.logins.exchange(&given.code) {
        return with_cookie(lead_on("Signed in", &to), &console, &cookie);
    }
    if console.logins.who(&headers, &console.address.cookie(), Timestamp::now()).is_some() {
        return see(&to);
    }
    page(&console, Some("This link was used before, or is not of this console."))
}

/// A page, not a redirect: what leads on from here is of the same site, and brings the cookie.
pub(in crate::console) fn lead_on(title: &str, to: &str) -> Response {
    let main = html! {
        meta http-equiv="refresh" content={ "0; url=" (to) };
        h1 { (title) }
        p { a href=(to) { "Continue" } }
    };
    plain(title, &main)
}

#[derive(Deserialize)]
pub(in crate::console) struct Token {
    token: String,
}

/// A token that was pasted: it stays in memory, and the browser gets a cookie.
pub(in crate::console) async fn login(
    State(console): State<Arc<Console>>,
    Form(Token { token }): Form<Token>,
) -> Response {
    let token = token.trim();
    let Some(session) = console.logins.connect(token) else {
        return page(&console, Some("That is not a token."));
    };
    let user = match person::user(&session).await {
        Ok(user) => user,
        Err(kube::Error::Api(status)) if status.code == 401 => {
            return page(&console, Some("The API server does not accept this token."));
        }
        Err(_) => return page(&console, Some("The API server does not answer. Try again in a minute.")),
    };
    match console.logins.admit(session, &user, end_of(token)) {
        Some(cookie) => with_cookie(see("/"), &console, &cookie),
        None => page(&console, Some("The console cannot keep your session.")),
    }
}

pub(in crate::console) async fn logout(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    posted: Posted,
) -> Response {
    if posted.person.is_by_proxy {
        let words = "A proxy before the console signs you in with every request: sign out there.";
        return (StatusCode::CONFLICT, words).into_response();
    }
    console.logins.forget(&headers, &console.address.cookie());
    page(&console, Some("You are signed out."))
}

fn with_cookie(mut answer: Response, console: &Console, cookie: &str) -> Response {
    if let Some(value) = console.address.set_cookie(Some(cookie)) {
        answer.headers_mut().append(header::SET_COOKIE, value);
    }
    answer
}

/// Where somebody lands who is not signed in.
pub(in crate::console) fn page(console: &Console, words: Option<&str>) -> Response {
    let main = html! {
        div.card {
            h1 { "Sign in" }
            @if let Some(words) = words { p.notice.warning role="alert" { (words) } }
            @match &console.logins.sign_in {
                SignIn::Code { .. } => {
                    p { "Open the link that " code { "kubectl nacre console" } " printed. It is valid once." }
                    p.hint { "If you used it already, end the command with Ctrl-C and run it again." }
                },
                SignIn::Token(_) => {
                    p { "Paste a token of yours. The console does everything with it and has no permissions of its own." }
                    form method="post" action="/login" {
                        label for="token" { "Token" }
                        input type="password" id="token" name="token" required autocomplete="off" spellcheck="false";
                        p.hint {
                            "It stays in the console's memory until it expires, or you sign out. On OpenShift "
                            code { "oc whoami -t" } " prints one; elsewhere " code { "kubectl create token NAME" }
                            " makes one of a service account."
                        }
                        div.actions { button { "Sign in" } }
                    }
                },
            }
        }
    };
    (StatusCode::UNAUTHORIZED, plain("Sign in", &main)).into_response()
}

//! The pages: what a command reads and decides, shown as HTML. Nothing is decided here.

pub(super) mod admin;
pub(super) mod backup;
pub(super) mod home;
pub(super) mod locations;
pub(super) mod namespace;
pub(super) mod restore;
pub(super) mod schedules;
pub(super) mod sign;

use anyhow::Error;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};

pub(super) use sign::page as sign_in;

use super::{
    html::{Frame, shell},
    person::{Person, may, user},
};
use crate::{connect::Session, output::in_words};

/// How many objects are on one page of a list.
pub(super) const PER_PAGE: u32 = 100;

/// Why there is no page.
pub(super) enum Failed {
    /// It does not exist, or is not for this person: nobody learns which.
    NotFound,
    /// The API server rejects the token from now on.
    SignedOut,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let code = error.chain().find_map(|cause| match cause.downcast_ref() {
            Some(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        });
        match code {
            Some(401) => Self::SignedOut,
            Some(403 | 404) => Self::NotFound,
            _ => Self::Error(error),
        }
    }
}

/// Whether the API server does not know the person any more.
pub(super) fn is_signed_out(error: &Error) -> bool {
    let api = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(kube::Error::Api(status)) => status.code == 401,
        _ => false,
    };
    error.chain().any(api)
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        Error::from(error).into()
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, title, text) = match self {
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "Nothing here",
                "It does not exist, or you are not permitted to see it. Check the name, or ask the owner of the \
                 namespace for the role view, edit or admin."
                    .to_owned(),
            ),
            Self::SignedOut => (
                StatusCode::UNAUTHORIZED,
                "Signed out",
                "The API server does not accept your credentials any more: they have expired or were revoked. Sign in \
                 again."
                    .to_owned(),
            ),
            Self::Error(error) => (StatusCode::BAD_GATEWAY, "That did not work", in_words(&error)),
        };
        let main = html! {
            div.card.verdict.bad {
                span.mark aria-hidden="true" { "!" }
                div { h1 { (title) } p { (text) } p { a href="/" { "To the start page" } } }
            }
        };
        (status, plain(title, &main)).into_response()
    }
}

/// A page without a person.
pub(super) fn plain(title: &str, main: &Markup) -> Response {
    let frame =
        Frame { title, namespace: None, admin: None, is_admin: false, user: None, csrf: None, command: None };
    answer(&frame.around(main))
}

pub(super) fn answer(markup: &Markup) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], markup.0.clone()).into_response()
}

/// After a form: the browser gets the page by itself, so that loading it again sends nothing again.
pub(super) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}

/// Which page it is.
pub(super) struct Place<'a> {
    pub(super) title: &'a str,
    pub(super) namespace: Option<(&'a str, &'a str)>,
    pub(super) admin: Option<&'a str>,
    pub(super) command: String,
}

/// A page for a person.
pub(super) async fn framed(person: &Person, place: Place<'_>, main: &Markup) -> Response {
    let session = &person.session;
    let (user, is_admin) = tokio::join!(user(session), is_admin(session));
    let user = user.ok();
    let frame = Frame {
        title: place.title,
        namespace: place.namespace,
        admin: place.admin,
        is_admin,
        user: user.as_deref(),
        csrf: Some(&person.csrf),
        command: (!place.command.is_empty()).then_some(place.command),
    };
    answer(&frame.around(main))
}

/// Whether the administrators' pages have something to show.
async fn is_admin(session: &Session) -> bool {
    let resource = "nonadminbackupstoragelocationrequests";
    may(session, "list", resource, &session.velero_namespace).await
}

/// Names stay within their path.
pub(super) fn object_name(name: &str) -> Result<&str, Failed> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_one =
        !name.is_empty() && name.len() <= 253 && name.chars().all(plain) && name != "." && name != "..";
    if is_one { Ok(name) } else { Err(Failed::NotFound) }
}

/// A value for a link.
pub(super) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// An argument as a shell takes it.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:@+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Flags as they follow a command in a shell.
pub(super) fn in_shell(flags: &[String]) -> String {
    flags.iter().fold(String::new(), |line, flag| line + " " + &quoted(flag))
}

/// Why a form was not accepted, on a page of its own.
pub(super) fn refused(title: &str, error: &Error, back: &str, command: &str) -> Markup {
    html! {
        div.card.verdict.bad {
            span.mark aria-hidden="true" { "!" }
            div { h1 { (title) } p { (in_words(error)) } p { a href=(back) { "Go back and change it" } } }
        }
        (shell(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_arguments_in_a_shell() {
        assert_eq!(quoted("--ttl=72h"), "--ttl=72h");
        assert_eq!(quoted("a; rm -rf 'x'"), r"'a; rm -rf '\''x'\'''");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn names_stay_within_their_path() {
        for odd in ["", "..", "a/b", "A", "a%2fb", "a?b"] {
            assert!(object_name(odd).is_err(), "{odd}");
        }
        assert!(object_name("daily-1.x").is_ok());
        assert_eq!(escaped("a b&c=<"), "a%20b%26c%3D%3C");
    }
}

//! The pages: what a command reads and decides, shown as HTML. Nothing is decided here.

pub(super) mod admin;
pub(super) mod backup;
mod chosen;
mod failed;
pub(super) mod files;
mod forms;
pub(super) mod home;
mod lists;
pub(super) mod locations;
pub(super) mod namespace;
pub(super) mod replace;
pub(super) mod restore;
pub(super) mod schedules;
pub(super) mod sign;
mod text;

use std::time::Duration;

use anyhow::Error;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};

pub(super) use failed::{Failed, is_signed_out};
pub(super) use forms::UNNAMED;
pub(super) use lists::Cursor;
pub(super) use sign::page as sign_in;
pub(super) use text::{escaped, object_name};

use super::{
    html::{Frame, class, page, with_times},
    person::{Person, may, user},
};
use crate::{connect::Session, explain::Explained, output::in_words};
use forms::{NewObject, create_once, flags, given, storage, unnamed};
use lists::{List, live_link, more, newest_first_of, next_page, reads};
use text::{in_shell, quoted};

/// How long a page waits for Velero's files. Without them it says what it does not know, such as while Velero is down.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A page without a person.
pub(super) fn plain(title: &str, main: &Markup) -> Response {
    let frame = Frame {
        title,
        namespace: None,
        admin: None,
        is_admin: false,
        user: None,
        sign_out: None,
        commands: Vec::new(),
    };
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
    /// The command that shows the same; empty if there is none.
    pub(super) command: String,
    /// Commands that do what the buttons do, and the words on these.
    pub(super) acts: Vec<(&'static str, String)>,
}

impl<'a> Place<'a> {
    /// A page of a namespace, below one of its tabs.
    pub(super) const fn of(namespace: &'a str, tab: &'a str, title: &'a str, command: String) -> Self {
        Self { title, namespace: Some((namespace, tab)), admin: None, command, acts: Vec::new() }
    }

    pub(super) fn acting(self, acts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self { acts: acts.into_iter().collect(), ..self }
    }
}

/// What would become of a request, as `explain` has it.
pub(super) fn what_would_happen(explained: &Explained) -> Markup {
    html! {
        h1 { "What would happen" }
        div class={ "notice " (class(explained.sentence.style())) } {
            p { b { (explained.sentence.text()) } }
            @for line in &explained.reasons { p { (with_times(line)) } }
        }
        @for line in &explained.warnings { p.notice.warning { b { "Warning: " } (line) } }
        (page(&explained.page))
    }
}

/// A page for a person.
pub(super) async fn framed(person: &Person, place: Place<'_>, main: &Markup) -> Response {
    let session = &person.session;
    let (user, is_admin) = tokio::join!(user(session), is_admin(session));
    let user = user.ok();
    let looks = Some(("In a shell", place.command)).filter(|(_, line)| !line.is_empty());
    let frame = Frame {
        title: place.title,
        namespace: place.namespace,
        admin: place.admin,
        is_admin,
        user: user.as_deref(),
        sign_out: (!person.is_by_proxy).then_some(&person.csrf),
        commands: looks.into_iter().chain(place.acts).collect(),
    };
    answer(&frame.around(main))
}

/// Whether the administrators' pages have something to show.
async fn is_admin(session: &Session) -> bool {
    let resource = "nonadminbackupstoragelocationrequests";
    may(session, "list", resource, &session.velero_namespace).await
}

/// A form that was not accepted, and why.
pub(super) struct Refused<'a> {
    pub(super) title: &'a str,
    /// Where it can be changed.
    pub(super) back: &'a str,
    /// The command that is refused alike.
    pub(super) command: &'a str,
}

impl Refused<'_> {
    pub(super) async fn show(
        &self,
        person: &Person,
        place: Place<'_>,
        error: &Error,
    ) -> Result<Response, Failed> {
        if is_signed_out(error) {
            return Err(Failed::SignedOut);
        }
        let main = html! {
            div.card.verdict.bad {
                span.mark aria-hidden="true" { "!" }
                div {
                    h1 { (self.title) }
                    @for line in in_words(error).lines() { p { (with_times(line)) } }
                    p { a href=(self.back) { "Go back and change it" } }
                }
            }
        };
        let place = Place { command: self.command.to_owned(), ..place };
        let page = framed(person, place, &main).await;
        Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
    }
}

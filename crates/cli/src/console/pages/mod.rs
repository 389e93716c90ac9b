//! The pages: what a command reads and decides, shown as HTML. Nothing is decided here.

pub(super) mod admin;
pub(super) mod backup;
mod chosen;
pub(super) mod files;
pub(super) mod home;
pub(super) mod locations;
pub(super) mod namespace;
pub(super) mod replace;
pub(super) mod restore;
pub(super) mod schedules;
pub(super) mod sign;

use anyhow::Error;
use api::NonAdminBackupStorageLocation;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

pub(super) use sign::page as sign_in;

use super::{
    html::{Frame, table as rows},
    person::{Person, Posted, may, user},
};
use crate::{
    connect::Session,
    list::{self, Found, Readable},
    output::{Format, in_words},
    table::Table,
};

/// How many objects are on one page of a list.
const PER_PAGE: u16 = 100;
/// With more objects than these, all of them take too long for a page.
pub(super) const MOST: u64 = 5000;

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
    let frame = Frame {
        title,
        namespace: None,
        admin: None,
        is_admin: false,
        user: None,
        sign_out: None,
        command: None,
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
    pub(super) command: String,
}

impl<'a> Place<'a> {
    /// A page of a namespace, below one of its tabs.
    pub(super) const fn of(namespace: &'a str, tab: &'a str, title: &'a str, command: String) -> Self {
        Self { title, namespace: Some((namespace, tab)), admin: None, command }
    }
}

/// One page of a kind as a table, with links to each.
pub(super) struct List<'a> {
    /// The path below the namespace, which is also the tab.
    pub(super) path: &'a str,
    pub(super) title: &'a str,
    pub(super) command: String,
    /// What can be done here.
    pub(super) actions: Markup,
    /// What is shown if there is none.
    pub(super) nothing: Markup,
    /// Whether the page follows what happens.
    pub(super) is_live: bool,
    pub(super) format: Format,
}

impl List<'_> {
    pub(super) async fn show<K: Readable>(
        self,
        person: &Person,
        session: &Session,
        from: &Cursor,
        table: impl FnOnce(&Found<K>, Format, bool, Timestamp) -> Table,
    ) -> Result<Response, Failed> {
        let namespace = session.namespace.as_str();
        let found = newest_first::<K>(session, from).await?;
        let shown = table(&found.found, self.format, false, Timestamp::now());
        let watch = (self.is_live && from.is_first()).then(|| live_link::<K>(namespace, &found.version));
        let main = html! {
            div id="live" data-watch=[watch] {
                h1 { (self.title) }
                (self.actions)
                @if shown.is_empty() { div.card { (self.nothing) } }
                @else {
                    (rows(&shown, self.title, |row| {
                        Some((0, format!("/ns/{namespace}{}/{}", self.path, row.first()?.text())))
                    }))
                }
                (more(namespace, self.path, &found))
            }
        };
        Ok(framed(person, Place::of(namespace, self.path, self.title, self.command), &main).await)
    }
}

#[derive(Deserialize)]
pub(in crate::console) struct Cursor {
    /// Where the API server's list goes on.
    from: Option<String>,
    /// Which page of a list that is read whole; the first is 0.
    page: Option<usize>,
}

impl Cursor {
    /// Where a list goes on; none at its start.
    fn token(&self) -> Option<&str> {
        self.from.as_deref().filter(|token| !token.is_empty())
    }

    pub(super) fn is_first(&self) -> bool {
        self.token().is_none() && self.page.unwrap_or_default() == 0
    }
}

/// One page of a list.
pub(super) struct Shown<K> {
    pub(super) found: Found<K>,
    /// The parameter that leads to the next page.
    next: Option<String>,
    /// How many come after it.
    remaining: u64,
    /// There are too many to read them all, so pages are in the order of names.
    by_name: bool,
    pub(super) version: String,
}

impl<K> Shown<K> {
    /// Whether there are no other pages.
    pub(super) const fn is_whole(&self) -> bool {
        !self.by_name && self.next.is_none()
    }
}

/// A page of a kind, the newest first. The API server lists by name: up to a number all are read and put in order. With
/// more, pages are the API server's own.
pub(super) async fn newest_first<K: Readable>(session: &Session, from: &Cursor) -> anyhow::Result<Shown<K>> {
    newest_first_of(session, from, |_| true).await
}

/// The same of those that this holds for. A page of the API server's own may then be empty, although others are not.
pub(super) async fn newest_first_of<K: Readable>(
    session: &Session,
    from: &Cursor,
    wanted: impl Fn(&K) -> bool,
) -> anyhow::Result<Shown<K>> {
    let all = if from.token().is_none() { list::up_to::<K>(session, MOST).await? } else { None };
    let Some((mut all, version)) = all else {
        let mut page = list::page::<K>(session, PER_PAGE.into(), from.token()).await?;
        page.found.newest_first();
        page.found.items.retain(|(object, _)| wanted(object));
        let next = page.next.map(|token| format!("from={}", escaped(&token)));
        let (found, remaining, version) = (page.found, page.remaining, page.version);
        return Ok(Shown { found, next, remaining, by_name: true, version });
    };
    all.newest_first();
    all.items.retain(|(object, _)| wanted(object));
    let number = from.page.unwrap_or_default();
    let per_page = usize::from(PER_PAGE);
    let (before, after) =
        (number.saturating_mul(per_page), number.saturating_add(1).saturating_mul(per_page));
    let remaining = all.items.len().saturating_sub(after);
    all.items = all.items.into_iter().skip(before).take(per_page).collect();
    Ok(Shown {
        found: all,
        next: (remaining > 0).then(|| format!("page={}", number + 1)),
        remaining: u64::try_from(remaining).unwrap_or(u64::MAX),
        by_name: false,
        version,
    })
}

/// Where a page of a namespace learns of changes, from the version of the list that it shows.
pub(super) fn live_link<K: Readable>(namespace: &str, version: &str) -> String {
    format!("/ns/{namespace}/live?{}={}", K::plural(&()), escaped(version))
}

/// Where the list goes on.
pub(super) fn more<K>(namespace: &str, path: &str, shown: &Shown<K>) -> Markup {
    html! {
        @if shown.by_name {
            p.hint { "There are more than " (MOST) ", so pages are in the order of names; the newest on a page comes first." }
        }
        @if let Some(next) = &shown.next {
            nav.actions aria-label="Pages" {
                a.button.second rel="next" href={ "/ns/" (namespace) (path) "?" (next) } { "Next page" }
                span.hint { (shown.remaining) " more" }
            }
        }
    }
}

/// What would become of a request, as `explain` has it: `passes` says that it would pass.
pub(super) fn what_would_happen(
    what: &str,
    passes: &str,
    explained: &(String, bool),
    again: &Markup,
) -> Markup {
    let (text, attention) = explained;
    html! {
        h1 { "What would happen" }
        @if *attention { p.notice.warning { "This " (what) " would not simply pass: see below." } }
        @else { p.notice.good { (passes) } }
        section { pre tabindex="0" { (text.trim_end()) } }
        (again)
    }
}

/// The form that was looked at: to send it, or to change it.
pub(super) fn again(posted: &Posted, path: &str, send: &str, back: &str) -> Markup {
    html! {
        form method="post" action=(path) {
            (posted.again())
            div.actions {
                button name="do" value="create" { (send) }
                a.button.second href=(back) { "Change it" }
            }
        }
    }
}

/// The flags that a form says, each in one argument so that no value becomes a flag. Several fields of one name are one
/// flag, as a command line has it; a field whose flag takes no value is the flag.
pub(super) fn flags(fields: &[(String, String)], known: &[(&str, &str)]) -> Vec<String> {
    let values = |field: &str| {
        let given = fields.iter().filter(|(name, value)| name == field && !value.trim().is_empty());
        given.map(|(_, value)| value.trim()).collect::<Vec<_>>()
    };
    let flag = |(field, flag): &(&str, &str)| {
        let values = values(field);
        if values.is_empty() {
            return None;
        }
        Some(match flag.strip_suffix('!') {
            Some(plain) => plain.to_owned(),
            None => format!("{flag}={}", values.join(",")),
        })
    };
    known.iter().filter_map(flag).collect()
}

/// Which storage, in a form.
pub(super) fn storage(own: &[NonAdminBackupStorageLocation], chosen: &str) -> Markup {
    html! {
        label for="location" { "Storage" }
        select id="location" name="location" {
            option value="" { "the cluster's own" }
            @for location in own {
                @let name = location.metadata.name.as_deref().unwrap_or_default();
                option value=(name) selected[name == chosen] { (name) }
            }
        }
    }
}

/// What a form says in a field; empty if it says nothing.
pub(super) fn given<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
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
        sign_out: (!person.is_by_proxy).then_some(&person.csrf),
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
                    @for line in in_words(error).lines() { p { (line) } }
                    p { a href=(self.back) { "Go back and change it" } }
                }
            }
        };
        let place = Place { command: self.command.to_owned(), ..place };
        let page = framed(person, place, &main).await;
        Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_flags_and_values_stay_values() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fields = [
            field("kind", "a"),
            field("ttl", " --yes "),
            field("kind", "b"),
            field("x", ""),
            field("no", "on"),
        ];
        let known = [("kind", "--kinds"), ("ttl", "--ttl"), ("x", "--x"), ("no", "--no!")];
        assert_eq!(flags(&fields, &known), ["--kinds=a,b", "--ttl=--yes", "--no"]);
    }

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

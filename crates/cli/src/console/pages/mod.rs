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

use std::{ops::Range, time::Duration};

use anyhow::Error;
use api::NonAdminBackupStorageLocation;
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use jiff::{SignedDuration, Timestamp};
use kube::{Api, api::PostParams};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use sign::page as sign_in;

use super::{
    html::{Frame, class, page, table as rows, with_times},
    person::{Person, Posted, may, user},
};
use crate::{
    connect::Session,
    explain::Explained,
    list::{self, Found, Readable, Reads},
    output::in_words,
    send::generated,
    table::Table,
};

/// How long a page waits for Velero's files. Without them it says what it does not know, such as while Velero is down.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// How many objects are on one page of a list.
const PER_PAGE: u16 = 100;
/// A list that is put in order is read whole, in parts; with more than this, a page would take too long or too much memory.
///
/// An object is about 6 KB of text, takes 5 times that while its part is read, and about 5 KB afterwards. So one view of the
/// largest list takes 500 * 30 KB + 5000 * 5 KB = 40 MB on a laptop, where one person looks. The console in the cluster has
/// 256 MiB for everybody: 100 * 30 KB + 2000 * 5 KB = 13 MB, which is 15 views at a time next to 50 MB for the rest. Text
/// that tenants write into their objects is limited too: it is kept at about its own size.
pub(super) const fn reads(session: &Session) -> Reads {
    if session.follows_links {
        return Reads { at_once: 500, most: 5000, bytes: 256 << 20 };
    }
    // In a cluster links are not followed, and the console is everybody's.
    Reads { at_once: 100, most: 2000, bytes: 32 << 20 }
}

/// Why there is no page.
pub(super) enum Failed {
    /// It does not exist, or is not for this person: nobody learns which.
    NotFound,
    /// The API server rejects the token from now on.
    SignedOut,
    /// The form is larger than the console takes.
    TooLarge,
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
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "This form is too large",
                "The console takes forms of up to 64 KiB, and policies of up to 2 MiB. Nothing was done. In a shell there is \
                 no such limit: kubectl nacre policy check -f policy.yaml --requests tries a policy of any size."
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

/// The page with one kind of a namespace.
pub(super) struct List {
    /// The path below the namespace, which is also the tab.
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    /// What the command has after `kubectl nacre` and the namespace.
    pub(super) command: (&'static str, &'static str),
    /// Where a new one is made, and the words on the button.
    pub(super) new: (&'static str, &'static str),
    /// What is shown if there is none.
    pub(super) nothing: &'static str,
    /// And what a new one would be good for.
    pub(super) first: &'static str,
}

impl List {
    /// Shows one page of it; `body` is what is there.
    pub(super) async fn show<K: Readable>(
        &self,
        person: &Person,
        namespace: &str,
        from: &Cursor,
        body: impl FnOnce(&Found<K>) -> Markup,
    ) -> Result<Response, Failed> {
        let session = person.at(namespace)?;
        let resource = K::plural(&());
        let (found, can) =
            tokio::join!(newest_first::<K>(&session, from), may(&session, "create", &resource, namespace));
        let found = found?;
        let watch = from.is_first().then(|| live_link::<K>(namespace, &found.version));
        let (to, button) = self.new;
        let main = html! {
            div id="live" data-watch=[watch] {
                h1 { (self.title) }
                @if can { div.actions { a.button href={ "/ns/" (namespace) (to) } { (button) } } }
                @if found.found.items.is_empty() {
                    div.card {
                        p { (self.nothing) }
                        @if can && !self.first.is_empty() { p { (self.first) ": press " b { (button) } "." } }
                    }
                } @else { (body(&found.found)) }
                (more(namespace, self.path, &found))
            }
        };
        let (verb, more) = self.command;
        let command = format!("kubectl nacre {verb} -n {namespace}{more}");
        Ok(framed(person, Place::of(namespace, self.path, self.title, command), &main).await)
    }

    /// A table with a link to each.
    pub(super) fn table(&self, namespace: &str, shown: &Table) -> Markup {
        rows(shown, self.title, |row| {
            Some((0, format!("/ns/{namespace}{}/{}", self.path, row.first()?.text())))
        })
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

    /// The parameter that leads to the rows after those.
    pub(super) fn next_rows(&self) -> String {
        format!("page={}", self.page.unwrap_or_default().saturating_add(1))
    }

    /// Which rows of a list that is read whole are on the page.
    pub(super) fn rows(&self) -> Range<usize> {
        let per_page = usize::from(PER_PAGE);
        let before = self.page.unwrap_or_default().saturating_mul(per_page);
        before..before.saturating_add(per_page)
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
    /// There are more than these, so they are not read whole: pages are in the order of names.
    more_than: Option<u64>,
    pub(super) version: String,
}

impl<K> Shown<K> {
    /// Whether there are no other pages.
    pub(super) const fn is_whole(&self) -> bool {
        self.more_than.is_none() && self.next.is_none()
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
    let reads = reads(session);
    let all = if from.token().is_none() { list::up_to::<K>(session, reads).await? } else { None };
    let Some((mut all, version)) = all else {
        let mut page = list::page::<K>(session, PER_PAGE.into(), from.token()).await?;
        page.found.newest_first();
        page.found.items.retain(|(object, _)| wanted(object));
        let next = page.next.map(|token| format!("from={}", escaped(&token)));
        let (found, remaining, version) = (page.found, page.remaining, page.version);
        return Ok(Shown { found, next, remaining, more_than: Some(reads.most), version });
    };
    all.newest_first();
    all.items.retain(|(object, _)| wanted(object));
    let rows = from.rows();
    let remaining = all.items.len().saturating_sub(rows.end);
    all.items = all.items.into_iter().skip(rows.start).take(rows.len()).collect();
    Ok(Shown {
        found: all,
        next: (remaining > 0).then(|| from.next_rows()),
        remaining: u64::try_from(remaining).unwrap_or(u64::MAX),
        more_than: None,
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
        @if let Some(most) = shown.more_than {
            p.hint {
                "There are more than " (most) ", or they are very large, so pages are in the order of names; the newest on a page "
                "comes first."
            }
        }
        @if let Some(next) = &shown.next { (next_page(&format!("/ns/{namespace}{path}?{next}"), shown.remaining)) }
    }
}

pub(super) fn next_page(to: &str, remaining: u64) -> Markup {
    html! {
        nav.actions aria-label="Pages" {
            a.button.second rel="next" href=(to) { "Next page" }
            span.hint { (remaining) " more" }
        }
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

/// A form that asks for a new object, and the command that does the same.
pub(super) struct NewObject<'a> {
    posted: &'a Posted,
    namespace: &'a str,
    /// The tab of its kind.
    tab: &'static str,
    title: &'static str,
    /// What it is called.
    noun: &'static str,
    /// The page with the form, with what was filled in.
    back: String,
    command: String,
}

impl<'a> NewObject<'a> {
    /// `form` is where it can be changed.
    pub(super) fn of(
        posted: &'a Posted,
        namespace: &'a str,
        (noun, tab): (&'static str, &'static str),
        (title, form): (&'static str, &str),
        (name, flags): (&str, &[String]),
    ) -> Self {
        let back = posted.back(&format!("/ns/{namespace}{form}"));
        let command =
            format!("kubectl nacre {noun} create {} -n {namespace}{}", quoted(name), in_shell(flags));
        Self { posted, namespace, tab, title, noun, back, command }
    }

    /// Whether somebody only wants to see what would happen.
    pub(super) fn is_check(&self) -> bool {
        self.posted.text("do") == "check"
    }

    fn place(&self, title: &'a str, command: String) -> Place<'a> {
        Place::of(self.namespace, self.tab, title, command)
    }

    pub(super) async fn refused(&self, error: &Error) -> Result<Response, Failed> {
        let title = format!("This {} was not created", self.noun);
        let refused = Refused { title: &title, back: &self.back, command: &self.command };
        refused.show(&self.posted.person, self.place(self.title, String::new()), error).await
    }

    /// What would happen, and the form again: to send it by this button, or to change it.
    pub(super) async fn checked(&self, what: &Markup, send: &str) -> Response {
        let main = html! {
            (what)
            form method="post" action={ "/ns/" (self.namespace) (self.tab) } {
                (self.posted.again())
                div.actions {
                    button name="do" value="create" { (send) }
                    a.button.second href=(self.back) { "Change it" }
                }
            }
        };
        let place = self.place("What would happen", format!("{} --dry-run=server", self.command));
        framed(&self.posted.person, place, &main).await
    }

    /// The page of what was made, or why it was not.
    pub(super) async fn created<K: Readable>(&self, made: anyhow::Result<K>) -> Result<Response, Failed> {
        match made {
            Ok(made) => {
                let name = made.meta().name.as_deref().unwrap_or_default();
                Ok(see(&format!("/ns/{}{}/{name}", self.namespace, self.tab)))
            }
            Err(error) => self.refused(&error).await,
        }
    }
}

/// A form that is sent again so soon was sent twice, and asks for one object.
const TWICE: SignedDuration = SignedDuration::from_mins(1);

/// Creates what a form asks for. If it was created a moment ago, by the same form, it is that one. Where nobody chose the
/// name, `stem` makes another one of it if an older object has it.
pub(super) async fn create_once<K: Readable>(
    session: &Session,
    mut wanted: K,
    stem: Option<&str>,
) -> anyhow::Result<K> {
    let api: Api<K> = session.api();
    let error = match api.create(&PostParams::default(), &wanted).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => kube::Error::Api(status),
        created => return Ok(created?),
    };
    let now = Timestamp::now();
    let (found, _) = list::one::<K>(session, wanted.meta().name.as_deref().unwrap_or_default()).await?;
    let created = found.meta().creation_timestamp.as_ref().map(|time| time.0);
    let is_new = created.is_some_and(|created| now.duration_since(created) < TWICE);
    if is_new && found.meta().deletion_timestamp.is_none() && spec_of(&wanted)? == spec_of(&found)? {
        return Ok(found);
    }
    let Some(stem) = stem else { return Err(error.into()) };
    wanted.meta_mut().name = Some(generated(stem, now));
    Box::pin(create_once(session, wanted, None)).await
}

fn spec_of(object: &impl Serialize) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(object)?["spec"].take())
}

/// The name that a form carries for an object that gets none, so that sending it twice names one object.
pub(super) const UNNAMED: &str = "unnamed";

/// The name for an object that nobody named: what the form carries, if it is one.
pub(super) fn unnamed(posted: &Posted, stem: &str) -> String {
    let carried = posted.text(UNNAMED);
    let is_ours = carried.starts_with(stem) && object_name(carried).is_ok();
    if is_ours { carried.to_owned() } else { generated(stem, Timestamp::now()) }
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

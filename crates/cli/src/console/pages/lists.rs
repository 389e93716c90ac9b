//! Pages with a list: which part of it is read, in which order, and where it goes on.

use std::ops::Range;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::super::{
    html::table as rows,
    person::{Person, may},
};
use super::{Failed, Place, escaped, framed};
use crate::{
    connect::Session,
    list::{self, Found, Readable, Reads},
    table::Table,
};

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

//! One namespace: is it safe?

use std::collections::BTreeSet;

use anyhow::Result;
use api::NonAdminBackup;
use axum::{extract::Path, response::Response};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, api::ListParams};
use maud::{Markup, html};

use super::{Failed, Place, framed};
use crate::{
    connect::Session,
    console::{
        html::{class, table},
        person::{Person, may},
    },
    describe::claims,
    list,
    status::{self, Entry, Summary, rows},
};

/// How many backups are read in one go.
const AT_ONCE: u32 = 500;
/// With more backups than these, "the last good one" takes too long for a page.
const MOST: u64 = 5000;

pub(in crate::console) async fn show(
    person: Person,
    Path(namespace): Path<String>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let now = Timestamp::now();
    let (backups, can_back_up, can_restore) = tokio::join!(
        backups(&session),
        may(&session, "create", "nonadminbackups", &namespace),
        may(&session, "create", "nonadminrestores", &namespace),
    );
    let place = Place {
        title: &namespace,
        namespace: Some((&namespace, "")),
        admin: None,
        command: format!("kubectl nacre status -n {namespace}"),
    };
    let Some(backups) = backups? else {
        let main = too_many(&namespace);
        return Ok(framed(&person, place, &main).await);
    };
    let newest = backups.iter().filter(|backup| backup.status.is_some()).cloned().collect::<Vec<_>>();
    let (summary, claims) = tokio::join!(
        status::look(&session, std::future::ready(Ok(backups)), now),
        Box::pin(claims_now(&session))
    );
    let summary = summary?;
    let volumes = volumes(&summary, &newest, claims.as_ref());
    let main = html! {
        div id="live" data-watch={ "/ns/" (namespace) "/live" } {
            (verdict(&summary, now))
            div.actions {
                @if can_back_up { a.button href={ "/ns/" (namespace) "/new-backup" } { "Back up now" } }
                @if can_restore { a.button.second href={ "/ns/" (namespace) "/restore" } { "Restore" } }
                @if !can_back_up && !can_restore { p.hint { "You can look, and not change anything: it takes the role edit or admin." } }
            }
            (overview(&namespace, &summary, now))
            (volumes)
        }
    };
    Ok(framed(&person, place, &main).await)
}

/// All backups of a namespace; none if there are too many to look at each.
async fn backups(session: &Session) -> Result<Option<Vec<NonAdminBackup>>> {
    let mut all = Vec::new();
    let mut from = None;
    loop {
        let page = list::page::<NonAdminBackup>(session, AT_ONCE, from.as_deref()).await?;
        let read = u64::try_from(all.len() + page.found.items.len()).unwrap_or(u64::MAX);
        if read + page.remaining > MOST {
            return Ok(None);
        }
        all.extend(page.found.items.into_iter().map(|(backup, _)| backup));
        from = page.next;
        if from.is_none() {
            return Ok(Some(all));
        }
    }
}

fn too_many(namespace: &str) -> Markup {
    html! {
        div.card.verdict.warning {
            span.mark aria-hidden="true" { "?" }
            div {
                h1 { "Too many backups to look at each" }
                p { "Namespace " (namespace) " has more than " (MOST) " backups. The command below looks at all of them." }
                p { a href={ "/ns/" (namespace) "/backups" } { "Page through the backups" } " or look at the "
                    a href={ "/ns/" (namespace) "/schedules" } { "schedules" } ": each names its last good backup." }
            }
        }
    }
}

/// The answer in one look.
fn verdict(summary: &Summary, now: Timestamp) -> Markup {
    let (class, mark, title) = match (&summary.last_good, summary.last_was_good) {
        (Some(_), true) => ("good", "✓", "Safe: this namespace could be brought back"),
        (Some(_), false) => ("warning", "!", "There is a good backup, but a later one went wrong"),
        (None, _) => ("bad", "✕", "Not safe: there is no good backup"),
    };
    let rows = rows(summary, now);
    let told = rows.iter().find(|row| row.name == "Last good backup");
    html! {
        div class={ "card verdict " (class) } {
            span.mark aria-hidden="true" { (mark) }
            div {
                h1 { (title) }
                @for entry in told.iter().flat_map(|row| &row.entries) { p { "Last good backup: " (entry.text) } }
                @if let Some(good) = &summary.last_good {
                    p { a href={ "/ns/" (summary.namespace) "/backups/" (good.name) } { "See backup " (good.name) } }
                }
            }
        }
    }
}

/// Everything `kubectl nacre status` shows.
fn overview(namespace: &str, summary: &Summary, now: Timestamp) -> Markup {
    let rows = rows(summary, now);
    html! {
        dl.card.rows {
            @for row in rows.iter().filter(|row| row.name != "Last good backup") {
                div {
                    dt { (row.name) }
                    dd {
                        @for entry in &row.entries { (line(namespace, row.name, entry)) }
                        @if row.more > 0 { p.quiet { "and " (row.more) " more" } }
                    }
                }
            }
        }
    }
}

fn line(namespace: &str, row: &str, entry: &Entry) -> Markup {
    let folder = match row {
        "Restores" => "restores",
        "Locations" => "locations",
        "Schedules" => "schedules",
        _ => "backups",
    };
    html! { p {
        @if let Some(name) = &entry.object { a href={ "/ns/" (namespace) "/" (folder) "/" (name) } { (name) } ": " }
        span class={ "text " (class(entry.style)) } { (entry.text) }
        (entry.after)
    } }
}

/// The claims that exist now; none if the person may not list them.
async fn claims_now(session: &Session) -> Option<BTreeSet<String>> {
    let api: Api<PersistentVolumeClaim> = session.api();
    let found = api.list_metadata(&ListParams::default()).await.ok()?;
    Some(found.items.iter().map(kube::ResourceExt::name_any).collect())
}

/// Volume by volume, what the last good backup holds.
fn volumes(summary: &Summary, backups: &[NonAdminBackup], claims: Option<&BTreeSet<String>>) -> Markup {
    let good = summary.last_good.as_ref().map(|good| good.name.as_str());
    let backup = backups.iter().find(|backup| good.is_some() && backup.metadata.name.as_deref() == good);
    let Some(status) = backup.and_then(|backup| backup.status.as_ref()) else {
        return html! {};
    };
    let saved = claims::table(&status.claims, status.claims_not_listed);
    let known: BTreeSet<&str> = status.claims.iter().map(|claim| claim.name.as_str()).collect();
    let new: Vec<&String> = match (claims, status.claims_not_listed) {
        (Some(claims), None) => claims.iter().filter(|name| !known.contains(name.as_str())).collect(),
        _ => Vec::new(),
    };
    html! {
        @if saved.table.is_some() || !new.is_empty() {
            section {
                h2 { "Volumes in the last good backup" }
                @if let Some(found) = &saved.table { (table(found, "Volumes in the last good backup", |_| None)) }
                @if !saved.text.is_empty() { p.quiet { (saved.text) } }
                @for name in new {
                    p.notice.warning { "Claim " (name) " exists now and is not in the last good backup." }
                }
            }
        }
    }
}

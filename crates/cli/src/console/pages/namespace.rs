//! One namespace: is it safe?

use api::NonAdminBackup;
use axum::{extract::Path, response::Response};
use jiff::Timestamp;
use maud::{Markup, html};
use planner::{last_good::ClaimSafety, volumes::size};

use super::{Failed, Place, framed, live_link, reads};
use crate::{
    console::{
        html::{class, table, with_times},
        person::{Person, may},
    },
    list,
    status::{self, Entry, Summary, rows},
    style,
    table::{Cell, Table},
    text::printable,
};

const LAST_GOOD: &str = "Last good backup";
/// Rows that have a place of their own on the page.
const ELSEWHERE: [&str; 3] = [LAST_GOOD, "Attention", "Volumes"];

pub(in crate::console) async fn show(
    person: Person,
    Path(namespace): Path<String>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let now = Timestamp::now();
    let (backups, can_back_up, can_restore) = tokio::join!(
        list::up_to::<NonAdminBackup>(&session, reads(&session)),
        may(&session, "create", "nonadminbackups", &namespace),
        may(&session, "create", "nonadminrestores", &namespace),
    );
    let place = Place {
        title: &namespace,
        namespace: Some((&namespace, "")),
        admin: None,
        command: format!("kubectl nacre status -n {namespace}"),
        acts: Vec::new(),
    };
    let Some((backups, version)) = backups? else {
        let main = too_many(&namespace, reads(&session).most);
        return Ok(framed(&person, place, &main).await);
    };
    let backups = backups.items.into_iter().map(|(backup, _)| backup).collect();
    let summary = Box::pin(status::look(&session, std::future::ready(Ok(backups)), now)).await?;
    let main = html! {
        div id="live" data-watch=(live_link::<NonAdminBackup>(&namespace, &version)) {
            (verdict(&summary, now))
            div.actions {
                @if can_back_up { a.button href={ "/ns/" (namespace) "/new-backup" } { "Back up now" } }
                @if can_restore { a.button.second href={ "/ns/" (namespace) "/restore" } { "Restore" } }
                @if !can_back_up && !can_restore { p.hint { "You can look, and not change anything: it takes the role edit or admin." } }
            }
            (overview(&namespace, &summary, now))
            (volumes(&summary))
        }
    };
    Ok(framed(&person, place, &main).await)
}

fn too_many(namespace: &str, most: u64) -> Markup {
    html! {
        div.card.verdict.warning {
            span.mark aria-hidden="true" { "?" }
            div {
                h1 { "Too many backups to look at each" }
                p { "Namespace " (namespace) " has more than " (most) " backups, or very large ones. The command below looks at all of them." }
                p { a href={ "/ns/" (namespace) "/backups" } { "Page through the backups" } " or look at the "
                    a href={ "/ns/" (namespace) "/schedules" } { "schedules" } ": each names its last good backup." }
            }
        }
    }
}

/// The answer in one look.
fn verdict(summary: &Summary, now: Timestamp) -> Markup {
    let (class, mark, title) = match (&summary.last_good, summary.problems.first()) {
        (Some(_), None) => ("good", "✓", "Safe: this namespace could be brought back".to_owned()),
        (Some(_), Some(problem)) => {
            ("warning", "!", format!("There is a good backup, but {}", problem.message))
        }
        (None, _) => ("bad", "✕", "Not safe: there is no good backup".to_owned()),
    };
    let rows = rows(summary, now);
    let last_good = rows.iter().find(|row| row.name == LAST_GOOD);
    html! {
        div class={ "card verdict " (class) } {
            span.mark aria-hidden="true" { (mark) }
            div {
                h1 { (title) }
                @for problem in summary.problems.iter().skip(1) { p { "Also, " (with_times(&problem.message)) "." } }
                @for entry in last_good.iter().flat_map(|row| &row.entries) { p { "Last good backup: " (with_times(&entry.text)) } }
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
            @for row in rows.iter().filter(|row| !ELSEWHERE.contains(&row.name)) {
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
        span class={ "text " (class(entry.style)) } { (with_times(&entry.text)) }
        (entry.after)
    } }
}

/// Volume by volume, whether its data could be brought back.
fn volumes(summary: &Summary) -> Markup {
    let mut found = Table::new(&["CLAIM", "DATA", "SIZE", "WHY"]);
    for claim in summary.claims.iter().flatten() {
        let (style, word) = match claim.safety {
            ClaimSafety::Saved => (style::GOOD, "Saved"),
            ClaimSafety::LeftOut => (style::QUIET, "Left out"),
            ClaimSafety::NotSaved | ClaimSafety::NotInIt | ClaimSafety::NoGoodBackup => {
                (style::BAD, "Not saved")
            }
            ClaimSafety::Unknown => (style::WARNING, "Not known"),
        };
        found.row([
            Cell::from(claim.name.as_str()),
            Cell::painted(style, word),
            Cell::from(claim.bytes.map(size)),
            Cell::from(printable(&claim.message)),
        ]);
    }
    html! { @if !found.is_empty() {
        section { h2 { "Volumes" } (table(&found, "Volumes", |_| None)) }
    } }
}

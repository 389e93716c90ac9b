//! Backups: the time line, one of them, and a new one.

use api::NonAdminBackup;
use axum::{
    extract::{Path, Query},
    response::{IntoResponse as _, Response},
};
use jiff::Timestamp;
use kube::api::PostParams;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Failed, PER_PAGE, Place, escaped, framed, in_shell, object_name, quoted, refused, see};
use crate::{
    backup,
    console::{
        html::{ago, class, page},
        person::{Person, Posted, may},
    },
    describe, explain,
    list::{self, ListPage},
    live::{Moment, ShowsProgress},
    location::known::Known,
    progress::{End, RequestProgress, State},
    send::generated,
    text::age,
};

#[derive(Deserialize)]
pub(in crate::console) struct From {
    from: Option<String>,
}

impl From {
    /// Where a list goes on; none at its start.
    pub(super) fn token(&self) -> Option<&str> {
        self.from.as_deref().filter(|token| !token.is_empty())
    }
}

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let (found, can) = tokio::join!(
        list::page::<NonAdminBackup>(&session, PER_PAGE, from.token()),
        may(&session, "create", "nonadminbackups", &namespace),
    );
    let found = found?;
    let now = Timestamp::now();
    let items = found.found.newest_last();
    let main = html! {
        div id="live" data-watch=[from.token().is_none().then(|| format!("/ns/{namespace}/live"))] {
            h1 { "Backups" }
            @if can { div.actions { a.button href={ "/ns/" (namespace) "/new-backup" } { "Back up now" } } }
            @if items.is_empty() {
                div.card { p { "There are no backups in this namespace yet." }
                    @if can { p { "The first one takes a minute: press " b { "Back up now" } "." } } }
            }
            ol.timeline {
                @for (backup, unreadable) in items.iter().rev() {
                    (entry(&namespace, backup, unreadable.as_deref(), now, &format!("/ns/{namespace}/backups/")))
                }
            }
            (more(&namespace, "backups", &found))
        }
    };
    let command = format!("kubectl nacre backup get -n {namespace}");
    let place = Place { title: "Backups", namespace: Some((&namespace, "/backups")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

/// Where the list goes on.
pub(super) fn more<K>(namespace: &str, folder: &str, found: &ListPage<K>) -> Markup {
    html! {
        @if let Some(next) = &found.next {
            p.hint { "Pages are in the order of names; the newest on a page comes first." }
            nav.actions aria-label="Pages" {
                a.button.second rel="next" href={ "/ns/" (namespace) "/" (folder) "?from=" (escaped(next)) } {
                    "Next page"
                }
                span.hint { (found.remaining) " more" }
            }
        }
    }
}

/// One backup on the time line.
pub(super) fn entry(
    namespace: &str,
    backup: &NonAdminBackup,
    unreadable: Option<&str>,
    now: Timestamp,
    link: &str,
) -> Markup {
    let progress = RequestProgress::from(backup);
    let created = progress.meta.creation_timestamp.as_ref().map(|time| time.0);
    let when = progress.velero.completed.or(created);
    let class = class(progress.cell().style());
    html! {
        li class=(class) {
            div.entry {
                div.head {
                    a href={ (link) (progress.name()) } { (progress.name()) }
                    span class={ "tag " (class) } { @if unreadable.is_some() { "Unreadable" } @else { (progress.word()) } }
                    @if let Some(when) = when { span.quiet { (ago(when, now)) } }
                    @if let Some(expires) = progress.velero.expires { span.quiet { "expires in " (age(now, expires)) } }
                    @if let Some(location) = &backup.spec.backup_spec.storage_location {
                        span.quiet { "in " a href={ "/ns/" (namespace) "/locations/" (location) } { (location) } }
                    }
                }
                p { (unreadable.map_or_else(|| progress.detail(), str::to_owned)) }
            }
        }
    }
}

/// The head of a page about something that may be running.
pub(super) fn headline(title: &str, progress: &RequestProgress<'_>, moment: &Moment) -> Markup {
    let (mark, class) = match class(progress.cell().style()) {
        "good" => ("✓", "good"),
        "bad" => ("✕", "bad"),
        "busy" => ("…", "busy"),
        _ => ("!", "warning"),
    };
    html! {
        div class={ "card verdict " (class) } {
            span.mark aria-hidden="true" { (mark) }
            div {
                h1 { (title) " " span class={ "tag " (class) } { (progress.word()) } }
                p id="sentence" role="status" { (progress.detail()) }
                @if moment.outcome.is_none() {
                    @match moment.amount {
                        Some((done, total)) => progress id="progress" aria-label="Progress" max=(total) value=(done) {},
                        None => progress id="progress" aria-label="Progress" {},
                    }
                }
            }
        }
    }
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (seen, can) = tokio::join!(
        Box::pin(describe::backup::look(&session, name, None)),
        may(&session, "create", "nonadminrestores", &namespace),
    );
    let seen = seen?;
    let progress = RequestProgress::from(&seen.object);
    let moment = seen.object.moment();
    let restorable =
        matches!(progress.state(), State::Finished(End::Completed | End::DataMissing | End::PartiallyFailed));
    let watch = moment.outcome.is_none().then(|| format!("/ns/{namespace}/backups/{name}/live"));
    let main = html! {
        div id="live" data-watch=[watch] {
            p.crumbs { a href={ "/ns/" (namespace) "/backups" } { "Backups" } }
            (headline(name, &progress, &moment))
            @if can && restorable {
                div.actions { a.button href={ "/ns/" (namespace) "/restore/" (name) } { "Restore from this backup" } }
            }
            (page(&seen.page))
        }
    };
    let command = format!("kubectl nacre backup describe {name} -n {namespace}");
    let place = Place { title: name, namespace: Some((&namespace, "/backups")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

/// The fields of the form, and the flags they are.
const FIELDS: [(&str, &str); 4] = [
    ("ttl", "--ttl"),
    ("location", "--storage-location"),
    ("resources", "--include-resources"),
    ("selector", "--selector"),
];

/// The flags that a form says, each in one argument so that no value becomes a flag.
pub(super) fn flags(fields: &[(String, String)], known: &[(&str, &str)]) -> Vec<String> {
    let flag = |name: &str| known.iter().find(|(field, _)| *field == name).map(|(_, flag)| *flag);
    let given = fields.iter().filter(|(_, value)| !value.trim().is_empty());
    given.filter_map(|(name, value)| Some(format!("{}={}", flag(name)?, value.trim()))).collect()
}

pub(in crate::console) async fn form(
    person: Person,
    Path(namespace): Path<String>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let own = Known::own(&session).await?.own;
    let can = may(&session, "create", "nonadminbackups", &namespace).await;
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/backups" } { "Backups" } }
        h1 { "Back up namespace " (namespace) }
        @if can {
            form.card method="post" action={ "/ns/" (namespace) "/backups" } {
                input type="hidden" name="csrf" value=(person.csrf);
                p.lead { "Everything in the namespace, with the data of its volumes. Nothing has to be filled in." }
                label for="name" { "Name " span.hint { "default: the time" } }
                input type="text" id="name" name="name" autocomplete="off" spellcheck="false";
                label for="ttl" { "Keep for " span.hint { "such as 72h; default: as the administrators set it" } }
                input type="text" id="ttl" name="ttl" autocomplete="off";
                label for="location" { "Storage" }
                select id="location" name="location" {
                    option value="" { "the cluster's own" }
                    @for location in &own {
                        @let name = location.metadata.name.as_deref().unwrap_or_default();
                        option value=(name) { (name) }
                    }
                }
                details {
                    summary { "Only a part of the namespace" }
                    label for="resources" { "Resources " span.hint { "such as deployments.apps,configmaps" } }
                    input type="text" id="resources" name="resources" autocomplete="off" spellcheck="false";
                    label for="selector" { "Labels " span.hint { "such as app=shop" } }
                    input type="text" id="selector" name="selector" autocomplete="off" spellcheck="false";
                    p.hint { "A backup of a part never counts as the last good backup." }
                }
                div.actions {
                    button name="do" value="create" { "Back up" }
                    button.second name="do" value="check" { "Show what would happen" }
                }
            }
        } @else {
            div.card { p { "You are not permitted to back up this namespace: it takes the role edit or admin." } }
        }
    };
    let command = format!("kubectl nacre backup create -n {namespace} --wait");
    let place = Place { title: "Back up", namespace: Some((&namespace, "/backups")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

pub(in crate::console) async fn create(
    Path(namespace): Path<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let session = person.at(&namespace)?;
    let flags = flags(posted.fields(), &FIELDS);
    let name = match posted.text("name") {
        "" => generated("backup", Timestamp::now()),
        name => name.to_owned(),
    };
    let command = format!("kubectl nacre backup create {} -n {namespace}{}", quoted(&name), in_shell(&flags));
    let back = format!("/ns/{namespace}/new-backup");
    let place = |title| Place {
        title,
        namespace: Some((namespace.as_str(), "/backups")),
        admin: None,
        command: String::new(),
    };
    let prepared = match backup::prepared(&session, name, &flags).await {
        Ok(prepared) => prepared,
        Err(error) => {
            let main = refused("This backup was not created", &error, &back, command.trim_end());
            let page = framed(person, place("Back up"), &main).await;
            return Ok((axum::http::StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
        }
    };
    if posted.text("do") == "check" {
        let (text, attention) = Box::pin(explain::of_new_backup(&session, prepared)).await?;
        let main = html! {
            h1 { "What would happen" }
            @if attention { p.notice.warning { "This backup would not simply pass: see below." } }
            @else { p.notice.good { "This backup would pass. Fields that nacre or the administrators set are shown as such." } }
            section { pre tabindex="0" { (text.trim_end()) } }
            form method="post" action={ "/ns/" (namespace) "/backups" } {
                input type="hidden" name="csrf" value=(person.csrf);
                @for (key, value) in posted.fields().iter().filter(|(key, _)| key != "csrf" && key != "do") {
                    input type="hidden" name=(key) value=(value);
                }
                div.actions {
                    button name="do" value="create" { "Back up" }
                    a.button.second href=(back) { "Change it" }
                }
            }
            (super::super::html::shell(&format!("{} --dry-run=server", command.trim_end())))
        };
        return Ok(framed(person, place("What would happen"), &main).await);
    }
    match session.api::<NonAdminBackup>().create(&PostParams::default(), &prepared).await {
        Ok(made) => {
            let name = made.metadata.name.unwrap_or_default();
            Ok(see(&format!("/ns/{namespace}/backups/{name}")))
        }
        Err(kube::Error::Api(status)) if status.code == 401 => Err(Failed::SignedOut),
        Err(error) => {
            let main = refused("This backup was not created", &error.into(), &back, command.trim_end());
            let page = framed(person, place("Back up"), &main).await;
            Ok((axum::http::StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

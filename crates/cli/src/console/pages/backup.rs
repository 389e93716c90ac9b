//! Backups: the time line, one of them, and a new one.

use api::NonAdminBackup;
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::Timestamp;
use maud::{Markup, html};
use planner::backup::fixed;

use super::{
    Cursor, Failed, List, NewObject, Place, UNNAMED, create_once, files, flags, framed, given, object_name,
    storage, unnamed, what_would_happen,
};
use crate::{
    backup,
    connect::Session,
    console::{
        html::{self, ago, class, page, with_times},
        person::{Person, Posted, may},
    },
    describe, explain,
    list::Found,
    live::{Moment, ShowsProgress},
    location::known::Known,
    progress::{End, RequestProgress, State},
    send::generated,
    text::age,
    warnings,
};

const LIST: List = List {
    path: "/backups",
    title: "Backups",
    command: ("backup get", ""),
    new: ("/new-backup", "Back up now"),
    nothing: "There are no backups in this namespace yet.",
    first: "The first one takes a minute",
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let time_line = |found: &Found<NonAdminBackup>| {
        time_line(&namespace, found, Timestamp::now(), &format!("/ns/{namespace}/backups/"))
    };
    LIST.show(&person, &namespace, &from, time_line).await
}

/// Backups, the newest first; `link` is where each leads.
pub(super) fn time_line(
    namespace: &str,
    found: &Found<NonAdminBackup>,
    now: Timestamp,
    link: &str,
) -> Markup {
    html! {
        ol.timeline {
            @for (backup, unreadable) in &found.items {
                (entry(namespace, backup, unreadable.as_deref(), now, link))
            }
        }
    }
}

/// Whether there is something in a backup to be restored.
pub(super) fn is_restorable(progress: &RequestProgress<'_>) -> bool {
    matches!(progress.state(), State::Finished(End::Completed | End::DataMissing | End::PartiallyFailed))
}

/// One backup on the time line.
fn entry(
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
                p { (with_times(&unreadable.map_or_else(|| progress.detail(), str::to_owned))) }
            }
        }
    }
}

/// The head of a page about something that may be running.
pub(super) fn headline(title: &str, progress: &RequestProgress<'_>, moment: &Moment) -> Markup {
    let bar = html! {
        @if moment.outcome.is_none() {
            @match moment.amount {
                Some((done, total)) => progress id="progress" aria-label="Progress" max=(total) value=(done) {},
                None => progress id="progress" aria-label="Progress" {},
            }
        }
    };
    html::headline(title, &progress.cell(), progress.word(), &progress.detail(), &bar)
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (seen, can, can_download) = tokio::join!(
        Box::pin(describe::backup::look(&session, name, None)),
        may(&session, "create", "nonadminrestores", &namespace),
        may(&session, "create", "nonadmindownloadrequests", &namespace),
    );
    let seen = seen?;
    let progress = RequestProgress::from(&seen.object);
    let moment = seen.object.moment();
    let restorable = is_restorable(&progress);
    let watch = moment.outcome.is_none().then(|| format!("/ns/{namespace}/backups/{name}/live"));
    let main = html! {
        div id="live" data-watch=[watch] {
            p.crumbs { a href={ "/ns/" (namespace) "/backups" } { "Backups" } }
            (headline(name, &progress, &moment))
            @if restorable {
                div.actions {
                    @let to = format!("/ns/{namespace}/restore/{name}");
                    @if can { a.button href=(to) { "Restore from this backup" } }
                    @else { a.button.second href=(to) { "See what is in it" } }
                }
            }
            (page(&seen.page))
            @if can_download && restorable {
                (files::buttons(&person, &format!("/ns/{namespace}/backups/{name}/files"), &files::OF_BACKUP))
            }
        }
    };
    let command = format!("kubectl nacre backup describe {name} -n {namespace}");
    let place = Place::of(&namespace, "/backups", name, command);
    Ok(framed(&person, place, &main).await)
}

/// How the name of a backup begins that nobody named.
const STEM: &str = "backup";

/// The fields of the form, and the flags they are.
const FIELDS: [(&str, &str); 4] = [
    ("ttl", "--ttl"),
    ("location", "--storage-location"),
    ("resources", "--include-resources"),
    ("selector", "--selector"),
];

/// Fields that the administrators set, as a dry run warns of them: whoever asks may not read the policy.
struct Fixed(Vec<(String, String)>);

impl Fixed {
    async fn look(session: &Session) -> Self {
        let name = generated(STEM, Timestamp::now());
        let told = async {
            let probe = backup::prepared(session, name, &[]).await?;
            warnings::of_dry_run(session, &probe).await
        };
        // Without an answer nothing is known to be fixed; the request itself says so later.
        let warnings: Vec<String> = told.await.unwrap_or_default();
        let read = warnings.iter().filter_map(|warning| fixed::read(warning));
        Self(read.map(|(field, value)| (field.to_owned(), value.to_owned())).collect())
    }

    fn value(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }

    /// Those that the form has no input for.
    fn others(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(|(name, _)| !SPEC.iter().any(|(_, field)| field == name))
    }

    /// A text to fill in, or what it is fixed to.
    fn input(&self, name: &str, label: &str, hint: &str, given: &str) -> Markup {
        let field = SPEC.iter().find(|(input, _)| *input == name).map_or("", |(_, field)| field);
        html! { @match self.value(field) {
            Some(value) => {
                label for=(name) { (label) " " span.hint { "set by the administrators" } }
                input type="text" id=(name) value=(value) disabled;
            },
            None => {
                label for=(name) { (label) " " span.hint { (hint) } }
                input type="text" id=(name) name=(name) value=(given) autocomplete="off" spellcheck="false";
            },
        } }
    }
}

/// The inputs, and the fields of the spec that they are about.
const SPEC: [(&str, &str); 4] = [
    ("ttl", "ttl"),
    ("location", "storageLocation"),
    ("resources", "includedResources"),
    ("selector", "labelSelector"),
];

pub(in crate::console) async fn form(
    person: Person,
    Path(namespace): Path<String>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let given = |name| given(&fields, name);
    let (own, can) =
        tokio::join!(Known::own(&session), may(&session, "create", "nonadminbackups", &namespace));
    let own = own?.own;
    let fixed = if can { Fixed::look(&session).await } else { Fixed(Vec::new()) };
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/backups" } { "Backups" } }
        h1 { "Back up namespace " (namespace) }
        @if can {
            form.card method="post" action={ "/ns/" (namespace) "/backups" } {
                input type="hidden" name="csrf" value=(person.csrf);
                p.lead { "Everything in the namespace, with the data of its volumes. Nothing has to be filled in." }
                input type="hidden" name=(UNNAMED) value=(generated(STEM, Timestamp::now()));
                (fixed.input("name", "Name", "default: the time", given("name")))
                (fixed.input("ttl", "Keep for", "such as 72h; default: as the administrators set it", given("ttl")))
                @if fixed.value("storageLocation").is_some() { (fixed.input("location", "Storage", "", "")) }
                @else { (storage(&own, given("location"))) }
                details {
                    summary { "Only a part of the namespace" }
                    (fixed.input("resources", "Resources", "such as deployments.apps,configmaps", given("resources")))
                    (fixed.input("selector", "Labels", "such as app=shop", given("selector")))
                    p.hint { "A backup of a part never counts as the last good backup." }
                }
                @if fixed.others().next().is_some() {
                    fieldset {
                        legend { "Set by the administrators" }
                        ul.plain { @for (field, value) in fixed.others() { li { code { (field) } ": " (value) } } }
                    }
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
    let place = Place::of(&namespace, "/backups", "Back up", command);
    Ok(framed(&person, place, &main).await)
}

pub(in crate::console) async fn create(
    Path(namespace): Path<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let flags = flags(posted.fields(), &FIELDS);
    let (name, stem) = match posted.text("name") {
        "" => (unnamed(&posted, STEM), Some(STEM)),
        name => (name.to_owned(), None),
    };
    let new = NewObject::of(
        &posted,
        &namespace,
        ("backup", "/backups"),
        ("Back up", "/new-backup"),
        (&name, &flags),
    );
    let prepared = match backup::prepared(&session, name.clone(), &flags).await {
        Ok(prepared) => prepared,
        Err(error) => return new.refused(&error).await,
    };
    if new.is_check() {
        let explained = Box::pin(explain::of_new_backup(&session, prepared)).await?;
        return Ok(new.checked(&what_would_happen(&explained), "Back up").await);
    }
    new.created(create_once(&session, prepared, stem).await).await
}

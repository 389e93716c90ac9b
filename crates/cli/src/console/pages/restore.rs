//! Restores: the guided path (choose when, see what would happen, confirm), the list, and one of them.

use api::{NonAdminBackup, NonAdminRestore};
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::Timestamp;
use kube::api::PostParams;
use maud::{Markup, html};
use planner::restore_preview::VolumeEffect;

use super::{
    Cursor, Failed, List, PER_PAGE, Place, Refused,
    backup::{entry, headline},
    escaped, files, flags, framed, given, in_shell, more, object_name, see,
};
use crate::{
    console::{
        html::{cell_text, page},
        person::{Person, Posted, may},
    },
    describe,
    download::Fetching,
    list,
    live::ShowsProgress as _,
    output::Format,
    progress::{End, RequestProgress, State},
    restore::{
        self,
        preview::{KindPreview, RestorePreview},
    },
    send::generated,
};

/// The fields of the form, and the flags they are.
pub(super) const FIELDS: [(&str, &str); 4] = [
    ("resource", "--include-resources"),
    ("selector", "--selector"),
    ("existing", "--existing-resource-policy"),
    ("volumes", "--restore-volumes"),
];

/// With so many objects, the kinds are not opened by themselves.
const OPEN: usize = 30;

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let can = may(&session, "create", "nonadminrestores", &namespace).await;
    let list = List {
        path: "/restores",
        title: "Restores",
        command: format!("kubectl nacre restore get -n {namespace}"),
        actions: html! {
            @if can { div.actions { a.button href={ "/ns/" (namespace) "/restore" } { "Restore" } } }
        },
        nothing: html! { p { "Nothing was restored in this namespace yet." } },
        is_live: true,
        format: Format::Table,
    };
    list.show::<NonAdminRestore>(&person, &session, &from, restore::get::table).await
}

fn steps(here: usize) -> Markup {
    let names = ["When: choose a backup", "What: see what would happen", "Restore"];
    html! { ol.steps {
        @for (at, name) in names.iter().enumerate() { li aria-current=[(at == here).then_some("step")] { (name) } }
    } }
}

/// Choosing when.
pub(in crate::console) async fn choose(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let found = list::page::<NonAdminBackup>(&session, PER_PAGE, from.token()).await?;
    let now = Timestamp::now();
    let items = found.found.newest_last();
    let restorable: Vec<_> = items
        .iter()
        .rev()
        .filter(|(backup, _)| {
            let state = RequestProgress::from(backup).state();
            matches!(state, State::Finished(End::Completed | End::DataMissing | End::PartiallyFailed))
        })
        .collect();
    let main = html! {
        h1 { "Restore namespace " (namespace) }
        (steps(0))
        @if restorable.is_empty() {
            div.card { p { "There is no backup that can be restored." }
                p { a href={ "/ns/" (namespace) "/backups" } { "See all backups" } } }
        }
        ol.timeline {
            @for (backup, unreadable) in restorable {
                (entry(&namespace, backup, unreadable.as_deref(), now, &format!("/ns/{namespace}/restore/")))
            }
        }
        (more(&namespace, "/restore", &found))
    };
    let command = format!("kubectl nacre restore create -n {namespace}");
    Ok(framed(&person, Place::of(&namespace, "/restores", "Restore", command), &main).await)
}

/// Seeing what would happen, and choosing what.
pub(in crate::console) async fn preview(
    person: Person,
    Path((namespace, backup)): Path<(String, String)>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let backup = object_name(&backup)?;
    let flags = flags(&fields, &FIELDS);
    let command =
        format!("kubectl nacre restore preview -n {namespace} --from-backup {backup}{}", in_shell(&flags));
    let place = Place::of(&namespace, "/restores", "Restore", command.clone());
    let name = generated(backup, Timestamp::now());
    let seen = match restore::prepared(&session, name, backup.to_owned(), &flags).await {
        Ok(prepared) => Box::pin(restore::preview::look(&session, &prepared, &Fetching::default())).await?,
        Err(error) => {
            let back = format!("/ns/{namespace}/restore/{backup}");
            let refused = Refused { title: "That cannot be restored", back: &back, command: &command };
            return refused.show(&person, place, &error).await;
        }
    };
    let Some(seen) = seen else { return Err(Failed::NotFound) };
    let can = may(&session, "create", "nonadminrestores", &namespace).await;
    let (top, end) = seen.around_objects();
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/restore" } { "Choose another backup" } }
        h1 { "Restore from " (backup) }
        (steps(1))
        (page(&top))
        (choice(&namespace, backup, &fields, &seen))
        (page(&end))
        @if can && seen.verdict != "refused" {
            form.card method="post" action={ "/ns/" (namespace) "/restores" } {
                input type="hidden" name="csrf" value=(person.csrf);
                input type="hidden" name="backup" value=(backup);
                @for (key, value) in &fields { input type="hidden" name=(key) value=(value); }
                h2 { "Restore" }
                p { "This restores what is shown above into namespace " b { (namespace) } ". Nothing is deleted." }
                div.actions { button { "Restore now" } }
            }
            (in_place(&namespace, backup, &fields, &seen))
        }
        @if !can { p.hint { "You can look, and not restore: it takes the role edit or admin." } }
    };
    Ok(framed(&person, place, &main).await)
}

/// What to bring back: kind by kind, with the objects of each, as far as what is in the backup is known.
fn choice(namespace: &str, backup: &str, fields: &[(String, String)], seen: &RestorePreview) -> Markup {
    let kinds = seen.kinds();
    let is_small = kinds.iter().map(|kind| kind.objects.len()).sum::<usize>() <= OPEN;
    let given = |name| given(fields, name);
    let is_changed = fields.iter().any(|(_, value)| !value.is_empty());
    html! {
        form action={ "/ns/" (namespace) "/restore/" (backup) } {
            @if !kinds.is_empty() {
                section {
                    h2 { "What" }
                    ul.tree { @for kind in &kinds { (branch(kind, is_small)) } }
                    p.hint {
                        "Velero restores all objects of a kind, or those with certain labels. Single objects cannot be chosen."
                    }
                }
            }
            details open[is_changed || kinds.is_empty()] {
                summary { "Restore only a part, or in another way" }
                div.card {
                    @if kinds.is_empty() {
                        label for="resource" { "Resources " span.hint { "such as configmaps,deployments.apps; default: all" } }
                        input type="text" id="resource" name="resource" value=(given("resource")) autocomplete="off";
                    }
                    label for="selector" { "Labels " span.hint { "such as app=shop; default: all" } }
                    input type="text" id="selector" name="selector" value=(given("selector")) autocomplete="off";
                    fieldset {
                        legend { "Objects that exist" }
                        label.check {
                            input type="radio" name="existing" value="" checked[given("existing") != "update"];
                            span { "stay as they are" }
                        }
                        label.check {
                            input type="radio" name="existing" value="update" checked[given("existing") == "update"];
                            span { "are changed to what they were in the backup" }
                        }
                    }
                    fieldset {
                        legend { "Data of volumes" }
                        label.check {
                            input type="radio" name="volumes" value="" checked[given("volumes") != "false"];
                            span { "is restored where the claim does not exist" }
                        }
                        label.check {
                            input type="radio" name="volumes" value="false" checked[given("volumes") == "false"];
                            span { "is left out" }
                        }
                    }
                }
            }
            div.actions { button.second { "Preview again" } }
        }
    }
}

/// A kind that can be chosen, and its objects.
fn branch(kind: &KindPreview<'_>, is_open: bool) -> Markup {
    html! {
        li {
            label.check {
                input type="checkbox" name="resource" value=(kind.resource) checked[kind.is_chosen] disabled[!kind.can_be_chosen];
                span { b { (kind.resource) } " " span.hint { (kind.summary) } }
            }
            details open[is_open] {
                summary { (kind.objects.len()) @if kind.objects.len() == 1 { " object" } @else { " objects" } }
                ul { @for (name, effect, why) in &kind.objects {
                    li { (name) " " (cell_text(effect)) @if !why.is_empty() { " " span.hint { (why) } } }
                } }
            }
        }
    }
}

/// Claims that exist keep their data, unless they are replaced.
fn in_place(namespace: &str, backup: &str, fields: &[(String, String)], seen: &RestorePreview) -> Markup {
    let kept = seen.preview.volumes.iter().any(|volume| volume.effect == VolumeEffect::Kept);
    let chosen: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    html! { @if kept {
        div.card {
            h2 { "Put the data of existing claims back too" }
            p {
                "A claim that exists keeps its data. Replacing saves what is there now, removes the claims and their workloads, "
                "and restores them. You see first what would be removed."
            }
            div.actions {
                a.button.second href={ "/ns/" (namespace) "/replace/" (backup) "?" (chosen.join("&")) } { "Replace in place" }
            }
        }
    } }
}

pub(in crate::console) async fn create(
    Path(namespace): Path<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let session = person.at(&namespace)?;
    let backup = object_name(posted.text("backup"))?;
    let flags = flags(posted.fields(), &FIELDS);
    let written = in_shell(&flags);
    let command = format!("kubectl nacre restore create -n {namespace} --from-backup {backup}{written}");
    let name = generated(backup, Timestamp::now());
    let made = async {
        let prepared = restore::prepared(&session, name, backup.to_owned(), &flags).await?;
        anyhow::Ok(session.api::<NonAdminRestore>().create(&PostParams::default(), &prepared).await?)
    };
    match made.await {
        Ok(made) => {
            let name = made.metadata.name.unwrap_or_default();
            Ok(see(&format!("/ns/{namespace}/restores/{name}")))
        }
        Err(error) => {
            let back = format!("/ns/{namespace}/restore/{backup}");
            let refused = Refused { title: "This restore was not created", back: &back, command: &command };
            refused.show(person, Place::of(&namespace, "/restores", "Restore", String::new()), &error).await
        }
    }
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (seen, can_download) = tokio::join!(
        Box::pin(describe::restore::look(&session, name, None)),
        may(&session, "create", "nonadmindownloadrequests", &namespace),
    );
    let seen = seen?;
    let progress = RequestProgress::from(&seen.object);
    let moment = seen.object.moment();
    let watch = moment.outcome.is_none().then(|| format!("/ns/{namespace}/restores/{name}/live"));
    let main = html! {
        div id="live" data-watch=[watch] {
            p.crumbs { a href={ "/ns/" (namespace) "/restores" } { "Restores" } }
            (headline(name, &progress, &moment))
            (page(&seen.page))
            @if can_download && matches!(progress.state(), State::Finished(_)) {
                (files::buttons(&person, &format!("/ns/{namespace}/restores/{name}/files"), &files::OF_RESTORE))
            }
        }
    };
    let command = format!("kubectl nacre restore describe {name} -n {namespace}");
    Ok(framed(&person, Place::of(&namespace, "/restores", name, command), &main).await)
}

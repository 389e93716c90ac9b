//! Restores: the guided path (choose when, see what would happen, confirm), the list, and one of them.

use api::{NonAdminBackup, NonAdminRestore};
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::Timestamp;
use maud::{Markup, html};
use planner::restore_preview::VolumeEffect;

use super::{
    Cursor, Failed, List, PATIENCE, Place, Refused, UNNAMED,
    backup::{headline, is_restorable, time_line},
    chosen::{Choice, changed_notice},
    create_once, files, flags, framed, in_shell, more, newest_first_of, object_name, see, unnamed,
};
use crate::{
    console::{
        html::{page, tag},
        person::{Person, Posted, may},
    },
    describe,
    download::Fetching,
    live::ShowsProgress as _,
    output::Format,
    progress::{RequestProgress, State},
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

/// What the page passes on, in forms and links; nothing else of an address.
const KNOWN: [&str; 4] = ["resource", "selector", "existing", "volumes"];

/// With so many objects, the kinds are not opened by themselves.
const OPEN: usize = 30;

const LIST: List = List {
    path: "/restores",
    title: "Restores",
    command: ("restore get", ""),
    new: ("/restore", "Restore"),
    nothing: "Nothing was restored in this namespace yet.",
    first: "",
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let table = |found: &_| {
        LIST.table(&namespace, &restore::get::table(found, Format::Table, false, Timestamp::now()))
    };
    LIST.show::<NonAdminRestore>(&person, &namespace, &from, table).await
}

fn steps(here: usize) -> Markup {
    let names = ["When: choose a backup", "What: see what would happen", "Restore: watch it happen"];
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
    let wanted = |backup: &NonAdminBackup| is_restorable(&RequestProgress::from(backup));
    let found = newest_first_of(&session, &from, wanted).await?;
    let main = html! {
        h1 { "Restore namespace " (namespace) }
        (steps(0))
        @if found.found.items.is_empty() {
            div.card {
                @if found.is_whole() { p { "There is no backup that can be restored." } }
                @else { p { "No backup on this page can be restored. There are other pages." } }
                p { a href={ "/ns/" (namespace) "/backups" } { "See all backups" } }
            }
        }
        (time_line(&namespace, &found.found, Timestamp::now(), &format!("/ns/{namespace}/restore/")))
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
    let choice = Choice::read(&fields, &KNOWN, "resource");
    let flags = choice.as_ref().map_or_else(|_| Vec::new(), |choice| flags(choice.fields(), &FIELDS));
    let command =
        format!("kubectl nacre restore preview -n {namespace} --from-backup {backup}{}", in_shell(&flags));
    let place = Place::of(&namespace, "/restores", "Restore", command.clone());
    let create = create_command(&namespace, backup, &flags);
    let name = generated(backup, Timestamp::now());
    let asked = async {
        let choice = choice?;
        anyhow::Ok((choice, restore::prepared(&session, name, backup.to_owned(), &flags).await?))
    };
    let (choice, prepared) = match asked.await {
        Ok(asked) => asked,
        Err(error) => {
            let back = format!("/ns/{namespace}/restore/{backup}");
            let refused = Refused { title: "That cannot be restored", back: &back, command: &command };
            return refused.show(&person, place, &error).await;
        }
    };
    let seen = Box::pin(restore::preview::look(&session, &prepared, &Fetching::within(PATIENCE))).await?;
    let Some(seen) = seen else { return Err(Failed::NotFound) };
    let can = may(&session, "create", "nonadminrestores", &namespace).await;
    let end = seen.after_objects();
    // What is ticked is what is sent: choosing and restoring are one form.
    let (method, action) = if can {
        ("post", format!("/ns/{namespace}/restores"))
    } else {
        ("get", format!("/ns/{namespace}/restore/{backup}"))
    };
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/restore" } { "Choose another backup" } }
        h1 { "Restore from " (backup) }
        (steps(1))
        (changed_notice(&fields))
        (in_short(&seen))
        form method=(method) action=(action) {
            @if can {
                input type="hidden" name="csrf" value=(person.csrf);
                input type="hidden" name="backup" value=(backup);
                input type="hidden" name=(UNNAMED) value=(generated(backup, Timestamp::now()));
            }
            (what(&choice, &seen))
            (page(&end))
            @if can && seen.verdict != "refused" {
                div.card {
                    h2 { "Restore" }
                    p { "This restores what is shown above into namespace " b { (namespace) } ". Nothing is deleted." }
                    div.actions { button name="do" value="restore" { "Restore now" } }
                }
            }
        }
        @if can && seen.verdict != "refused" { (in_place(&namespace, backup, &choice, &seen)) }
        @if !can { p.hint { "You can look, and not restore: it takes the role edit or admin." } }
    };
    let place = place.acting((can && seen.verdict != "refused").then_some(("Restore now", create)));
    Ok(framed(&person, place, &main).await)
}

fn create_command(namespace: &str, backup: &str, flags: &[String]) -> String {
    format!("kubectl nacre restore create -n {namespace} --from-backup {backup}{}", in_shell(flags))
}

/// What would become of it, in one look.
pub(super) fn in_short(seen: &RestorePreview) -> Markup {
    let (words, counts) = seen.in_short();
    let (class, sentence) = match seen.verdict {
        "passes" => ("good", format!("This restore {words}.")),
        "refused" => ("bad", format!("This restore {words}.")),
        "unknown" => ("warning", format!("Whether this restore would pass is not known: {words}.")),
        _ => ("warning", format!("This restore {words}.")),
    };
    html! {
        div class={ "notice " (class) } {
            p { b { (sentence) } @if let Some(why) = seen.reason() { " " (why) } }
            @if !counts.is_empty() { p { "Objects: " (counts) "." } }
        }
    }
}

/// What to bring back: kind by kind, with the objects of each, as far as what is in the backup is known.
fn what(choice: &Choice, seen: &RestorePreview) -> Markup {
    let kinds = seen.kinds();
    let boxes = kinds.iter().filter(|kind| kind.can_be_chosen).map(|kind| (kind.resource, kind.is_chosen));
    let resources = choice.fields().iter().filter(|(name, _)| name == "resource");
    let resources = resources.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(",");
    let is_small = kinds.iter().map(|kind| kind.objects.len()).sum::<usize>() <= OPEN;
    let given = |name| choice.given(name);
    html! {
        (choice.hidden("resource", boxes, &[]))
        @if !kinds.is_empty() {
            section {
                h2 { "What" }
                ul.tree { @for kind in kinds.iter().filter(|kind| kind.can_be_chosen) { (branch(kind, is_small)) } }
                p.hint {
                    "Velero restores all objects of a kind, or those with certain labels. Single objects cannot be chosen."
                }
                @if seen.objects_not_listed > 0 {
                    p.notice.warning {
                        (seen.objects_not_listed) " more objects are in the backup and not listed here. With all boxes ticked they "
                        "are restored too. Without one of them, kinds that are not listed are left out."
                    }
                }
                @if kinds.iter().any(|kind| !kind.can_be_chosen) {
                    details {
                        summary { "What does not come back" }
                        ul.tree { @for kind in kinds.iter().filter(|kind| !kind.can_be_chosen) { (never(kind)) } }
                    }
                }
            }
        }
        details open[!choice.is_empty() || kinds.is_empty()] {
            summary { "Restore only a part, or in another way" }
            div.card {
                @if kinds.is_empty() {
                    label for="resource" { "Resources " span.hint { "such as configmaps,deployments.apps; default: all" } }
                    input type="text" id="resource" name="resource" value=(resources) autocomplete="off";
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
        div.actions { button.second name="do" value="preview" { "Preview again" } }
    }
}

/// A kind that can be chosen, and its objects.
fn branch(kind: &KindPreview<'_>, is_open: bool) -> Markup {
    html! {
        li {
            label.check {
                input type="checkbox" name="resource" value=(kind.resource) checked[kind.is_chosen];
                span { b { (kind.resource) } " " span.hint { (kind.summary) } }
            }
            (objects(kind, is_open))
        }
    }
}

/// A kind that Velero, nacre, the policy or missing permissions leave out.
fn never(kind: &KindPreview<'_>) -> Markup {
    html! { li { b { (kind.resource) } " " span.hint { (kind.summary) } (objects(kind, false)) } }
}

fn objects(kind: &KindPreview<'_>, is_open: bool) -> Markup {
    html! {
        details open[is_open] {
            summary { (kind.objects.len()) @if kind.objects.len() == 1 { " object" } @else { " objects" } }
            ul { @for (name, effect, why) in &kind.objects {
                li { (name) " " (tag(effect)) @if !why.is_empty() { " " span.hint { (why) } } }
            } }
        }
    }
}

/// Claims that exist keep their data, unless they are replaced.
fn in_place(namespace: &str, backup: &str, choice: &Choice, seen: &RestorePreview) -> Markup {
    let kept = seen.preview.volumes.iter().any(|volume| volume.effect == VolumeEffect::Kept);
    html! { @if kept {
        div.card {
            h2 { "Put the data of existing claims back too" }
            p {
                "A claim that exists keeps its data. Replacing saves what is there now, removes the claims and their workloads, "
                "and restores them. You see first what would be removed."
            }
            div.actions {
                a.button.second href=(choice.link(&format!("/ns/{namespace}/replace/{backup}"))) { "Replace in place" }
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
    let path = format!("/ns/{namespace}/restore/{backup}");
    let choice = Choice::read(posted.fields(), &KNOWN, "resource");
    match &choice {
        Ok(choice) if posted.text("do") == "preview" => return Ok(see(&choice.link(&path))),
        // What was ticked after the page was shown was not previewed.
        Ok(choice) if !choice.is_as_shown(posted.fields()) => return Ok(see(&choice.changed_link(&path))),
        _ => {}
    }
    let flags = choice.as_ref().map_or_else(|_| Vec::new(), |choice| flags(choice.fields(), &FIELDS));
    let back = choice.as_ref().map_or_else(|_| path.clone(), |choice| choice.link(&path));
    let command = create_command(&namespace, backup, &flags);
    let name = unnamed(&posted, backup);
    let made = async {
        choice?;
        let prepared = restore::prepared(&session, name, backup.to_owned(), &flags).await?;
        create_once(&session, prepared, Some(backup)).await
    };
    match made.await {
        Ok(made) => {
            let name = made.metadata.name.unwrap_or_default();
            Ok(see(&format!("/ns/{namespace}/restores/{name}")))
        }
        Err(error) => {
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
            @if moment.outcome.is_none() { (steps(2)) }
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

//! Restores: the guided path (choose when, see what would happen, confirm), the list, and one of them.

use std::collections::BTreeMap;

use api::{NonAdminBackup, NonAdminRestore};
use axum::{
    extract::{Path, Query},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use jiff::Timestamp;
use kube::api::PostParams;
use maud::{Markup, html};
use planner::restore_preview::{Effect, VolumeEffect};

use super::{
    Failed, PER_PAGE, Place,
    backup::{From, entry, flags, headline, more},
    framed, in_shell, is_signed_out, object_name, refused, see,
};
use crate::{
    console::{
        html::{page, shell, table},
        person::{Person, Posted, may},
    },
    describe,
    download::Fetching,
    list,
    live::ShowsProgress as _,
    output::Format,
    progress::{End, RequestProgress, State},
    restore::{self, preview::RestorePreview},
    send::generated,
};

/// The fields of the form, and the flags they are.
const FIELDS: [(&str, &str); 4] = [
    ("resource", "--include-resources"),
    ("selector", "--selector"),
    ("existing", "--existing-resource-policy"),
    ("volumes", "--restore-volumes"),
];

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let (found, can) = tokio::join!(
        list::page::<NonAdminRestore>(&session, PER_PAGE, from.token()),
        may(&session, "create", "nonadminrestores", &namespace),
    );
    let found = found?;
    let shown = restore::get::table(&found.found, Format::Table, false, Timestamp::now());
    let main = html! {
        div id="live" data-watch=[from.token().is_none().then(|| format!("/ns/{namespace}/live"))] {
            h1 { "Restores" }
            @if can { div.actions { a.button href={ "/ns/" (namespace) "/restore" } { "Restore" } } }
            @if shown.is_empty() { div.card { p { "Nothing was restored in this namespace yet." } } }
            @else {
                (table(&shown, "Restores", |row| {
                    Some((0, format!("/ns/{namespace}/restores/{}", row.first()?.text())))
                }))
            }
            (more(&namespace, "restores", &found))
        }
    };
    let command = format!("kubectl nacre restore get -n {namespace}");
    let place = Place { title: "Restores", namespace: Some((&namespace, "/restores")), admin: None, command };
    Ok(framed(&person, place, &main).await)
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
    Query(from): Query<From>,
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
        (more(&namespace, "restore", &found))
    };
    let command = format!("kubectl nacre restore create -n {namespace}");
    let place = Place { title: "Restore", namespace: Some((&namespace, "/restores")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

/// Seeing what would happen, and choosing what.
pub(in crate::console) async fn preview(
    person: Person,
    Path((namespace, backup)): Path<(String, String)>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let backup = object_name(&backup)?;
    let flags = together(&fields);
    let written = in_shell(&flags);
    let preview = format!("kubectl nacre restore preview -n {namespace} --from-backup {backup}{written}");
    let place = Place {
        title: "Restore",
        namespace: Some((&namespace, "/restores")),
        admin: None,
        command: preview.clone(),
    };
    let name = generated(backup, Timestamp::now());
    let seen = match restore::prepared(&session, name, backup.to_owned(), &flags).await {
        Ok(prepared) => Box::pin(restore::preview::look(&session, &prepared, &Fetching::default())).await?,
        Err(error) => {
            let back = format!("/ns/{namespace}/restore/{backup}");
            let main = refused("That cannot be restored", &error, &back, &preview);
            let page = framed(&person, Place { command: String::new(), ..place }, &main).await;
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
        }
    };
    let Some(seen) = seen else { return Err(Failed::NotFound) };
    let can = may(&session, "create", "nonadminrestores", &namespace).await;
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/restore" } { "Choose another backup" } }
        h1 { "Restore from " (backup) }
        (steps(1))
        (page(&seen.page()))
        (choice(&namespace, backup, &fields, &seen))
        (in_place(&namespace, backup, &seen))
        @if can && seen.verdict != "refused" {
            form.card method="post" action={ "/ns/" (namespace) "/restores" } {
                input type="hidden" name="csrf" value=(person.csrf);
                input type="hidden" name="backup" value=(backup);
                @for (key, value) in &fields { input type="hidden" name=(key) value=(value); }
                h2 { "Restore" }
                p { "This restores what is shown above into namespace " b { (namespace) } ". Nothing is deleted." }
                div.actions { button { "Restore now" } }
            }
        }
        @if !can { p.hint { "You can look, and not restore: it takes the role edit or admin." } }
    };
    Ok(framed(&person, place, &main).await)
}

/// Several fields of one name are one flag, as a command line has it.
fn together(fields: &[(String, String)]) -> Vec<String> {
    let chosen: Vec<&str> =
        fields.iter().filter(|(key, _)| key == "resource").map(|(_, value)| value.as_str()).collect();
    let mut rest: Vec<_> = fields.iter().filter(|(key, _)| key != "resource").cloned().collect();
    if !chosen.is_empty() {
        rest.insert(0, ("resource".to_owned(), chosen.join(",")));
    }
    flags(&rest, &FIELDS)
}

/// What to bring back: by resource, as far as what is in the backup is known.
fn choice(namespace: &str, backup: &str, fields: &[(String, String)], seen: &RestorePreview) -> Markup {
    let mut by_resource: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for object in &seen.preview.objects {
        let (all, left_out) = by_resource.entry(object.resource.as_str()).or_default();
        *all += 1;
        *left_out += usize::from(matches!(object.effect, Effect::LeftOut { .. }));
    }
    let given =
        |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    html! {
        details {
            summary { "Restore only a part, or in another way" }
            form.card action={ "/ns/" (namespace) "/restore/" (backup) } {
                @if by_resource.is_empty() {
                    label for="resource" { "Resources " span.hint { "such as configmaps,deployments.apps; default: all" } }
                    input type="text" id="resource" name="resource" value=(given("resource")) autocomplete="off";
                } @else {
                    fieldset {
                        legend { "Resources" }
                        @for (resource, (all, left_out)) in &by_resource {
                            label.check {
                                input type="checkbox" name="resource" value=(resource) checked[left_out < all];
                                span { (resource) " " span.hint { (all) @if *left_out > 0 { ", " (left_out) " left out" } } }
                            }
                        }
                    }
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
                div.actions { button.second { "Preview again" } }
            }
        }
    }
}

/// Claims that exist keep their data. Replacing them in place takes many steps that must be resumed after an interruption:
/// that is the command's work.
fn in_place(namespace: &str, backup: &str, seen: &RestorePreview) -> Markup {
    let kept = seen.preview.volumes.iter().any(|volume| volume.effect == VolumeEffect::Kept);
    html! { @if kept {
        div.card {
            h2 { "Put the data of existing claims back too" }
            p {
                "A claim that exists keeps its data. To replace it in place, run this command: it saves what is there now, "
                "asks you, removes the claims and their workloads, and restores them. The console does not do that, since "
                "the command can be resumed after an interruption."
            }
            (shell(&format!("kubectl nacre restore create --from-backup {backup} --replace -n {namespace}")))
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
    let flags = together(posted.fields());
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
            if is_signed_out(&error) {
                return Err(Failed::SignedOut);
            }
            let back = format!("/ns/{namespace}/restore/{backup}");
            let main = refused("This restore was not created", &error, &back, &command);
            let place = Place {
                title: "Restore",
                namespace: Some((&namespace, "/restores")),
                admin: None,
                command: String::new(),
            };
            let page = framed(person, place, &main).await;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let seen = Box::pin(describe::restore::look(&session, name, None)).await?;
    let progress = RequestProgress::from(&seen.object);
    let moment = seen.object.moment();
    let watch = moment.outcome.is_none().then(|| format!("/ns/{namespace}/restores/{name}/live"));
    let main = html! {
        div id="live" data-watch=[watch] {
            p.crumbs { a href={ "/ns/" (namespace) "/restores" } { "Restores" } }
            (headline(name, &progress, &moment))
            (page(&seen.page))
        }
    };
    let command = format!("kubectl nacre restore describe {name} -n {namespace}");
    let place = Place { title: name, namespace: Some((&namespace, "/restores")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

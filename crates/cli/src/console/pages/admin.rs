//! The administrators' pages. Whether somebody is one, the API server decides.

use anyhow::Result;
use axum::{
    extract::Path,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use maud::{Markup, html};
use planner::location::review::Word;

use super::{Failed, Place, framed, is_signed_out, object_name, refused, see};
use crate::{
    console::{
        html::{page, table},
        person::{Person, Posted},
    },
    describe::page::Page,
    doctor, policy, queue,
    request::{self, decide},
    table::Table,
    usage,
};

async fn show(person: &Person, title: &str, here: &str, command: &str, main: &Markup) -> Response {
    let place = Place { title, namespace: None, admin: Some(here), command: command.to_owned() };
    framed(person, place, &html! { h1 { (title) } (main) }).await
}

fn rows(found: &Table, label: &str, nothing: &str) -> Markup {
    html! {
        @if found.is_empty() { div.card { p { (nothing) } } }
        @else { (table(found, label, |_| None)) }
    }
}

pub(in crate::console) async fn requests(person: Person) -> Result<Response, Failed> {
    let found = Box::pin(request::list::look(&person.session)).await?;
    let main = html! {
        @if found.is_empty() { div.card { p { "No namespace asks for storage of its own." } } }
        @else {
            (table(&found, "Requests for storage", |row| {
                let (namespace, location) = (row.first()?.text(), row.get(1)?.text());
                Some((1, format!("/admin/requests/{namespace}/{location}")))
            }))
        }
    };
    Ok(show(&person, "Requests for storage", "requests", "kubectl nacre request list", &main).await)
}

pub(in crate::console) async fn request(
    person: Person,
    Path((namespace, location)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let name = named(&person, &namespace, &location)?;
    let seen = Box::pin(request::show::look(&person.session, &name)).await?;
    let buttons = seen.words.iter().map(|word| match word {
        Word::Approve => ("approve", "Approve", ""),
        Word::Reject => ("reject", "Reject", "danger"),
        Word::Revoke => ("revoke", "Revoke the approval", "second"),
    });
    let main = html! {
        p.crumbs { a href="/admin/requests" { "All requests" } }
        (page(&seen.page))
        @if !seen.words.is_empty() {
            form.card method="post" action={ "/admin/requests/" (name) } {
                h2 { "Decide" }
                input type="hidden" name="csrf" value=(person.csrf);
                input type="hidden" name="version" value=(seen.version);
                label for="reason" { "Reason " span.hint { "the owners of the namespace see it" } }
                input type="text" id="reason" name="reason" autocomplete="off";
                div.actions { @for (value, label, class) in buttons {
                    button class=(class) name="do" value=(value) { (label) }
                } }
                p.hint { "A decision is about just what is shown. If the request changes before, nothing is done." }
            }
        }
    };
    let command = format!("kubectl nacre request show {name}");
    Ok(show(&person, &name, "requests", &command, &main).await)
}

fn named(person: &Person, namespace: &str, location: &str) -> Result<String, Failed> {
    let session = person.at(namespace)?;
    Ok(format!("{}/{}", session.namespace, object_name(location)?))
}

pub(in crate::console) async fn decide(
    Path((namespace, location)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let name = named(person, &namespace, &location)?;
    let (verb, word) = match posted.text("do") {
        "approve" => ("approve", Word::Approve),
        "reject" => ("reject", Word::Reject),
        "revoke" => ("revoke", Word::Revoke),
        _ => return Err(Failed::NotFound),
    };
    let reason = Some(posted.text("reason")).filter(|reason| !reason.is_empty() && word != Word::Revoke);
    let version = posted.text("version");
    let back = format!("/admin/requests/{name}");
    match Box::pin(decide::one(&person.session, &name, word, version, reason)).await {
        Ok(()) => Ok(see(&back)),
        Err(error) if is_signed_out(&error) => Err(Failed::SignedOut),
        Err(error) => {
            let command = format!("kubectl nacre request {verb} {name} --resource-version {version}");
            let main = refused("Nothing was decided", &error, &back, &command);
            let page = show(person, &name, "requests", "", &main).await;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

pub(in crate::console) async fn queue(person: Person) -> Result<Response, Failed> {
    let found = Box::pin(queue::list::look(&person.session)).await?;
    let main = rows(&found, "Queue", "Nothing runs or waits.");
    Ok(show(&person, "Queue", "queue", "kubectl nacre queue list", &main).await)
}

pub(in crate::console) async fn usage(person: Person) -> Result<Response, Failed> {
    let found = Box::pin(usage::look(&person.session)).await?;
    let main = rows(&found, "Usage by namespace", "No namespace uses anything.");
    Ok(show(&person, "Usage", "usage", "kubectl nacre usage -A --sort-by bytes", &main).await)
}

pub(in crate::console) async fn policy(person: Person) -> Result<Response, Failed> {
    let found = policy::show::look(&person.session).await;
    whole(&person, "Policy", "policy", "kubectl nacre policy show -o wide", found).await
}

pub(in crate::console) async fn doctor(person: Person) -> Result<Response, Failed> {
    let found = Box::pin(doctor::look(&person.session)).await;
    whole(&person, "Doctor", "doctor", "kubectl nacre doctor", found).await
}

async fn whole(
    person: &Person,
    title: &str,
    here: &str,
    command: &str,
    found: Result<Page>,
) -> Result<Response, Failed> {
    Ok(show(person, title, here, command, &page(&found?)).await)
}

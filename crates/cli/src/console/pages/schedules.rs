//! Schedules: when backups are made by themselves, and how long they are kept.

use api::NonAdminSchedule;
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::Timestamp;
use maud::html;

use super::{
    Failed, PER_PAGE, Place,
    backup::{From, more},
    framed, object_name,
};
use crate::{
    console::{
        html::{page, table},
        person::Person,
    },
    list,
    output::Format,
    schedule,
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let found = list::page::<NonAdminSchedule>(&session, PER_PAGE, from.token()).await?;
    let shown = schedule::get::table(&found.found, Format::Wide, false, Timestamp::now());
    let create = format!("kubectl nacre schedule create nightly --schedule '0 2 * * *' -n {namespace}");
    let main = html! {
        h1 { "Schedules" }
        @if shown.is_empty() {
            div.card {
                p { "Nothing is backed up by itself in this namespace." }
                p { "This makes a backup every night at two and keeps it as long as the administrators say: " }
                p { code { (create) } }
            }
        } @else {
            (table(&shown, "Schedules", |row| {
                Some((0, format!("/ns/{namespace}/schedules/{}", row.first()?.text())))
            }))
        }
        (more(&namespace, "schedules", &found))
    };
    let command = format!("kubectl nacre schedule get -n {namespace} -o wide");
    let place =
        Place { title: "Schedules", namespace: Some((&namespace, "/schedules")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (seen, ahead) = tokio::join!(
        schedule::describe::look(&session, name),
        Box::pin(schedule::preview::look(&session, name)),
    );
    let seen = seen?;
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/schedules" } { "Schedules" } }
        h1 { (name) }
        (page(&seen))
        @match &ahead {
            Ok(ahead) => (page(ahead)),
            Err(error) => section { h2 { "In 30 days" } p.notice.warning { (crate::output::in_words(error)) } },
        }
    };
    let command = format!("kubectl nacre schedule describe {name} -n {namespace}");
    let place = Place { title: name, namespace: Some((&namespace, "/schedules")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

//! Storage that a namespace brings, and whether the administrators have approved it.

use api::NonAdminBackupStorageLocation;
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
    describe, list, location,
    output::Format,
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let found = list::page::<NonAdminBackupStorageLocation>(&session, PER_PAGE, from.token()).await?;
    let shown = location::get::table(&found.found, Format::Table, false, Timestamp::now());
    let main = html! {
        h1 { "Storage" }
        @if shown.is_empty() {
            div.card {
                p { "This namespace has no storage of its own: its backups are in the cluster's." }
                p { "To bring a bucket, see " code { "kubectl nacre location create --help" } "." }
            }
        } @else {
            (table(&shown, "Storage", |row| {
                Some((0, format!("/ns/{namespace}/locations/{}", row.first()?.text())))
            }))
        }
        (more(&namespace, "locations", &found))
    };
    let command = format!("kubectl nacre location get -n {namespace}");
    let place = Place { title: "Storage", namespace: Some((&namespace, "/locations")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (_, seen) = describe::location::look(&session, name).await?;
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/locations" } { "Storage" } }
        h1 { (name) }
        (page(&seen))
    };
    let command = format!("kubectl nacre location describe {name} -n {namespace}");
    let place = Place { title: name, namespace: Some((&namespace, "/locations")), admin: None, command };
    Ok(framed(&person, place, &main).await)
}

//! `location describe`.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminBackupStorageLocation};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    events::{self, EventRow},
    page::{Page, conditions, fields, moment, section, yaml},
};
use crate::{
    connect::Session,
    list,
    location::state::LocationState,
    output::{Outcome, lines, print},
    wrap,
};

/// All details of a location, for programs.
#[derive(Serialize)]
pub(crate) struct LocationDescription {
    object: Value,
    /// How many backups of the namespace are kept in it.
    backups: usize,
    events: Vec<EventRow>,
    next: Vec<String>,
}

pub(crate) async fn run(session: &Session, name: &str) -> Result<Outcome> {
    let (_, answer, page) = look(session, name).await?;
    let page = || wrap::to_terminal(page.to_string());
    print(session.format, &answer, page, || vec![list::qualified::<NonAdminBackupStorageLocation>(name)])?;
    Ok(Outcome::Good)
}

/// All details of a location, for programs and for people.
pub(crate) async fn look(
    session: &Session,
    name: &str,
) -> Result<(NonAdminBackupStorageLocation, LocationDescription, Page)> {
    let (found, events, backups) = tokio::join!(
        list::one::<NonAdminBackupStorageLocation>(session, name),
        events::about::<NonAdminBackupStorageLocation>(session, name),
        list::all::<NonAdminBackup>(session, Some(&session.namespace), None, false),
    );
    let ((location, unreadable), events) = (found?, events?);
    let kept = |(backup, _): &&(NonAdminBackup, Option<String>)| {
        backup.spec.backup_spec.storage_location.as_deref() == Some(name)
    };
    let backups = backups?.items.iter().filter(kept).count();
    let answer = LocationDescription {
        object: json!(location),
        backups,
        events,
        next: LocationState::from(&location).next(name),
    };
    let page = page(&location, &answer, unreadable.as_deref(), Timestamp::now());
    Ok((location, answer, page))
}

fn page(
    location: &NonAdminBackupStorageLocation,
    answer: &LocationDescription,
    unreadable: Option<&str>,
    now: Timestamp,
) -> Page {
    let place = LocationState::from(location);
    let status = location.status.clone().unwrap_or_default();
    let velero = status.velero_backup_storage_location.unwrap_or_default();
    let velero_status = velero.status.unwrap_or_default();
    let storage = &location.spec.backup_storage_location_spec.object_storage;
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let folder = planner::location::stored_prefix(namespace, storage.prefix.as_deref());
    let mut page = fields(&[
        ("Name", location.metadata.name.clone()),
        ("Namespace", location.metadata.namespace.clone()),
        ("Status", Some(format!("{} - {}", place.word(), place.detail()))),
        ("Unreadable", unreadable.map(str::to_owned)),
        ("Kept in", Some(format!("{}/{folder}", storage.bucket))),
        ("Created", location.metadata.creation_timestamp.as_ref().map(|time| moment(time.0, now))),
        ("Last reached", velero_status.last_validation_time.as_ref().map(|time| moment(time.0, now))),
        ("Last searched", velero_status.last_synced_time.as_ref().map(|time| moment(time.0, now))),
        ("Backups", Some(answer.backups.to_string())),
        ("At Velero", velero.name),
    ]);
    page += section("Asked for", yaml(&location.spec.backup_storage_location_spec, ""));
    page += section("Conditions", conditions(&status.conditions, now));
    page += section("What happened", events::table(&answer.events, now));
    page += section("Next", lines(answer.next.clone()));
    page
}

//! The Events of an object.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Resource, api::ListParams};
use serde::Serialize;

use crate::{
    connect::Session,
    style,
    table::{Cell, Table},
    text::age,
};

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub(super) struct EventRow {
    pub(super) time: Option<Timestamp>,
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) note: String,
}

/// All Events of an object, the oldest first; empty if they may not be read.
pub(super) async fn about<K: Resource<DynamicType = ()>>(
    session: &Session,
    name: &str,
) -> Result<Vec<EventRow>> {
    let kind = K::kind(&());
    let fields = format!("involvedObject.name={name},involvedObject.kind={kind}");
    let api: Api<Event> = session.api();
    let events = match api.list(&ListParams::default().fields(&fields)).await {
        Ok(events) => events.items,
        Err(kube::Error::Api(status)) if status.is_forbidden() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut reported: Vec<EventRow> = events.into_iter().map(read).collect();
    reported.sort_by_key(|reported| reported.time);
    Ok(reported)
}

fn read(event: Event) -> EventRow {
    let time = event.event_time.map(|time| time.0).or_else(|| event.last_timestamp.map(|time| time.0));
    EventRow {
        time,
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.unwrap_or_default(),
        note: event.message.unwrap_or_default(),
    }
}

pub(super) fn table(events: &[EventRow], now: Timestamp) -> Table {
    let mut table = Table::new(&["AGE", "REASON", "WHAT"]);
    for reported in events {
        let style = if reported.warning { style::WARNING } else { anstyle::Style::new() };
        table.row([
            Cell::from(reported.time.map(|time| age(time, now))),
            Cell::painted(style, reported.reason.as_str()),
            Cell::from(reported.note.as_str()),
        ]);
    }
    table
}

//! What nacre has told about an object.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Resource, api::ListParams};
use serde::Serialize;

use crate::{
    connect::Session,
    style,
    table::{Cell, Table},
    words::age,
};

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    pub(super) time: Option<Timestamp>,
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) note: String,
}

/// Everything told about an object, the oldest first; nothing if that may not be read.
pub(super) async fn about<K: Resource<DynamicType = ()>>(session: &Session, name: &str) -> Result<Vec<Told>> {
    let kind = K::kind(&());
    let fields = format!("involvedObject.name={name},involvedObject.kind={kind}");
    let api: Api<Event> = session.api();
    let events = match api.list(&ListParams::default().fields(&fields)).await {
        Ok(events) => events.items,
        Err(kube::Error::Api(status)) if status.is_forbidden() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut told: Vec<Told> = events.into_iter().map(read).collect();
    told.sort_by_key(|told| told.time);
    Ok(told)
}

fn read(event: Event) -> Told {
    let time = event.event_time.map(|time| time.0).or_else(|| event.last_timestamp.map(|time| time.0));
    Told {
        time,
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.unwrap_or_default(),
        note: event.message.unwrap_or_default(),
    }
}

pub(super) fn table(events: &[Told], now: Timestamp) -> String {
    if events.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["AGE", "REASON", "WHAT"]);
    for told in events {
        let style = if told.warning { style::ODD } else { anstyle::Style::new() };
        table.row([
            Cell::from(told.time.map(|time| age(time, now))),
            Cell::painted(style, told.reason.as_str()),
            Cell::from(told.note.as_str()),
        ]);
    }
    table.to_string()
}

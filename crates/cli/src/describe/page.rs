//! The parts of a page.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use crate::{
    changes::{Change, brief},
    output::lines,
    style,
    table::{Cell, Table},
    text::{age, printable},
};

/// Names and values, one below the other; what has no value is left out.
pub(crate) fn fields(list: &[(&str, Option<String>)]) -> String {
    let reported: Vec<_> = list.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))).collect();
    let width = reported.iter().map(|(name, _)| name.len() + 1).max().unwrap_or_default();
    reported
        .iter()
        .map(|(name, value)| {
            let padding = width - name.len() - 1;
            format!("{}:{:padding$}  {}\n", style::paint(style::HEADING, name), "", printable(value))
        })
        .collect::<Vec<_>>()
        .concat()
}

/// A heading and what stands below it; nothing if there is nothing.
pub(crate) fn section(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    let indented = lines(body.lines().map(|line| format!("  {line}")));
    format!("\n{}\n{indented}", style::paint(style::HEADING, format_args!("{title}:")))
}

/// A time, and how long ago it was or until then.
pub(crate) fn moment(time: Timestamp, now: Timestamp) -> String {
    let formatted = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    if time > now {
        format!("{formatted}, in {}", age(now, time))
    } else {
        format!("{formatted}, {} ago", age(time, now))
    }
}

/// A value as YAML, or these words if there is nothing in it.
pub(crate) fn yaml(value: &impl Serialize, nothing: &str) -> String {
    match serde_saphyr::to_string(value) {
        Ok(text) if text.trim() == "{}" || text.trim().is_empty() => nothing.to_owned(),
        Ok(text) => text,
        Err(error) => error.to_string(),
    }
}

/// Conditions in words.
pub(super) fn conditions(conditions: &[Condition], now: Timestamp) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["CONDITION", "", "SINCE", "WHY"]);
    for condition in conditions {
        let yes = condition.status == "True";
        // A condition that something is wrong is good news when it is not so.
        let wrong = condition.type_.contains("NotAvailable") || condition.type_.contains("NotUsed");
        let style = if yes == wrong { style::BAD } else { style::GOOD };
        let since = age(condition.last_transition_time.0, now);
        let why = if condition.message.is_empty() { &condition.reason } else { &condition.message };
        table.row([
            Cell::from(condition.type_.as_str()),
            Cell::painted(style, if yes { "yes" } else { "no" }),
            Cell::from(since),
            Cell::from(why.as_str()),
        ]);
    }
    table.to_string()
}

/// How the spec in effect differs from the requested one.
pub(super) fn changed(changes: &[Change]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["FIELD", "VALUE", "BY"]);
    for change in changes {
        table.row([change.field.clone(), brief(&change.value), change.by.clone()]);
    }
    table.to_string()
}

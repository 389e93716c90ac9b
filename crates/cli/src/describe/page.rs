//! A page in parts: the terminal and the browser console show the same ones.

use std::fmt::{self, Display};
use std::ops::{Add, AddAssign};

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

/// What a command shows: on a terminal as text, in a browser as HTML.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    /// Lines, each for itself.
    Lines(Vec<String>),
    /// Names and values.
    Fields(Vec<(String, String)>),
    /// A heading, and what stands below it.
    Section(String, Body),
}

/// What stands below a heading: a table, lines, or a table and lines.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) table: Option<Table>,
    pub(crate) text: String,
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self { table: None, text }
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A table without rows is nothing.
impl From<Table> for Body {
    fn from(table: Table) -> Self {
        Self { table: (!table.is_empty()).then_some(table), text: String::new() }
    }
}

impl Display for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.as_ref().map_or(Ok(()), |table| write!(out, "{table}"))?;
        out.write_str(&self.text)
    }
}

impl Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| write!(out, "{part}"))
    }
}

impl Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(texts) => texts.iter().try_for_each(|text| writeln!(out, "{text}")),
            Self::Fields(fields) => {
                let width = fields.iter().map(|(name, _)| name.len() + 1).max().unwrap_or_default();
                fields.iter().try_for_each(|(name, value)| {
                    let padding = width - name.len() - 1;
                    writeln!(out, "{}:{:padding$}  {value}", style::paint(style::HEADING, name), "")
                })
            }
            Self::Section(title, body) => {
                writeln!(out, "\n{}", style::paint(style::HEADING, format_args!("{title}:")))?;
                let body = body.to_string();
                out.write_str(&lines(body.lines().map(|line| format!("  {line}"))))
            }
        }
    }
}

impl Add for Page {
    type Output = Self;

    fn add(mut self, more: Self) -> Self {
        self += more;
        self
    }
}

impl AddAssign for Page {
    fn add_assign(&mut self, more: Self) {
        self.parts.extend(more.parts);
    }
}

/// Lines, each for itself.
pub(crate) fn top(texts: Vec<String>) -> Page {
    Page { parts: if texts.is_empty() { Vec::new() } else { vec![Part::Lines(texts)] } }
}

/// Names and values, one below the other; what has no value is left out.
pub(crate) fn fields(list: &[(&str, Option<String>)]) -> Page {
    let reported =
        list.iter().filter_map(|(name, value)| Some(((*name).to_owned(), printable(value.as_ref()?))));
    Page { parts: vec![Part::Fields(reported.collect())] }
}

/// A heading and what stands below it; nothing if there is nothing.
pub(crate) fn section(title: &str, body: impl Into<Body>) -> Page {
    let body = body.into();
    if body.table.is_none() && body.text.is_empty() {
        return Page::default();
    }
    Page { parts: vec![Part::Section(title.to_owned(), body)] }
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
pub(crate) fn conditions(conditions: &[Condition], now: Timestamp) -> Table {
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
    table
}

/// How the spec in effect differs from the requested one.
pub(super) fn changed(changes: &[Change]) -> Table {
    let mut table = Table::new(&["FIELD", "VALUE", "BY"]);
    for change in changes {
        table.row([change.field.clone(), brief(&change.value), change.by.clone()]);
    }
    table
}

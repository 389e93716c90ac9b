//! The answer, for people.

use super::Answer;
use crate::{
    allowed::Source,
    changes::brief,
    style,
    table::{Cell, Table},
};

pub(super) fn page(answer: &Answer) -> String {
    let mut text =
        format!("{} {} in namespace {}: {}\n", answer.kind, answer.name, answer.namespace, headline(answer));
    if let Some(reason) = &answer.reason {
        text.push_str(&format!("  {reason}\n"));
        text.push_str(&match answer.rule {
            Some(rule) => format!("  rule: {rule} of the administrators' policy\n"),
            None if answer.policy == Source::Unreadable => {
                "  rule: nacre's own, unless the administrators have changed it\n".to_owned()
            }
            None => "  rule: nacre's own, whatever the administrators' policy says\n".to_owned(),
        });
    }
    if answer.verdict == "passes" {
        text.push_str(&changes(answer));
    }
    text.push_str(&format!("\npolicy: {}\n", source(answer.policy)));
    if let Some(said) = &answer.api_server {
        text.push_str(&match (&said.denied, said.webhook) {
            (Some(why), _) => format!("API server: {} {why}\n", style::bad("would not take it:")),
            (None, true) => "API server: would take it; nacre's webhook was asked and had nothing against it\n".to_owned(),
            (None, false) => {
                "API server: would take it, but has no nacre webhook to ask: the policy is checked after it is sent\n".to_owned()
            }
        });
    }
    for open in &answer.not_checked {
        text.push_str(&format!("not checked: {open}\n"));
    }
    text
}

fn headline(answer: &Answer) -> String {
    let denied = answer.api_server.as_ref().is_some_and(|said| said.denied.is_some());
    match answer.verdict {
        "passes" if denied => style::bad("would be refused by the API server"),
        "passes" => style::paint(style::GOOD, "would pass"),
        "needsApproval" => style::paint(style::ODD, "would pass once an administrator approves it"),
        "refused" => style::bad("would be refused"),
        _ => style::paint(style::ODD, "would have to wait"),
    }
}

fn changes(answer: &Answer) -> String {
    if answer.changes.is_empty() {
        return "  Velero would get it as it is\n".to_owned();
    }
    let mut table = Table::new(&["  FIELD", "BECOMES", "BY"]);
    for change in &answer.changes {
        let field = Cell::from(format!("  {}", change.field));
        table.row([field, Cell::from(brief(&change.value)), Cell::from(change.by.as_str())]);
    }
    table.to_string()
}

const fn source(policy: Source) -> &'static str {
    match policy {
        Source::File => "from the file",
        Source::Cluster => "the cluster's, as it is now",
        Source::Unreadable => "unknown; this is what holds if the administrators have set nothing",
    }
}

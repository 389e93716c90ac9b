//! The answer, for people.

use super::{ClaimMethod, Explanation, Reported, server::ServerAnswer};
use crate::{
    allowed::Source,
    changes::brief,
    output::{lines, without_webhook},
    style,
    table::{Cell, Table},
    text::printable,
};

pub(super) fn page(answer: &Explanation) -> String {
    let Explanation { kind, name, namespace, .. } = answer;
    let subject = format!("{kind} {name} in namespace {namespace}");
    let mut top = match &answer.reported {
        None => vec![format!("{subject}: {}", headline(answer))],
        Some(Reported { status, message, needs_attention }) => {
            let style = if *needs_attention { style::WARNING } else { style::QUIET };
            vec![
                format!("{subject}: {} - {}", style::paint(style, status), printable(message)),
                format!("if it were sent again now: {}", headline(answer)),
            ]
        }
    };
    let known = |now: &&String| answer.reported.as_ref().is_none_or(|reported| reported.message != **now);
    if let Some(now) = answer.now.as_ref().filter(known) {
        top.insert(1, format!("  now: {}", printable(now)));
    }
    if let Some(reason) = &answer.reason {
        top.push(format!("  {}", printable(reason)));
        top.push(rule(answer));
    }
    let mut rest = vec![String::new(), format!("policy: {}", source(answer.policy))];
    rest.extend(answer.api_server.as_ref().map(api_server));
    rest.extend(answer.not_checked.iter().map(|open| format!("not checked: {open}")));
    let passes = matches!(answer.verdict, "passes" | "unknown") && answer.velero_spec.is_some();
    let changes = match answer.verdict {
        _ if passes => changes(answer) + &volumes(answer) + &permissions(answer),
        // Somebody who reads only what it waits for would take it for complete once it has run.
        "waits" => volumes(answer),
        _ => String::new(),
    };
    format!("{}{changes}{}", lines(top), lines(rest))
}

fn headline(answer: &Explanation) -> String {
    let denied = answer.api_server.as_ref().is_some_and(|server_answer| server_answer.denied.is_some());
    match answer.verdict {
        "passes" if denied => style::bad("would be refused by the API server"),
        "passes" => style::paint(style::GOOD, "would pass"),
        "needsApproval" => style::paint(style::WARNING, "would pass once an administrator approves it"),
        "refused" => style::bad("would be refused"),
        "unknown" => style::paint(
            style::WARNING,
            "unknown: the policy could not be checked; it would pass if nothing is set there",
        ),
        _ => style::paint(style::WARNING, "would have to wait"),
    }
}

fn rule(answer: &Explanation) -> String {
    match (answer.rule, answer.policy) {
        (Some(rule), _) => format!("  rule: {rule} of the administrators' policy"),
        (None, Source::Unreadable) => {
            "  rule: nacre's own, unless the administrators have changed it".to_owned()
        }
        (None, _) => "  rule: built into nacre, independent of the administrators' policy".to_owned(),
    }
}

fn api_server(server_answer: &ServerAnswer) -> String {
    match (&server_answer.denied, server_answer.webhook) {
        (Some(why), _) => format!("API server: {} {}", style::bad("would reject it:"), printable(&without_webhook(why))),
        (None, true) => "API server: would take it; nacre's webhook was asked and had nothing against it".to_owned(),
        (None, false) => {
            "API server: would take it, but has no nacre webhook to ask: the policy is checked after it is sent".to_owned()
        }
    }
}

fn changes(answer: &Explanation) -> String {
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

/// How the data of each claim would be saved, and why.
fn volumes(answer: &Explanation) -> String {
    let of = |volume: &ClaimMethod| format!("  volume data of claim {:?}: {}", volume.claim, volume.method);
    let warning = answer.not_restorable.as_ref().map(|lost| format!("  {} {lost}", style::bad("warning:")));
    lines(answer.volumes.iter().map(of).chain(warning))
}

/// What the caller would not get, and what an administrator would run.
fn permissions(answer: &Explanation) -> String {
    if answer.left_out.is_empty() {
        return String::new();
    }
    let names = answer.left_out.join(", ");
    let what =
        format!("  {} left out, since you do not have the permissions: {names}", style::bad("warning:"));
    let commands = answer.commands.iter().map(|line| format!("  an administrator can permit it: {line}"));
    lines([what].into_iter().chain(commands))
}

const fn source(policy: Source) -> &'static str {
    match policy {
        Source::File => "from the file",
        Source::Cluster => "the cluster's, as it is now",
        Source::Unreadable => "unknown; this is what holds if the administrators have set nothing",
    }
}

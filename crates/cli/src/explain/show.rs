//! The answer, for people.

use super::{ClaimMethod, Explanation, Reported, server::ServerAnswer};
use crate::{
    allowed::Source,
    changes::brief,
    describe::page::{Page, section},
    output::{lines, without_webhook},
    style,
    table::{Cell, Table},
    text::printable,
};

pub(super) fn page(answer: &Explanation) -> String {
    let Explanation { kind, name, namespace, .. } = answer;
    let subject = format!("{kind} {name} in namespace {namespace}");
    let mut top = match &answer.reported {
        None => vec![format!("{subject}: {}", painted(&headline(answer)))],
        Some(Reported { status, message, needs_attention }) => {
            let style = if *needs_attention { style::WARNING } else { style::QUIET };
            vec![
                format!("{subject}: {} - {}", style::paint(style, status), printable(message)),
                format!("if it were sent again now: {}", painted(&headline(answer))),
            ]
        }
    };
    let known = |now: &&String| answer.reported.as_ref().is_none_or(|reported| reported.message != **now);
    if let Some(now) = answer.now.as_ref().filter(known) {
        top.insert(1, format!("  now: {}", printable(now)));
    }
    if let Some(reason) = &answer.reason {
        top.push(format!("  {}", printable(reason)));
        top.push(format!("  rule: {}", rule(answer)));
    }
    let mut rest = vec![String::new(), format!("policy: {}", source(answer.policy))];
    rest.extend(answer.api_server.as_ref().map(|said| format!("API server: {}", api_server(said))));
    rest.extend(answer.not_checked.iter().map(|open| format!("not checked: {open}")));
    let changes = match answer.verdict {
        _ if passes(answer) => changes(answer) + &volumes(answer) + &permissions(answer),
        // Somebody who reads only what it waits for would take it for complete once it has run.
        "waits" => volumes(answer),
        _ => String::new(),
    };
    format!("{}{changes}{}", lines(top), lines(rest))
}

/// Whether Velero would be given something, as far as is known.
fn passes(answer: &Explanation) -> bool {
    matches!(answer.verdict, "passes" | "unknown") && answer.velero_spec.is_some()
}

/// What would become of it, in one sentence.
pub(super) fn sentence(answer: &Explanation) -> Cell {
    let words = headline(answer);
    let text = match (answer.kind, words.text().strip_prefix("unknown: ")) {
        (kind, Some(why)) => format!("Whether this {kind} would pass is not known: {why}."),
        (kind, None) => format!("This {kind} {}.", words.text()),
    };
    Cell::painted(words.style(), text)
}

/// Why it would not simply pass, and whose rule that is.
pub(super) fn reasons(answer: &Explanation) -> Vec<String> {
    let own = answer.reason.as_ref().map(|why| [printable(why), format!("Rule: {}.", rule(answer))]);
    let denied = answer.api_server.as_ref().and_then(|said| said.denied.as_ref());
    own.into_iter().flatten().chain(denied.map(|why| printable(&without_webhook(why)))).collect()
}

/// What would be missing, although it passes.
pub(super) fn warnings(answer: &Explanation) -> Vec<String> {
    let lost = answer.not_restorable.clone().filter(|_| passes(answer) || answer.verdict == "waits");
    let left_out = (passes(answer) && !answer.left_out.is_empty()).then(|| left_out(answer));
    lost.into_iter().chain(left_out).collect()
}

fn left_out(answer: &Explanation) -> String {
    format!("left out, since you do not have the permissions: {}", answer.left_out.join(", "))
}

/// The rest, in parts.
pub(super) fn parts(answer: &Explanation) -> Page {
    let mut page = Page::default();
    if passes(answer) {
        page += match answer.changes.as_slice() {
            [] => section("What Velero would get", "just what the request asks for"),
            _ => section("What Velero would get beyond what the request asks for", changed(answer)),
        };
    }
    if passes(answer) || answer.verdict == "waits" {
        let mut claims = Table::new(&["CLAIM", "DATA"]);
        for volume in &answer.volumes {
            claims.row([volume.claim.as_str(), volume.method.as_str()]);
        }
        page += section("Data of volumes", claims);
    }
    if passes(answer) && !answer.left_out.is_empty() {
        page += section("What an administrator would run to permit it", answer.commands.join("\n"));
    }
    let said = answer.api_server.as_ref();
    let said = said.map(|said| anstream::adapter::strip_str(&api_server(said)).to_string());
    let mut asked = Table::new(&["ASKED", "ANSWER"]);
    asked.row(["the policy", source(answer.policy)]);
    if let Some(said) = said {
        asked.row(["the API server".to_owned(), said]);
    }
    page += section("Who was asked", asked);
    page + section("Not checked", answer.not_checked.join("\n"))
}

fn painted(cell: &Cell) -> String {
    style::paint(cell.style(), cell.text())
}

fn headline(answer: &Explanation) -> Cell {
    let denied = answer.api_server.as_ref().is_some_and(|server_answer| server_answer.denied.is_some());
    let (style, words) = match answer.verdict {
        "passes" if denied => (style::BAD, "would be refused by the API server"),
        "passes" => (style::GOOD, "would pass"),
        "needsApproval" => (style::WARNING, "would pass once an administrator approves it"),
        "refused" => (style::BAD, "would be refused"),
        "unknown" => (
            style::WARNING,
            "unknown: the policy could not be checked; it would pass if nothing is set there",
        ),
        _ => (style::WARNING, "would have to wait"),
    };
    Cell::painted(style, words)
}

/// Whose rule makes it so.
fn rule(answer: &Explanation) -> String {
    match (answer.rule, answer.policy) {
        (Some(rule), _) => format!("{rule} of the administrators' policy"),
        (None, Source::Unreadable) => "nacre's own, unless the administrators have changed it".to_owned(),
        (None, _) => "built into nacre, independent of the administrators' policy".to_owned(),
    }
}

fn api_server(server_answer: &ServerAnswer) -> String {
    match (&server_answer.denied, server_answer.webhook) {
        (Some(why), _) => format!("{} {}", style::bad("would reject it:"), printable(&without_webhook(why))),
        (None, true) => "would take it; nacre's webhook was asked and had nothing against it".to_owned(),
        (None, false) => {
            "would take it, but has no nacre webhook to ask: the policy is checked after it is sent"
                .to_owned()
        }
    }
}

fn changes(answer: &Explanation) -> String {
    if answer.changes.is_empty() {
        return "  Velero would get it as it is\n".to_owned();
    }
    lines(changed(answer).to_string().lines().map(|line| format!("  {line}")))
}

/// What of the request becomes something else.
fn changed(answer: &Explanation) -> Table {
    let mut table = Table::new(&["FIELD", "BECOMES", "BY"]);
    for change in &answer.changes {
        table.row([change.field.clone(), brief(&change.value), change.by.clone()]);
    }
    table
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
    let what = format!("  {} {}", style::bad("warning:"), left_out(answer));
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

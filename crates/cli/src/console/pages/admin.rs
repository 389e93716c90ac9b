//! The administrators' pages. Whether somebody is one, the API server decides.

use anyhow::{Result, anyhow};
use axum::{
    extract::{Path, Query},
    response::Response,
};
use maud::{Markup, html};
use planner::location::review::Word;

use super::{Cursor, Failed, Place, Refused, framed, next_page, object_name, quoted, see};
use crate::{
    console::{
        html::{page, table, table_with_actions},
        person::{Person, Posted, may},
    },
    describe::page::Page,
    doctor, live_migration, policy,
    queue::{self, mark::Mark},
    request::{self, decide},
    table::{Cell, Table},
    usage,
};

/// So many requests are named that another policy would refuse.
const REFUSED: usize = 500;

async fn show(person: &Person, title: &str, here: &str, command: &str, main: &Markup) -> Response {
    framed(person, place(title, here, command), &html! { h1 { (title) } (main) }).await
}

fn place<'a>(title: &'a str, here: &'a str, command: &str) -> Place<'a> {
    Place { title, namespace: None, admin: Some(here), command: command.to_owned(), acts: Vec::new() }
}

/// A table of the whole cluster, a page at a time.
struct Paged<'a> {
    found: &'a Table,
    label: &'a str,
    /// What is shown if there is nothing.
    nothing: &'a str,
    /// Which of the administrators' pages it is.
    here: &'a str,
    from: &'a Cursor,
}

impl Paged<'_> {
    /// With links, and what can be done about each row, if anything.
    fn show(&self, link: impl Fn(&[Cell]) -> Option<(usize, String)>, actions: &[Markup]) -> Markup {
        let rows = self.from.rows();
        let actions = &actions[rows.start.min(actions.len())..rows.end.min(actions.len())];
        let remaining = self.found.len().saturating_sub(rows.end);
        html! {
            @if self.found.is_empty() { div.card { p { (self.nothing) } } }
            @else { (table_with_actions(&self.found.part(rows), self.label, link, actions)) }
            @if remaining > 0 {
                @let to = format!("/admin/{}?{}", self.here, self.from.next_rows());
                (next_page(&to, u64::try_from(remaining).unwrap_or(u64::MAX)))
            }
        }
    }
}

pub(in crate::console) async fn requests(
    person: Person,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let found = Box::pin(request::list::look(&person.session)).await?;
    let link = |row: &[Cell]| {
        let (namespace, location) = (row.first()?.text(), row.get(1)?.text());
        Some((1, format!("/admin/requests/{namespace}/{location}")))
    };
    let (label, nothing) = ("Requests for storage", "No namespace asks for storage of its own.");
    let main = Paged { found: &found, label, nothing, here: "requests", from: &from }.show(link, &[]);
    Ok(show(&person, "Requests for storage", "requests", "kubectl nacre request list", &main).await)
}

pub(in crate::console) async fn request(
    person: Person,
    Path((namespace, location)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let name = named(&person, &namespace, &location)?;
    let (seen, can) =
        tokio::join!(Box::pin(request::show::look(&person.session, &name)), can_decide(&person));
    let seen = seen?;
    let button = |word: &Word| match word {
        Word::Approve => ("approve", "Approve", ""),
        Word::Reject => ("reject", "Reject", "danger"),
        Word::Revoke => ("revoke", "Revoke the approval", "second"),
    };
    let buttons = seen.words.iter().map(button);
    let acts = seen.words.iter().filter(|_| can).map(|word| {
        let ((verb, label, _), version) = (button(word), quoted(&seen.version));
        (label, format!("kubectl nacre request {verb} {name} --resource-version {version}"))
    });
    let main = html! {
        p.crumbs { a href="/admin/requests" { "All requests" } }
        h1 { (name) }
        (page(&seen.page))
        @if !seen.words.is_empty() && !can {
            p.hint { "You can look, and not decide: it takes the permission to change requests for storage." }
        }
        @if !seen.words.is_empty() && can {
            form.card method="post" action={ "/admin/requests/" (name) } {
                h2 { "Decide" }
                input type="hidden" name="csrf" value=(person.csrf);
                input type="hidden" name="version" value=(seen.version);
                label for="reason" { "Reason " span.hint { "the owners of the namespace see it" } }
                input type="text" id="reason" name="reason" autocomplete="off";
                div.actions { @for (value, label, class) in buttons {
                    button class=(class) name="do" value=(value) { (label) }
                } }
                p.hint { "A decision is about just what is shown. If the request changes before, nothing is done." }
            }
        }
    };
    let command = format!("kubectl nacre request show {name}");
    Ok(framed(&person, place(&name, "requests", &command).acting(acts), &main).await)
}

/// Whether the person may decide about requests for storage. A decision is a merge patch.
async fn can_decide(person: &Person) -> bool {
    let session = &person.session;
    may(session, "patch", "nonadminbackupstoragelocationrequests", &session.velero_namespace).await
}

fn named(person: &Person, namespace: &str, location: &str) -> Result<String, Failed> {
    let session = person.at(namespace)?;
    Ok(format!("{}/{}", session.namespace, object_name(location)?))
}

pub(in crate::console) async fn decide(
    Path((namespace, location)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let name = named(person, &namespace, &location)?;
    let (verb, word) = match posted.text("do") {
        "approve" => ("approve", Word::Approve),
        "reject" => ("reject", Word::Reject),
        "revoke" => ("revoke", Word::Revoke),
        _ => return Err(Failed::NotFound),
    };
    let reason = Some(posted.text("reason")).filter(|reason| !reason.is_empty() && word != Word::Revoke);
    let version = posted.text("version");
    let back = format!("/admin/requests/{name}");
    match Box::pin(decide::one(&person.session, &name, word, version, reason)).await {
        Ok(()) => Ok(see(&back)),
        Err(error) => {
            let reason = reason.map(|reason| format!(" --reason {}", quoted(reason))).unwrap_or_default();
            let command = format!("kubectl nacre request {verb} {name} --resource-version {version}{reason}");
            let refused = Refused { title: "Nothing was decided", back: &back, command: &command };
            refused.show(person, place(&name, "requests", ""), &error).await
        }
    }
}

pub(in crate::console) async fn queue(
    person: Person,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let session = &person.session;
    let (found, backups, restores) = tokio::join!(
        Box::pin(queue::list::look(session)),
        may(session, "queue", "nonadminbackups", ""),
        may(session, "queue", "nonadminrestores", ""),
    );
    let (entries, found) = found?;
    let can = |kind: &str| if kind == "backup" { backups } else { restores };
    let buttons = entries.iter().map(|entry| {
        let namespace = entry.namespace.as_deref().filter(|_| can(entry.kind));
        html! { @if let Some(namespace) = namespace { @for mark in entry.state.marks() {
            @let what = format!("{} {namespace}/{}", entry.kind, entry.name);
            button.quiet name="do" value={ (mark.verb()) " " (what) } aria-label={ (label(*mark)) " " (what) } { (label(*mark)) }
        } } }
    });
    let buttons: Vec<Markup> = if backups || restores { buttons.collect() } else { Vec::new() };
    let link = |row: &[Cell]| {
        let (kind, namespace, name) = (row.first()?.text(), row.get(2)?.text(), row.get(3)?.text());
        (namespace != "-").then(|| (3, format!("/ns/{namespace}/{kind}s/{name}")))
    };
    let nothing = "Nothing runs or waits.";
    let shown = Paged { found: &found, label: "Queue", nothing, here: "queue", from: &from };
    let shown = shown.show(link, &buttons);
    let main = html! {
        @if buttons.is_empty() { (shown) }
        @else {
            form method="post" action="/admin/queue" {
                input type="hidden" name="csrf" value=(person.csrf);
                (shown)
                label for="reason" { "Reason " span.hint { "the owners of the namespace see it in an Event" } }
                input type="text" id="reason" name="reason" autocomplete="off";
            }
        }
        p.hint { "What Velero has already keeps its place there. What waits for a limit, a location or the policy is not in the queue." }
    };
    // Of the first that can be changed: the others differ in their names.
    let first = entries
        .iter()
        .find(|entry| can(entry.kind) && entry.namespace.is_some() && !entry.state.marks().is_empty());
    let acts = first.into_iter().flat_map(|entry| {
        let (kind, namespace, name) =
            (entry.kind, entry.namespace.as_deref().unwrap_or_default(), &entry.name);
        let command = move |verb| format!("kubectl nacre queue {verb} {kind} {namespace}/{name}");
        entry.state.marks().iter().map(move |mark| (label(*mark), command(mark.verb())))
    });
    let main = html! { h1 { "Queue" } (main) };
    let place = place("Queue", "queue", "kubectl nacre queue list").acting(acts);
    Ok(framed(&person, place, &main).await)
}

const fn label(mark: Mark) -> &'static str {
    match mark {
        Mark::Front => "Promote",
        Mark::Hold => "Hold",
        Mark::None => "Release",
    }
}

pub(in crate::console) async fn mark(posted: Posted) -> Result<Response, Failed> {
    let person = &posted.person;
    // As the button has it: `hold backup shop/daily`.
    let parts: Vec<&str> = posted.text("do").split([' ', '/']).collect();
    let [verb, kind, namespace, name] = parts[..] else { return Err(Failed::NotFound) };
    let (Some(mark), Some(kind)) = (Mark::of_verb(verb), kind_of(kind)) else { return Err(Failed::NotFound) };
    let session = person.at(namespace)?;
    let name = object_name(name)?;
    let reason = Some(posted.text("reason")).filter(|reason| !reason.is_empty());
    let done = queue::mark::one(&session, kind, (namespace, name), mark, reason).await;
    let problem = match done {
        Ok(None) => return Ok(see("/admin/queue")),
        Ok(Some(problem)) => anyhow!(problem),
        Err(error) => error,
    };
    let what = format!("kubectl nacre queue {verb} {} {namespace}/{name}", parts[1]);
    let command = reason.map_or_else(|| what.clone(), |reason| format!("{what} --reason {}", quoted(reason)));
    let refused = Refused { title: "That did not work", back: "/admin/queue", command: &command };
    refused.show(person, place("Queue", "queue", ""), &problem).await
}

fn kind_of(kind: &str) -> Option<queue::mark::Kind> {
    match kind {
        "backup" => Some(queue::mark::Kind::Backup),
        "restore" => Some(queue::mark::Kind::Restore),
        _ => None,
    }
}

pub(in crate::console) async fn usage(
    person: Person,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let found = Box::pin(usage::look(&person.session)).await?;
    let (label, nothing) = ("Usage by namespace", "No namespace uses anything.");
    let main = Paged { found: &found, label, nothing, here: "usage", from: &from }.show(|_| None, &[]);
    Ok(show(&person, "Usage", "usage", "kubectl nacre usage -A --sort-by bytes", &main).await)
}

pub(in crate::console) async fn policy(person: Person) -> Result<Response, Failed> {
    let (found, text) = tokio::join!(
        Box::pin(policy::show::look(&person.session)),
        policy::trial::text_in_force(&person.session)
    );
    let main = html! {
        (page(&found?))
        section { h2 { "Try another policy on all requests" } (trial_form(&person, &text)) }
    };
    Ok(show(&person, "Policy", "policy", "kubectl nacre policy show -o wide", &main).await)
}

fn trial_form(person: &Person, text: &str) -> Markup {
    html! {
        form.card method="post" action="/admin/policy" {
            input type="hidden" name="csrf" value=(person.csrf);
            label for="policy" { "Policy " span.hint { "as in the ConfigMap nacre-policy; it is not applied" } }
            textarea id="policy" name="policy" rows="14" spellcheck="false" autocomplete="off" { "\n" (text) }
            div.actions { button { "Show what it would refuse" } }
        }
    }
}

/// What a policy would refuse; it is not applied.
pub(in crate::console) async fn try_policy(posted: Posted) -> Result<Response, Failed> {
    let person = &posted.person;
    let text = posted.text("policy");
    let (problems, usable) = policy::check::look(text);
    let title = "Another policy";
    let tried = if usable { Some(Box::pin(policy::trial::look(&person.session, text)).await?) } else { None };
    let main = html! {
        p.crumbs { a href="/admin/policy" { "The policy in force" } }
        h1 { (title) }
        @match &tried {
            None => p.notice.bad { "This policy would not count, so nothing is tried." },
            Some(trial) if trial.newly_refused() == 0 => p.notice.good { "This policy " (policy::trial::sentence(trial)) ": none that is accepted now." },
            Some(trial) => p.notice.warning { "This policy " (policy::trial::sentence(trial)) "." },
        }
        @if !problems.is_empty() {
            section { h2 { "Problems of its text" } (table(&problems, "Problems of its text", |_| None)) }
        }
        @if let Some(trial) = &tried {
            @let found = policy::trial::table(trial);
            @if !found.is_empty() {
                section {
                    h2 { "Would be refused" }
                    (table(&found.part(0..REFUSED), "Would be refused", |_| None))
                    @if found.len() > REFUSED {
                        p.hint { "These are the first " (REFUSED) " of " (found.len()) ". The command below lists all of them." }
                    }
                }
            }
            p.hint { "As if each were sent now. What is finished stays as it is; limits on numbers are not counted." }
        }
        section { h2 { "Change it and try again" } (trial_form(person, text)) }
    };
    let command = "kubectl nacre policy check -f policy.yaml --requests";
    Ok(framed(person, place(title, "policy", command), &main).await)
}

/// Who can start, change or delete a migration, and how they come to that.
pub(in crate::console) async fn migration(
    person: Person,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let (found, remarks) = Box::pin(live_migration::who_can::look(&person.session)).await?;
    let (label, nothing) = ("Who can migrate", "Nobody can migrate.");
    let shown = Paged { found: &found, label, nothing, here: "migration", from: &from }.show(|_| None, &[]);
    let main = html! {
        p.lead { "Everybody who can start, change or delete a live migration of a virtual machine, and every step of the way there." }
        @for remark in &remarks { p.notice.warning { (remark) } }
        (shown)
    };
    Ok(show(&person, "Who can migrate", "migration", "kubectl nacre migration who-can -A -o wide", &main)
        .await)
}

pub(in crate::console) async fn doctor(person: Person) -> Result<Response, Failed> {
    let found = Box::pin(doctor::look(&person.session)).await;
    whole(&person, "Doctor", "doctor", "kubectl nacre doctor", found).await
}

async fn whole(
    person: &Person,
    title: &str,
    here: &str,
    command: &str,
    found: Result<Page>,
) -> Result<Response, Failed> {
    Ok(show(person, title, here, command, &page(&found?)).await)
}

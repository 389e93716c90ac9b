//! Back to a backup, in place: what would be removed, the question, and how it goes.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Error, anyhow};
use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use maud::{Markup, html};
use planner::replace::Record;
use ring::digest;

use super::{
    Failed, PATIENCE, Place, Refused,
    chosen::{Choice, changed_notice},
    flags, framed, in_shell, object_name,
    restore::{FIELDS, in_short},
    see,
};
use crate::{
    console::{
        html::{page, with_times},
        person::{Person, Posted, may},
        replacing::Stage,
        serve::Console,
    },
    describe::page::Part,
    download::Fetching,
    output::Outcome,
    restore::replace::{Prepared, Replacement, StoredRecord, drive, prepared},
};

/// More fields than those of a restore, and the flags they are.
const MORE: [(&str, &str); 3] =
    [("claim", "--only-claim"), ("unsafe", "--no-safety-backup!"), ("managers", "--ignore-managers!")];

/// What the page passes on, in forms and links; nothing else of an address.
const KNOWN: [&str; 8] =
    ["claim", "unsafe", "managers", "again", "resource", "selector", "existing", "volumes"];
/// Of these, what its form has no input for.
const CARRIED: [&str; 5] = ["again", "resource", "selector", "existing", "volumes"];

fn choice(fields: &[(String, String)]) -> anyhow::Result<Choice> {
    Choice::read(fields, &KNOWN, "claim")
}

/// The arguments of the command that does the same.
fn arguments(choice: &Choice) -> Vec<String> {
    let fields = choice.fields();
    let claims = fields.iter().filter(|(name, value)| name == "claim" && !value.trim().is_empty());
    let claims = claims.map(|(_, value)| format!("{}={}", MORE[0].1, value.trim()));
    let rest = flags(fields, &MORE[1..]).into_iter().chain(flags(fields, &FIELDS));
    std::iter::once("--replace".to_owned()).chain(claims).chain(rest).collect()
}

fn command(namespace: &str, backup: &str, arguments: &[String]) -> String {
    format!("kubectl nacre restore create -n {namespace} --from-backup {backup}{}", in_shell(arguments))
}

/// What was shown, so that nothing else is done: the objects that would be removed, each as that very object.
fn fingerprint(record: &Record) -> String {
    let shown = format!("{:?} {:?}", record.claims, record.workloads);
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, shown.as_bytes()))
}

pub(in crate::console) async fn show(
    person: Person,
    State(console): State<Arc<Console>>,
    Path((namespace, backup)): Path<(String, String)>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let backup = object_name(&backup)?;
    let choice = choice(&fields);
    let arguments = choice.as_ref().map_or_else(|_| Vec::new(), arguments);
    let command = command(&namespace, backup, &arguments);
    let place = Place::of(&namespace, "/restores", "Replace in place", command.clone());
    // Whoever may not look at the namespace does not learn that something is replaced in it.
    let begun = StoredRecord::find(&session, backup).await?;
    let can = may(&session, "create", "nonadminrestores", &namespace).await;
    let stage = console.replacements.stage(&namespace, backup);
    if let Some(begun) = &begun {
        let stands = drive::standing(&session, begun).await?;
        let main = under_way(&person, &namespace, backup, &stands, stage.as_ref(), can);
        return Ok(framed(&person, place, &main).await);
    }
    let back = format!("/ns/{namespace}/restore/{backup}");
    let refused = Refused { title: "This cannot be replaced", back: &back, command: &command };
    let choice = match choice {
        Ok(choice) => choice,
        Err(error) => return refused.show(&person, place, &error).await,
    };
    if let Some(Stage::Over { outcome, lines }) = &stage
        && choice.given("again").is_empty()
    {
        let main = over(&namespace, backup, *outcome, lines);
        return Ok(framed(&person, place, &main).await);
    }
    match Box::pin(prepared(&session, backup, &arguments, &Fetching::within(PATIENCE))).await {
        Ok(Prepared::Ready(replacement)) => {
            let main = html! {
                p.crumbs { a href={ "/ns/" (namespace) "/restore/" (backup) } { "Restore from " (backup) } }
                h1 { "Replace in place from " (backup) }
                (changed_notice(&fields))
                (plan(&person, &namespace, backup, &choice, &replacement, can))
            };
            Ok(framed(&person, place, &main).await)
        }
        Ok(other) => refused.show(&person, place, &not_ready(other)).await,
        Err(error) => refused.show(&person, place, &error).await,
    }
}

/// Why there is nothing to agree to.
fn not_ready(prepared: Prepared) -> Error {
    match prepared {
        Prepared::Impossible(problems) => {
            anyhow!("this cannot be replaced, and nothing was changed:\n{}", problems.join("\n"))
        }
        Prepared::NothingToRemove => {
            anyhow!(
                "no claim has to be removed: restore without replacing, which brings back what is missing"
            )
        }
        Prepared::Ready(_) | Prepared::Interrupted => anyhow!("it was interrupted; look again"),
    }
}

/// What would happen, and the question. One form has both: what is ticked is what is sent.
fn plan(
    person: &Person,
    namespace: &str,
    backup: &str,
    choice: &Choice,
    replacement: &Replacement,
    can: bool,
) -> Markup {
    let record = &replacement.record;
    let chosen: BTreeSet<String> = record.all_claims().into_iter().map(|claim| claim.name).collect();
    let known = replacement.preview.preview.volumes.iter().map(|volume| volume.claim.clone());
    let claims: BTreeSet<String> = known.chain(chosen.iter().cloned()).collect();
    let offered = claims.iter().map(|claim| (claim.as_str(), chosen.contains(claim)));
    let given = |name| choice.given(name);
    // What would become of it is said in one look, as for every restore.
    let mut rest = replacement.preview.page();
    rest.parts.retain(|part| !matches!(part, Part::Lines(_)));
    html! {
        (in_short(&replacement.preview))
        (page(&rest))
        form method=(if can { "post" } else { "get" }) action={ "/ns/" (namespace) "/replace/" (backup) } {
            (choice.hidden("claim", offered, &CARRIED))
            div.card {
                h2 { "How" }
                fieldset {
                    legend { "Claims" }
                    @for claim in &claims {
                        label.check {
                            input type="checkbox" name="claim" value=(claim) checked[chosen.contains(claim)];
                            span { (claim) }
                        }
                    }
                }
                fieldset {
                    legend { "Before anything is removed" }
                    label.check {
                        input type="radio" name="unsafe" value="" checked[given("unsafe").is_empty()];
                        span { "save what is there now in a safety backup" }
                    }
                    label.check {
                        input type="radio" name="unsafe" value="yes" checked[!given("unsafe").is_empty()];
                        span { "do not save it: what was written since the backup is lost for good" }
                    }
                }
                label.check {
                    input type="checkbox" name="managers" value="yes" checked[!given("managers").is_empty()];
                    span { "An operator, Argo CD or Flux manages the workloads, and I have paused it." }
                }
                div.actions { button.second name="do" value="preview" formnovalidate { "Preview again" } }
            }
            @if can {
                div.card.danger {
                    h2 { (replacement.question) }
                    input type="hidden" name="csrf" value=(person.csrf);
                    input type="hidden" name="shown" value=(fingerprint(record));
                    label for="confirm" { "Write the name of the namespace, " (namespace) ", to confirm" }
                    input type="text" id="confirm" name="confirm" required autocomplete="off" spellcheck="false";
                    div.actions { button.danger name="do" value="replace" { "Replace" } }
                    p.hint {
                        "It takes several steps, one after the other, as you. If this console ends or your session does, nothing is "
                        "lost: this page and the command below go on from there."
                    }
                }
            }
        }
    }
}

/// How it goes.
fn under_way(
    person: &Person,
    namespace: &str,
    backup: &str,
    stands: &[String],
    stage: Option<&Stage>,
    can: bool,
) -> Markup {
    let path = format!("/ns/{namespace}/replace/{backup}");
    let (class, mark, words) = match stage {
        Some(Stage::Working(words)) => ("busy", "…", words.as_str()),
        Some(Stage::Interrupted(why)) => ("warning", "!", why.as_str()),
        _ => ("warning", "!", "It was begun, and this console does not work on it."),
    };
    let is_working = class == "busy";
    html! {
        div id="live" data-watch=[is_working.then(|| format!("{path}/live"))] {
            p.crumbs { a href={ "/ns/" (namespace) "/restores" } { "Restores" } }
            div class={ "card verdict " (class) } {
                span.mark aria-hidden="true" { (mark) }
                div {
                    h1 { "Replacing from " (backup) }
                    p role="status" { (with_times(words)) }
                    @if is_working { progress aria-label="Progress" {} }
                }
            }
            section { h2 { "Where it stands" } div.card { @for line in stands { p { (with_times(line)) } } } }
            @if can && !is_working {
                form.card method="post" action=(path) {
                    input type="hidden" name="csrf" value=(person.csrf);
                    p { "Nothing is lost: it goes on from where it stands. If somebody else works on it, leave it to them." }
                    div.actions { button name="do" value="resume" { "Go on" } }
                }
            }
        }
    }
}

/// How it ended.
fn over(namespace: &str, backup: &str, outcome: Outcome, lines: &[String]) -> Markup {
    let (class, mark, title) = match outcome {
        Outcome::Good => ("good", "✓", "Replaced"),
        Outcome::Attention => ("warning", "!", "Replaced, but look at this"),
        _ => ("bad", "✕", "Not replaced"),
    };
    html! {
        div id="live" {
            p.crumbs { a href={ "/ns/" (namespace) "/restores" } { "Restores" } }
            div class={ "card verdict " (class) } {
                span.mark aria-hidden="true" { (mark) }
                div { h1 { (title) } @for line in lines { p { (with_times(line)) } } }
            }
            div.actions {
                a.button.second href={ "/ns/" (namespace) "/replace/" (backup) "?again=yes" } { "Replace again" }
            }
        }
    }
}

pub(in crate::console) async fn begin(
    State(console): State<Arc<Console>>,
    Path((namespace, backup)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let session = person.at(&namespace)?;
    let backup = object_name(&backup)?;
    let path = format!("/ns/{namespace}/replace/{backup}");
    let place = || Place::of(&namespace, "/restores", "Replace in place", String::new());
    let refused = async |back: &str, command: &str, error: &Error| {
        let refused = Refused { title: "Nothing was removed", back, command };
        refused.show(person, place(), error).await
    };
    if let Some(begun) = StoredRecord::find(&session, backup).await? {
        // Any other button is of a page that did not show it, or is the second click of a double click. Neither agrees to
        // go on with what may be somebody else's.
        if posted.text("do") == "resume" {
            console.replacements.work(session, begun);
        }
        return Ok(see(&path));
    }
    let choice = match choice(posted.fields()) {
        Ok(choice) => choice,
        Err(error) => return refused(&path, &command(&namespace, backup, &[]), &error).await,
    };
    let arguments = arguments(&choice);
    let begun = match posted.text("do") {
        "preview" => return Ok(see(&choice.link(&path))),
        // What was ticked after the page was shown was not previewed, and nobody agreed to it.
        "replace" if !choice.is_as_shown(posted.fields()) => return Ok(see(&choice.changed_link(&path))),
        "replace" => {
            let agreed = Agreed { namespace: posted.text("confirm"), shown: posted.text("shown") };
            Box::pin(agreed.begin(&session, backup, &arguments)).await
        }
        // It is over meanwhile.
        _ => return Ok(see(&path)),
    };
    match begun {
        Ok(begun) => {
            console.replacements.work(session, begun);
            Ok(see(&path))
        }
        // Both clicks of a double click may come this far, and only one of them can begin it.
        Err(_) if StoredRecord::find(&session, backup).await?.is_some() => Ok(see(&path)),
        Err(error) => refused(&choice.link(&path), &command(&namespace, backup, &arguments), &error).await,
    }
}

/// What somebody agreed to.
struct Agreed<'a> {
    /// The namespace, as they wrote it.
    namespace: &'a str,
    /// What was shown to them.
    shown: &'a str,
}

impl Agreed<'_> {
    /// Writes down what is to be done, if it is still what was shown.
    async fn begin(
        &self,
        session: &crate::connect::Session,
        backup: &str,
        arguments: &[String],
    ) -> anyhow::Result<StoredRecord> {
        let namespace = &session.namespace;
        if self.namespace != namespace {
            return Err(anyhow!(
                "write the name of the namespace, {namespace}, to confirm; {:?} is another",
                self.namespace
            ));
        }
        match prepared(session, backup, arguments, &Fetching::within(PATIENCE)).await? {
            Prepared::Ready(replacement) if fingerprint(&replacement.record) == self.shown => {
                StoredRecord::create(session, replacement.record).await
            }
            Prepared::Ready(_) => {
                Err(anyhow!("what would be removed has changed meanwhile; look at it again"))
            }
            other => Err(not_ready(other)),
        }
    }
}

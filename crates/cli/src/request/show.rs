//! `request show`: all there is to know before deciding.

use anyhow::Result;
use api::{
    NonAdminBackupStorageLocationRequest as Request, RequestPhase, labels, velero::BackupStorageLocation,
};
use jiff::Timestamp;
use kube::api::ListParams;
use planner::{
    location::review::{StorageRequest, VELERO_READS, Weighed, Word, obstacle, remarkable, weigh},
    ownership::annotation,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::facts::{Facts, Summary};
use crate::{
    allowed::{self, Allowed, Source},
    changes::brief,
    connect::Session,
    describe::page::{Page, fields, moment, section, yaml},
    list::qualified,
    location::state::LocationState,
    output::{Outcome, lines, print},
    table::Table,
    text::printable,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre request show shop/mine                 the location `mine` of namespace `shop`
  kubectl nacre request show mine                      if nobody else has one of that name
  kubectl nacre request show shop/mine -o yaml

The approval command at the end is valid for just what is shown: if the request changes before, it is not approved.")]
pub(super) struct Show {
    /// NAMESPACE/NAME of the location, its name alone, or the name of the request.
    #[arg(value_name = "REQUEST")]
    name: String,
}

/// Everything about a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestReport<'a> {
    #[serde(flatten)]
    summary: Summary,
    resource_version: Option<String>,
    /// Who wrote the decision last, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<Decided>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How the location stands, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    stands: Option<String>,
    /// What approving it lets Velero and the tenant do.
    allows: Vec<String>,
    /// What should not be overlooked.
    attention: Vec<String>,
    not_checked: Vec<&'static str>,
    /// Other storage of the same namespace.
    others: Vec<Summary>,
    next: Vec<String>,
    object: &'a Request,
}

/// Who wrote a decision, as far as the API server knows: the program, not the person.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Decided {
    with: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
}

pub(super) async fn run(session: &Session, args: &Show, given: Option<&str>) -> Result<Outcome> {
    let (facts, request, allowed, storage) = read(session, &args.name, given).await?;
    let name = request.metadata.name.clone().unwrap_or_default();
    let answer = answer(&facts, &request, &allowed, &storage, &session.velero_namespace);
    let page = || page(&answer, Timestamp::now()).to_string();
    print(session.format, &answer, page, || vec![qualified::<Request>(&name)])?;
    Ok(Outcome::Good)
}

/// Everything about a request, and what can be decided about it now.
pub(crate) struct RequestDetails {
    pub(crate) page: Page,
    /// The version that is shown. A decision is about this one.
    pub(crate) version: String,
    pub(crate) words: Vec<Word>,
}

/// Everything about a request.
pub(crate) async fn look(session: &Session, name: &str) -> Result<RequestDetails> {
    let (facts, request, allowed, storage) = read(session, name, None).await?;
    let answer = answer(&facts, &request, &allowed, &storage, &session.velero_namespace);
    let version = request.metadata.resource_version.clone().unwrap_or_default();
    let page = page(&answer, Timestamp::now());
    Ok(RequestDetails { page, version, words: useful(&request, &allowed) })
}

async fn read(
    session: &Session,
    name: &str,
    given: Option<&str>,
) -> Result<(Facts, Request, Allowed, Vec<BackupStorageLocation>)> {
    let facts = Facts::read(session).await?;
    let name = facts.find(name, given)?.metadata.name.clone().unwrap_or_default();
    // Once more, alone: now it comes with who wrote what.
    let request = session.in_velero_namespace::<Request>().get(&name).await?;
    let asking = session.within(StorageRequest::from(&request).namespace);
    let namespace = allowed::namespace(&asking).await;
    let all = ListParams::default();
    let storage = session.in_velero_namespace::<BackupStorageLocation>();
    let (allowed, storage) = tokio::join!(allowed::read(&asking, &namespace, None), storage.list(&all));
    let storage = storage.map(|list| list.items).unwrap_or_default();
    Ok((facts, request, allowed?, storage))
}

fn answer<'a>(
    facts: &Facts,
    request: &'a Request,
    allowed: &Allowed,
    storage: &[BackupStorageLocation],
    velero_namespace: &str,
) -> RequestReport<'a> {
    let asked = StorageRequest::from(request);
    let summary = facts.summary(request, None);
    let policy = allowed.policy.as_deref().filter(|_| allowed.source != Source::Unreadable);
    let mut attention: Vec<String> =
        asked.spec.map(remarkable).unwrap_or_default().into_iter().map(str::to_owned).collect();
    if summary.differences.as_ref().is_some_and(|differences| !differences.is_empty()) {
        attention.push(
            "the location was changed meanwhile, and is not used until its requested spec is restored"
                .to_owned(),
        );
    }
    if summary.gone {
        attention.push("the location is gone; the request goes too".to_owned());
    }
    let obstacle = policy.and_then(|policy| obstacle(&asked, policy, velero_namespace, storage));
    attention.extend(obstacle.map(|refusal| format!("nacre would refuse it all the same: {refusal}")));
    let mut not_checked = vec!["whether the credential is sound, and Velero can reach the bucket with it"];
    if policy.is_none() {
        not_checked.push("the administrators' policy: it cannot be read");
    }
    let others = facts.requests.iter().filter(|(other, _)| other.metadata.uid != request.metadata.uid);
    let others = others
        .map(|(other, unreadable)| facts.summary(other, unreadable.as_deref()))
        .filter(|other| other.namespace == summary.namespace);
    let key = match summary.state {
        RequestPhase::Rejected => labels::REJECTION_REASON,
        _ => labels::APPROVAL_REASON,
    };
    RequestReport {
        resource_version: request.metadata.resource_version.clone(),
        decided: decided(&json!(request.metadata.managed_fields)),
        reason: annotation(&request.metadata, key).map(str::to_owned),
        stands: facts.location(request).map(|location| {
            let place = LocationState::from(location);
            format!("{} - {}", place.word(), place.detail())
        }),
        allows: allows(&asked, &summary),
        attention,
        not_checked,
        others: others.collect(),
        next: next(request, &summary, allowed),
        summary,
        object: request,
    }
}

/// What approving it lets Velero and the tenant do.
fn allows(asked: &StorageRequest<'_>, summary: &Summary) -> Vec<String> {
    let Some(spec) = asked.spec else { return Vec::new() };
    let (namespace, location) = (asked.namespace, asked.location);
    let verb = if spec.access_mode.as_deref() == Some("ReadOnly") { "read" } else { "read and write" };
    let mut lines = vec![format!("Velero may {verb} {}", summary.place())];
    if let Some(key) = &spec.credential {
        lines.push(format!(
            "with the key {} of the Secret {} there; nacre follows when that is replaced, and takes static \
             credentials only",
            key.key, key.name
        ));
    }
    lines.push(format!(
        "owners of namespace {namespace} may name {location} in their backups, and restore from it"
    ));
    lines.push(reads());
    lines
}

/// What the owners of storage can read, in words for an approver.
pub(super) fn reads() -> String {
    format!(
        "{VELERO_READS}: those of the whole cluster, or, where Velero is for tenants alone, of all tenants' namespaces"
    )
}

/// Who wrote the decision last. The API server keeps that by program.
fn decided(managers: &Value) -> Option<Decided> {
    let entries = managers.as_array()?.iter();
    let own = entries.filter(|entry| entry["fieldsV1"]["f:spec"].get("f:approvalDecision").is_some());
    let last = own.max_by_key(|entry| entry["time"].as_str().unwrap_or_default().to_owned())?;
    let at = last["time"].as_str().and_then(|time| time.parse().ok());
    Some(Decided { with: last["manager"].as_str()?.to_owned(), at })
}

fn next(request: &Request, summary: &Summary, allowed: &Allowed) -> Vec<String> {
    let name = format!("{}/{}", summary.namespace, summary.location);
    let version = request.metadata.resource_version.as_deref().unwrap_or_default();
    let verb = |word| match word {
        Word::Approve => "approve",
        Word::Reject => "reject",
        Word::Revoke => "revoke",
    };
    useful(request, allowed)
        .into_iter()
        .map(|word| format!("kubectl nacre request {} {name} --resource-version {version}", verb(word)))
        .collect()
}

/// The decisions that would change something.
fn useful(request: &Request, allowed: &Allowed) -> Vec<Word> {
    let policy = allowed.policy.as_deref().filter(|_| allowed.source != Source::Unreadable);
    let words = [Word::Approve, Word::Reject, Word::Revoke];
    words.into_iter().filter(|word| matches!(weigh(request, *word, policy), Weighed::Write(_))).collect()
}

fn page(answer: &RequestReport<'_>, now: Timestamp) -> Page {
    let summary = &answer.summary;
    let state = match summary.state {
        RequestPhase::Pending => "Pending - not decided yet, and not in Velero",
        RequestPhase::Approved if summary.approved_by_policy => {
            "Approved by policy - Velero may use it; nobody has approved it by hand"
        }
        RequestPhase::Approved => "Approved - Velero may use it",
        RequestPhase::Rejected => "Rejected - Velero may not use it",
    };
    let decided = answer.decided.as_ref().map(|decided| {
        let when = decided.at.map(|at| format!("{}, ", moment(at, now))).unwrap_or_default();
        let what = json!(summary.decision);
        format!("{} ({when}with {})", what.as_str().unwrap_or_default(), decided.with)
    });
    let spec = StorageRequest::from(answer.object).spec;
    let mut page = fields(&[
        ("Location", Some(format!("{}/{}", summary.namespace, summary.location))),
        ("Request", Some(summary.request.clone())),
        ("State", Some(state.to_owned())),
        ("Decision", decided),
        ("Reason", answer.reason.clone()),
        ("Asked", summary.since.map(|time| moment(time, now))),
        ("Endpoint", summary.endpoint.clone()),
        ("Bucket", summary.bucket.clone()),
        ("Prefix", summary.prefix.clone()),
        ("Location is", answer.stands.clone()),
    ]);
    page += section("Asked for", spec.map(|spec| yaml(spec, "")).unwrap_or_default());
    page += section("Changed since", changed(summary));
    page += section("Approving means", lines_of(&answer.allows));
    page += section("Attention", lines_of(&answer.attention));
    let not_checked: Vec<String> = answer.not_checked.iter().map(ToString::to_string).collect();
    page += section("Not checked", lines_of(&not_checked));
    page += section("Other storage of this namespace", others(&answer.others));
    page += section("Next", lines_of(&answer.next));
    page
}

fn lines_of(list: &[String]) -> String {
    if list.is_empty() { String::new() } else { lines(list.iter().map(|line| printable(line))) }
}

fn changed(summary: &Summary) -> Table {
    let mut table = Table::new(&["FIELD", "ASKED FOR", "NOW"]);
    for found in summary.differences.iter().flatten() {
        let shown = |value: &Value| if value.is_null() { "-".to_owned() } else { short(&brief(value)) };
        table.row([found.field.clone(), shown(&found.asked), shown(&found.now)]);
    }
    table
}

/// Certificates are long, and nobody compares them by eye.
fn short(text: &str) -> String {
    const ENOUGH: usize = 60;
    if text.chars().count() <= ENOUGH {
        return text.to_owned();
    }
    format!("{}...", text.chars().take(ENOUGH).collect::<String>())
}

fn others(others: &[Summary]) -> Table {
    let mut table = Table::new(&["LOCATION", "STATE", "ENDPOINT", "BUCKET", "PREFIX"]);
    for other in others {
        table.row([
            other.location.as_str().into(),
            other.state(),
            other.endpoint.as_deref().into(),
            other.bucket.as_deref().into(),
            other.prefix.as_deref().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::request::facts::tests::facts;

    fn shown(at: usize, policy: Option<planner::Policy>) -> String {
        let facts = facts();
        let allowed = Allowed { source: Source::Cluster, policy: policy.map(Arc::new), problems: Vec::new() };
        let answer = answer(&facts, &facts.requests[at].0, &allowed, &[], "velero");
        let text = page(&answer, "2026-11-15T13:00:00Z".parse().unwrap()).to_string();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn who_asks_for_what_and_what_approving_means() {
        insta::assert_snapshot!(shown(0, Some(planner::Policy::default())), @r"
        Location:     shop/mine
        Request:      shop-mine-uid
        State:        Pending - not decided yet, and not in Velero
        Asked:        2026-11-15 12:00:00 UTC, 60m ago
        Endpoint:     http://store.example.com
        Bucket:       backups
        Prefix:       shop/daily
        Location is:  New - nacre has not processed it yet

        Asked for:
          provider: aws
          config:
            region: eu-west-1
            s3Url: HTTP://Store.Example.com:80/
          credential:
            key: cloud
            name: keys
          objectStorage:
            bucket: backups
            prefix: daily

        Approving means:
          Velero may read and write http://store.example.com, bucket backups, under shop/daily
          with the key cloud of the Secret keys there; nacre follows when that is replaced, and takes static credentials only
          owners of namespace shop may name mine in their backups, and restore from it
          whoever owns the storage of a backup can read all Secrets that Velero can read: those of the whole cluster, or, where Velero is for tenants alone, of all tenants' namespaces

        Attention:
          its endpoint is not encrypted: whoever is on the way can read what is backed up

        Not checked:
          whether the credential is sound, and Velero can reach the bucket with it

        Next:
          kubectl nacre request approve shop/mine --resource-version 7
          kubectl nacre request reject shop/mine --resource-version 7
        ");
    }

    #[test]
    fn what_changed_since_it_was_asked_for_is_told_by_field() {
        let text = shown(1, None);
        assert!(text.contains("objectStorage.bucket   backups     another"), "{text}");
        assert!(
            text.contains("was changed meanwhile") && text.contains("the administrators' policy"),
            "{text}"
        );
    }

    #[test]
    fn who_decided_is_known_by_the_program() {
        let managers = json!([
            {"manager": "nacre", "time": "2026-11-15T12:00:00Z", "fieldsV1": {"f:spec": {".": {}, "f:approvalDecision": {}}}},
            {"manager": "kubectl-nacre", "time": "2026-11-15T12:30:00Z", "fieldsV1": {"f:spec": {"f:approvalDecision": {}}}},
            {"manager": "nacre", "time": "2026-11-15T12:31:00Z", "fieldsV1": {"f:status": {}}},
        ]);
        let last = decided(&managers).unwrap();
        assert_eq!((last.with.as_str(), last.at), ("kubectl-nacre", "2026-11-15T12:30:00Z".parse().ok()));
        assert_eq!(decided(&Value::Null), None);
    }
}

//! `request approve`, `reject` and `revoke`: decisions of an administrator.

use anyhow::{Context as _, Result, bail};
use api::{
    ApprovalDecision, NonAdminBackupStorageLocation as Location,
    NonAdminBackupStorageLocationRequest as Request, labels,
};
use kube::api::{Patch, PatchParams};
use planner::location::review::{StorageRequest, Weighed, Word, weigh};
use serde_json::{Value, json};

use super::{facts::Facts, show::reads};
use crate::{
    allowed::{self, Source},
    connect::Session,
    list::qualified,
    live::{self, ShowsProgress as _},
    location::state::LocationState,
    output::{Format, Outcome, lines, print, remark},
    send::Waiting,
    text::printable,
};

/// Which requests, and how sure to be of them.
#[derive(Debug, clap::Args)]
struct RequestArgs {
    /// NAMESPACE/NAME of the location, its name alone if that is unique, or the name of the request.
    #[arg(value_name = "REQUEST", required = true)]
    names: Vec<String>,

    /// Only if the request still has this resourceVersion.
    #[arg(long, value_name = "VERSION")]
    resource_version: Option<String>,

    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre request approve shop/mine              the location `mine` of namespace `shop`
  kubectl nacre request approve mine -n shop           the same
  kubectl nacre request approve shop/mine --wait       and see whether Velero can use it
  kubectl nacre request approve shop/mine farm/barn --reason 'ticket 4711'
  kubectl nacre request approve shop/mine --resource-version 1742

A name that fits several requests lists them, and nothing is done. What is approved is what was asked for: a location
that was changed since is not used. With --wait: 0 Velero can use it, 1 it cannot, 4 not known in time.")]
pub(super) struct Decide {
    #[command(flatten)]
    which: RequestArgs,

    /// Reason, stored in the request.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre request reject shop/mine --reason 'that bucket is public'
  kubectl nacre request reject shop/mine --wait        until Velero has lost it

A rejection holds even if approval is switched off later. What is in the bucket stays.")]
pub(super) struct Reject {
    #[command(flatten)]
    which: RequestArgs,

    /// Reason, shown to the namespace owners in the location's conditions.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre request revoke shop/mine               back to pending
  kubectl nacre request revoke shop/mine --wait        until Velero has lost it

Backups in it stay, and work again once it is approved again. Where the policy does not require approval, nacre would
approve it at once; reject it instead.")]
pub(super) struct Revoke {
    #[command(flatten)]
    which: RequestArgs,
}

pub(super) async fn approve(session: &Session, args: &Decide, given: Option<&str>) -> Result<Outcome> {
    decide(session, &args.which, given, Word::Approve, args.reason.as_deref()).await
}

pub(super) async fn reject(session: &Session, args: &Reject, given: Option<&str>) -> Result<Outcome> {
    decide(session, &args.which, given, Word::Reject, args.reason.as_deref()).await
}

pub(super) async fn revoke(session: &Session, args: &Revoke, given: Option<&str>) -> Result<Outcome> {
    decide(session, &args.which, given, Word::Revoke, None).await
}

/// Decides about one request, as it is in this version.
pub(crate) async fn one(
    session: &Session,
    name: &str,
    word: Word,
    version: &str,
    reason: Option<&str>,
) -> Result<()> {
    let facts = Facts::read(session).await?;
    let request = facts.find(name, None)?;
    weighed(session, request, word).await?;
    write(session, request, &patch(word, Some(version), reason), name).await
}

async fn decide(
    session: &Session,
    which: &RequestArgs,
    given: Option<&str>,
    word: Word,
    reason: Option<&str>,
) -> Result<Outcome> {
    if which.resource_version.is_some() && which.names.len() > 1 {
        bail!("--resource-version goes with one request");
    }
    let facts = Facts::read(session).await?;
    // All of them are found and weighed before any is written.
    let mut meant = Vec::new();
    for name in &which.names {
        let request = facts.find(name, given)?;
        if !meant.iter().any(|(other, _): &(&Request, _)| other.metadata.name == request.metadata.name) {
            meant.push((request, weighed(session, request, word).await?));
        }
    }
    let mut decisions = Vec::new();
    for (request, weighed) in &meant {
        let summary = facts.summary(request, None);
        let name = format!("{}/{}", summary.namespace, summary.location);
        let before = matches!(weighed, Weighed::Stands) && reason.is_none();
        if !before {
            let version = which.resource_version.as_ref().or(request.metadata.resource_version.as_ref());
            write(session, request, &patch(word, version.map(String::as_str), reason), &name).await?;
        }
        let verb = done(word);
        let place = if word == Word::Approve { format!(": {}", summary.place()) } else { String::new() };
        decisions.push((
            qualified::<Request>(&summary.request),
            if before { format!("{name} is {verb} already") } else { format!("{name} {verb}{place}") },
        ));
        if word == Word::Approve && !before {
            remark(format_args!("{name}: {}", reads()));
        }
        if word == Word::Approve && summary.differences.is_some_and(|list| !list.is_empty()) {
            remark(format_args!(
                "{name} was changed meanwhile, and is not used until its requested spec is restored"
            ));
        }
    }
    let names: Vec<&String> = decisions.iter().map(|(name, _)| name).collect();
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    let table = || lines(decisions.iter().map(|(_, words)| printable(words)));
    print(format, &names, table, || names.iter().map(ToString::to_string).collect())?;
    let mut outcome = Outcome::Good;
    if which.waiting.wait {
        for (request, _) in meant {
            outcome = wait(session, request, word, which).await?;
            if outcome != Outcome::Good {
                break;
            }
        }
    }
    Ok(outcome)
}

const fn done(word: Word) -> &'static str {
    match word {
        Word::Approve => "approved",
        Word::Reject => "rejected",
        Word::Revoke => "revoked",
    }
}

/// What the planner makes of it; an error if there is no point in writing it.
async fn weighed(session: &Session, request: &Request, word: Word) -> Result<Weighed> {
    let asked = StorageRequest::from(request);
    let asking = session.within(asked.namespace);
    let policy = if word == Word::Revoke {
        let allowed = allowed::read(&asking, &allowed::namespace(&asking).await, None).await?;
        allowed.policy.filter(|_| allowed.source != Source::Unreadable)
    } else {
        None
    };
    match weigh(request, word, policy.as_deref()) {
        Weighed::Pointless(why) => bail!("{}/{}: {why}; nothing was done", asked.namespace, asked.location),
        weighed => Ok(weighed),
    }
}

/// The decision, for just this version of the request.
fn patch(word: Word, version: Option<&str>, reason: Option<&str>) -> Value {
    let decision = match word {
        Word::Approve => ApprovalDecision::Approve,
        Word::Reject => ApprovalDecision::Reject,
        Word::Revoke => ApprovalDecision::Pending,
    };
    let mut body = json!({"metadata": {"resourceVersion": version}, "spec": {"approvalDecision": decision}});
    let (own, other) = match word {
        Word::Reject => (labels::REJECTION_REASON, labels::APPROVAL_REASON),
        _ => (labels::APPROVAL_REASON, labels::REJECTION_REASON),
    };
    // The reason for another decision is none for this one, and from now on it is decided by hand.
    body["metadata"]["annotations"] = json!({own: reason, other: null, labels::APPROVED_BY: null});
    body
}

async fn write(session: &Session, request: &Request, body: &Value, name: &str) -> Result<()> {
    let own = request.metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams { field_manager: Some("kubectl-nacre".to_owned()), ..PatchParams::default() };
    match session.in_velero_namespace::<Request>().patch(own, &params, &Patch::Merge(body)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_conflict() => bail!(
            "the request of {name} has changed since it was shown, and nothing was done; \
             look again: kubectl nacre request show {name}"
        ),
        Err(error) => Err(error).with_context(|| format!("deciding about {name}")),
    }
}

/// Waits until the location is what the decision makes of it, or says why not.
async fn wait(session: &Session, request: &Request, word: Word, which: &RequestArgs) -> Result<Outcome> {
    let asked = StorageRequest::from(request);
    let there = session.within(asked.namespace);
    let over = |location: &Location| reached(word, LocationState::from(location));
    let (outcome, last) = live::follow_until(&there, asked.location, which.waiting.timeout, over).await?;
    if let Some(last) = last {
        remark(live::verdict::<Location>(asked.location, &last.moment()).trim_end());
    }
    Ok(outcome)
}

/// How a wait for a location ends. What stood there before the decision is not its end.
const fn reached(word: Word, place: LocationState<'_>) -> Option<Outcome> {
    match (word, place) {
        (_, LocationState::New | LocationState::Checking)
        | (Word::Approve, LocationState::Pending | LocationState::Rejected(_) | LocationState::Waiting(_))
        | (Word::Reject, LocationState::Pending | LocationState::Available | LocationState::Unavailable(_))
        | (
            Word::Revoke,
            LocationState::Rejected(_) | LocationState::Available | LocationState::Unavailable(_),
        ) => None,
        (
            Word::Approve,
            LocationState::Unavailable(_) | LocationState::Refused(_) | LocationState::Deleting,
        ) => Some(Outcome::Failed),
        // Velero can use it, or has not got it any more, whatever else is wrong with it.
        _ => Some(Outcome::Good),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_for_one_version_and_says_nothing_else() {
        let body = patch(Word::Approve, Some("7"), None);
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["spec"], json!({"approvalDecision": "approve"}));
        let body = patch(Word::Reject, Some("7"), Some("too large"));
        assert_eq!(body["spec"], json!({"approvalDecision": "reject"}));
        let marks = json!({"openshift.io/oadp-rejection-reason": "too large", "openshift.io/oadp-approval-reason": null,
            "nacre.dev/approved-by": null});
        assert_eq!(body["metadata"]["annotations"], marks);
        assert_eq!(patch(Word::Revoke, None, None)["spec"], json!({"approvalDecision": "pending"}));
    }

    #[test]
    fn a_wait_ends_with_what_the_decision_makes_of_the_location() {
        let cases = [
            (Word::Approve, LocationState::Rejected(""), None),
            (Word::Approve, LocationState::Pending, None),
            (Word::Approve, LocationState::Checking, None),
            (Word::Approve, LocationState::Available, Some(Outcome::Good)),
            (Word::Approve, LocationState::Unavailable(""), Some(Outcome::Failed)),
            (Word::Approve, LocationState::Refused(""), Some(Outcome::Failed)),
            (Word::Approve, LocationState::Waiting(""), None),
            (Word::Reject, LocationState::Available, None),
            (Word::Reject, LocationState::Pending, None),
            (Word::Reject, LocationState::Rejected(""), Some(Outcome::Good)),
            (Word::Reject, LocationState::Refused(""), Some(Outcome::Good)),
            (Word::Reject, LocationState::Waiting(""), Some(Outcome::Good)),
            (Word::Revoke, LocationState::Available, None),
            (Word::Revoke, LocationState::Pending, Some(Outcome::Good)),
            (Word::Revoke, LocationState::Deleting, Some(Outcome::Good)),
        ];
        for (word, place, ends) in cases {
            assert_eq!(reached(word, place), ends, "{word:?} {place:?}");
        }
    }
}

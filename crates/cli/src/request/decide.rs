//! `request approve`, `reject` and `revoke`: an administrator's word.

use anyhow::{Context as _, Result, bail};
use api::{
    ApprovalDecision, NonAdminBackupStorageLocation as Location,
    NonAdminBackupStorageLocationRequest as Request, labels,
};
use kube::api::{Patch, PatchParams};
use planner::location::review::{Asked, Weighed, Word, weigh};
use serde_json::{Value, json};

use super::facts::Facts;
use crate::{
    allowed::{self, Source},
    connect::Session,
    list::qualified,
    live::{self, Told as _},
    location::state::Place,
    output::{Format, Outcome, lines, print, remark},
    send::Waiting,
    words::printable,
};

/// Which requests, and how sure to be of them.
#[derive(Debug, clap::Args)]
struct Which {
    /// NAMESPACE/NAME of the location, its name alone if nobody else has one so called, or the name of the request.
    #[arg(value_name = "REQUEST", required = true)]
    names: Vec<String>,

    /// Only if the request is still the one that was shown under this version.
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
    which: Which,

    /// Why, for whoever looks at the request later.
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
    which: Which,

    /// Why; the owners of the namespace can read it in the location's conditions.
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
    which: Which,
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

async fn decide(
    session: &Session,
    which: &Which,
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
    let mut said = Vec::new();
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
        said.push((
            qualified::<Request>(&summary.request),
            if before { format!("{name} is {verb} already") } else { format!("{name} {verb}{place}") },
        ));
        if word == Word::Approve && summary.differences.is_some_and(|list| !list.is_empty()) {
            remark(format_args!(
                "{name} says something else by now, and is not used until what was asked for is put back"
            ));
        }
    }
    let names: Vec<&String> = said.iter().map(|(name, _)| name).collect();
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    let table = || lines(said.iter().map(|(_, words)| printable(words)));
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
    let asked = Asked::from(request);
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
    match session.beside_velero::<Request>().patch(own, &params, &Patch::Merge(body)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_conflict() => bail!(
            "the request of {name} has changed since it was shown, and nothing was done; \
             look again: kubectl nacre request show {name}"
        ),
        Err(error) => Err(error).with_context(|| format!("deciding about {name}")),
    }
}

/// Waits until the location is what the decision makes of it, or says why not.
async fn wait(session: &Session, request: &Request, word: Word, which: &Which) -> Result<Outcome> {
    let asked = Asked::from(request);
    let there = session.within(asked.namespace);
    let over = |location: &Location| reached(word, Place::from(location));
    let (outcome, last) = live::follow_until(&there, asked.location, which.waiting.timeout, over).await?;
    if let Some(last) = last {
        remark(live::verdict::<Location>(asked.location, &last.moment()).trim_end());
    }
    Ok(outcome)
}

/// How a wait for a location ends. What stood there before the decision is not its end.
const fn reached(word: Word, place: Place<'_>) -> Option<Outcome> {
    match (word, place) {
        (_, Place::New | Place::Checking)
        | (Word::Approve, Place::Pending | Place::Rejected(_))
        | (Word::Reject, Place::Pending | Place::Available | Place::Unavailable(_))
        | (Word::Revoke, Place::Rejected(_) | Place::Available | Place::Unavailable(_)) => None,
        (Word::Approve, Place::Unavailable(_) | Place::Refused(_) | Place::Leaving) => Some(Outcome::Failed),
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
            (Word::Approve, Place::Rejected(""), None),
            (Word::Approve, Place::Pending, None),
            (Word::Approve, Place::Checking, None),
            (Word::Approve, Place::Available, Some(Outcome::Good)),
            (Word::Approve, Place::Unavailable(""), Some(Outcome::Failed)),
            (Word::Approve, Place::Refused(""), Some(Outcome::Failed)),
            (Word::Reject, Place::Available, None),
            (Word::Reject, Place::Pending, None),
            (Word::Reject, Place::Rejected(""), Some(Outcome::Good)),
            (Word::Reject, Place::Refused(""), Some(Outcome::Good)),
            (Word::Revoke, Place::Available, None),
            (Word::Revoke, Place::Pending, Some(Outcome::Good)),
            (Word::Revoke, Place::Leaving, Some(Outcome::Good)),
        ];
        for (word, place, ends) in cases {
            assert_eq!(reached(word, place), ends, "{word:?} {place:?}");
        }
    }
}

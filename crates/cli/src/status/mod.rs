//! `status`: the status of a namespace's backups, on one screen.

mod show;
mod summary;

use std::collections::BTreeSet;

use anyhow::Result;
use api::{NonAdminBackup, NonAdminRestore, NonAdminSchedule};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kube::{Api, api::ListParams};

use crate::{
    allowed::{self, Source},
    connect::Session,
    list::{self, Readable},
    location::known::Known,
    output::{Outcome, print},
    wrap,
};
pub(crate) use show::{Entry, rows};
use summary::Limits;
pub(crate) use summary::Summary;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre status
  kubectl nacre status -n shop -o json | jq .lastGood

A good backup is Completed, holds something and the data of every claim that was not left out on purpose, covers the
namespace (no filters) and can be restored now.
Exit code 3 if there is no good backup, if one that ended later failed, is empty, is without volume data or cannot be
restored, if a claim is not in the good backup, or if that is older than two runs of a schedule (a week without one).")]
pub(crate) struct Status {}

pub(crate) async fn run(session: &Session) -> Result<Outcome> {
    let now = Timestamp::now();
    let summary = Box::pin(look(session, all::<NonAdminBackup>(session), now)).await?;
    let page = || wrap::to_terminal(show::page(&summary, now));
    print(session.format, &summary, page, || vec![session.namespace.clone()])?;
    Ok(Outcome::attention_if(summary.needs_attention()))
}

/// What matters about a namespace that has these backups. They are waited for together with everything else.
pub(crate) async fn look(
    session: &Session,
    backups: impl Future<Output = Result<Vec<NonAdminBackup>>>,
    now: Timestamp,
) -> Result<Summary> {
    let limits = async {
        let namespace = allowed::namespace(session).await;
        allowed::read(session, &namespace, None).await
    };
    let (backups, restores, schedules, locations, held_back, claims, allowed) = tokio::try_join!(
        backups,
        all::<NonAdminRestore>(session),
        schedules(session),
        Known::own(session),
        held_back(session),
        claims(session),
        limits,
    )?;
    let locations = locations.and_of(session, &backups).await;
    let limits = match (allowed.source, allowed.policy) {
        (Source::Unreadable, _) | (_, None) => None,
        (_, Some(policy)) => Some(Limits {
            backups: policy.backup.max_per_namespace,
            unfinished: policy.backup.max_active_per_namespace,
            locations: policy.storage_locations.max_per_namespace,
        }),
    };
    Ok(Summary::of(&session.namespace, &backups, &restores, &locations, held_back, limits, now)
        .with_schedules(&schedules, now)
        .with_claims(&backups, &schedules, claims.as_deref(), now))
}

/// The claims that exist now; none if the caller may not list them.
async fn claims(session: &Session) -> Result<Option<Vec<String>>> {
    let api: Api<PersistentVolumeClaim> = session.api();
    match api.list_metadata(&ListParams::default()).await {
        Ok(found) => Ok(Some(found.items.iter().map(kube::ResourceExt::name_any).collect())),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn all<K: Readable>(session: &Session) -> Result<Vec<K>> {
    let found = list::all::<K>(session, Some(&session.namespace), None, false).await?;
    Ok(found.items.into_iter().map(|(object, _)| object).collect())
}

/// The schedules of the namespace; none where an older installation does not have the kind.
async fn schedules(session: &Session) -> Result<Vec<NonAdminSchedule>> {
    match all::<NonAdminSchedule>(session).await {
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        found => found,
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.is_not_found())
}

/// How many backups of an earlier namespace of this name wait for an administrator, according to Events.
async fn held_back(session: &Session) -> Result<usize> {
    let api: Api<Event> = session.api();
    match api.list(&ListParams::default().fields("reason=BackupHeldBack")).await {
        Ok(events) => {
            let names: BTreeSet<_> =
                events.items.into_iter().filter_map(|event| event.involved_object.name).collect();
            Ok(names.len())
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(0),
        Err(error) => Err(error.into()),
    }
}

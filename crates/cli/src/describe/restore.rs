//! `restore describe`.

use anyhow::Result;
use api::NonAdminRestore;
use jiff::Timestamp;
use serde_json::json;

use super::{
    Describe, Details,
    answer::{Description, details},
    events,
    page::{Page, fields, moment, yaml},
    volumes,
};
use crate::{
    connect::Session,
    download::Fetching,
    explain, list,
    output::{Outcome, print},
    progress::RequestProgress,
    wrap,
};

pub(crate) async fn run(session: &Session, args: &Describe) -> Result<Outcome> {
    let name = args.name.of::<NonAdminRestore>()?;
    let seen = look(session, name, args.details.then_some(&args.fetching)).await?;
    let page = || wrap::to_terminal(seen.page.to_string());
    print(session.format, &seen.answer, page, || vec![list::qualified::<NonAdminRestore>(name)])?;
    Ok(Outcome::attention_if(RequestProgress::from(&seen.object).data_missing().is_some()))
}

/// All details of a restore. Errors and warnings that nacre has not read are fetched if that is wanted.
pub(crate) async fn look(
    session: &Session,
    name: &str,
    fetching: Option<&Fetching>,
) -> Result<Details<NonAdminRestore>> {
    let (found, events) = tokio::join!(
        list::one::<NonAdminRestore>(session, name),
        events::about::<NonAdminRestore>(session, name),
    );
    let ((restore, unreadable), events) = (found?, events?);
    let changes = explain::effect_of_restore(session, &restore).await?;
    let read = restore.status.as_ref().and_then(|status| status.results.as_ref());
    let (results, no_results) = details(session, "RestoreResults", name, fetching, read).await;
    let next = RequestProgress::from(&restore).next();
    let answer = Description { object: json!(restore), changes, events, results, no_results, next };
    let page = page(&restore, &answer, unreadable.as_deref(), Timestamp::now());
    Ok(Details { object: restore, answer, page })
}

fn page(restore: &NonAdminRestore, answer: &Description, unreadable: Option<&str>, now: Timestamp) -> Page {
    let progress = RequestProgress::from(restore);
    let (status, velero) = (restore.status.clone().unwrap_or_default(), &progress.velero);
    let velero_status =
        status.velero_restore.as_ref().and_then(|velero| velero.status.clone()).unwrap_or_default();
    let time = |time: Option<Timestamp>| time.map(|time| moment(time, now));
    let claims = volumes::claims(&status.claims, status.claims_not_listed);
    let claims = claims.into_iter().map(|claim| ("Claim", Some(claim)));
    let mut head = vec![
        ("Name", Some(progress.name().to_owned())),
        ("Namespace", restore.metadata.namespace.clone()),
        ("Status", Some(progress.headline())),
        ("Unreadable", unreadable.map(str::to_owned)),
        ("Backup", restore.spec.restore_spec.backup_name.clone()),
        ("Created", time(restore.metadata.creation_timestamp.as_ref().map(|time| time.0))),
        ("Started", time(velero.started)),
        ("Ended", time(velero.completed)),
        ("Items", progress.items()),
        ("Errors", velero.completed.map(|_| velero.errors.to_string())),
        ("Warnings", velero.completed.map(|_| velero.warnings.to_string())),
        ("Volumes", volumes::moved(status.data_mover_data_downloads)),
        ("Volumes", volumes::files(status.file_system_pod_volume_restores)),
        ("Volume data", volumes::bytes(&progress, now)),
        ("Hooks", volumes::hooks(velero_status.hook_status.as_ref())),
        ("At Velero", status.velero_restore.as_ref().and_then(|velero| velero.name.clone())),
    ];
    let after_volumes =
        head.iter().rposition(|(name, _)| name.starts_with("Volume")).map_or(head.len(), |at| at + 1);
    head.splice(after_volumes..after_volumes, claims);
    let head = fields(&head);
    let asked = yaml(&restore.spec.restore_spec, "everything in the backup");
    head + answer.sections(&asked, "Beyond that, by today's policy", &status.conditions, now)
}

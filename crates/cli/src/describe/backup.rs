//! `backup describe`.

use std::sync::Arc;

use anyhow::Result;
use api::NonAdminBackup;
use jiff::Timestamp;
use planner::{
    Policy,
    last_good::{NotGood, why_not_good},
};
use serde_json::{Value, json};

use super::{
    Describe, Details,
    answer::{Description, details},
    claims, events,
    page::{Page, fields, moment, section, yaml},
    volumes,
};
use crate::{
    allowed::{self, Allowed, Source},
    changes::{self, Change, backup_rules, changes},
    connect::Session,
    download::Fetching,
    list,
    location::known::Known,
    output::{Outcome, print},
    preview::{PreviewResult, World, of_backup, storage_in_words},
    progress::RequestProgress,
    wrap,
};

pub(crate) async fn run(session: &Session, args: &Describe) -> Result<Outcome> {
    let name = args.name.of::<NonAdminBackup>()?;
    let seen = look(session, name, args.details.then_some(&args.fetching)).await?;
    let page = || wrap::to_terminal(seen.page.to_string());
    print(session.format, &seen.answer, page, || vec![list::qualified::<NonAdminBackup>(name)])?;
    Ok(Outcome::attention_if(RequestProgress::from(&seen.object).data_missing().is_some()))
}

/// All details of a backup. Errors and warnings that nacre has not read are fetched if that is wanted.
pub(crate) async fn look(
    session: &Session,
    name: &str,
    fetching: Option<&Fetching>,
) -> Result<Details<NonAdminBackup>> {
    let (found, events, namespace, locations) = tokio::join!(
        list::one::<NonAdminBackup>(session, name),
        events::about::<NonAdminBackup>(session, name),
        allowed::namespace(session),
        Known::own(session),
    );
    let ((backup, unreadable), events) = (found?, events?);
    let locations = locations?.and_of(session, std::slice::from_ref(&backup)).await;
    let allowed = allowed::read(session, &namespace, None).await?;
    let read = backup.status.as_ref().and_then(|status| status.results.as_ref());
    let (results, no_results) = details(session, "BackupResults", name, fetching, read).await;
    let world = World { namespace, velero_namespace: session.velero_namespace.clone(), ..World::default() };
    let changes = in_effect(&world, &backup, &allowed);
    let next = RequestProgress::from(&backup).next();
    let answer = Description { object: json!(backup), changes, events, results, no_results, next };
    let now = Timestamp::now();
    let not_good = why_not_good(&backup, &locations.storage(&backup), now);
    let page = page(&backup, &answer, not_good.as_ref(), unreadable.as_deref(), now);
    Ok(Details { object: backup, answer, page })
}

/// What Velero got beyond what was asked for, and by whose word.
fn in_effect(world: &World, backup: &NonAdminBackup, allowed: &Allowed) -> Vec<Change> {
    let Some(given) = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.spec.as_ref())
    else {
        return Vec::new();
    };
    // The location is ready by now, or was; what matters is what nacre does by itself.
    let mut plain = backup.clone();
    plain.spec.backup_spec.storage_location = None;
    let open = World { policy: Some(Arc::new(Policy::default())), ..world.clone() };
    let mut fenced = match of_backup(&open, &plain) {
        PreviewResult::Passes(spec) => spec,
        _ => Value::Null,
    };
    let (asked, mut given) = (json!(backup.spec.backup_spec), json!(given));
    if backup.spec.backup_spec.storage_location.is_some() {
        // Under Velero's name for it.
        fenced["storageLocation"] = given["storageLocation"].clone();
    } else if let Some(fields) = given.as_object_mut() {
        // Which of the cluster's own locations it is means nothing to a tenant.
        fields.remove("storageLocation");
        fields.remove("volumeSnapshotLocations");
    }
    let rules = match (allowed.source, &allowed.policy) {
        (Source::Unreadable, _) | (_, None) => None,
        (_, Some(policy)) => Some(backup_rules(policy)),
    };
    let saves_volumes = given["resourcePolicy"]["name"] == planner::backup::VOLUME_POLICY;
    changes(&asked, &given, &changes::Known { fenced, rules, velero: true, saves_volumes })
}

fn page(
    backup: &NonAdminBackup,
    answer: &Description,
    not_good: Option<&NotGood>,
    unreadable: Option<&str>,
    now: Timestamp,
) -> Page {
    let progress = RequestProgress::from(backup);
    let (status, velero) = (backup.status.clone().unwrap_or_default(), &progress.velero);
    let velero_status =
        status.velero_backup.as_ref().and_then(|velero| velero.status.clone()).unwrap_or_default();
    let deletion = status.velero_delete_backup_request.as_ref().and_then(|request| {
        let errors = request.status.as_ref()?.errors.clone()?;
        (!errors.is_empty()).then(|| format!("Velero refused: {}", errors.join("; ")))
    });
    let time = |time: Option<Timestamp>| time.map(|time| moment(time, now));
    let head = fields(&[
        ("Name", Some(progress.name().to_owned())),
        ("Namespace", backup.metadata.namespace.clone()),
        ("Status", Some(progress.headline())),
        ("Unreadable", unreadable.map(str::to_owned)),
        ("Storage", Some(storage_in_words(backup))),
        ("Created", time(backup.metadata.creation_timestamp.as_ref().map(|time| time.0))),
        ("Started", time(velero.started)),
        ("Ended", time(velero.completed)),
        ("Expires", time(velero.expires)),
        ("Items", progress.items()),
        (
            "Not good",
            not_good
                .filter(|why| is_news(why))
                .map(|why| format!("not counted as the last good backup: {why}")),
        ),
        ("Errors", velero.completed.map(|_| velero.errors.to_string())),
        ("Warnings", velero.completed.map(|_| velero.warnings.to_string())),
        ("Snapshots", volumes::snapshots(&velero_status)),
        ("Volumes", volumes::moved(status.data_mover_data_uploads)),
        ("Volumes", volumes::files(status.file_system_pod_volume_backups)),
        ("Volume data", volumes::bytes(&progress, now)),
        ("Hooks", volumes::hooks(velero_status.hook_status.as_ref())),
        ("Deletion", deletion),
        ("At Velero", status.velero_backup.as_ref().and_then(|velero| velero.name.clone())),
    ]);
    let asked = yaml(&backup.spec.backup_spec, "everything in the namespace");
    let claims = section("Claims", claims::table(&status.claims, status.claims_not_listed));
    head + claims + answer.sections(&asked, "In effect beyond that", &status.conditions, now)
}

/// Whether nothing else on the page shows it.
const fn is_news(why: &NotGood) -> bool {
    matches!(why, NotGood::Expired | NotGood::Empty | NotGood::StorageUnavailable(_) | NotGood::Filtered(_))
}

#[cfg(test)]
mod tests {
    use planner::last_good::Storage;

    use super::{super::events::EventRow, *};
    use crate::progress::tests::{about_data, at_velero, backup, refused};

    fn reported(status: &Value, allowed: &Allowed) -> String {
        let backup = backup(status);
        let world = World {
            namespace: serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap(),
            ..World::default()
        };
        let changes = in_effect(&world, &backup, allowed);
        let next = RequestProgress::from(&backup).next();
        let event = EventRow {
            time: Some("2026-11-15T12:00:02Z".parse().unwrap()),
            warning: false,
            reason: "BackupStarted".to_owned(),
            note: "Velero has started the backup".to_owned(),
        };
        let events = vec![event];
        let answer =
            Description { object: Value::Null, changes, events, results: None, no_results: None, next };
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        let not_good = why_not_good(&backup, &Storage::Unknown, now);
        anstream::adapter::strip_str(&page(&backup, &answer, not_good.as_ref(), None, now).to_string())
            .to_string()
    }

    fn unreadable() -> Allowed {
        Allowed { source: Source::Unreadable, policy: Some(Arc::default()), problems: Vec::new() }
    }

    #[test]
    fn a_backup_that_is_over() {
        let mut status = at_velero(&json!({
            "phase": "PartiallyFailed", "startTimestamp": "2026-11-15T12:00:02Z", "completionTimestamp": "2026-11-15T12:00:22Z",
            "expiration": "2026-11-18T12:00:00Z", "progress": {"totalItems": 42, "itemsBackedUp": 42}, "errors": 1, "warnings": 2,
            "csiVolumeSnapshotsAttempted": 2, "csiVolumeSnapshotsCompleted": 1,
        }));
        status["veleroBackup"]["spec"] = json!({
            "includedNamespaces": ["shop"], "ttl": "72h0m0s", "storageLocation": "default", "snapshotMoveData": false,
            "csiSnapshotTimeout": "10m0s", "itemOperationTimeout": "4h0m0s", "hooks": {}, "metadata": {},
        });
        status["dataMoverDataUploads"] = json!({"total": 2, "completed": 1, "failed": 1});
        status["conditions"] = json!([{"type": "Accepted", "status": "True", "reason": "BackupAccepted",
            "message": "the backup is allowed", "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
        insta::assert_snapshot!(reported(&status, &unreadable()), @r"
        Name:       daily
        Namespace:  shop
        Status:     PartiallyFailed - done only in part, with 1 error and 2 warnings
        Storage:    the cluster's own
        Created:    2026-11-15 12:00:00 UTC, 60m ago
        Started:    2026-11-15 12:00:02 UTC, 59m ago
        Ended:      2026-11-15 12:00:22 UTC, 59m ago
        Expires:    2026-11-18 12:00:00 UTC, in 2d23h
        Items:      42/42
        Errors:     1
        Warnings:   2
        Snapshots:  1 of 2 CSI snapshots
        Volumes:    1 of 2 moved into the storage, 1 failed
        At Velero:  shop-daily-uid

        Asked for:
          everything in the namespace

        In effect beyond that:
          FIELD                  VALUE     BY
          csiSnapshotTimeout     10m0s     Velero's default
          includedNamespaces     shop      nacre, always
          itemOperationTimeout   4h0m0s    Velero's default
          snapshotMoveData       false     Velero's default
          ttl                    72h0m0s   the administrators' policy, or Velero's own settings

        Conditions:
          CONDITION         SINCE   WHY
          Accepted    yes   59m     the backup is allowed

        What happened:
          AGE   REASON          WHAT
          59m   BackupStarted   Velero has started the backup

        Next:
          kubectl nacre backup logs daily
          kubectl nacre backup describe daily --details
          kubectl nacre restore create --from-backup daily   (brings back what is in it)
        ");
    }

    #[test]
    fn a_backup_that_was_refused() {
        let status = refused(
            "InvalidBackupSpec",
            "spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less",
        );
        insta::assert_snapshot!(reported(&status, &unreadable()), @r"
        Name:       daily
        Namespace:  shop
        Status:     Refused - spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
        Storage:    the cluster's own
        Created:    2026-11-15 12:00:00 UTC, 60m ago

        Asked for:
          everything in the namespace

        Conditions:
          CONDITION        SINCE   WHY
          Accepted    no   59m     spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less

        What happened:
          AGE   REASON          WHAT
          59m   BackupStarted   Velero has started the backup

        Next:
          correct what was refused and create a new backup, or fix what it names: it is then checked again
          kubectl nacre explain backup daily
          kubectl nacre backup delete daily
        ");
    }

    #[test]
    fn missing_volume_data_is_in_the_status_line_and_by_claim() {
        let mut status = about_data("Completed", "False", "ClaimsNotSaved");
        status["claims"] = json!([
            {"name": "data", "state": "NotSaved", "message": "X. What to do: Y"},
            {"name": "logs", "state": "Saved", "bytes": 8_388_608},
        ]);
        status["claimsNotListed"] = json!(2);
        status["veleroBackup"]["spec"] = json!({"defaultVolumesToFsBackup": true, "resourcePolicy": {"kind": "ConfigMap", "name": "nacre-volumes"}});
        insta::assert_snapshot!(reported(&status, &unreadable()), @r#"
        Name:       daily
        Namespace:  shop
        Status:     NotProtected - volume data of claim "data" is NOT in this backup: X. What to do: Y (the rest is complete, 2 items)
        Storage:    the cluster's own
        Created:    2026-11-15 12:00:00 UTC, 60m ago
        Items:      2/2
        At Velero:  shop-daily-uid

        Claims:
          CLAIM   DATA       SIZE    WHY
          data    NotSaved           X. What to do: Y
          logs    Saved      8 MiB
          and 2 more

        Asked for:
          everything in the namespace

        In effect beyond that:
          FIELD                      VALUE                                         BY
          defaultVolumesToFsBackup   true                                          nacre, since the request says nothing about volumes
          resourcePolicy             {"kind":"ConfigMap","name":"nacre-volumes"}   nacre, since the request says nothing about volumes

        Conditions:
          CONDITION            SINCE   WHY
          DataProtected   no   59m     volume data of claim "data" is NOT in this backup: X. What to do: Y

        What happened:
          AGE   REASON          WHAT
          59m   BackupStarted   Velero has started the backup

        Next:
          kubectl nacre backup describe daily   (shows what became of each claim)
          kubectl nacre restore create --from-backup daily   (brings back what is in it)
        "#);
    }

    #[test]
    fn a_backup_of_a_part_shows_why_it_is_not_counted() {
        let mut status =
            at_velero(&json!({"phase": "Completed", "completionTimestamp": "2026-11-15T12:00:22Z",
            "progress": {"totalItems": 4, "itemsBackedUp": 4}}));
        status["veleroBackup"]["spec"] =
            json!({"includedNamespaces": ["shop"], "includedResources": ["configmaps"]});
        let page = reported(&status, &unreadable());
        let line = page.lines().find(|line| line.starts_with("Not good:")).unwrap_or_default();
        insta::assert_snapshot!(line, @"Not good:   not counted as the last good backup: it holds only a part of the namespace (limited by includedResources)");
    }
}

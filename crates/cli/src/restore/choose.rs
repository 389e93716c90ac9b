//! Which backup a restore takes if none was named.

use anyhow::{Context as _, Result, bail};
use api::NonAdminBackup;
use jiff::Timestamp;
use planner::last_good::{self, LastGood};

use crate::{
    confirm::Consent,
    connect::Session,
    list,
    location::known::Known,
    output::remark,
    progress::RequestProgress,
    text::{age, count, printable},
};

/// The last good backup, after saying which it is. Where a newer one is not taken, somebody has to agree; none if they
/// do not.
pub(super) async fn last_good(session: &Session, consent: &Consent, dry_run: bool) -> Result<Option<String>> {
    let (found, locations) =
        tokio::try_join!(list::all(session, Some(&session.namespace), None, false), Known::own(session))?;
    let backups: Vec<NonAdminBackup> = found.items.into_iter().map(|(backup, _)| backup).collect();
    let locations = locations.and_of(session, &backups).await;
    let now = Timestamp::now();
    let found = last_good::find(&backups, |backup| locations.storage(backup), now);
    let (good, newer) = (taken(&found, &session.namespace)?, newer(&found, now));
    let name = good.metadata.name.clone().unwrap_or_default();
    remark(format_args!(
        "restoring from {name}, the last good backup of namespace {}: {}",
        session.namespace,
        facts(good, now)
    ));
    if newer.is_empty() {
        return Ok(Some(name));
    }
    for line in &newer {
        remark(format_args!("  newer, but not taken: {line}"));
    }
    let question = format!("Restore from {name} all the same?");
    let agreed = dry_run
        || consent.given(&question).with_context(|| {
            format!("there is a newer backup than {name}; name the one to restore with --from-backup")
        })?;
    Ok(agreed.then_some(name))
}

/// The backup that is taken.
fn taken<'a>(found: &LastGood<'a>, namespace: &str) -> Result<&'a NonAdminBackup> {
    match (found.good, found.not_counted.first()) {
        (Some(good), _) => Ok(good),
        (None, Some((newest, why))) => bail!(
            "namespace {namespace} has no good backup; the newest, {}, is not taken because {}; \
             name the one to restore with --from-backup",
            newest.metadata.name.as_deref().unwrap_or_default(),
            printable(&why.to_string())
        ),
        (None, None) => bail!("namespace {namespace} has no complete backup; name one with --from-backup"),
    }
}

/// How old it is and what is in it.
fn facts(good: &NonAdminBackup, now: Timestamp) -> String {
    let progress = RequestProgress::from(good);
    let ended = last_good::ended(good).map_or_else(String::new, |ended| format!("{} old, ", age(ended, now)));
    format!("{ended}the whole namespace, {}", count(progress.velero.done.unwrap_or_default(), "item"))
}

/// Newer backups that somebody may have meant, each with the reason why it is not taken.
fn newer(found: &LastGood<'_>, now: Timestamp) -> Vec<String> {
    let meant = found.not_counted.iter().filter(|(_, why)| why.could_be_meant());
    let reported = meant.map(|(backup, why)| {
        let name = backup.metadata.name.as_deref().unwrap_or_default();
        let ended =
            last_good::ended(backup).map_or_else(String::new, |ended| format!(", {} old", age(ended, now)));
        format!("{name}{ended}, because {}", printable(&why.to_string()))
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use planner::last_good::Storage;
    use serde_json::{Value, json};

    use super::*;
    use crate::progress::tests::{at_velero, backup};

    fn at(name: &str, phase: &str, time: &str, items: i64, spec: &Value) -> NonAdminBackup {
        let mut status = at_velero(
            &json!({"phase": phase, "completionTimestamp": time, "progress": {"totalItems": items, "itemsBackedUp": items}}),
        );
        status["veleroBackup"]["spec"] = spec.clone();
        let mut backup = backup(&status);
        backup.metadata.name = Some(name.to_owned());
        backup
    }

    #[test]
    fn the_last_good_one_is_taken_and_newer_ones_are_named() {
        let now = "2026-11-15T14:00:00Z".parse().unwrap();
        let whole = json!({});
        let backups = [
            at("old", "Completed", "2026-11-14T12:00:00Z", 7, &whole),
            at("good", "Completed", "2026-11-15T12:00:00Z", 7, &whole),
            at("bad", "PartiallyFailed", "2026-11-15T13:00:00Z", 7, &whole),
            at("failed", "Failed", "2026-11-15T13:10:00Z", 0, &whole),
            at("part", "Completed", "2026-11-15T13:20:00Z", 7, &json!({"includedResources": ["configmaps"]})),
            at("empty", "Completed", "2026-11-15T13:30:00Z", 0, &json!({"includedResources": ["nonsense"]})),
        ];
        let find = |backups| last_good::find(backups, |_| Storage::Usable, now);
        let found = find(&backups[..]);
        let good = taken(&found, "shop").unwrap();
        let mut reported = vec![format!("{}: {}", good.metadata.name.as_deref().unwrap(), facts(good, now))];
        reported.extend(newer(&found, now));
        insta::assert_snapshot!(reported.join("\n"), @r"
        good: 120m old, the whole namespace, 7 items
        empty, 30m old, because it holds 0 items
        part, 40m old, because it holds only a part of the namespace (limited by includedResources)
        bad, 60m old, because it ended as PartiallyFailed
        ");
        assert!(newer(&find(&backups[..2]), now).is_empty(), "nothing to ask about");
        insta::assert_snapshot!(taken(&find(&backups[2..]), "shop").unwrap_err(), @"namespace shop has no good backup; the newest, empty, is not taken because it holds 0 items; name the one to restore with --from-backup");
        insta::assert_snapshot!(taken(&find(&[]), "shop").unwrap_err(), @"namespace shop has no complete backup; name one with --from-backup");
    }
}

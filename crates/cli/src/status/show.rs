//! The screen.

use anstyle::Style;
use jiff::Timestamp;

use planner::last_good::ClaimSafety;

use super::summary::{Claim, Limits, Line, Summary};
use crate::{
    output::lines,
    style,
    text::{age, count, printable},
};

/// How many of a sort are listed; the rest is counted.
const ENOUGH: usize = 5;
/// The width of the words on the left.
const MARGIN: usize = 18;

/// What stands under one name.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<Entry>,
    /// How many are not listed.
    pub(crate) more: usize,
}

/// One object and what there is to say about it, or only that.
pub(crate) struct Entry {
    pub(crate) object: Option<String>,
    pub(crate) style: Style,
    pub(crate) text: String,
    /// What follows, in no style.
    pub(crate) after: String,
}

impl Entry {
    fn plain(style: Style, text: impl Into<String>) -> Vec<Self> {
        vec![Self { object: None, style, text: text.into(), after: String::new() }]
    }
}

pub(super) fn page(summary: &Summary, now: Timestamp) -> String {
    let head =
        format!("{}\n\n", style::paint(style::HEADING, format_args!("Namespace {}", summary.namespace)));
    rows(summary, now).iter().fold(head, |text, row| text + &in_text(row))
}

fn in_text(row: &Row) -> String {
    let texts = row.entries.iter().map(|entry| {
        let text =
            if entry.style.is_plain() { entry.text.clone() } else { style::paint(entry.style, &entry.text) };
        let name = entry.object.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{name}{text}{}", entry.after)
    });
    let more = (row.more > 0).then(|| style::paint(style::QUIET, format_args!("and {} more", row.more)));
    let names = std::iter::once(row.name).chain(std::iter::repeat(""));
    lines(names.zip(texts.chain(more)).map(|(name, text)| format!("{name:MARGIN$}{text}")))
}

/// Everything there is to say, in the order of importance.
pub(crate) fn rows(summary: &Summary, now: Timestamp) -> Vec<Row> {
    let unprotected: Vec<Line> =
        newest_first(&summary.not_counted).into_iter().filter(not_protected).collect();
    let row = |name, entries| Row { name, entries, more: 0 };
    let mut rows = vec![
        shown("Not protected", &unprotected, now, |_| style::BAD),
        row("Last good backup", last_good(summary, now)),
        row("Attention", attention(summary)),
        row("Volumes", volumes(summary)),
        shown("Not counted", &newest_first(&not_counted(summary)), now, |_| style::WARNING),
        shown("Running", &summary.running, now, |_| style::BUSY),
        shown("Queued", &summary.queued, now, |_| style::BUSY),
        shown("Waiting", &newest_first(&summary.waiting), now, |_| style::WARNING),
        shown("Refused", &newest_first(&summary.refused), now, |_| style::BAD),
        shown("Failed since", &newest_first(&summary.failed), now, |_| style::BAD),
        shown("Restores", &newest_first(&summary.restores), now, mixed),
        shown("Locations", &summary.locations, now, mixed),
        shown("Schedules", &summary.schedules, now, mixed),
        row("Usage", usage(summary)),
    ];
    if summary.held_back > 0 {
        let backups = count(i64::try_from(summary.held_back).unwrap_or(i64::MAX), "backup");
        let text = format!("{backups} of an earlier namespace of this name: an administrator can adopt them");
        rows.push(row("Held back", Entry::plain(style::WARNING, text)));
    }
    rows.retain(|row| !row.entries.is_empty());
    rows
}

fn last_good(summary: &Summary, now: Timestamp) -> Vec<Entry> {
    let Some(good) = &summary.last_good else {
        const MAKE_ONE: &str = "(kubectl nacre backup create --wait)";
        let text = match summary.not_counted.last() {
            None => format!("none: nothing could be brought back {MAKE_ONE}"),
            Some(newest) => format!(
                "none. Newest: {}, not counted because {} {MAKE_ONE}",
                newest.name,
                if not_protected(newest) {
                    "volume data is missing".into()
                } else {
                    printable(&newest.message)
                }
            ),
        };
        return Entry::plain(style::BAD, text);
    };
    let ended = good.ended.map_or_else(String::new, |ended| format!(", {} ago", age(ended, now)));
    let expires =
        good.expires.map_or_else(String::new, |expires| format!("; expires in {}", age(now, expires)));
    let text = format!("{}{ended} ({}){expires}", good.name, good.message);
    Entry::plain(if summary.needs_attention() { style::WARNING } else { style::GOOD }, text)
}

/// What other rows do not show.
fn attention(summary: &Summary) -> Vec<Entry> {
    let elsewhere = ["NoGoodBackup", "LaterWentWrong", "ClaimsNotInIt"];
    let shown = summary.problems.iter().filter(|problem| !elsewhere.contains(&problem.reason));
    shown
        .flat_map(|problem| Entry::plain(style::WARNING, format!("last good backup: {}", problem.message)))
        .collect()
}

/// The claims that are not safe, and how many are.
fn volumes(summary: &Summary) -> Vec<Entry> {
    let claims = summary.claims.as_deref().unwrap_or_default();
    let is_safe = |claim: &&Claim| matches!(claim.safety, ClaimSafety::Saved | ClaimSafety::LeftOut);
    let safe = claims.iter().filter(is_safe).count();
    let mut entries: Vec<Entry> = Vec::new();
    if safe > 0 {
        let text = format!(
            "{safe} of {} in the last good backup",
            count(i64::try_from(claims.len()).unwrap_or(i64::MAX), "claim")
        );
        entries.extend(Entry::plain(if safe == claims.len() { style::GOOD } else { style::WARNING }, text));
    }
    let others: Vec<&Claim> = claims.iter().filter(|claim| !is_safe(claim)).collect();
    entries.extend(others.iter().take(ENOUGH).map(|claim| Entry {
        object: None,
        style: if claim.safety == ClaimSafety::Unknown { style::QUIET } else { style::BAD },
        text: format!("claim {}: {}", claim.name, printable(&claim.message)),
        after: String::new(),
    }));
    if others.len() > ENOUGH {
        entries.extend(Entry::plain(style::QUIET, format!("and {} more", others.len() - ENOUGH)));
    }
    entries
}

/// Those that are not shown elsewhere: the newest is named where a good one is missing, and failures and missing volume
/// data have their own rows.
fn not_counted(summary: &Summary) -> Vec<Line> {
    let named = usize::from(summary.last_good.is_none());
    let rest = summary.not_counted.len().saturating_sub(named);
    let elsewhere = |line: &&Line| !line.has_failed() && !not_protected(line);
    summary.not_counted[..rest].iter().filter(elsewhere).cloned().collect()
}

/// Volume data is missing: shown before everything else.
fn not_protected(line: &Line) -> bool {
    line.not_good == Some("NotProtected")
}

fn newest_first(found: &[Line]) -> Vec<Line> {
    found.iter().rev().cloned().collect()
}

fn mixed(line: &Line) -> Style {
    match (line.good, line.status.as_str()) {
        (true, _) => style::GOOD,
        // It goes on, and somebody has to do something about it.
        (false, "Unconfirmed") => style::WARNING,
        (false, "New" | "Queued" | "InProgress" | "Checking" | "Pending" | "Waiting") => style::BUSY,
        (false, _) => style::BAD,
    }
}

/// The first of them, and how many more there are.
fn shown(name: &'static str, found: &[Line], now: Timestamp, style: impl Fn(&Line) -> Style) -> Row {
    let entry = |line: &Line| Entry {
        object: Some(line.name.clone()),
        style: style(line),
        text: printable(&line.message),
        after: line.ended.map_or_else(String::new, |ended| format!(", {} ago", age(ended, now))),
    };
    let entries = found.iter().take(ENOUGH).map(entry).collect();
    Row { name, entries, more: found.len().saturating_sub(ENOUGH) }
}

fn usage(summary: &Summary) -> Vec<Entry> {
    let used = &summary.used;
    let of = |number: usize, limit: Option<usize>, noun: &str| match limit {
        Some(limit) => format!("{number} of {limit} {noun}s"),
        None => count(i64::try_from(number).unwrap_or(i64::MAX), noun),
    };
    let none = Limits { backups: None, unfinished: None, locations: None };
    let limits = summary.limits.unwrap_or(none);
    let text = [
        of(used.backups, limits.backups, "backup"),
        of(used.unfinished, limits.unfinished, "unfinished backup"),
        of(used.locations, limits.locations, "location"),
    ];
    let mut entries = Entry::plain(Style::new(), text.join(", "));
    if summary.limits.is_none() {
        let unknown = "limits: only the administrators see them";
        entries.extend(Entry::plain(style::QUIET, unknown));
    }
    entries
}

#[cfg(test)]
mod tests {
    use api::NonAdminBackup;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        location::known::Known,
        progress::tests::{at_velero, backup, refused},
    };

    fn named(name: &str, created: &str, status: &Value) -> NonAdminBackup {
        let mut backup = backup(status);
        backup.metadata.name = Some(name.to_owned());
        backup.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created.parse().unwrap()));
        backup
    }

    fn screen(backups: &[NonAdminBackup], held_back: usize, limits: Option<Limits>) -> String {
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        let summary = Summary::of("shop", backups, &[], &Known::default(), held_back, limits, now);
        let text = anstream::adapter::strip_str(&page(&summary, now)).to_string();
        format!("{text}attention: {}\n", summary.needs_attention())
    }

    #[test]
    fn a_schedule_that_is_to_be_confirmed_is_no_failure() {
        let line = |status: &str, good| Line {
            name: "nightly".to_owned(),
            status: status.to_owned(),
            message: String::new(),
            waits_for: None,
            not_good: None,
            ended: None,
            expires: None,
            good,
        };
        let styles = [("Enabled", true), ("Unconfirmed", false), ("Refused", false)];
        assert_eq!(
            styles.map(|(status, good)| mixed(&line(status, good))),
            [style::GOOD, style::WARNING, style::BAD]
        );
    }

    #[test]
    fn an_empty_namespace_says_that_nothing_could_be_brought_back() {
        insta::assert_snapshot!(screen(&[], 2, None), @r"
        Namespace shop

        Last good backup  none: nothing could be brought back (kubectl nacre backup create --wait)
        Usage             0 backups, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        Held back         2 backups of an earlier namespace of this name: an administrator can adopt them
        attention: true
        ");
    }

    #[test]
    fn a_busy_one_fits_on_a_screen() {
        let done = |phase: &str, time: &str| {
            at_velero(
                &json!({"phase": phase, "completionTimestamp": time, "expiration": "2026-12-01T00:00:00Z",
                "progress": {"totalItems": 42, "itemsBackedUp": 42}, "errors": i32::from(phase != "Completed")}),
            )
        };
        let running =
            at_velero(&json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 7}}));
        let mut backups = vec![
            named("ancient", "2026-11-13T12:00:00Z", &done("Failed", "2026-11-13T12:00:09Z")),
            named("good", "2026-11-14T12:00:00Z", &done("Completed", "2026-11-14T12:00:09Z")),
            named("bad", "2026-11-15T11:00:00Z", &done("PartiallyFailed", "2026-11-15T11:00:09Z")),
            named("now", "2026-11-15T12:59:00Z", &running),
            named(
                "no",
                "2026-11-15T12:59:30Z",
                &refused("InvalidBackupSpec", "spec.backupSpec.ttl: too long"),
            ),
            named(
                "more",
                "2026-11-15T12:59:31Z",
                &refused("NamespaceLimitReached", "metadata.namespace: 10 are unfinished"),
            ),
            named(
                "lost",
                "2026-11-15T12:59:32Z",
                &refused(
                    "InvalidBackupSpec",
                    "spec.backupSpec.storageLocation: there is none; the backup starts when it is ready",
                ),
            ),
        ];
        backups[6].spec.backup_spec.storage_location = Some("mine".to_owned());
        backups.extend(
            (0..7).map(|n| named(&format!("next-{n}"), "2026-11-15T12:59:40Z", &at_velero(&json!({})))),
        );
        let limits = Limits { backups: Some(20), unfinished: Some(10), locations: None };
        insta::assert_snapshot!(screen(&backups, 0, Some(limits)), @r"
        Namespace shop

        Last good backup  good, 24h ago (complete, 42 items); expires in 15d
        Running           now: 7 of 42 items
        Queued            next-0: in Velero's queue, 2 ahead of it
                          next-1: in Velero's queue, 2 ahead of it
                          next-2: in Velero's queue, 2 ahead of it
                          next-3: in Velero's queue, 2 ahead of it
                          next-4: in Velero's queue, 2 ahead of it
                          and 2 more
        Waiting           lost: for its location: spec.backupSpec.storageLocation: there is none; the backup starts when it is ready
                          more: for a limit to be free again: metadata.namespace: 10 are unfinished
        Refused           no: spec.backupSpec.ttl: too long
        Failed since      bad: done only in part, with 1 error, 119m ago
        Usage             11 of 20 backups, 8 of 10 unfinished backups, 0 locations
        attention: true
        ");
    }

    /// A backup that ended so many hours ago, with these changes to what Velero was given and what it reports.
    fn ended(name: &str, hours: i64, spec: &Value, said: &Value) -> NonAdminBackup {
        let now: Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
        let then = (now - jiff::SignedDuration::from_hours(hours)).to_string();
        let mut status =
            at_velero(&json!({"phase": "Completed", "startTimestamp": then, "completionTimestamp": then,
            "progress": {"totalItems": 42, "itemsBackedUp": 42}}));
        status["veleroBackup"]["spec"] = spec.clone();
        for (key, value) in said.as_object().into_iter().flatten() {
            status["veleroBackup"]["status"][key] = value.clone();
        }
        named(name, &then, &status)
    }

    #[test]
    fn an_empty_backup_is_not_the_last_good_one() {
        let spec = json!({"includedResources": ["nonsense"]});
        let nonsense = ended("x", 1, &spec, &json!({"progress": {}}));
        insta::assert_snapshot!(screen(&[nonsense], 0, None), @r"
        Namespace shop

        Last good backup  none. Newest: x, not counted because it holds 0 items (kubectl nacre backup create --wait)
        Usage             1 backup, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        ");
    }

    #[test]
    fn missing_volume_data_is_shown_first() {
        let good = ended("daily", 24, &json!({}), &json!({}));
        let mut lost = ended("lost", 1, &json!({}), &json!({}));
        let found = json!([{"type": "DataProtected", "status": "False", "reason": "ClaimsNotSaved",
            "message": "volume data of claim \"data\" is NOT in this backup: X. What to do: Y",
            "lastTransitionTime": "2026-11-15T12:00:00Z"}]);
        lost.status.as_mut().unwrap().conditions = serde_json::from_value(found).unwrap();
        insta::assert_snapshot!(screen(&[lost.clone()], 0, None), @r#"
        Namespace shop

        Not protected     lost: volume data of claim "data" is NOT in this backup: X. What to do: Y, 60m ago
        Last good backup  none. Newest: lost, not counted because volume data is missing (kubectl nacre backup create --wait)
        Usage             1 backup, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        "#);
        insta::assert_snapshot!(screen(&[good, lost], 0, None), @r#"
        Namespace shop

        Not protected     lost: volume data of claim "data" is NOT in this backup: X. What to do: Y, 60m ago
        Last good backup  daily, 24h ago (complete, 42 items)
        Usage             2 backups, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        "#);
    }

    #[test]
    fn a_part_of_the_namespace_is_named_and_alarms_nobody() {
        let good = ended("daily", 24, &json!({}), &json!({}));
        let part = ended("part", 2, &json!({"labelSelector": {"matchLabels": {"app": "a"}}}), &json!({}));
        insta::assert_snapshot!(screen(&[good.clone(), part.clone()], 0, None), @r"
        Namespace shop

        Last good backup  daily, 24h ago (complete, 42 items)
        Not counted       part: it holds only a part of the namespace (limited by labelSelector), 120m ago
        Usage             2 backups, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: false
        ");
        let empty = ended("empty", 1, &json!({}), &json!({"progress": {}}));
        insta::assert_snapshot!(screen(&[good, part, empty], 0, None), @r"
        Namespace shop

        Last good backup  daily, 24h ago (complete, 42 items)
        Not counted       empty: it holds 0 items, 60m ago
                          part: it holds only a part of the namespace (limited by labelSelector), 120m ago
        Usage             3 backups, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        ");
    }

    #[test]
    fn a_claim_without_data_and_an_old_backup_need_attention() {
        let now: Timestamp = "2026-11-15T13:00:00Z".parse().unwrap();
        let mut good = ended("daily", 9 * 24, &json!({}), &json!({}));
        let status = good.status.as_mut().unwrap();
        status.claims = serde_json::from_value(json!([{"name": "data", "state": "Saved"}])).unwrap();
        status.conditions = serde_json::from_value(
            json!([{"type": "DataProtected", "status": "True", "reason": "AllClaimsSaved",
            "message": "", "lastTransitionTime": "2026-11-15T12:00:00Z"}]),
        )
        .unwrap();
        let screen = |backups: &[NonAdminBackup]| {
            let claims = ["data".to_owned(), "new".to_owned()];
            let summary = Summary::of("shop", backups, &[], &Known::default(), 0, None, now);
            let summary = summary.with_claims(backups, &[], Some(&claims), now);
            let text = anstream::adapter::strip_str(&page(&summary, now)).to_string();
            format!("{text}attention: {}\n", summary.needs_attention())
        };
        insta::assert_snapshot!(screen(&[good]), @r"
        Namespace shop

        Last good backup  daily, 9d ago (complete, 42 items)
        Attention         last good backup: it is 9 days old, and no schedule makes new ones
        Volumes           1 of 2 claims in the last good backup
                          claim new: NOT in the last good backup: it is newer
        Usage             1 backup, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        ");
        insta::assert_snapshot!(screen(&[]), @r"
        Namespace shop

        Last good backup  none: nothing could be brought back (kubectl nacre backup create --wait)
        Volumes           claim data: NOT in any good backup
                          claim new: NOT in any good backup
        Usage             0 backups, 0 unfinished backups, 0 locations
                          limits: only the administrators see them
        attention: true
        ");
    }

    #[test]
    fn a_backup_in_a_location_that_was_revoked_is_not_good() {
        let mut kept = ended("kept", 3, &json!({"storageLocation": "shop-mine-1"}), &json!({}));
        kept.spec.backup_spec.storage_location = Some("mine".to_owned());
        let revoked = json!({"metadata": {"name": "mine"},
            "spec": {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}}},
            "status": {"phase": "New", "veleroBackupStorageLocation": {"name": "shop-mine-1"},
                "conditions": [{"type": "ClusterAdminApproved", "status": "False", "reason": "BslSpecApprovalPending",
                    "message": "", "lastTransitionTime": "2026-11-15T12:00:00Z"}]}});
        let revoked = serde_json::from_value(revoked).unwrap();
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        let locations = Known::of(vec![revoked]);
        let summary = Summary::of("shop", &[kept], &[], &locations, 0, None, now);
        assert!(summary.last_good.is_none() && summary.needs_attention());
        let text = anstream::adapter::strip_str(&page(&summary, now)).to_string();
        insta::assert_snapshot!(text.lines().nth(2).unwrap_or_default(), @r#"Last good backup  none. Newest: kept, not counted because its storage location "mine" is not approved by an administrator (kubectl nacre backup create --wait)"#);
    }
}

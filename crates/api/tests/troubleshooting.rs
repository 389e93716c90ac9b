//! `docs/troubleshooting.md` has every reason of a condition and of an Event, with its cause and what to do, by symptom.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use api::events::EVENTS;
use api::reasons::{REASONS, Reason, Symptom};

/// What the page begins with.
const INTRODUCTION: &str = include_str!("troubleshooting.md");

/// The types of conditions: all other constants of that file are reasons.
const TYPES: &[&str] = &[
    "Accepted",
    "Queued",
    "WaitingForTurn",
    "Deleting",
    "SpecApplied",
    "ClusterAdminApproved",
    "SpecUpdateApproved",
    "SecretSynced",
    "BackupStorageLocationSynced",
    "BackupsImported",
    "Processed",
    "NonAdminBackupNotAvailable",
    "NonAdminRestoreNotAvailable",
    "NonAdminBackupStorageLocationNotUsed",
    "DataProtected",
    "DataRestored",
    "ResultsRead",
    "RunsOnTime",
    "RequesterConfirmed",
    "Retained",
    "RequesterPermitted",
    "Reconciled",
];

/// Every constant of the conditions' file.
fn constants() -> impl Iterator<Item = &'static str> {
    let source = include_str!("../src/condition.rs");
    source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1))
}

fn all() -> impl Iterator<Item = &'static Reason> {
    REASONS.iter().chain(EVENTS)
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| reason | symptom |\n| --- | --- |\n");
    let mut names: Vec<_> = all().map(|reason| (reason.name, reason.symptom)).collect();
    names.sort_unstable();
    for (name, symptom) in names {
        writeln!(page, "| [`{name}`](#{}) | {} |", name.to_lowercase(), symptom.heading()).unwrap();
    }
    for symptom in Symptom::ALL {
        writeln!(page, "\n## {}", symptom.heading()).unwrap();
        for reason in all().filter(|reason| reason.symptom == symptom) {
            write!(page, "\n### {}\n\n`{}`\n\n", reason.name, reason.shown).unwrap();
            writeln!(page, "- **Cause.** {}\n- **What to do.** {}", reason.cause, reason.remedy).unwrap();
        }
    }
    page
}

#[test]
fn the_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let wanted = page();
    if std::env::var_os("NACRE_GEN").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

#[test]
fn every_reason_has_a_cause_and_something_to_do_and_only_once() {
    let known: BTreeSet<_> = constants().collect();
    assert!(TYPES.iter().all(|name| known.contains(name)), "a type that does not exist any more");
    let reasons: BTreeSet<_> = known.iter().copied().filter(|name| !TYPES.contains(name)).collect();
    let explained: BTreeSet<_> = REASONS.iter().map(|reason| reason.name).collect();
    assert_eq!(explained, reasons);
    assert_eq!(explained.len(), REASONS.len(), "one is explained twice");
    for reason in REASONS {
        assert!(reason.cause.ends_with('.') && reason.remedy.ends_with('.'), "{}", reason.name);
        let shown = TYPES.iter().any(|name| reason.shown.starts_with(name));
        assert!(shown || reason.shown.starts_with("an Event"), "{}: {}", reason.name, reason.shown);
    }
}

/// The sources of every crate that writes Events.
fn sources() -> String {
    fn below(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                below(&entry, text);
            } else if entry.extension().is_some_and(|end| end == "rs") {
                text.push_str(&fs::read_to_string(&entry).unwrap());
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = String::new();
    for name in ["planner", "live_migration", "controller", "cli"] {
        below(&crates.join(name).join("src"), &mut text);
    }
    text
}

/// That no other Event is written, `planner::plan::Event` checks wherever a test makes one.
#[test]
fn every_event_that_is_explained_exists_and_only_once() {
    let sources = sources();
    let conditions: BTreeSet<_> = REASONS.iter().map(|reason| reason.name).collect();
    let mut seen = BTreeSet::new();
    for event in EVENTS {
        assert!(sources.contains(&format!("\"{}\"", event.name)), "nothing writes {}", event.name);
        assert!(!conditions.contains(event.name), "{} is explained as a condition's", event.name);
        assert!(seen.insert(event.name), "{} is explained twice", event.name);
        assert!(event.cause.ends_with('.') && event.remedy.ends_with('.'), "{}", event.name);
        assert!(event.shown.starts_with("an Event"), "{}: {}", event.name, event.shown);
    }
}

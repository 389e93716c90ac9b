//! The table in docs/security.md is made of the tests: above each test that performs an attack stands a line
//! `/// H5: what is tried`, or `/// H5` alone for one more test of the same scenario. A test whose name begins with a
//! scenario's id belongs to it without saying so. Further lines in lower case belong to what is tried. Two other lines
//! say what `make test` does of it:
//!
//! - `/// only: make siege`: nothing;
//! - `/// in make test: 200 of 1000 objects`: less than `make long` does. A test that uses `at_length` has such a line.
//!
//! What `make test` leaves out is read from the Makefile.
//!
//! A line `/// planted: what is switched off` says that the test takes the same steps with a planted weakness, and that the
//! attack succeeds then. Each scenario has such a test, or a reason in [`NOT_PLANTED`].
//!
//! `NACRE_GEN=1 cargo test --package e2e --test security_table` writes the table; without it, this fails if the page is
//! not current.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

const BEGIN: &str = "<!-- scenarios: made by `make gen` of the tests -->";
const END: &str = "<!-- end of the scenarios -->";

/// Test programs that `make test` does not run.
const OTHER_PROGRAMS: [(&str, &str); 2] = [("load", "long::"), ("outages", "main::")];

/// Variables of the Makefile with what `make test` leaves out, the folder of these tests, and what runs them.
const SKIPPED: [(&str, &str, &str); 8] = [
    ("SKIP_LONG", "slow", LONG),
    ("SKIP_LONG_NODE", "node", LONG),
    ("ONLY_CI_STORIES", "stories", ONLY_CI),
    ("ONLY_CI_KUBEVIRT", "live_migration", ONLY_CI),
    ("ONLY_CI_KUBEVIRT", "install", ONLY_CI),
    ("ONLY_CI_SLOW", "slow", ONLY_CI),
    ("ONLY_CI_CONSOLE", "console", ONLY_CI),
    ("ONLY_CI_NODE", "node", ONLY_CI),
];
const LONG: &str = "make long";
const ONLY_CI: &str = "CI=true make test";

/// Tests that `make test` leaves out: a program, a module or a part of a test's name, and what runs them.
struct LeftOut {
    folder: String,
    name: String,
    runs_with: &'static str,
}

impl LeftOut {
    fn new(folder: &str, name: &str, runs_with: &'static str) -> Self {
        Self { folder: format!("e2e/tests/{folder}/"), name: name.to_owned(), runs_with }
    }

    /// Whether it means this test of this file.
    fn has(&self, path: &str, test: &str) -> bool {
        let Some((_, file)) = path.rsplit_once(&self.folder) else { return false };
        match self.name.strip_suffix("::") {
            Some(module) => file == format!("{module}.rs") || file.starts_with(&format!("{module}/")),
            None => test.contains(&self.name),
        }
    }
}

/// Scenarios without a test: what is tried, and why there is none.
const WITHOUT_TEST: [(Id, &str, &str); 1] = [(
    ('F', 4),
    "a volume with so many files that a node agent has no memory left",
    "up to Velero: see its capacity below",
)];

/// Scenarios, or parts of them, without a planted weakness, and why none can be arranged.
const NOT_PLANTED: [(Id, &str); 5] = [
    (('G', 6), "administrators may hand it out; what is tested is that it is noticed"),
    (('G', 7), "what is tested is that it works without the permission"),
    (
        ('H', 12),
        "names and redirects are kept from the cluster by a NetworkPolicy, which needs a network plugin",
    ),
    (
        ('H', 13),
        "the tests about logs, roles and metrics look at one function or file, with no part to switch off",
    ),
    (('X', 1), "whatever reads objects bears odd ones, so there is no single defence"),
];

/// An id: the letter of its section, and a number.
type Id = (char, u32);

#[derive(Default)]
struct Row {
    /// What is tried, in the words of one test or of several.
    tried: Vec<String>,
    /// Names of tests, and where they run if not in `make test`, or how much of them does.
    tests: BTreeMap<String, Option<String>>,
    /// What tests switch off, so that the attack succeeds.
    planted: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

/// Reads `H5` or `h5`.
fn id(text: &str) -> Option<Id> {
    let section = text.chars().next()?.to_ascii_uppercase();
    let number = text.get(1..)?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (matches!(section, 'A'..='H' | 'X') && is_number)
        .then(|| number.parse().ok().map(|number| (section, number)))?
}

/// The scenarios that the comments above a test name, and what they say is tried.
fn named_above(above: &[&str]) -> Vec<(Id, Option<String>)> {
    let mut named: Vec<(Id, Option<String>)> = Vec::new();
    let mut continues = false;
    for text in above.iter().filter_map(|line| line.strip_prefix("/// ")) {
        let (name, tried) =
            text.split_once(": ").map_or((text, None), |(name, tried)| (name, Some(tried.to_owned())));
        let last = named.last_mut().and_then(|(_, tried)| tried.as_mut());
        match (id(name), last) {
            (Some(id), _) => {
                named.push((id, tried));
                continues = true;
            }
            (None, Some(last)) if continues && !is_note(text) && !text.starts_with(char::is_uppercase) => {
                *last = format!("{last} {text}");
            }
            _ => continues = false,
        }
    }
    named
}

/// What a comment says of where a test runs, or how much of it.
fn note(text: &str) -> Option<String> {
    match text.split_once(": ")? {
        ("only", target) => Some(format!("`{target}`")),
        ("in make test", part) => Some(format!("in `make test`: {part}")),
        _ => None,
    }
}

/// What a comment says is switched off.
fn planted(text: &str) -> Option<&str> {
    text.strip_prefix("planted: ")
}

fn is_note(text: &str) -> bool {
    note(text).is_some() || planted(text).is_some()
}

/// The scenarios that a test's own name begins with.
fn named_inside(test: &str) -> impl Iterator<Item = Id> {
    test.split('_').map_while(id)
}

/// What `make test` leaves out.
fn left_out(makefile: &str) -> Result<Vec<LeftOut>> {
    let mut left_out: Vec<_> = OTHER_PROGRAMS.map(|(folder, name)| LeftOut::new(folder, name, LONG)).into();
    for (variable, folder, runs_with) in SKIPPED {
        let line = makefile.lines().find_map(|line| line.strip_prefix(variable)?.strip_prefix(" := "));
        let words = line.with_context(|| format!("the Makefile has no {variable}"))?.split_whitespace();
        left_out
            .extend(words.filter(|word| *word != "--skip").map(|name| LeftOut::new(folder, name, runs_with)));
    }
    Ok(left_out)
}

/// Collects the tests of a file. Attacks are functions of a program of their own, so they have no attribute.
fn collect(path: &str, text: &str, left_out: &[LeftOut], rows: &mut BTreeMap<Id, Row>) -> Result<()> {
    let is_attack = path.contains("e2e/tests/attacks/");
    let mut above: Vec<&str> = Vec::new();
    let mut shortened = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with("///") || line.starts_with("#[") {
            above.push(line);
            continue;
        }
        let is_test =
            above.iter().any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
                || (is_attack && line.starts_with("pub(crate) async fn "));
        let name = line.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name);
        if let Some(name) = name.filter(|_| is_test) {
            let comments = || above.iter().filter_map(|line| line.strip_prefix("/// "));
            let notes = comments().find_map(note);
            let weakness = comments().find_map(planted);
            let runs_with = left_out.iter().find(|some| some.has(path, name)).map(|some| some.runs_with);
            let says_how_much = notes.is_some() || runs_with == Some(LONG);
            let notes = match (notes, runs_with) {
                (Some(part), Some(target)) => Some(part.replace("`make test`", &format!("`{target}`"))),
                (None, Some(target)) => Some(format!("`{target}`")),
                (notes, None) => notes,
            };
            let said = named_above(&above).into_iter().chain(named_inside(name).map(|id| (id, None)));
            shortened = None;
            for (id, tried) in said {
                let row = rows.entry(id).or_default();
                row.tests.insert(name.to_owned(), notes.clone());
                row.planted.extend(weakness.map(str::to_owned));
                row.tried.extend(tried.filter(|tried| !row.tried.contains(tried)));
                shortened = Some(name).filter(|_| !says_how_much);
            }
        }
        if line.contains("at_length(")
            && let Some(name) = shortened
        {
            bail!("write `/// in make test: how much of it` above {name}, which uses at_length");
        }
        above.clear();
    }
    Ok(())
}

fn table(rows: &BTreeMap<Id, Row>) -> Result<String> {
    let mut all = BTreeMap::new();
    for (id, tried, why) in WITHOUT_TEST {
        ensure!(!rows.contains_key(&id), "{id:?} has a test now: take it out of WITHOUT_TEST");
        all.insert(id, format!("{tried} | {why} | none |"));
    }
    let mut lines = vec![
        "| | what is tried | tests | succeeds with this planted weakness |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for ((section, number), row) in rows {
        let nothing =
            format!("write `/// {section}{number}: what is tried` above one of {:?}", row.tests.keys());
        ensure!(!row.tried.is_empty(), nothing);
        let named = row.tests.keys().any(|test| named_inside(test).any(|id| id == (*section, *number)));
        ensure!(named, "none of {:?} has {section}{number} in its name", row.tests.keys());
        let weakness = weakness((*section, *number), row)?;
        let tried = row.tried.join("; ");
        let tests = row.tests.iter().map(|(name, note)| {
            format!("`{name}`{}", note.as_ref().map_or(String::new(), |note| format!(" ({note})")))
        });
        let tests = tests.collect::<Vec<_>>().join(", ");
        all.insert((*section, *number), format!("{tried} | {tests} | {weakness} |"));
    }
    lines.extend(all.iter().map(|((section, number), rest)| format!("| {section}{number} | {rest}")));
    Ok(lines.join("\n"))
}

/// What shows that the attack is a good one, or why nothing does.
fn weakness((section, number): Id, row: &Row) -> Result<String> {
    let reason = NOT_PLANTED.iter().find(|(id, _)| *id == (section, number)).map(|(_, reason)| *reason);
    let all: Vec<_> = row.planted.iter().map(String::as_str).collect();
    let what_to_do = format!(
        "write `/// planted: what is switched off` above one of the tests of {section}{number}, in which the attack then \
         succeeds, or say in NOT_PLANTED why there can be none: {:?}",
        row.tests.keys()
    );
    match (all.join("; "), reason) {
        (none, None) if none.is_empty() => bail!(what_to_do),
        (none, Some(reason)) if none.is_empty() => Ok(format!("none: {reason}")),
        (planted, Some(reason)) => Ok(format!("{planted}; for the rest none: {reason}")),
        (planted, None) => Ok(planted),
    }
}

#[test]
fn the_table_is_what_the_tests_say() -> Result<()> {
    let mut rows = BTreeMap::new();
    let mut found = Vec::new();
    files(&root().join("crates"), &mut found)?;
    let left_out = left_out(&fs::read_to_string(root().join("Makefile"))?)?;
    let mut missing: Vec<_> = left_out.iter().map(|some| some.name.as_str()).collect();
    for path in found {
        let (path, text) = (path.to_string_lossy(), fs::read_to_string(&path)?);
        missing.retain(|name| !left_out.iter().any(|some| some.name == *name && some.has(&path, &text)));
        collect(&path, &text, &left_out, &mut rows)?;
    }
    ensure!(missing.is_empty(), "the Makefile leaves out what does not exist: {missing:?}");
    ensure!(rows.len() >= 60, "only {} rows", rows.len());
    for (id, _) in NOT_PLANTED {
        ensure!(rows.contains_key(&id), "{id:?} is no scenario: take it out of NOT_PLANTED");
    }
    let wanted = table(&rows)?;
    let page = root().join("docs/security.md");
    let text = fs::read_to_string(&page)?;
    let (before, rest) = text.split_once(BEGIN).context("where the table begins")?;
    let (_, after) = rest.split_once(END).context("where the table ends")?;
    let current = format!("{before}{BEGIN}\n{wanted}\n{END}{after}");
    if std::env::var_os("NACRE_GEN").is_some() {
        fs::write(&page, current)?;
    } else {
        ensure!(text == current, "docs/security.md is not current: run `make gen`");
    }
    Ok(())
}

#[test]
fn a_scenario_is_read_from_a_comment_or_a_name() {
    let mut rows = BTreeMap::new();
    let long = vec![LeftOut::new("slow", "rotation::", LONG)];
    let text = "/// H5: a thing is tried\n/// planted: x\n/// G9\n#[test]\nfn h5_it_fails() {}\n\n/// G1: a rule\npub fn rule() {}\n\
                #[test]\nfn c3_another() {}\n#[test]\nfn x_ray() {}\n";
    collect("crates/e2e/tests/slow/rotation.rs", text, &long, &mut rows).unwrap();
    assert_eq!(rows.keys().collect::<Vec<_>>(), [&('C', 3), &('G', 9), &('H', 5)]);
    assert_eq!(rows[&('H', 5)].tried, ["a thing is tried"]);
    assert_eq!(rows[&('H', 5)].tests["h5_it_fails"].as_deref(), Some("`make long`"));
    assert!(table(&rows).is_err(), "nobody says what C3 is");
    rows.remove(&('C', 3));
    let error = table(&rows).unwrap_err().to_string();
    assert!(error.contains("write `/// G9"), "{error}");
    rows.get_mut(&('G', 9)).unwrap().tried.push("another thing".to_owned());
    let error = table(&rows).unwrap_err().to_string();
    assert!(error.contains("has G9 in its name"), "a comment alone is not enough: {error}");
    rows.remove(&('G', 9));
    assert!(table(&rows).unwrap().contains("| H5 | a thing is tried | `h5_it_fails` (`make long`) | x |"));
}

#[test]
fn a_scenario_has_a_planted_weakness_or_a_reason() {
    let table_of = |text: &str| {
        let mut rows = BTreeMap::new();
        collect("a.rs", text, &[], &mut rows).unwrap();
        table(&rows)
    };
    let bare = "/// C3: a thing\n#[test]\nfn c3_a() {}\n";
    let error = table_of(bare).unwrap_err().to_string();
    assert!(error.contains("`/// planted: what is switched off` above one of the tests of C3"), "{error}");
    let another = format!("{bare}/// planted: the check is gone\n#[test]\nfn c3_b() {{}}\n");
    let row = "| C3 | a thing | `c3_a`, `c3_b` | the check is gone |";
    assert!(table_of(&another).unwrap().contains(row), "{:?}", table_of(&another));
    let reason = "/// G7: a thing\n#[test]\nfn g7_a() {}\n";
    assert!(
        table_of(reason).unwrap().contains("| `g7_a` | none: what is tested is"),
        "{:?}",
        table_of(reason)
    );
    let both = "/// H12: a thing\n/// planted: x\n#[test]\nfn h12_a() {}\n";
    assert!(table_of(both).unwrap().contains("| x; for the rest none: names and"), "{:?}", table_of(both));
}

#[test]
fn what_the_makefile_leaves_out_is_known_by_module_or_by_name() {
    let empty = SKIPPED.map(|(variable, ..)| format!("{variable} :=  --skip nothing::\n")).concat();
    let makefile = format!("ONLY_CI_STORIES := --skip siege:: --skip every_minute\n{empty}");
    let left_out = left_out(&makefile).unwrap();
    let runs_with =
        |path: &str, test: &str| left_out.iter().find(|some| some.has(path, test)).map(|some| some.runs_with);
    assert_eq!(runs_with("crates/e2e/tests/load/long.rs", "a"), Some(LONG));
    assert_eq!(runs_with("crates/e2e/tests/stories/siege.rs", "a"), Some(ONLY_CI));
    assert_eq!(runs_with("crates/e2e/tests/stories/siege/mod.rs", "a"), Some(ONLY_CI));
    assert_eq!(runs_with("crates/e2e/tests/slow/siege.rs", "a"), None);
    assert_eq!(runs_with("crates/e2e/tests/stories/schedules.rs", "h5_every_minute_one"), Some(ONLY_CI));
    assert_eq!(runs_with("crates/e2e/tests/stories/schedules.rs", "h5_another"), None);
    let text = "/// H5: a thing\n/// in make test: 2 of 9\n#[test]\nfn h5_a() {}\n#[test]\nfn h5_b() {\nat_length(2, 9);\n}\n";
    let mut rows = BTreeMap::new();
    let error = collect("e2e/tests/stories/siege.rs", text, &left_out, &mut rows).unwrap_err().to_string();
    assert!(error.contains("above h5_b"), "{error}");
    let tests = &rows[&('H', 5)].tests;
    assert_eq!(tests["h5_a"].as_deref(), Some("in `CI=true make test`: 2 of 9"));
    assert_eq!(tests["h5_b"].as_deref(), Some("`CI=true make test`"));
}

#[test]
fn what_is_tried_may_take_several_lines_and_a_test_says_how_much_of_it_runs() {
    let mut rows = BTreeMap::new();
    let text = "/// H5: a thing is\n/// tried\n/// planted: x\n/// And more.\n/// only: make siege\n#[test]\nfn h5_a() {}\n\
                /// H5: a thing is tried\n/// in make test: 2 of 9\n#[test]\nfn h5_b() {\nat_length(2, 9);\n}\n";
    collect("a.rs", text, &[], &mut rows).unwrap();
    let row = "| H5 | a thing is tried | `h5_a` (`make siege`), `h5_b` (in `make test`: 2 of 9) | x |";
    assert!(table(&rows).unwrap().ends_with(row), "{:?}", table(&rows));
    let silent = "/// H5: a thing\n#[test]\nfn h5_c() {\nat_length(2, 9);\n}\n";
    let error = collect("a.rs", silent, &[], &mut rows).unwrap_err().to_string();
    assert!(error.contains("above h5_c"), "{error}");
}

//! The documents: every link in them leads to a file and a section that exist.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that people read: those of the root, and the guides.
fn pages() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The names by which a page's sections are linked to, as forges make them.
fn sections(page: &str) -> BTreeSet<String> {
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' ');
    let headings = page.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    headings
        .map(|heading| heading.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// What a page links to, other sites left out.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let starts = page.match_indices("](").map(|(at, _)| &page[at + 2..]);
    starts.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).filter(|link| !link.contains("://"))
}

fn broken(page: &Path, text: &str) -> Vec<String> {
    let leads_nowhere = |link: &&str| {
        let (file, section) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
        let found = target.exists();
        let has = |section: &str| sections(&fs::read_to_string(&target).unwrap()).contains(section);
        !found || !section.is_empty() && !has(section)
    };
    links(text).filter(leads_nowhere).map(|link| format!("{}: {link}", page.display())).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_section() {
    let pages = pages();
    assert!(pages.len() > 10, "{pages:?}");
    let found: Vec<_> =
        pages.iter().flat_map(|page| broken(page, &fs::read_to_string(page).unwrap())).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_link_to_a_missing_file_or_section_is_found() {
    let page = root().join("README.md");
    assert!(broken(&page, "[a](docs/user-guide.md) [b](#test-it) [c](docs/runbook.md#nowhere)").len() == 1);
    assert!(broken(&page, "[a](docs/nothing.md)").len() == 1);
}

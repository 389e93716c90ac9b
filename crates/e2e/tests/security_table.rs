//! Checks the table in docs/security.md: each test that it names exists, and no scenario of this suite is missing from
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every test of the workspace.
fn sources(folder: &Path, text: &mut String) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The names in a row's last column.
fn named(row: &str) -> Vec<&str> {
    let column = row.trim_end_matches(" |").rsplit('|').next().unwrap_or_default();
    column.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_scenario_has_a_test_and_every_attack_a_row() -> Result<()> {
    let page = fs::read_to_string(root().join("docs/security.md"))?;
    let (_, table) = page.split_once("<!-- scenarios -->").context("the table")?;
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    ensure!(rows.len() >= 50, "only {} rows", rows.len());
    let mut code = String::new();
    sources(&root().join("crates"), &mut code)?;
    for row in &rows {
        ensure!(!named(row).is_empty(), "no test in {row}");
        for test in named(row) {
            ensure!(code.contains(&format!("fn {test}(")), "{test} is in the table and nowhere else");
        }
    }
    let mut attacks = String::new();
    sources(&root().join("crates/e2e/tests/attacks"), &mut attacks)?;
    let scenarios =
        attacks.lines().filter_map(|line| line.strip_prefix("pub(crate) async fn ")?.split_once('('));
    for (name, _) in scenarios {
        ensure!(rows.iter().any(|row| named(row).contains(&name)), "{name} is not in the table");
    }
    Ok(())
}

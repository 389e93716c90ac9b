//! The walk-through in CONTRIBUTING.md, compiled: what it shows is in this file, and what it names exists.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use api::velero::BackupSpec;
use planner::Refusal;
use serde_json::json;

const PAGE: &str = include_str!("../../../CONTRIBUTING.md");

/// Hooks run one after the other, and everybody else waits meanwhile.
fn few_hooks(spec: &BackupSpec) -> Option<Refusal> {
    let hooks = spec.hooks.as_ref().and_then(|hooks| hooks.resources.as_ref()).map_or(0, Vec::len);
    (hooks > 5).then(|| {
        let message = format!("there are {hooks} hooks; at most 5 are allowed");
        Refusal::new("spec.backupSpec.hooks.resources", message)
    })
}

#[test]
fn six_hooks_are_refused_and_five_are_not() {
    let hooks = |many: usize| json!({"hooks": {"resources": vec![json!({"name": "flush"}); many]}});
    let refused = |many| few_hooks(&serde_json::from_value(hooks(many)).unwrap()).map(|why| why.to_string());
    assert_eq!(refused(5), None);
    let why = "spec.backupSpec.hooks.resources: there are 6 hooks; at most 5 are allowed";
    assert_eq!(refused(6).as_deref(), Some(why));
}

/// The part of the page that walks through a change.
fn walk_through() -> &'static str {
    PAGE.split("\n## Your first change").nth(1).unwrap()
}

#[test]
fn the_code_on_the_page_is_the_code_above() {
    let here = include_str!("first_change.rs");
    let blocks: Vec<_> = walk_through().split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let code: String = block
            .split("```")
            .next()
            .unwrap()
            .lines()
            .map(|line| line.strip_prefix("   ").unwrap_or(line))
            .fold(String::new(), |code, line| code + line + "\n");
        assert!(here.contains(code.trim()), "not in this file:\n{code}");
    }
}

#[test]
fn the_files_and_functions_on_the_page_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named: Vec<_> = walk_through().split('`').filter(|word| word.starts_with("crates/")).collect();
    assert!(named.len() >= 6, "{named:?}");
    for file in named {
        assert!(root.join(file).is_file(), "{file} does not exist");
    }
    let rules = include_str!("../src/backup/check.rs");
    assert!(
        rules.contains("pub fn check_spec(") && rules.contains(".or_else(|| whose_storage(spec, policy))")
    );
}

//! `docs/policy.md` lists every key of a policy. It is made of the model's own types and comments.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use api::velero::{BackupSpec, RestoreSpec};
use planner::policy::{EnforcedLocation, IN_APPLICATIONS, Policy, check};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::effects;

/// What the page begins with.
const INTRODUCTION: &str = include_str!("reference.md");

/// One key of a policy.
struct Row {
    key: String,
    kind: String,
    default: String,
    meaning: String,
}

fn schema<T: JsonSchema>() -> Value {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().into()
}

/// What a part of a schema refers to by name, and that name.
fn resolved<'a>(root: &'a Value, part: &'a Value) -> (&'a Value, &'a str) {
    let optional = part["anyOf"].as_array().and_then(|either| either.first());
    match optional.unwrap_or(part)["$ref"].as_str() {
        Some(reference) => {
            let name = reference.trim_start_matches("#/$defs/");
            (&root["$defs"][name], name)
        }
        None => (part, ""),
    }
}

/// A type, as a reader of YAML knows it.
fn kind(root: &Value, part: &Value) -> String {
    let (part, name) = resolved(root, part);
    if name == "Duration" || name == "Size" {
        return name.to_lowercase();
    }
    let words: Vec<_> = variants(part)
        .filter_map(|variant| variant["const"].as_str())
        .map(|word| format!("`{word}`"))
        .collect();
    if !words.is_empty() {
        return words.join(" or ");
    }
    let first = part["type"].as_array().and_then(|types| types.first()).unwrap_or_else(|| &part["type"]);
    match first.as_str().unwrap_or_default() {
        "string" => "text".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "integer" => "number".to_owned(),
        "array" => "list".to_owned(),
        "object" => "block".to_owned(),
        other => panic!("no word for {other:?}: {part}"),
    }
}

fn variants(part: &Value) -> impl Iterator<Item = &Value> {
    part["oneOf"].as_array().into_iter().flatten()
}

/// A comment in one line.
fn text(part: &Value) -> String {
    part["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn meaning(root: &Value, part: &Value) -> String {
    let mut meaning = text(part);
    for variant in variants(resolved(root, part).0) {
        write!(meaning, "<br>`{}`: {}", variant["const"].as_str().unwrap(), text(variant)).unwrap();
    }
    meaning
}

/// A default in one cell.
fn default(value: Option<&Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Array(list)) if list.is_empty() => "empty".to_owned(),
        Some(Value::Array(list)) => {
            list.iter().map(|item| format!("`{}`", item.as_str().unwrap())).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Object(block)) if block.is_empty() => "empty".to_owned(),
        Some(other) => format!("`{other}`"),
    }
}

fn fields(part: &Value) -> impl Iterator<Item = (&String, &Value)> {
    part["properties"].as_object().into_iter().flatten()
}

/// Whole specs have tables of their own.
fn is_spec(key: &str) -> bool {
    key.ends_with(".enforce") || key.ends_with(".defaults")
}

/// Every key below this one, depth first.
fn rows(root: &Value, part: &Value, above: &str, defaults: &Value, found: &mut Vec<Row>) {
    for (name, field) in fields(resolved(root, part).0) {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let value = defaults.get(name);
        let has_keys = fields(resolved(root, field).0).next().is_some();
        if !has_keys || is_spec(&key) {
            let (kind, meaning) = (kind(root, field), meaning(root, field));
            found.push(Row { key, kind, default: default(value), meaning });
        } else {
            rows(root, field, &key, value.unwrap_or(&Value::Null), found);
        }
    }
}

/// The fields of a spec that can be set for everybody.
fn spec_rows<T: JsonSchema>(at: &str) -> Vec<Row> {
    let root = schema::<T>();
    let mut found = Vec::new();
    for (name, field) in fields(&root) {
        let kind = kind(&root, field);
        let sample = match kind.as_str() {
            "text" => json!("x"),
            "duration" => json!("1h"),
            "list" => json!(["x"]),
            "number" => json!(1),
            "block" => json!({"x": "x"}),
            _ => json!(true),
        };
        let mut policy = sample;
        for key in [at, name].join(".").rsplit('.') {
            policy = json!({key: policy});
        }
        let refused = check(&policy.to_string());
        if !refused.iter().any(|problem| problem.message.contains("cannot be set for all tenants")) {
            found.push(Row {
                key: name.clone(),
                kind,
                default: String::new(),
                meaning: meaning(&root, field),
            });
        }
    }
    found
}

fn in_application(key: &str) -> String {
    let found = IN_APPLICATIONS.iter().find(|(ours, _)| *ours == key);
    found.map(|(_, theirs)| format!("`{theirs}`")).unwrap_or_default()
}

/// Every key that is explained, but for the fields of whole specs.
pub(crate) fn keys() -> Vec<String> {
    let root = schema::<Policy>();
    let mut found = Vec::new();
    rows(&root, &root, "", &json!(Policy::default()), &mut found);
    found.into_iter().map(|row| row.key).collect()
}

fn page() -> String {
    let root = schema::<Policy>();
    let defaults = json!(Policy::default());
    let mut page = INTRODUCTION.to_owned();
    for (section, part) in fields(&root) {
        write!(page, "\n## `{section}`\n\n{}\n\n", text(part)).unwrap();
        page.push_str("| key | type | default | meaning | in a DataProtectionApplication |\n");
        page.push_str("| --- | --- | --- | --- | --- |\n");
        let mut found = Vec::new();
        rows(&root, part, section, &defaults[section], &mut found);
        for Row { key, kind, default, meaning } in &found {
            writeln!(page, "| `{key}` | {kind} | {default} | {meaning} | {} |", in_application(key)).unwrap();
        }
        page.push_str("\n| key | accepts | example | what a tenant sees when it applies |\n");
        page.push_str("| --- | --- | --- | --- |\n");
        for Row { key, .. } in &found {
            let effects::Effect { accepts, example, seen, .. } =
                effects::of(key).unwrap_or_else(|| panic!("{key} has no example"));
            let (name, example) = (key.rsplit('.').next().unwrap(), example.replace('|', "\\|"));
            writeln!(page, "| `{key}` | {accepts} | `{name}: {example}` | {seen} |").unwrap();
        }
    }
    let specs = [
        (
            "`backup.defaults` and `backup.enforce`",
            "nonadminbackup.spec.backupSpec",
            spec_rows::<BackupSpec>("backup.enforce"),
        ),
        (
            "`restore.enforce`",
            "nonadminrestore.spec.restoreSpec",
            spec_rows::<RestoreSpec>("restore.enforce"),
        ),
        (
            "`storageLocations.enforce`",
            "nonadminbackupstoragelocation.spec.backupStorageLocationSpec",
            spec_rows::<EnforcedLocation>("storageLocations.enforce"),
        ),
    ];
    for (heading, explained, found) in specs {
        write!(page, "\n## The fields of {heading}\n\n").unwrap();
        write!(page, "`kubectl explain {explained}` shows what is below them.\n\n").unwrap();
        page.push_str("| key | type | meaning |\n| --- | --- | --- |\n");
        for Row { key, kind, meaning, .. } in found {
            writeln!(page, "| `{key}` | {kind} | {meaning} |").unwrap();
        }
    }
    page
}

#[test]
fn the_reference_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let wanted = page();
    if std::env::var_os("NACRE_GEN").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

/// What a deliberate mistake shows must be on the page, and say something.
#[test]
fn every_key_that_a_policy_can_have_is_in_the_reference() {
    let page = page();
    let mut blocks = vec![String::new()];
    let mut keys = 0;
    while let Some(block) = blocks.pop() {
        let mut policy = json!({"deliberate-mistake": 1});
        for key in block.rsplit('.').filter(|key| !key.is_empty()) {
            policy = json!({key: policy});
        }
        let problems = check(&policy.to_string());
        let known = problems.iter().find_map(|problem| problem.message.split_once("known here: "));
        // What is no block has no keys below it.
        let Some((_, known)) = known else { continue };
        for name in known.split(", ") {
            let key = if block.is_empty() { name.to_owned() } else { format!("{block}.{name}") };
            keys += 1;
            if is_spec(&block) {
                assert!(page.contains(&format!("| `{name}` |")) || is_refused(&key), "{key} is missing");
            } else {
                // What differs by namespace has the other keys again, and is explained above them.
                let section = page.contains(&format!("\n## `{key}`\n")) || key == "overrides";
                assert!(section || page.contains(&format!("| `{key}")), "{key} is missing");
                blocks.push(key);
            }
        }
    }
    assert!(keys > 60, "only {keys} keys were found");
    let silent = page
        .lines()
        .find(|line| line.starts_with("| `") && line.contains(" |  |") && !line.ends_with("|  |"));
    assert_eq!(silent, None, "a row without a type, a default or a meaning");
}

fn is_refused(key: &str) -> bool {
    [
        "storageLocation",
        "Namespaces",
        "volumeSnapshotLocations",
        "ClusterScopedResources",
        "includeClusterResources",
        "scheduleName",
        "namespaceMapping",
    ]
    .iter()
    .any(|name| key.ends_with(name))
}

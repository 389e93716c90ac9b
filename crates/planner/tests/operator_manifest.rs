//! `deploy/operator.yaml` matches the planner.

use std::fs;
use std::path::Path;

use planner::install::{Settings, operator};

#[test]
fn the_shipped_manifest_of_the_operator_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator.yaml");
    let parts = operator(&Settings::default());
    let texts: Vec<_> = parts.iter().map(|part| serde_saphyr::to_string(&part.body).unwrap()).collect();
    let wanted = texts.join("---\n");
    if std::env::var_os("NACRE_GEN").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

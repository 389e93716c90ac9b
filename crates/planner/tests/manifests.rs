//! The manifests in `deploy` are what the planner says.

use std::fs;
use std::path::Path;

/// `make gen` sets this to write the files instead of comparing them.
const WRITE: &str = "NACRE_GEN";

#[test]
fn the_shipped_manifests_are_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nacre.yaml");
    let parts = planner::install::objects("velero")
        .into_iter()
        .map(|object| serde_saphyr::to_string(&object.body).unwrap());
    let wanted = parts.collect::<Vec<_>>().join("---\n");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

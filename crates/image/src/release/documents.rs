//! The documents of a release: the manifest of the kubectl plugin, and where everything comes from.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Release, platform};
use crate::architecture;
use crate::nacre::{VERSION, root};

/// Where files of a release are found.
const HOME: &str = "https://nacre.dev";

/// The manifest by which krew installs `kubectl nacre`.
pub(super) fn krew(programs: &BTreeMap<String, String>) -> String {
    let sum = programs.get("kubectl-nacre").map(String::as_str).unwrap_or_default();
    let (platform, architecture) = (platform(), architecture());
    format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: nacre
spec:
  version: v{VERSION}
  homepage: {HOME}
  shortDescription: Back up and restore your own namespace with Velero
  description: |
    Backups, restores, schedules and own storage for namespace owners, and live-migration permissions on KubeVirt.
    Administrators install nacre with it, approve storage, and look whether everything is as it should be.
  caveats: |
    Namespace owners need nacre in the cluster. Administrators install it: kubectl nacre install --image IMAGE
  platforms:
  - selector:
      matchLabels:
        os: linux
        arch: {architecture}
    uri: {HOME}/releases/v{VERSION}/kubectl-nacre-{platform}.tar.gz
    sha256: {sum}
    bin: kubectl-nacre
    files:
    - from: kubectl-nacre
      to: .
    - from: LICENSE
      to: .
"
    )
}

/// Where the files come from: an in-toto statement with SLSA's predicate. Nobody signs it here.
pub(super) fn provenance(release: &Release, files: &[(String, String)]) -> Result<Value> {
    let subjects: Vec<Value> =
        files.iter().map(|(name, sum)| json!({"name": name, "digest": {"sha256": sum}})).collect();
    let compiler = Command::new("rustc").arg("-vV").output()?;
    let compiler = String::from_utf8(compiler.stdout)?;
    let fact = |name: &str| {
        let line = compiler.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
    };
    let lock = crate::archive::sha256(&root().join("Cargo.lock"))?;
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{HOME}/release/v1"),
                "externalParameters": {
                    "source": HOME,
                    "tag": release.tag,
                    "static": !release.with_libraries,
                },
                "internalParameters": {"command": "make release", "target": fact("host")},
                "resolvedDependencies": [
                    {"uri": format!("git+{HOME}"), "digest": {"gitCommit": release.commit}},
                    {"uri": "Cargo.lock", "digest": {"sha256": lock}},
                    {"uri": format!("rustc {}", fact("release")), "digest": {"gitCommit": fact("commit-hash")}},
                ],
            },
            "runDetails": {"builder": {"id": format!("{HOME}/make")}, "metadata": {}},
        },
    }))
}

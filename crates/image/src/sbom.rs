//! What is compiled into nacre's programs, as a CycloneDX document.
//!
//! `cargo tree` knows the crates that these two programs are really built from, with features as they are; `Cargo.lock`
//! knows the checksums. Both work offline. Nothing in it depends on time or machine, so the image can be reproduced.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::nacre::{VERSION, root};

/// A crate as `cargo tree` shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    licence: String,
    repository: String,
}

impl Crate {
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The document for nacre and kubectl-nacre, as they are built for this machine's kind.
pub fn of_nacre() -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = run(Command::new(cargo).current_dir(root()).args([
        "tree",
        "--locked",
        "--package=controller",
        "--package=cli",
        "--edges=normal",
        "--prefix=depth",
        "--no-dedupe",
        "--format=|{p}|{l}|{r}",
    ]))?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let compiler = run(Command::new("rustc").arg("--version"))?;
    // A static program contains the C library, where that is GNU's.
    let libc = run(Command::new("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_default();
    document(&tree, &lock, compiler.trim(), libc.trim())
}

fn document(tree: &str, lock: &str, compiler: &str, libc: &str) -> Result<Value> {
    let edges = edges(tree)?;
    let checksums = checksums(lock);
    let mut components: Vec<Value> = edges.keys().map(|found| component(found, &checksums)).collect();
    if let Some((name, version)) = libc.split_once(' ') {
        let purl = format!("pkg:generic/{name}@{version}");
        components.push(
            json!({ "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl }),
        );
    }
    let dependencies: Vec<Value> = edges
        .iter()
        .map(|(from, to)| {
            json!({ "ref": from.purl(), "dependsOn": to.iter().map(Crate::purl).collect::<Vec<_>>() })
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "container", "bom-ref": "nacre", "name": "nacre", "version": VERSION },
            "properties": [{ "name": "compiler", "value": compiler }],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Each crate, and those it depends on. Lines are `depth|name vVERSION ...|licence|repository`.
fn edges(tree: &str) -> Result<BTreeMap<Crate, BTreeSet<Crate>>> {
    let mut edges: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
    let mut path: Vec<Crate> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.splitn(4, '|').collect();
        let &[depth, package, licence, repository] = fields.as_slice() else {
            anyhow::bail!("`cargo tree` printed {line:?}");
        };
        let (name, rest) = package.split_once(" v").with_context(|| format!("no version in {package:?}"))?;
        let found = Crate {
            name: name.to_owned(),
            version: rest.split_whitespace().next().unwrap_or_default().to_owned(),
            licence: licence.replace('/', " OR "),
            repository: repository.trim_end_matches(" (*)").to_owned(),
        };
        path.truncate(depth.parse()?);
        if let Some(parent) = path.last() {
            edges.entry(parent.clone()).or_default().insert(found.clone());
        }
        edges.entry(found.clone()).or_default();
        path.push(found);
    }
    Ok(edges)
}

fn component(found: &Crate, checksums: &BTreeMap<(String, String), String>) -> Value {
    let purl = found.purl();
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": found.name,
        "version": found.version,
        "purl": purl,
    });
    if !found.licence.is_empty() {
        component["licenses"] = json!([{ "expression": found.licence }]);
    }
    if !found.repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": found.repository }]);
    }
    if let Some(checksum) = checksums.get(&(found.name.clone(), found.version.clone())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Checksums by name and version. The crates of this workspace have none.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let packages = lock.split("[[package]]").skip(1);
    let found = packages.filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    found.collect()
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0|controller v0.1.0 (/src)|Apache-2.0|
1|ring v0.17.1|Apache-2.0 AND ISC|https://ring.example
2|cfg-if v1.0.0|MIT/Apache-2.0|
1|serde v1.0.2 (proc-macro)|MIT|

0|cli v0.1.0 (/src)|Apache-2.0|
1|cfg-if v1.0.0|MIT/Apache-2.0|
";
    const LOCK: &str = "[[package]]\nname = \"ring\"\nversion = \"0.17.1\"\nchecksum = \"abc\"\n";

    #[test]
    fn each_crate_is_listed_once_with_licence_checksum_and_dependencies() {
        let sbom = document(TREE, LOCK, "rustc 1.95", "glibc 2.36").unwrap();
        let names: Vec<_> = sbom["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["cfg-if", "cli", "controller", "ring", "serde", "glibc"]);
        assert_eq!(sbom["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(sbom["components"][3]["hashes"][0]["content"], "abc");
        assert_eq!(sbom["components"][3]["externalReferences"][0]["url"], "https://ring.example");
        let controller = &sbom["dependencies"][2];
        assert_eq!(controller["ref"], "pkg:cargo/controller@0.1.0");
        assert_eq!(controller["dependsOn"], json!(["pkg:cargo/ring@0.17.1", "pkg:cargo/serde@1.0.2"]));
        assert_eq!(sbom["dependencies"][3]["dependsOn"], json!(["pkg:cargo/cfg-if@1.0.0"]));
    }
}

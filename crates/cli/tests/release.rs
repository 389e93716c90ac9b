//! A release as a new user gets it: an empty folder, the files of the release, and nothing else. The programs in it are this
//! build's; `make release` packs static ones in the same way.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use image::release::Release;
use serde_json::Value;
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A release, written once.
static RELEASE: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("release"));
    folder
});

fn released() -> PathBuf {
    RELEASE.path().join("release")
}

/// Programs as small as can be, which run this build's.
fn programs(folder: &Path) {
    for name in ["nacre", "kubectl-nacre"] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_kubectl-nacre")))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

fn write(to: &Path) -> Vec<String> {
    let work = tempfile::tempdir().unwrap();
    programs(work.path());
    let release = Release {
        programs: work.path().to_owned(),
        with_libraries: false,
        commit: COMMIT.to_owned(),
        time: 1_700_000_000,
        tag: Some(format!("v{VERSION}")),
    };
    release.write(to).unwrap()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An empty folder with one archive of the release unpacked in it.
fn unpacked(archive: &str) -> TempDir {
    let empty = tempfile::tempdir().unwrap();
    run(Command::new("tar").arg("-xzf").arg(released().join(archive)).current_dir(empty.path()));
    empty
}

fn yaml(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

fn sums() -> BTreeMap<String, String> {
    let text = fs::read_to_string(released().join("SHA256SUMS")).unwrap();
    let pairs = text.lines().map(|line| line.split_once("  ").unwrap());
    pairs.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()
}

#[test]
fn the_page_lists_every_file_and_checksums_fit() {
    let page = include_str!("../../../docs/releasing.md").replace("VERSION", VERSION);
    let names: Vec<String> = fs::read_dir(released())
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
    for name in &names {
        let shown = name.replace(image::architecture(), "amd64");
        assert!(page.contains(&format!("`{shown}`")), "{name} is not in docs/releasing.md");
    }
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(released()));
    assert_eq!(sums().len(), names.len() - 1, "all but the checksums themselves");
}

#[test]
fn the_same_commit_gives_the_same_bytes() {
    let other = tempfile::tempdir().unwrap();
    let again = other.path().join("deeper/below");
    for name in write(&again) {
        let (one, two) = (fs::read(released().join(&name)).unwrap(), fs::read(again.join(&name)).unwrap());
        assert!(one == two, "{name} differs");
    }
}

/// From an empty folder: unpack, ask for the version, render, install the completion.
#[test]
fn a_new_user_gets_a_program_that_runs() {
    let empty = unpacked(&format!("kubectl-nacre-linux-{}.tar.gz", image::architecture()));
    let program = empty.path().join("kubectl-nacre");
    let version = run(Command::new(&program).arg("--version"));
    assert!(version.starts_with(&format!("kubectl-nacre {VERSION} (commit ")), "{version}");
    assert!(version.contains("Velero 1.14 to 1.18"), "{version}");
    assert!(empty.path().join("LICENSE").is_file());
    let manifests = run(Command::new(&program).args(["render", "--image", "mine:1", "-n", "velero"]));
    assert!(yaml(&manifests).iter().any(|one| one["kind"] == "Deployment"));
    let scripts = unpacked("nacre-completions.tar.gz");
    let script = scripts.path().join("completions/kubectl-nacre.bash");
    run(Command::new("bash").arg("-n").arg(&script));
    assert!(unpacked("nacre-man.tar.gz").path().join("man/kubectl-nacre-backup-create.1").is_file());
}

#[test]
fn manifests_are_there_for_plain_clusters_and_for_oadp() {
    let empty = unpacked("nacre-manifests.tar.gz");
    assert_eq!(fs::read_dir(empty.path().join("nacre/crds")).unwrap().count(), 7);
    for namespace in ["velero", "openshift-adp"] {
        let folder = empty.path().join("nacre").join(namespace);
        for part in
            ["controller", "admission", "requester", "requester-webhook", "velero-view", "operator", "oadp"]
        {
            let objects = yaml(&fs::read_to_string(folder.join(format!("{part}.yaml"))).unwrap());
            assert!(!objects.is_empty());
            for object in objects {
                let place = object["metadata"]["namespace"].as_str();
                assert!(
                    place.is_none_or(|place| place == namespace || place == "kube-system"),
                    "{part}: {place:?}"
                );
            }
        }
        let shipped = fs::read_to_string(folder.join("controller.yaml")).unwrap();
        let is_ours = include_str!("../../../deploy/nacre.yaml") == shipped;
        assert_eq!(is_ours, namespace == "velero");
    }
}

#[test]
fn the_chart_is_one_folder_with_its_name_and_version() {
    let empty = unpacked(&format!("nacre-{VERSION}.tgz"));
    let chart = fs::read_to_string(empty.path().join("nacre/Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&chart).unwrap();
    assert_eq!((chart["name"].as_str(), chart["version"].as_str()), (Some("nacre"), Some(VERSION)));
    assert!(empty.path().join("nacre/values.yaml").is_file());
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 1);
}

#[test]
fn krew_finds_the_program_in_the_archive_with_that_checksum() {
    let text = fs::read_to_string(released().join("nacre-krew.yaml")).unwrap();
    let plugin: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(plugin["spec"]["version"], format!("v{VERSION}"));
    let platform = &plugin["spec"]["platforms"][0];
    let archive = platform["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert_eq!(platform["sha256"].as_str(), sums().get(&archive).map(String::as_str));
    let files = unpacked(&archive);
    assert!(files.path().join(platform["bin"].as_str().unwrap()).is_file());
    for file in platform["files"].as_array().unwrap() {
        assert!(files.path().join(file["from"].as_str().unwrap()).is_file(), "{file}");
    }
}

#[test]
fn provenance_names_the_commit_and_every_file() {
    let text = fs::read_to_string(released().join("nacre-provenance.json")).unwrap();
    let provenance: Value = serde_json::from_str(&text).unwrap();
    let built = &provenance["predicate"]["buildDefinition"];
    assert_eq!(built["resolvedDependencies"][0]["digest"]["gitCommit"], COMMIT);
    assert_eq!(built["externalParameters"]["tag"], format!("v{VERSION}"));
    let sums = sums();
    let subjects = provenance["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), sums.len() - 1, "all but itself");
    for subject in subjects {
        assert_eq!(
            subject["digest"]["sha256"].as_str(),
            sums.get(subject["name"].as_str().unwrap()).map(String::as_str)
        );
    }
    let sbom: Value =
        serde_json::from_slice(&fs::read(released().join("nacre-sbom.cdx.json")).unwrap()).unwrap();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    assert!(sbom["components"].as_array().unwrap().len() > 100);
}

#[test]
fn the_bundle_is_laid_out_as_olm_reads_it() {
    let empty = unpacked("nacre-olm-bundle.tar.gz");
    let annotations = fs::read_to_string(empty.path().join("olm/metadata/annotations.yaml")).unwrap();
    assert!(annotations.contains("registry+v1"));
    assert!(empty.path().join("olm/manifests/nacre.clusterserviceversion.yaml").is_file());
    assert!(empty.path().join("olm/bundle.Dockerfile").is_file());
}

#[test]
fn a_release_is_not_written_over_another() {
    let work = tempfile::tempdir().unwrap();
    programs(work.path());
    let release = Release {
        programs: work.path().to_owned(),
        with_libraries: false,
        commit: COMMIT.to_owned(),
        time: 0,
        tag: None,
    };
    assert!(release.write(&released()).unwrap_err().to_string().contains("is not empty"));
}

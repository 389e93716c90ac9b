//! What is in nacre's image: of `NACRE_IMAGE`, the archive that `make image` has just made, or else of an archive with
//! the same layout and two small files as programs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use image::nacre;
use serde_json::{Value, json};
use tempfile::TempDir;

/// As it is stored in a registry and pulled by nodes.
const LIMIT: u64 = 25 << 20;
const NAME: &str = concat!("localhost/nacre:", env!("CARGO_PKG_VERSION"));

/// An archive, unpacked, and everything that refers to everything.
struct Unpacked {
    _work: TempDir,
    archive: PathBuf,
    root: PathBuf,
    listing: String,
    index: Value,
    config: Value,
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Programs that are no programs, but of which nobody can say that they need a library.
fn programs(folder: &Path) -> PathBuf {
    for name in nacre::PROGRAMS {
        fs::write(folder.join(name), format!("{name}, if it were a program")).unwrap();
        run(Command::new("chmod").arg("700").arg(folder.join(name)));
    }
    folder.to_owned()
}

fn unpacked() -> Unpacked {
    let work = tempfile::tempdir().unwrap();
    let given = std::env::var_os("NACRE_IMAGE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let archive = given.unwrap_or_else(|| {
        let archive = work.path().join("image.tar");
        nacre::image(NAME, &programs(work.path())).unwrap().write(&archive).unwrap();
        archive
    });
    let (all, root) = (work.path().join("all"), work.path().join("root"));
    fs::create_dir_all(&all).unwrap();
    fs::create_dir_all(&root).unwrap();
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&all));

    // Each reference has the digest and the size of what it refers to.
    let blob = |reference: &Value| {
        let name = reference["digest"].as_str().unwrap().replace(':', "/");
        let path = all.join("blobs").join(&name);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(reference["size"], bytes.len());
        let hash = run(Command::new("sha256sum").arg(&path));
        assert_eq!(name, format!("sha256/{}", hash.split(' ').next().unwrap()));
        path
    };
    let index = json(&all.join("index.json"));
    let manifest = json(&blob(&index["manifests"][0]));
    let config = blob(&manifest["config"]);
    let layer = blob(&manifest["layers"][0]);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    // `docker load` goes by another file to the same blobs.
    let docker = json(&all.join("manifest.json"));
    assert_eq!(docker[0]["RepoTags"], json!([NAME]));
    assert_eq!(all.join(docker[0]["Config"].as_str().unwrap()), config);
    assert_eq!(all.join(docker[0]["Layers"][0].as_str().unwrap()), layer);

    let plain = work.path().join("layer.tar");
    fs::write(&plain, Command::new("gzip").arg("-dc").arg(&layer).output().unwrap().stdout).unwrap();
    let hash = run(Command::new("sha256sum").arg(&plain));
    let config = json(&config);
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", hash.split(' ').next().unwrap()));
    run(Command::new("tar").arg("-xf").arg(&plain).arg("-C").arg(&root));
    let listing = run(Command::new("tar").args(["--numeric-owner", "-tvf"]).arg(&plain));
    Unpacked { _work: work, archive, root, listing, index, config }
}

#[test]
fn it_holds_both_programs_the_licence_and_the_sbom_and_nothing_else() {
    let image = unpacked();
    let mut names: Vec<_> =
        fs::read_dir(&image.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["LICENSE", "kubectl-nacre", "nacre", "sbom.cdx.json"]);
    for line in image.listing.lines() {
        // Readable by any user, writable by nobody but root; the same on every machine.
        let wanted = match line.rsplit('/').next().unwrap() {
            "" => "drwxr-xr-x 0/0",
            "nacre" | "kubectl-nacre" => "-rwxr-xr-x 0/0",
            _ => "-rw-r--r-- 0/0",
        };
        assert!(line.starts_with(wanted) && line.contains("1970-01-01"), "{line}");
    }
}

#[test]
fn it_runs_the_controller_as_somebody_without_privileges_and_says_which_version_it_is() {
    let image = unpacked();
    let config = &image.config["config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"], json!(["/nacre"]));
    assert_eq!(config["ExposedPorts"], json!({ "8080/tcp": {}, "8081/tcp": {}, "9443/tcp": {} }));
    let label = |name: &str| config["Labels"][format!("org.opencontainers.image.{name}")].clone();
    assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(label("title"), "nacre");
    assert_eq!(label("licenses"), "Apache-2.0");
    let described = &image.index["manifests"][0];
    assert_eq!(described["annotations"]["io.containerd.image.name"], NAME);
    assert_eq!(described["platform"]["os"], "linux");
}

#[test]
fn the_sbom_lists_the_crates_of_both_programs_and_none_of_the_tests() {
    let image = unpacked();
    let sbom = json(&image.root.join("sbom.cdx.json"));
    assert_eq!((&sbom["bomFormat"], &sbom["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
    let components = sbom["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|part| part["name"] == name);
    for name in ["controller", "cli", "planner", "kube", "tokio", "rustls"] {
        assert!(named(name).is_some(), "no {name}");
    }
    for name in ["bed", "e2e", "proptest", "insta", "libtest-mimic"] {
        assert!(named(name).is_none(), "{name} is not in the programs");
    }
    let serde = named("serde").unwrap();
    assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(serde["hashes"][0]["content"].as_str().unwrap().len(), 64);
    // Every reference leads somewhere.
    let refs: Vec<_> = components.iter().map(|part| &part["bom-ref"]).collect();
    for dependency in sbom["dependencies"].as_array().unwrap() {
        let to = dependency["dependsOn"].as_array().unwrap();
        assert!(refs.contains(&&dependency["ref"]) && to.iter().all(|one| refs.contains(&one)));
    }
}

#[test]
fn it_is_small() {
    let size = fs::metadata(unpacked().archive).unwrap().len();
    assert!(size < LIMIT, "{size} bytes");
}

#[test]
fn the_same_programs_give_the_same_bytes() {
    let work = tempfile::tempdir().unwrap();
    let programs = programs(work.path());
    let archives = ["one.tar", "two.tar"].map(|name| {
        nacre::image(NAME, &programs).unwrap().write(&work.path().join(name)).unwrap();
        fs::read(work.path().join(name)).unwrap()
    });
    assert!(archives[0] == archives[1]);
}

#[test]
fn a_program_that_needs_a_library_is_refused() {
    let work = tempfile::tempdir().unwrap();
    let programs = programs(work.path());
    fs::copy(std::env::current_exe().unwrap(), programs.join("nacre")).unwrap();
    let error = nacre::image(NAME, &programs).unwrap_err().to_string();
    assert!(error.contains("not static") && error.contains("libc.so"), "{error}");
}

#[test]
fn the_containerfile_has_the_same_layout() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Containerfile");
    let text = fs::read_to_string(path).unwrap();
    let last = text.rsplit("FROM ").next().unwrap();
    let ports: Vec<_> = nacre::PORTS.iter().map(u16::to_string).collect();
    let mut lines = vec![
        "scratch".to_owned(),
        // What the program of this crate filled.
        "COPY --from=build /image /".to_owned(),
        format!("USER {}", nacre::USER),
        format!("EXPOSE {}", ports.join(" ")),
        format!("ENTRYPOINT [\"{}\"]", nacre::ENTRYPOINT),
    ];
    let labels = nacre::labels().into_iter().filter(|(key, _)| !key.ends_with(".revision"));
    lines.extend(labels.map(|(key, value)| format!("LABEL {key}=\"{value}\"")));
    for line in lines {
        assert!(last.lines().any(|found| found == line), "no `{line}` in the last stage:\n{last}");
    }
}

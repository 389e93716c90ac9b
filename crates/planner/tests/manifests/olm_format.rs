//! What OLM's own validation would complain about in a bundle of the format `registry+v1`.

use serde_json::Value;

use super::olm::{Bundle, PACKAGE, annotations};

/// The kinds that a bundle may have, of those that nacre uses.
const SUPPORTED: [&str; 6] = [
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "PodDisruptionBudget",
    "Service",
];

/// What was found.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    fn unless(&mut self, fine: bool, what: impl Into<String>) {
        if !fine {
            self.0.push(what.into());
        }
    }
}

pub(crate) fn problems(bundle: &Bundle) -> Vec<String> {
    let mut found = Complaints::default();
    of_metadata(bundle, &mut found);
    let manifests: Vec<Value> = bundle
        .iter()
        .filter(|(path, _)| path.starts_with("manifests/"))
        .map(|(_, text)| serde_saphyr::from_str(text).unwrap())
        .collect();
    for one in &manifests {
        let kind = one["kind"].as_str().unwrap_or_default();
        found.unless(SUPPORTED.contains(&kind), format!("a bundle cannot have a {kind}"));
        found.unless(one["metadata"]["namespace"].is_null(), format!("{kind} has a namespace"));
    }
    let versions: Vec<_> = manifests.iter().filter(|one| one["kind"] == "ClusterServiceVersion").collect();
    found.unless(versions.len() == 1, format!("there are {} ClusterServiceVersions", versions.len()));
    if let Some(version) = versions.first() {
        of_version(version, &mut found);
        of_kinds(version, &manifests, &mut found);
        of_installation(&version["spec"], &mut found);
    }
    found.0
}

/// The annotations and the labels of the image are the same.
fn of_metadata(bundle: &Bundle, found: &mut Complaints) {
    let text = bundle.get("metadata/annotations.yaml").map_or("{}", String::as_str);
    let written: Value = serde_saphyr::from_str(text).unwrap();
    let dockerfile = bundle.get("bundle.Dockerfile").cloned().unwrap_or_default();
    for (key, value) in annotations() {
        found.unless(written["annotations"][&key] == value, format!("annotations.yaml lacks {key}"));
        let label = format!("LABEL {key}={value}\n");
        found.unless(dockerfile.contains(&label), format!("bundle.Dockerfile lacks {key}"));
    }
}

fn of_version(csv: &Value, found: &mut Complaints) {
    let spec = &csv["spec"];
    let version = spec["version"].as_str().unwrap_or_default();
    let numbers = version.split('.').filter(|part| part.parse::<u32>().is_ok()).count();
    found.unless(numbers == 3, format!("version {version:?}"));
    let name = format!("{PACKAGE}.v{version}");
    found.unless(csv["metadata"]["name"] == name, "its name is not package.vVERSION");
    for field in ["displayName", "description", "minKubeVersion", "maturity"] {
        found
            .unless(!spec[field].as_str().unwrap_or_default().is_empty(), format!("spec.{field} is missing"));
    }
    for field in ["keywords", "maintainers", "links", "icon"] {
        let is_there = spec[field].as_array().is_some_and(|list| !list.is_empty());
        found.unless(is_there, format!("spec.{field} is missing"));
    }
    let modes = spec["installModes"].as_array().into_iter().flatten();
    let modes: Vec<_> = modes.filter_map(|mode| mode["type"].as_str()).collect();
    for mode in ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"] {
        found.unless(modes.contains(&mode), format!("install mode {mode} is missing"));
    }
}

/// Each CRD is owned, and each owned kind has its CRD, of that version, and an example.
fn of_kinds(csv: &Value, manifests: &[Value], found: &mut Complaints) {
    let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array().cloned().unwrap_or_default();
    let crds: Vec<_> = manifests.iter().filter(|one| one["kind"] == "CustomResourceDefinition").collect();
    found.unless(
        owned.len() == crds.len(),
        format!("{} kinds are owned, {} are there", owned.len(), crds.len()),
    );
    let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap_or("[]");
    let examples: Vec<Value> = serde_json::from_str(examples).unwrap_or_default();
    for one in &owned {
        let fits = |crd: &&Value| {
            let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
            crd["metadata"]["name"] == one["name"]
                && crd["spec"]["names"]["kind"] == one["kind"]
                && versions.any(|found| found["name"] == one["version"])
        };
        let name = &one["name"];
        found.unless(crds.iter().any(fits), format!("{name} is owned, and its CRD is not there"));
        let shown = examples.iter().any(|example| example["kind"] == one["kind"]);
        found.unless(shown, format!("{name} has no example"));
        let described = one["displayName"].is_string() && one["description"].is_string();
        found.unless(described, format!("{name} is not described"));
    }
}

fn of_installation(spec: &Value, found: &mut Complaints) {
    let install = &spec["install"]["spec"];
    found.unless(spec["install"]["strategy"] == "deployment", "the strategy is not deployment");
    let accounts: Vec<&Value> = ["permissions", "clusterPermissions"]
        .iter()
        .flat_map(|field| install[field].as_array().into_iter().flatten())
        .map(|given| &given["serviceAccountName"])
        .collect();
    let deployments = install["deployments"].as_array().cloned().unwrap_or_default();
    found.unless(!deployments.is_empty(), "there is no deployment");
    for one in &deployments {
        let template = &one["spec"]["template"];
        let wanted = one["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
        let selects = wanted.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value);
        found.unless(selects && !wanted.is_empty(), "a deployment does not select its own pods");
        let account = &template["spec"]["serviceAccountName"];
        found.unless(accounts.contains(&account), "its service account has no permissions");
        for container in template["spec"]["containers"].as_array().into_iter().flatten() {
            let image = container["image"].as_str().unwrap_or_default();
            let versioned = image.contains(':') && !image.ends_with(":latest");
            found.unless(versioned, format!("image {image:?} has no version"));
            let mut related = spec["relatedImages"].as_array().into_iter().flatten();
            found.unless(
                related.any(|one| one["image"] == image),
                format!("{image:?} is not in relatedImages"),
            );
        }
    }
}

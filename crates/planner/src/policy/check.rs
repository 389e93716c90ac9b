//! For authors of policies: checks one, and renders one.

use std::sync::Arc;

use api::DataProtectionApplication;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use serde_json::Value;

use super::combine::Policies;
use super::problem::{Problem, Severity, Source};
use super::source::{CONFIG_MAP, KEY, Loaded, Reading, Readings, load};
use super::{Policy, yaml};
use crate::view::Seen;

/// All problems of a policy, in the order of the text; empty if it is valid. What the cluster's
/// DataProtectionApplication says is not looked at.
pub fn check(text: &str) -> Vec<Problem> {
    yaml::parse(text).1
}

/// A policy as it would be written. Reading it gives the same policy.
pub fn render(policy: &Policy) -> String {
    serde_saphyr::to_string(policy)
        .unwrap_or_else(|error| format!("# this policy cannot be shown: {error}\n"))
}

/// The result of checking a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Examined {
    /// What it holds that speaks about tenants, in words.
    pub found: Vec<String>,
    /// Whether places in the text are counted from the beginning of the file, and not of a text within it.
    pub plain: bool,
    /// What holds if this is all there is; none if it makes no sense.
    pub policies: Option<Policies>,
    /// The problems, with the controller's messages.
    pub problems: Vec<Problem>,
}

/// Looks through a file as the controller would: a policy as such, or manifests, of which the ConfigMap and
/// DataProtectionApplications count. Where both speak, both must be satisfied.
pub fn examine(text: &str) -> Examined {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
    let manifests: Vec<Value> = documents
        .into_iter()
        .flat_map(|document| match document.get("items").and_then(Value::as_array) {
            Some(items) if document["kind"] == "List" => items.clone(),
            _ => vec![document],
        })
        .filter(|document| document.get("kind").is_some_and(Value::is_string))
        .collect();
    // A policy has no kind; what cannot be read at all is complained about as one.
    if manifests.is_empty() {
        let map = ConfigMap {
            metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
            data: Some([(KEY.to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        };
        let readings = Readings { config_map: Reading::Found(Arc::new(map)), applications: Reading::Absent };
        return reported(vec!["a policy".to_owned()], true, load(None, &readings));
    }
    of_manifests(&manifests)
}

fn of_manifests(manifests: &[Value]) -> Examined {
    let of_kind = |kind: &'static str| manifests.iter().filter(move |manifest| manifest["kind"] == kind);
    let name = |manifest: &Value| manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    let map = of_kind("ConfigMap").find(|map| name(map) == CONFIG_MAP);
    let config_map = map.map_or(Reading::Absent, |map| {
        found.push(format!("ConfigMap {CONFIG_MAP}"));
        reading(&Seen::<ConfigMap>::read(map))
    });
    let applications: Vec<Seen<DataProtectionApplication>> =
        of_kind("DataProtectionApplication").map(Seen::read).collect();
    found.extend(
        of_kind("DataProtectionApplication")
            .map(|dpa| format!("{} {}", Source::DataProtectionApplication, name(dpa))),
    );
    let odd = applications.iter().find_map(|seen| seen.unreadable.as_ref());
    let applications = match odd {
        Some(why) => Reading::Unreadable(why.to_string()),
        None if applications.is_empty() => Reading::Absent,
        None => Reading::Found(applications.iter().map(|seen| seen.object.clone()).collect()),
    };
    if found.is_empty() {
        let message = format!(
            "there is neither a policy, nor a ConfigMap {CONFIG_MAP}, nor a DataProtectionApplication in it"
        );
        let nothing = Problem {
            source: Source::ConfigMap,
            position: None,
            path: String::new(),
            severity: Severity::Error,
            message,
        };
        return Examined { found, plain: true, policies: None, problems: vec![nothing] };
    }
    reported(found, false, load(None, &Readings { config_map, applications }))
}

fn reading<K>(seen: &Seen<K>) -> Reading<Arc<K>> {
    match &seen.unreadable {
        Some(why) => Reading::Unreadable(why.to_string()),
        None => Reading::Found(seen.object.clone()),
    }
}

fn reported(found: Vec<String>, plain: bool, loaded: Loaded) -> Examined {
    Examined { found, plain, policies: loaded.policies, problems: loaded.problems }
}

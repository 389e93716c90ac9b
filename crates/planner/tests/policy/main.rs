//! The policy: as YAML, as a DataProtectionApplication, as both, and invalid.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod applications;
mod both;
mod effects;
mod examined;
mod guides;
mod origins;
mod properties;
mod reference;
mod sources;
mod texts;
mod vanished;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::DataProtectionApplication;
use k8s_openapi::api::core::v1::ConfigMap;
use planner::Policy;
use planner::policy::{CONFIG_MAP, KEY, Loaded, Policies, Reading, Readings, load};
use serde_json::{Value, json};

/// A ConfigMap with this policy.
fn config_map(text: &str) -> Reading<Arc<ConfigMap>> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(CONFIG_MAP.to_owned());
    map.data = Some(BTreeMap::from([(KEY.to_owned(), text.to_owned())]));
    Reading::Found(Arc::new(map))
}

/// One application with this spec.
fn application(spec: &Value) -> Reading<Vec<Arc<DataProtectionApplication>>> {
    Reading::Found(vec![named_application("dpa", spec)])
}

fn named_application(name: &str, spec: &Value) -> Arc<DataProtectionApplication> {
    let whole = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": name, "namespace": "velero"}, "spec": spec,
    });
    Arc::new(serde_json::from_value(whole).unwrap())
}

/// What both together come to, where nothing was known before.
fn loaded(text: &str, spec: &Value) -> Loaded {
    load(None, &Readings { config_map: config_map(text), applications: application(spec) })
}

/// What a text alone comes to; it must be a good one.
fn policies(text: &str) -> Policies {
    let Loaded { policies, problems } =
        load(None, &Readings { config_map: config_map(text), applications: Reading::Absent });
    policies.unwrap_or_else(|| panic!("{problems:?}"))
}

/// What holds in a namespace without labels.
fn policy(text: &str) -> Policy {
    Policy::clone(policies(text).base())
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Problems as they are printed.
fn reported(loaded: &Loaded) -> Vec<String> {
    loaded.problems.iter().map(ToString::to_string).collect()
}

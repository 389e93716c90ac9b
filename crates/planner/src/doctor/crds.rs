//! CRDs of tenants' requests that somebody else installed, as OADP does: which of nacre's fields they lack, and what is not
//! seen for that. The API server drops what a CRD does not name.

use std::collections::BTreeSet;

use api::Kind;
use serde_json::Value;

use super::{Area, Finding, Observed, oadp, some};
use crate::Object;
use crate::install::{is_ours, may_be_others};
use crate::policy::{Downloads, Policies, Reading};

/// What tenants do not see without a field of a status.
const LOST: [(&str, &str); 8] = [
    ("status.claims", "the state of each claim"),
    ("status.claimsNotListed", "the state of each claim"),
    ("status.results", "Velero's errors and warnings but the first"),
    ("status.queueInfo.estimatedStart", "start times outside of messages"),
    ("status.queueInfo.earliestStart", "start times outside of messages"),
    ("status.queueInfo.latestStart", "start times outside of messages"),
    (OBJECTS, "lists of objects of backups in the cluster's own storage"),
    (LOG, "logs of backups in the cluster's own storage"),
];
const OBJECTS: &str = "status.objects";
const LOG: &str = "status.log";

/// What somebody else's CRDs lack. OADP's operator keeps its own CRDs, and nacre works with them, so there that is a note.
pub(super) fn foreign(seen: &Observed, policies: Option<&Policies>) -> Option<Finding> {
    // Where the policy hands out links, nacre reads nothing.
    let has_links =
        policies.is_some_and(|policies| policies.base().downloads.platform_storage != Downloads::None);
    let (mut names, mut all) = (Vec::new(), MissingParts::default());
    for (wanted, found) in &seen.installed {
        let Reading::Found(found) = found else { continue };
        if wanted.kind != Kind::CustomResourceDefinition || is_ours(found) || !may_be_others(wanted) {
            continue;
        }
        let mut missing = MissingParts::of(wanted, found);
        if has_links {
            missing.fields.retain(|field| ![OBJECTS, LOG].contains(&field.as_str()));
        }
        if !missing.is_empty() {
            names.push(wanted.name().split('.').next().unwrap_or_default().to_owned());
            all.add(missing);
        }
    }
    if names.is_empty() {
        return None;
    }
    let links = if all.fields.iter().any(|field| [OBJECTS, LOG].contains(&field.as_str())) {
        "; downloads.platformStorage: logs in the policy hands out links to logs and lists instead"
    } else {
        ""
    };
    let (names, lost, command) = (some(&names), all.words(), oadp::request_crds(seen));
    Some(if seen.by_oadp() {
        Area::Nacre.note(format!(
            "nacre works with OADP's CRDs, which lack fields ({names}): {lost}. `{command}` adds them, until OADP applies its \
             own again{links}"
        ))
    } else {
        let message = format!("CRDs of somebody else lack something nacre uses ({names}): {lost}");
        Area::Nacre
            .warning(format!("{message}. A newer version of whoever made them may have it{links}"), command)
    })
}

/// What a CRD lacks of nacre's own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MissingParts {
    /// Fields by their path, and values of a field: `status.phase=New`. Below a field that is missing nothing is listed.
    fields: BTreeSet<String>,
    /// Columns of `kubectl get`.
    columns: BTreeSet<String>,
}

impl MissingParts {
    pub(super) fn of(wanted: &Object, found: &Object) -> Self {
        let (wanted, found) = (version(wanted), version(found));
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        let mut missing = Self::default();
        compare("", &schema(&wanted), &schema(&found), &mut missing.fields);
        let columns = |version: &Value| -> BTreeSet<String> {
            let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
            columns.filter_map(|column| column["name"].as_str()).map(str::to_owned).collect()
        };
        missing.columns = &columns(&wanted) - &columns(&found);
        missing
    }

    fn add(&mut self, other: Self) {
        self.fields.extend(other.fields);
        self.columns.extend(other.columns);
    }

    fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.columns.is_empty()
    }

    /// What that means.
    pub(super) fn words(&self) -> String {
        let mut unseen: Vec<&str> = Vec::new();
        for (field, what) in LOST {
            if self.fields.contains(field) && !unseen.contains(&what) {
                unseen.push(what);
            }
        }
        let others = self.fields.iter().filter(|field| LOST.iter().all(|(known, _)| known != field));
        let (requests, statuses): (Vec<String>, Vec<String>) =
            others.cloned().partition(|field| field.starts_with("spec"));
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut words = Vec::new();
        if !unseen.is_empty() {
            words.push(format!("tenants do not see {}", unseen.join(", ")));
        }
        if !columns.is_empty() {
            words.push(format!("`kubectl get` has no columns {}", columns.join(", ")));
        }
        if !requests.is_empty() {
            words.push(format!("requests cannot set {}", some(&requests)));
        }
        if !statuses.is_empty() {
            words.push(format!("statuses leave out {}", some(&statuses)));
        }
        words.join("; ")
    }
}

/// The version nacre speaks.
fn version(crd: &Object) -> Value {
    let versions = crd.body["spec"]["versions"].as_array();
    let of = versions.and_then(|all| all.iter().find(|one| one["name"] == Kind::NonAdminBackup.version()));
    of.cloned().unwrap_or_default()
}

fn compare(path: &str, wanted: &Value, found: &Value, fields: &mut BTreeSet<String>) {
    if found["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if let (Some(wanted), Some(found)) = (wanted["enum"].as_array(), found["enum"].as_array()) {
        let more = wanted.iter().filter(|value| !found.contains(value)).filter_map(Value::as_str);
        fields.extend(more.map(|value| format!("{path}={value}")));
    }
    for (name, wanted) in wanted["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match [&found["properties"][name], &found["additionalProperties"]]
            .into_iter()
            .find(|one| !one.is_null())
        {
            Some(found) => compare(&path, wanted, found, fields),
            None => drop(fields.insert(path)),
        }
    }
    for below in ["items", "additionalProperties"] {
        if !wanted[below].is_null() && !found[below].is_null() {
            compare(path, &wanted[below], &found[below], fields);
        }
    }
}

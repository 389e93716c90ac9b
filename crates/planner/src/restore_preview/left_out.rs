//! Which rule leaves an object of a backup out of a restore.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::velero::RestoreSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{CLAIMS, Existing, Observed, PODS};
use crate::admission::TOKENS;
use crate::served::{Served, selects};
use crate::{fence, volumes};

/// Resources that Velero never restores, as group-resources (nonRestorableResources in its restore controller).
const NEVER_BY_VELERO: [&str; 8] = [
    "nodes",
    "events",
    "events.events.k8s.io",
    "backups.velero.io",
    "restores.velero.io",
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "backuprepositories.velero.io",
];

/// The rule that leaves an object out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOutBy {
    /// nacre never restores it.
    Fence,
    /// A field of the administrators' policy.
    Policy(&'static str),
    /// A field of the request.
    Request(&'static str),
    /// Velero never restores it, and why.
    Velero(&'static str),
    /// Whoever asks may not create it.
    NotPermitted,
    /// It is cluster-scoped.
    ClusterScoped,
    /// The cluster does not serve its kind.
    NotServed,
}

impl LeftOutBy {
    /// Whether somebody who asked for a restore would expect the object to come back.
    pub(super) const fn is_surprise(&self) -> bool {
        matches!(self, Self::Policy(_) | Self::NotPermitted | Self::NotServed)
    }
}

impl fmt::Display for LeftOutBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fence => out.write_str("nacre never restores it"),
            Self::Policy(field) => write!(out, "the administrators' policy, {field}"),
            Self::Request(field) => write!(out, "the request, {field}"),
            Self::Velero(why) => write!(out, "Velero: {why}"),
            Self::NotPermitted => out.write_str("you do not have the permission to create it"),
            Self::ClusterScoped => out.write_str("it is cluster-scoped"),
            Self::NotServed => out.write_str("the cluster does not serve this kind"),
        }
    }
}

impl Serialize for LeftOutBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The rule that leaves out the whole resource, if there is one.
pub(super) fn by_resource(seen: &Observed<'_>, resource: &str, served: &Served) -> Option<LeftOutBy> {
    let listed = |list: &[String]| list.iter().any(|name| selects(name, resource, seen.served));
    let policy = &seen.policy.restore;
    let (requested, spec) = (seen.requested, seen.spec);
    let leaves_out = |spec: &RestoreSpec| {
        spec.included_resources.as_deref().is_some_and(|list| !list.is_empty() && !listed(list))
    };
    if listed(&fence::out_of_restores()) {
        return Some(LeftOutBy::Fence);
    }
    if listed(requested.excluded_resources.as_deref().unwrap_or_default()) {
        return Some(LeftOutBy::Request("excludedResources"));
    }
    let comes_with_claims = || {
        let included = requested.included_resources.as_deref().unwrap_or_default();
        resource == volumes::PERSISTENT_VOLUMES && volumes::claims_without_volumes(included)
    };
    if leaves_out(requested) && !comes_with_claims() {
        return Some(LeftOutBy::Request("includedResources"));
    }
    if seen.not_permitted.iter().any(|name| name == resource) {
        return Some(LeftOutBy::NotPermitted);
    }
    if listed(spec.excluded_resources.as_deref().unwrap_or_default()) {
        let guard_rail = listed(&policy.excluded_from_platform_storage);
        return Some(LeftOutBy::Policy(if guard_rail {
            "restore.fromPlatformStorage"
        } else {
            "restore.enforce.excludedResources"
        }));
    }
    if NEVER_BY_VELERO.contains(&resource) {
        return Some(LeftOutBy::Velero("it restores no objects of this kind"));
    }
    if leaves_out(spec) {
        return Some(LeftOutBy::Policy(if seen.from_tenant_storage {
            "restore.fromTenantStorage"
        } else {
            "restore.enforce.includedResources"
        }));
    }
    let comes_with_claims = resource == "persistentvolumes" && spec.include_cluster_resources != Some(false);
    (!served.namespaced && !comes_with_claims).then_some(LeftOutBy::ClusterScoped)
}

/// Whether the label selectors leave an object out; none if its labels are not known.
pub(super) fn by_labels(seen: &Observed<'_>, content: Option<&Value>) -> Option<bool> {
    let one = seen.spec.label_selector.as_ref();
    let several = seen.spec.or_label_selectors.as_deref().unwrap_or_default();
    if one.is_none() && several.is_empty() {
        return Some(false);
    }
    let labels = labels(content?);
    let fits = |selector: &LabelSelector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(&labels))
    };
    Some(one.is_some_and(|one| !fits(one)) || (!several.is_empty() && !several.iter().any(fits)))
}

/// Who set the selectors.
pub(super) fn selector_of(seen: &Observed<'_>) -> LeftOutBy {
    match (&seen.requested.label_selector, &seen.requested.or_label_selectors) {
        (Some(_), _) => LeftOutBy::Request("labelSelector"),
        (None, Some(_)) => LeftOutBy::Request("orLabelSelectors"),
        (None, None) => LeftOutBy::Policy("restore.enforce.labelSelector"),
    }
}

pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// Claims that come back because a pod with them does, whatever their own labels.
pub(super) fn claims_of_selected_pods(seen: &Observed<'_>) -> BTreeSet<String> {
    let pods = seen.contents.into_iter().flatten().filter(|((resource, _), _)| resource == PODS);
    let selected = pods.filter(|(_, pod)| {
        by_labels(seen, Some(pod)) == Some(false) && by_content(seen, PODS, pod).is_none()
    });
    selected.flat_map(|(_, pod)| claims_of(&pod["spec"])).collect()
}

/// The claims that a pod's spec names.
pub fn claims_of(pod_spec: &Value) -> Vec<String> {
    let volumes = pod_spec["volumes"].as_array().into_iter().flatten();
    volumes
        .filter_map(|volume| Some(volume["persistentVolumeClaim"]["claimName"].as_str()?.to_owned()))
        .collect()
}

/// Whether Velero leaves out objects of this resource that had completed.
pub(super) fn may_have_completed(resource: &str) -> bool {
    matches!(resource, PODS | "jobs.batch")
}

/// The rule that leaves an object out because of what it contains.
pub(super) fn by_content(seen: &Observed<'_>, resource: &str, content: &Value) -> Option<LeftOutBy> {
    let completed = match resource {
        PODS => matches!(content["status"]["phase"].as_str(), Some("Succeeded" | "Failed")),
        "jobs.batch" => content["status"]["completionTime"].is_string(),
        _ => false,
    };
    if completed {
        return Some(LeftOutBy::Velero("it had completed"));
    }
    let annotations = &content["metadata"]["annotations"];
    if resource == PODS && annotations["kubernetes.io/config.mirror"].is_string() {
        return Some(LeftOutBy::Velero("it is a static pod of a node"));
    }
    let kind = content["type"].as_str().filter(|_| resource == "secrets").unwrap_or_default();
    let name = content["metadata"]["name"].as_str().unwrap_or_default();
    if kind == "kubernetes.io/service-account-token" && is_of_an_account(seen, name) {
        return Some(LeftOutBy::Velero("Kubernetes makes this token itself"));
    }
    // The API server refuses it.
    (seen.from_tenant_storage && TOKENS.contains(&kind)).then_some(LeftOutBy::Fence)
}

/// Whether a token's name begins with that of a service account, as those did that Kubernetes made before 1.24.
fn is_of_an_account(seen: &Observed<'_>, secret: &str) -> bool {
    let begins = |account: &str| secret.strip_prefix(account).is_some_and(|rest| rest.starts_with("-token-"));
    let in_backup =
        seen.items.iter().filter(|item| item.kind == "ServiceAccount").map(|item| item.name.as_str());
    let live = match seen.existing.get("serviceaccounts") {
        Some(Existing::Listed(found)) => found.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    in_backup.chain(live).any(begins)
}

/// Whether the request leaves out claims, so that no volume comes back.
pub(super) fn leaves_out_claims(seen: &Observed<'_>) -> Option<LeftOutBy> {
    let claims = seen.served.iter().find(|one| one.name() == CLAIMS)?;
    by_resource(seen, CLAIMS, claims)
}

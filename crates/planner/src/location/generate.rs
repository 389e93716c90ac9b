//! The desired objects of a location in Velero's namespace.

use std::collections::BTreeMap;

use api::velero::{BackupStorageLocation, BackupStorageLocationSpec};
use api::{
    ApprovalDecision, Duration, Hidden, Kind, NonAdminBackupStorageLocationRequest,
    NonAdminBackupStorageLocationRequestSpec, NonAdminBackupStorageLocationRequestStatus, RequestedLocation,
    labels,
};
use k8s_openapi::api::core::v1::SecretKeySelector;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::credentials::Credential;
use super::decide::decision;
use super::provider::Provider;
use super::review::{phase, recorded};
use super::{Observed, config, fill, named_key, stored_prefix};
use crate::ownership::annotation;
use crate::{Action, Object, Policy, Target, merge, velero_status};

const OPAQUE: &str = "Opaque";
/// A label that OADP's operator reads, which deploys a registry for a location.
const REGISTRY: &str = "openshift.io/oadp-registry";

/// Whether two specs ask for the same storage: what is not said and what is empty are the same.
pub(super) fn same(one: &BackupStorageLocationSpec, other: &BackupStorageLocationSpec) -> bool {
    plain(one) == plain(other)
}

/// A spec in which nothing is said that means nothing. Most of that is left out where a spec is read.
pub(super) fn plain(spec: &BackupStorageLocationSpec) -> BackupStorageLocationSpec {
    let mut spec = spec.clone();
    if let Some(provider) = Provider::of(&spec.provider) {
        provider.name().clone_into(&mut spec.provider);
    }
    spec.config = spec.config.filter(|config| !config.is_empty());
    if let Some(credential) = &mut spec.credential {
        credential.optional = credential.optional.filter(|optional| *optional);
    }
    spec
}

fn metadata(seen: &Observed) -> ObjectMeta {
    let origin = seen.meta();
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    ObjectMeta {
        name: Some(seen.name.clone()),
        namespace: Some(seen.admin_namespace.clone()),
        labels: Some(BTreeMap::from([
            (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
            (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
            (labels::NABSL_NACUUID.to_owned(), seen.name.clone()),
        ])),
        annotations: Some(BTreeMap::from([
            (labels::NABSL_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
            (labels::NABSL_NAMESPACE.to_owned(), seen.tenant().to_owned()),
            (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
            (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
        ])),
        ..ObjectMeta::default()
    }
}

/// What marks an object that the Go controller made as this location's, by uid.
fn stamp(seen: &Observed, found: &ObjectMeta) -> Option<Value> {
    if annotation(found, labels::ORIGIN_UID).is_some() {
        return None;
    }
    let uids = [labels::ORIGIN_UID, labels::ORIGIN_NAMESPACE_UID];
    let annotations = metadata(seen).annotations.unwrap_or_default();
    Some(json!(
        annotations.into_iter().filter(|(key, _)| uids.contains(&key.as_str())).collect::<BTreeMap<_, _>>()
    ))
}

/// A patch of these parts, if there is anything in them.
fn patch(kind: Kind, found: &ObjectMeta, stamp: Option<Value>, parts: Vec<(&str, Value)>) -> Option<Action> {
    if stamp.is_none() && parts.is_empty() {
        return None;
    }
    let mut body = json!({});
    if let Some(annotations) = stamp {
        body["metadata"] = json!({"annotations": annotations});
    }
    for (name, part) in parts {
        body[name] = part;
    }
    Some(Action::Patch(Target::of(kind, found), body))
}

/// What an administrator is asked.
pub(super) fn request(seen: &Observed, policy: &Policy) -> Object {
    let asks = policy.storage_locations.require_approval;
    let said = if asks { ApprovalDecision::Pending } else { ApprovalDecision::Approve };
    let mut metadata = metadata(seen);
    if !asks {
        let marks = metadata.annotations.get_or_insert_default();
        marks.insert(labels::APPROVED_BY.to_owned(), labels::APPROVED_BY_POLICY.to_owned());
    }
    let request = NonAdminBackupStorageLocationRequest {
        metadata,
        spec: NonAdminBackupStorageLocationRequestSpec { approval_decision: Some(said) },
        status: None,
    };
    Object::of(Kind::NonAdminBackupStorageLocationRequest, &request)
}

/// Takes back an approval of a request in which nothing is written down yet. In a plan of its own: were it written down
/// in the same one, the next decision would take whatever is approved meanwhile for an approval of it.
pub(super) fn take_back_early_approval(seen: &Observed, policy: &Policy) -> Option<Action> {
    let request = seen.readable_request()?;
    let approved = request.spec.approval_decision == Some(ApprovalDecision::Approve);
    let pending = ApprovalDecision::Pending;
    (approved && decision(request, policy) == pending).then(|| {
        let target = Target::of(Kind::NonAdminBackupStorageLocationRequest, &request.metadata);
        Action::Patch(target, json!({"spec": {"approvalDecision": pending}}))
    })
}

/// Keeps the request in step: approved where nobody needs to, and marked so; its phase what the decision implies, and
/// what was asked for written down once, when it may be.
pub(super) fn request_writes(seen: &Observed, policy: &Policy, may_be_recorded: bool) -> Vec<Action> {
    let Some(request) = seen.readable_request() else { return Vec::new() };
    let kind = Kind::NonAdminBackupStorageLocationRequest;
    let decision = decision(request, policy);
    let said = request.spec.approval_decision;
    let approves = decision == ApprovalDecision::Approve && said != Some(ApprovalDecision::Approve);
    let approve = approves.then(|| ("spec", json!({"approvalDecision": "approve"})));
    let marked = annotation(&request.metadata, labels::APPROVED_BY).is_some();
    let mark = if approves {
        Some(json!(labels::APPROVED_BY_POLICY))
    } else {
        // Whoever took it back decides by hand from then on.
        (marked && decision != ApprovalDecision::Approve).then_some(Value::Null)
    };
    let mut annotations = stamp(seen, &request.metadata);
    if let Some(mark) = mark {
        annotations.get_or_insert_with(|| json!({}))[labels::APPROVED_BY] = mark;
    }
    let asks_for = || RequestedLocation {
        requested_spec: seen.spec().clone(),
        nacuuid: Some(seen.name.clone()),
        name: seen.meta().name.clone(),
        namespace: seen.meta().namespace.clone(),
    };
    let asked = recorded(request).cloned().or_else(|| may_be_recorded.then(asks_for));
    let status = asked.and_then(|asked| {
        let wanted = NonAdminBackupStorageLocationRequestStatus {
            non_admin_backup_storage_location: Some(asked),
            phase: Some(phase(decision)),
        };
        velero_status::status(Target::of(kind, &request.metadata), request.status.as_ref(), &wanted)
    });
    let change = patch(kind, &request.metadata, annotations, approve.into_iter().collect());
    change.into_iter().chain(status).collect()
}

/// The credential, generated from what was parsed: one key, and nothing else of the tenant's Secret.
pub(super) fn secret_writes(seen: &Observed, credential: &Credential) -> Vec<Action> {
    let Some((_, key)) = named_key(seen.spec()) else { return Vec::new() };
    let data = BTreeMap::from([(key.to_owned(), Hidden::from(credential.render().into_bytes()))]);
    let create = || {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata(seen), "type": OPAQUE, "data": data,
        });
        Action::Create(Object { kind: Kind::Secret, body })
    };
    let Some(found) = &seen.copy else { return vec![create()] };
    // The type of a Secret cannot be changed.
    if found.type_.as_deref().is_some_and(|type_| type_ != OPAQUE) {
        return vec![Action::Delete(Target::of(Kind::Secret, &found.metadata)), create()];
    }
    let change = merge::diff(&json!(found.data), &json!(data)).map(|change| ("data", change));
    patch(Kind::Secret, &found.metadata, stamp(seen, &found.metadata), change.into_iter().collect())
        .into_iter()
        .collect()
}

/// Whether the credential that Velero has is out of date.
pub(super) fn rotates(seen: &Observed, credential: &Credential) -> bool {
    seen.copy.is_some() && !secret_writes(seen, credential).is_empty()
}

/// Velero's BackupStorageLocation. After a change of the credential its validation time is cleared, so that Velero
/// validates it at once.
pub(super) fn storage_writes(seen: &Observed, policy: &Policy, credential: &Credential) -> Vec<Action> {
    let wanted = storage(seen, policy, credential);
    let Some(found) = &seen.storage else {
        return vec![Action::Create(Object::of(Kind::BackupStorageLocation, &wanted))];
    };
    let mut parts = Vec::new();
    if let Some(change) = storage_change(&found.spec, &wanted.spec) {
        parts.push(("spec", change));
    }
    if rotates(seen, credential)
        && found.status.as_ref().is_some_and(|status| status.last_validation_time.is_some())
    {
        parts.push(("status", json!({"lastValidationTime": null})));
    }
    let stamp = stamp(seen, &found.metadata);
    patch(Kind::BackupStorageLocation, &found.metadata, stamp, parts).into_iter().collect()
}

/// How Velero's side differs from what it should be, if it does.
fn storage_change(found: &BackupStorageLocationSpec, wanted: &BackupStorageLocationSpec) -> Option<Value> {
    if same(found, wanted) { None } else { merge::diff(&json!(found), &json!(wanted)) }
}

/// Whether Velero's side has to be written.
pub(super) fn moves(seen: &Observed, policy: &Policy, credential: &Credential) -> bool {
    let wanted = storage(seen, policy, credential);
    seen.storage.as_ref().is_some_and(|found| storage_change(&found.spec, &wanted.spec).is_some())
}

fn storage(seen: &Observed, policy: &Policy, credential: &Credential) -> BackupStorageLocation {
    let mut spec = seen.spec().clone();
    fill(&policy.storage_locations.enforce, &mut spec);
    let (_, key) = named_key(seen.spec()).unwrap_or_default();
    spec.config = Some(config::for_velero(&spec.config.unwrap_or_default(), credential));
    spec.credential =
        Some(SecretKeySelector { name: seen.name.clone(), key: key.to_owned(), optional: None });
    spec.object_storage.prefix = Some(stored_prefix(seen.tenant(), spec.object_storage.prefix.as_deref()));
    spec.default = None;
    let never = || Some(Duration::from("0s"));
    spec.backup_sync_period = match (seen.imports(policy), &seen.storage) {
        (Some(true), _) => spec.backup_sync_period,
        (Some(false), _) | (None, None) => never(),
        // Until Velero's version is known, the last decision stays in effect.
        (None, Some(found)) => found.spec.backup_sync_period.clone(),
    };
    let mut metadata = metadata(seen);
    let registry = spec.provider != "azure"
        || spec
            .config
            .as_ref()
            .is_some_and(|config| config.get("storageAccountKeyEnvVar").is_some_and(|name| !name.is_empty()));
    let registry = if registry { "True" } else { "False" };
    metadata.labels.get_or_insert_default().insert(REGISTRY.to_owned(), registry.to_owned());
    BackupStorageLocation { metadata, spec, status: None }
}

/// Removes it from Velero: first the location, then the credential.
pub(super) fn removal(seen: &Observed) -> Vec<Action> {
    let storage =
        seen.storage.as_ref().map(|storage| Target::of(Kind::BackupStorageLocation, &storage.metadata));
    let copy = seen.copy.as_ref().map(|copy| Target::of(Kind::Secret, &copy.metadata));
    storage.into_iter().chain(copy).map(Action::Delete).collect()
}

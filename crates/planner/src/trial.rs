//! What a policy would refuse of the requests that exist, as if each were sent now. Limits on numbers are not counted: a
//! request beyond one waits.

use std::collections::BTreeMap;

use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, NonAdminSchedule, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;
use serde::Serialize;

use crate::ownership::label;
use crate::policy::Policies;
use crate::{Policy, Refusal, backup, location, restore, schedule};

/// Everything a trial reads.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The administrators' namespace.
    pub admin_namespace: String,
    /// All namespaces, whose labels decide which override holds.
    pub namespaces: Vec<Namespace>,
    /// All backups.
    pub backups: Vec<NonAdminBackup>,
    /// All restores.
    pub restores: Vec<NonAdminRestore>,
    /// All storage locations.
    pub locations: Vec<NonAdminBackupStorageLocation>,
    /// All schedules.
    pub schedules: Vec<NonAdminSchedule>,
    /// When the policy is tried.
    pub now: Timestamp,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// How many requests there are.
    pub requests: usize,
    /// Those that the policy would refuse.
    pub refused: Vec<RefusedRequest>,
}

/// A request that would be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedRequest {
    /// backup, restore, location or schedule.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Which field, and what would be accepted.
    pub reason: String,
    /// Whether the policy in force refuses it too.
    pub refused_already: bool,
}

impl Trial {
    /// How many the policy in force does not refuse.
    pub fn newly_refused(&self) -> usize {
        self.refused.iter().filter(|one| !one.refused_already).count()
    }
}

/// Tries a policy on all requests, and compares with the one in force.
pub fn trial(seen: &Observed, tried: &Policies, in_force: &Policies) -> Trial {
    let spaces: BTreeMap<&str, &Namespace> =
        seen.namespaces.iter().filter_map(|one| Some((one.metadata.name.as_deref()?, one))).collect();
    let mut found = Trial::default();
    let mut note =
        |kind: &'static str, meta: &ObjectMeta, refusal: &dyn Fn(&RequestScope<'_>) -> Option<Refusal>| {
            let name = meta.namespace.as_deref().unwrap_or_default();
            let space = spaces.get(name);
            let labels = space.and_then(|space| space.metadata.labels.clone()).unwrap_or_default();
            let uid = space.and_then(|space| space.metadata.uid.as_deref()).unwrap_or_default();
            let by = |policies: &Policies| {
                let policy = policies.for_namespace(name, &labels);
                refusal(&RequestScope { namespace: name, uid, policy: &policy })
            };
            found.requests += 1;
            let Some(refused) = by(tried) else { return };
            found.refused.push(RefusedRequest {
                kind,
                namespace: name.to_owned(),
                name: meta.name.clone().unwrap_or_default(),
                reason: refused.to_string(),
                refused_already: by(in_force).is_some(),
            });
        };
    let admin = seen.admin_namespace.as_str();
    for one in seen.backups.iter().filter(|one| counts(&one.metadata)) {
        note("backup", &one.metadata, &|at| {
            backup::closed_namespace(at.namespace, admin, at.policy)
                .or_else(|| backup::check_spec(&one.spec.backup_spec, at.namespace, at.policy))
        });
    }
    for one in seen.restores.iter().filter(|one| counts(&one.metadata)) {
        note("restore", &one.metadata, &|at| {
            restore::check_spec(&one.spec.restore_spec, at.namespace, at.policy)
        });
    }
    for one in seen.locations.iter().filter(|one| counts(&one.metadata)) {
        note("location", &one.metadata, &|at| {
            let spec = &one.spec.backup_storage_location_spec;
            location::check_spec(spec, at.namespace, &at.policy.storage_locations)
        });
    }
    for one in seen.schedules.iter().filter(|one| counts(&one.metadata)) {
        note("schedule", &one.metadata, &|at| match schedule::times(one, at.uid, at.policy, seen.now) {
            Err(refusal) => Some(refusal),
            Ok(times) => schedule::check(one, &times, admin, at.policy, seen.now),
        });
    }
    found
}

/// The namespace of a request, and the policy there.
struct RequestScope<'a> {
    namespace: &'a str,
    uid: &'a str,
    policy: &'a Policy,
}

/// What is being deleted or was imported is never checked: it makes nothing at Velero.
fn counts(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_none() && label(meta, labels::SYNCED_FROM).is_none()
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::examine;

    fn object<K: DeserializeOwned>(namespace: &str, name: &str, spec: &Value) -> K {
        let meta = json!({"name": name, "namespace": namespace, "creationTimestamp": "2026-11-15T12:00:00Z"});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    fn seen() -> Observed {
        let backup =
            |namespace, name, ttl: &str| object(namespace, name, &json!({"backupSpec": {"ttl": ttl}}));
        let gold = json!({"metadata": {"name": "bank", "labels": {"tier": "gold"}}});
        let mut imported: NonAdminBackup = backup("shop", "imported", "900h");
        imported.metadata.labels = Some([(labels::SYNCED_FROM.to_owned(), "x".to_owned())].into());
        let location = json!({"backupStorageLocationSpec": {"provider": "aws", "config": {"region": "here"}, "objectStorage": {"bucket": "bucket"},
            "credential": {"name": "s", "key": "k"}}});
        let schedule = json!({"schedule": "@every 1h", "template": {"backupSpec": {"ttl": "900h"}}});
        Observed {
            admin_namespace: "velero".to_owned(),
            namespaces: vec![serde_json::from_value(gold).unwrap()],
            backups: vec![
                backup("shop", "short", "10h"),
                backup("shop", "long", "900h"),
                backup("bank", "long", "900h"),
                imported,
            ],
            restores: vec![object("shop", "back", &json!({"restoreSpec": {"backupName": "short"}}))],
            locations: vec![object("shop", "mine", &location)],
            schedules: vec![object("shop", "hourly", &schedule)],
            now: "2026-11-15T13:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn each_request_is_tried_with_the_policy_of_its_namespace() {
        let text = "backup: { ttl: { max: 48h } }\nstorageLocations: { providers: [gcp] }\n\
                    overrides: [{ selector: { matchLabels: { tier: gold } }, backup: { ttl: { max: 9000h } } }]";
        let tried = examine(text).policies.unwrap();
        let found = trial(&seen(), &tried, &Policies::default());
        let refused = found.refused.iter().map(|one| format!("{} {}/{}", one.kind, one.namespace, one.name));
        let refused: Vec<String> = refused.collect();
        assert_eq!(refused, ["backup shop/long", "location shop/mine", "schedule shop/hourly"]);
        assert_eq!((found.requests, found.newly_refused()), (6, 3), "what was imported is not checked");
        assert!(found.refused[0].reason.contains("48h"), "{:?}", found.refused[0]);
        let again = trial(&seen(), &tried, &tried);
        assert_eq!((again.refused.len(), again.newly_refused()), (3, 0), "nothing changes");
        assert!(trial(&seen(), &Policies::default(), &tried).refused.is_empty());
    }

    #[test]
    fn a_namespace_that_is_closed_refuses_its_backups() {
        let tried = examine("namespaces: { excluded: [shop] }").policies.unwrap();
        let found = trial(&seen(), &tried, &Policies::default());
        assert!(found.refused.iter().any(|one| one.kind == "backup" && one.name == "short"), "{found:?}");
        assert!(!found.refused.iter().any(|one| one.namespace == "bank"), "{found:?}");
    }
}

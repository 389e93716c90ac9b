//! What a decision about a tenant's storage location reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::velero::{BackupStorageLocation, BackupStorageLocationSpec};
use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    Phase, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

use super::{delete, generate, neighbours, review, status, times};
use crate::ownership::{made_for, own_name};
use crate::policy::{Import, NativeSnapshots};
use crate::rejected_write;
use crate::request::Request;
use crate::requester::Access;
use crate::state::State;
use crate::view::{Credential, Seen};
use crate::{Action, Key, Plan, Policy, RejectedWrite, Target};

/// Everything a decision about one location reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The location.
    pub location: Arc<NonAdminBackupStorageLocation>,
    /// Why it could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// The request's namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// What its objects in the administrators' namespace are called.
    pub name: String,
    /// What an administrator decides.
    pub request: Option<Seen<NonAdminBackupStorageLocationRequest>>,
    /// Velero's side of it.
    pub storage: Option<Arc<BackupStorageLocation>>,
    /// The credential as Velero has it.
    pub copy: Option<Arc<HiddenSecret>>,
    /// Whether another object already has the name of one of these.
    pub name_taken: bool,
    /// The credential as the tenant has it.
    pub credential: Credential,
    /// How many other locations of this namespace count before this one.
    pub others: usize,
    /// Whether another location has the place in the bucket.
    pub path_taken: bool,
    /// The backups that are kept in it.
    pub backups: Vec<Arc<NonAdminBackup>>,
    /// The backups in it that Velero could not import, and why; none if that is not known.
    pub refused_imports: Option<BTreeMap<String, String>>,
    /// How far the times that it shows may be behind Velero's.
    pub allowed_lag: Duration,
    /// The last write for this object that the API server rejected.
    pub rejected_write: Option<Arc<RejectedWrite>>,
    /// Velero's version, if it is known.
    pub velero_version: Option<String>,
    /// What is known of the permissions of whoever asked.
    pub access: Access,
    /// Whether Velero has a VolumeSnapshotLocation; none if that is not known yet.
    pub takes_native_snapshots: Option<bool>,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Velero's namespace.
    pub admin_namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The names the objects of a location can have: the one they would be given now, and the one the Go controller gave
/// them. The second is a hint that a tenant may have written, and is followed only to what was made for this location.
pub fn references(location: &NonAdminBackupStorageLocation) -> Vec<String> {
    let reported = location
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.nacuuid.clone());
    let mut names = vec![own_name(&location.metadata)];
    names.extend(reported.filter(|name| !name.is_empty()));
    names.dedup();
    names
}

/// Gathers what a decision about this location reads; none if there is no such location.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.seen::<NonAdminBackupStorageLocation>(namespace, name)?, namespace))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: location, unreadable }: Seen<NonAdminBackupStorageLocation>,
    namespace: &str,
) -> Observed {
    let meta = &location.metadata;
    let ours = |found: &ObjectMeta| made_for(found, meta, labels::NABSL_NAME, labels::NABSL_NAMESPACE);
    let mut names = references(&location).into_iter();
    let known = names.find(|name| {
        view.admin::<NonAdminBackupStorageLocationRequest>(name)
            .is_some_and(|request| ours(&request.metadata))
            || view.admin::<BackupStorageLocation>(name).is_some_and(|storage| ours(&storage.metadata))
            || view.admin::<HiddenSecret>(name).is_some_and(|copy| ours(&copy.metadata))
    });
    let stored_as = known.unwrap_or_else(|| own_name(meta));
    let request: Option<Seen<NonAdminBackupStorageLocationRequest>> =
        view.seen(view.admin_namespace(), &stored_as);
    let storage = view.admin::<BackupStorageLocation>(&stored_as);
    let copy = view.admin::<HiddenSecret>(&stored_as);
    let name_taken = request.as_ref().is_some_and(|request| !ours(&request.object.metadata))
        || storage.as_ref().is_some_and(|storage| !ours(&storage.metadata))
        || copy.as_ref().is_some_and(|copy| !ours(&copy.metadata));
    let spec = &location.spec.backup_storage_location_spec;
    let credential = named_key(spec).map(|(secret, key)| view.credential(namespace, secret, key));
    Observed {
        name_taken,
        credential: credential.unwrap_or_default(),
        // Neither matters any more once it has come that far.
        others: if request.is_none() { neighbours::before(view, &location) } else { 0 },
        path_taken: storage.is_none() && neighbours::has_place(view, &location, &stored_as),
        backups: delete::backups(view, &location, &stored_as),
        refused_imports: storage.as_deref().and_then(|storage| view.refused_imports(storage)),
        allowed_lag: times::allowed_lag(view.number_of_locations(), meta.uid.as_deref()),
        request: request.filter(|request| ours(&request.object.metadata)),
        storage: storage.filter(|storage| ours(&storage.metadata)),
        copy: copy.filter(|copy| ours(&copy.metadata)),
        rejected_write: rejected_write::persistent(view, &Key::of(Kind::NonAdminBackupStorageLocation, meta)),
        velero_version: view.velero_version(),
        access: Access::gather(view, meta, namespace),
        takes_native_snapshots: view.takes_native_snapshots(),
        policy: view.policy(namespace),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        namespace: view.namespace(namespace),
        name: stored_as,
        location,
        unreadable,
    }
}

/// The Secret and the key in it that a location names, if both can be names.
pub fn named_key(spec: &BackupStorageLocationSpec) -> Option<(&str, &str)> {
    let reference = spec.credential.as_ref()?;
    super::check::names_a_secret(reference).then_some((reference.name.as_str(), reference.key.as_str()))
}

impl Observed {
    pub(super) fn meta(&self) -> &ObjectMeta {
        &self.location.metadata
    }

    pub(super) fn target(&self) -> Target {
        Target::of(Kind::NonAdminBackupStorageLocation, self.meta())
    }

    pub(super) fn spec(&self) -> &BackupStorageLocationSpec {
        &self.location.spec.backup_storage_location_spec
    }

    pub(super) fn tenant(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    /// The request for approval, if there is one that can be read.
    pub(super) fn readable_request(&self) -> Option<&NonAdminBackupStorageLocationRequest> {
        let found = self.request.as_ref().filter(|found| found.unreadable.is_none())?;
        Some(&*found.object)
    }

    /// The spec as it was when it was asked for.
    pub(super) fn requested(&self) -> Option<&BackupStorageLocationSpec> {
        review::recorded(&self.request.as_ref()?.object).map(|asked| &asked.requested_spec)
    }

    /// It says something else than what was asked for.
    pub(super) fn edited(&self) -> bool {
        self.requested().is_some_and(|requested| !generate::same(requested, self.spec()))
    }

    /// The request was made for another location than it says.
    pub(super) fn request_is_odd(&self) -> bool {
        let asked = self.request.as_ref().and_then(|request| review::recorded(&request.object));
        asked.is_some_and(|asked| asked.nacuuid.as_deref() != Some(self.name.as_str()))
    }

    /// Whether Velero is to look for backups in it; none if that is not known yet.
    pub(super) fn imports(&self, policy: &Policy) -> Option<bool> {
        match policy.storage_locations.import {
            Import::On => Some(true),
            Import::Off => Some(false),
            Import::Auto => self.velero_version.as_deref().map(super::import::is_safe),
        }
    }
}

impl Observed {
    /// Whether a backup's files could have snapshots deleted, and the policy does not accept that; none if that is not
    /// known yet.
    pub(super) fn endangers_snapshots(&self, policy: &Policy) -> Option<bool> {
        match policy.storage_locations.native_snapshots {
            NativeSnapshots::Accept => Some(false),
            NativeSnapshots::Refuse => self.takes_native_snapshots,
        }
    }
}

impl Request for Observed {
    const NOUN: &'static str = "location";
    const FINALIZER: Option<&'static str> = Some(labels::NABSL_FINALIZER);
    // What Velero lost is created again.
    const LOST: Option<&'static str> = None;

    fn object(&self) -> (Kind, &ObjectMeta) {
        (Kind::NonAdminBackupStorageLocation, self.meta())
    }

    fn reported(&self) -> (Option<Phase>, &[Condition]) {
        let status = self.location.status.as_ref();
        status.map_or((None, [].as_slice()), |status| (status.phase, status.conditions.as_slice()))
    }

    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action> {
        status::patch(self, &status::refused(self, reason, message))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// Allowing it would be a guess; what Velero has already goes on being shown.
    fn wait_for_policy(&self) -> Plan {
        status::wait_for_policy(self)
    }
}

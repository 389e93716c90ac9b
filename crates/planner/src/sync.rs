//! A Velero Backup that no request refers to, because Velero found it in storage: its owner gets a request for it.
//!
//! Who the owner is, the storage says: in a tenant's bucket every byte may be the tenant's own, so whatever is in it is
//! theirs and nobody else's; in the administrators' storage the Backup is believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::velero::{Backup, BackupSpec, BackupStorageLocation};
use api::{Kind, NonAdminBackup, NonAdminBackupSpec, NonAdminBackupStorageLocation, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ObjectMeta;
use serde_json::json;

use crate::ownership::{Storage, annotation, label, made_for, made_in, storage};
use crate::policy::Adoption;
use crate::state::State;
use crate::{Action, Event, Key, Object, Plan, Target, backup};

/// Which namespace, by uid, an administrator has given the backups of its earlier namesakes to.
pub const ADOPTIONS: &str = "nacre-adoptions";
/// The end of the key under which that ConfigMap says who gave them. No namespace has a dot in its name.
pub(crate) const ADOPTED_BY: &str = ".requester";
/// A backup in a tenant's storage contradicts it.
pub const IGNORED: &str = "BackupIgnored";
/// A spec longer than this is not one that a person wrote; a request is made without it.
const LARGEST_SPEC: usize = 256 * 1024;
/// Labels and names of requests hold this much.
const LONGEST_NAME: usize = 63;

/// What becomes of a Velero Backup that may want a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Nothing: it is not over, not one of ours, or has its request.
    Settled,
    /// It contradicts the storage it lies in, and is left alone; the location it lies in, and why.
    AtOdds(Key, &'static str),
    /// It belonged to an earlier namespace of this name, and waits for an administrator.
    Held(Key),
    /// It belongs to this namespace and gets a request, adopted or not.
    Wanted(Box<NonAdminBackup>, Option<Action>),
}

/// Which Velero Backups to decide about, for a look at everything.
pub fn candidates(view: &State) -> Vec<Key> {
    let over = view.all::<Backup>().into_iter().filter(|velero| is_over(velero));
    over.map(|velero| Key::of(Kind::Backup, &velero.metadata)).collect()
}

/// Decides about one Velero Backup, and says about what the Events of the plan are; none if it is gone.
pub fn decide(view: &State, name: &str) -> Option<(Key, Plan)> {
    let velero = view.admin::<Backup>(name)?;
    let this = Key::of(Kind::Backup, &velero.metadata);
    Some(match find(view, &velero) {
        Finding::Settled => (this, Plan::done().because("it is not over, is nobody's, or has its request")),
        Finding::AtOdds(location, why) => {
            let note = format!("backup {name:?} in this storage is ignored: {why}");
            (location, Plan::done().because(why).with_event(Event::warning(IGNORED, note)))
        }
        Finding::Held(request) => {
            let note = "a backup of an earlier namespace of this name is held back; an administrator can hand it over";
            (request, Plan::done().because(note).with_event(Event::warning("BackupHeldBack", note)))
        }
        Finding::Wanted(request, adoption) => {
            let about = Key::of(Kind::NonAdminBackup, &request.metadata);
            (
                about,
                Plan::done()
                    .because("a backup in storage has no request: one is created")
                    .then_if(adoption)
                    .then(Action::Create(Object::of(Kind::NonAdminBackup, &request))),
            )
        }
    })
}

/// What becomes of a Velero Backup that may want a request.
pub fn find(view: &State, velero: &Backup) -> Finding {
    if !is_over(velero) {
        return Finding::Settled;
    }
    let location =
        velero.spec.storage_location.as_deref().and_then(|name| view.admin::<BackupStorageLocation>(name));
    match (storage(velero, location.as_deref()), &location) {
        (Storage::Tenant(owner), Some(location)) => in_tenant_storage(view, velero, location, owner),
        (Storage::Platform, _) => in_platform_storage(view, velero),
        _ => Finding::Settled,
    }
}

fn is_over(velero: &Backup) -> bool {
    let status = velero.status.as_ref();
    status.is_some_and(|status| {
        status.completion_timestamp.is_some() && status.phase.as_deref() != Some("Deleting")
    }) && velero.metadata.deletion_timestamp.is_none()
}

/// Made by nacre or by the Go controller, as far as it says itself.
fn is_marked(velero: &Backup) -> bool {
    let meta = &velero.metadata;
    label(meta, labels::OADP) == Some(labels::OADP_VALUE)
        && label(meta, labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE)
        && label(meta, labels::NAB_NACUUID).is_some()
}

fn in_tenant_storage(
    view: &State,
    velero: &Backup,
    location: &BackupStorageLocation,
    owner: &str,
) -> Finding {
    let Some(name) = annotation(&location.metadata, labels::NABSL_NAME) else { return Finding::Settled };
    let Some(request) = view.get::<NonAdminBackupStorageLocation>(owner, name) else {
        return Finding::Settled;
    };
    let ours = made_for(&location.metadata, &request.metadata, labels::NABSL_NAME, labels::NABSL_NAMESPACE);
    let Some(namespace) = open_namespace(view, owner).filter(|_| ours) else { return Finding::Settled };
    if !is_marked(velero) {
        return Finding::Settled;
    }
    let at_odds = |why| Finding::AtOdds(Key::new(Kind::NonAdminBackupStorageLocation, owner, name), why);
    if annotation(&velero.metadata, labels::NAB_NAMESPACE).is_some_and(|origin| origin != owner) {
        return at_odds("it says that it belongs to another namespace");
    }
    if velero.spec.included_namespaces.as_deref() != Some(&[owner.to_owned()]) {
        return at_odds("it is not of this namespace alone");
    }
    match well_named(velero) {
        Err(why) => at_odds(why),
        Ok(origin) => wanted(view, velero, &namespace, origin, Some(name), None),
    }
}

fn in_platform_storage(view: &State, velero: &Backup) -> Finding {
    let Some((owner, origin)) = origin(velero) else { return Finding::Settled };
    let Some(namespace) = open_namespace(view, owner) else { return Finding::Settled };
    if made_in(&velero.metadata, &namespace) {
        let by = annotation(&velero.metadata, labels::ADOPTED_BY);
        return asked_by(by, wanted(view, velero, &namespace, origin, None, None));
    }
    if !is_adopted(view, &namespace) {
        return Finding::Held(Key::new(Kind::NonAdminBackup, owner, origin));
    }
    let record = view.admin::<ConfigMap>(ADOPTIONS);
    let by = adopter(record.as_deref(), &namespace);
    let mut annotations = json!({labels::ORIGIN_NAMESPACE_UID: namespace.metadata.uid});
    // The request is created after this: what a crash in between would forget is written down here.
    annotations[labels::ADOPTED_BY] = json!(by);
    let body = json!({"metadata": {"annotations": annotations}});
    let adoption = Action::Patch(Target::of(Kind::Backup, &velero.metadata), body);
    asked_by(by, wanted(view, velero, &namespace, origin, None, Some(adoption)))
}

/// Lets a request carry the name of the administrator who had it made. Nobody asked for one that was merely found.
fn asked_by(user: Option<&str>, mut finding: Finding) -> Finding {
    if let (Finding::Wanted(request, _), Some(user)) = (&mut finding, user) {
        let record = format!(r#"{{"user":{},"uid":"","groups":[],"scopes":[]}}"#, json!(user));
        request.metadata.annotations = Some([(labels::REQUESTER.to_owned(), record)].into());
    }
    finding
}

/// The namespace and the request that a Velero Backup in the administrators' storage was made for, as it says itself.
fn origin(velero: &Backup) -> Option<(&str, &str)> {
    let owner = annotation(&velero.metadata, labels::NAB_NAMESPACE).filter(|_| is_marked(velero))?;
    Some((owner, well_named(velero).ok()?))
}

/// Of a Velero Backup that an earlier namespace of this name left in the administrators' storage: the request it was
/// made for. It is held back until an administrator hands it over.
pub fn left_by_a_namesake<'a>(
    velero: &'a Backup,
    location: Option<&BackupStorageLocation>,
    namespace: &Namespace,
) -> Option<&'a str> {
    let (owner, request) = origin(velero)?;
    let left = is_over(velero)
        && storage(velero, location) == Storage::Platform
        && namespace.metadata.name.as_deref() == Some(owner)
        && !made_in(&velero.metadata, namespace);
    left.then_some(request)
}

/// A namespace that exists, is not being deleted, and may request backups.
fn open_namespace(view: &State, name: &str) -> Option<Arc<Namespace>> {
    let allowed = view.policy(name)?.namespaces.allows(name) && name != view.admin_namespace();
    view.namespace(name).filter(|space| allowed && space.metadata.deletion_timestamp.is_none())
}

/// Whether this very namespace gets what earlier ones of its name have left.
fn is_adopted(view: &State, namespace: &Namespace) -> bool {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    if view.policy(name).is_some_and(|policy| policy.sync.adoption == Adoption::Name) {
        return true;
    }
    is_given(view.admin::<ConfigMap>(ADOPTIONS).as_deref(), namespace)
}

/// Whether an administrator has written down that this very namespace gets what earlier ones of its name have left.
pub fn is_given(record: Option<&ConfigMap>, namespace: &Namespace) -> bool {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let given = record.and_then(|record| record.data.as_ref()?.get(name));
    given.is_some() && given == namespace.metadata.uid.as_ref()
}

/// The key under which the record of adoptions says who gave this namespace its backups.
pub fn adopter_key(namespace: &str) -> String {
    format!("{namespace}{ADOPTED_BY}")
}

/// Who gave this very namespace what earlier ones of its name have left; none if that was not written down.
pub fn adopter<'a>(record: Option<&'a ConfigMap>, namespace: &Namespace) -> Option<&'a str> {
    let record = record.filter(|record| is_given(Some(record), namespace))?;
    let key = adopter_key(namespace.metadata.name.as_deref().unwrap_or_default());
    record.data.as_ref()?.get(&key).map(String::as_str).filter(|user| !user.is_empty())
}

/// The name of the request it was made for, if everything it says about names can be so.
fn well_named(velero: &Backup) -> Result<&str, &'static str> {
    let own = velero.metadata.name.as_deref().unwrap_or_default();
    if label(&velero.metadata, labels::NAB_NACUUID) != Some(own) || own.len() > LONGEST_NAME {
        return Err("its label names another backup");
    }
    let origin = annotation(&velero.metadata, labels::NAB_NAME).unwrap_or_default();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    let fine = origin.len() <= 253 && origin.split('.').all(part);
    if fine { Ok(origin) } else { Err("no request can have the name it says it was made for") }
}

fn wanted(
    view: &State,
    velero: &Backup,
    namespace: &Namespace,
    origin: &str,
    location: Option<&str>,
    adoption: Option<Action>,
) -> Finding {
    let owner = namespace.metadata.name.as_deref().unwrap_or_default();
    let own = velero.metadata.name.as_deref().unwrap_or_default();
    if refers(view, owner, velero) {
        return Finding::Settled;
    }
    // Another request may have the name. Then this one gets the end of the Velero Backup's name as a suffix.
    let uid = own.get(own.len().saturating_sub(36)..).unwrap_or(own);
    let short = uid.split('-').next().unwrap_or(uid);
    let cut =
        |room: usize| origin.get(..origin.len().min(room)).unwrap_or(origin).trim_end_matches(['-', '.']);
    let names = [origin.to_owned(), format!("{}-{short}", cut(200)), format!("{}-{uid}", cut(200))];
    let Some(name) = names.into_iter().find(|name| view.get::<NonAdminBackup>(owner, name).is_none()) else {
        return Finding::Settled;
    };
    let mut spec = velero.spec.clone();
    if serde_json::to_vec(&spec).is_ok_and(|text| text.len() > LARGEST_SPEC) {
        spec = BackupSpec { included_namespaces: Some(vec![owner.to_owned()]), ..BackupSpec::default() };
    }
    spec.storage_location = location.map(str::to_owned);
    let request = NonAdminBackup {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(owner.to_owned()),
            labels: Some(labels_of(velero, own)),
            ..ObjectMeta::default()
        },
        spec: NonAdminBackupSpec { backup_spec: spec, delete_backup: None },
        status: None,
    };
    Finding::Wanted(Box::new(request), adoption)
}

/// Where it comes from, and the schedule it was a run of: what it says is believed in its own namespace only.
fn labels_of(velero: &Backup, own: &str) -> BTreeMap<String, String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let schedule = annotation(&velero.metadata, labels::NAS_NAME).filter(|name| {
        name.len() <= LONGEST_NAME && name.chars().all(fine) && name.starts_with(ends) && name.ends_with(ends)
    });
    let schedule = schedule.map(|name| (labels::NAS_NAME.to_owned(), name.to_owned()));
    BTreeMap::from([(labels::SYNCED_FROM.to_owned(), own.to_owned())]).into_iter().chain(schedule).collect()
}

/// Whether a request of this namespace is this Velero Backup's, or will be.
fn refers(view: &State, namespace: &str, velero: &Backup) -> bool {
    let name = velero.metadata.name.as_deref();
    let keys = view.backups_of(name.unwrap_or_default()).into_iter();
    let mut requests = keys
        .filter(|key| key.namespace == namespace)
        .filter_map(|key| view.get::<NonAdminBackup>(namespace, &key.name));
    requests.any(|request| {
        label(&request.metadata, labels::SYNCED_FROM) == name
            || backup::velero_of(view, &request).is_some_and(|found| found.metadata.name.as_deref() == name)
    })
}

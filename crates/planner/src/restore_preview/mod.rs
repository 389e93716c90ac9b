//! What a restore would do, object by object, before it is requested.
//!
//! The caller reads three things: the list of objects in the backup, the objects that exist in the namespace, and the
//! spec that Velero would be given. The contents of the backup make the answer more precise where they can be read.

mod difference;
mod left_out;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use api::velero::RestoreSpec;
use serde::Serialize;
use serde_json::Value;

pub use difference::Difference;
pub use left_out::{LeftOutBy, claims_of};
pub use volumes::{SavedClaim, VolumeEffect, VolumePreview, saved_by_status};

use crate::Policy;
use crate::served::Served;

/// The group-resource of claims.
pub const CLAIMS: &str = "persistentvolumeclaims";
/// The group-resource of pods.
pub const PODS: &str = "pods";

/// One object in a backup, as Velero's list of resources names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The apiVersion, such as apps/v1.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// The name, as it is in the backup.
    pub name: String,
}

/// Reads Velero's list of the resources in a backup: names by apiVersion and kind.
pub fn read_list(list: &BTreeMap<String, Vec<String>>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (key, names) in list {
        let (api_version, kind) = key.rsplit_once('/').unwrap_or(("", key));
        for name in names {
            let (namespace, name) = match name.split_once('/') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, name.as_str()),
            };
            items.push(Item {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace,
                name: name.to_owned(),
            });
        }
    }
    items.sort();
    items
}

/// The objects of one resource in the namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum Existing {
    /// These, by name; the object itself where it was read.
    Listed(BTreeMap<String, Option<Value>>),
    /// The caller may not list them.
    NotAllowed(String),
}

/// Objects by group-resource and name.
pub type Contents = BTreeMap<(String, String), Value>;

/// Everything a preview reads.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// What the tenant requests.
    pub requested: &'a RestoreSpec,
    /// What Velero would be given.
    pub spec: &'a RestoreSpec,
    /// The policy in force, or the default where the caller may not read it.
    pub policy: &'a Policy,
    /// Whether the backup is in storage that the tenant can write to.
    pub from_tenant_storage: bool,
    /// Kinds that the requester may not create, as group-resources.
    pub not_permitted: &'a [String],
    /// What is in the backup.
    pub items: &'a [Item],
    /// What the cluster serves.
    pub served: &'a [Served],
    /// What exists, by group-resource.
    pub existing: &'a BTreeMap<String, Existing>,
    /// The contents of the backup, where the caller may read them.
    pub contents: Option<&'a Contents>,
    /// Objects that are removed before the restore, as group-resource and name.
    pub removed_first: &'a BTreeSet<(String, String)>,
    /// What is known about the data of claims in the backup, by claim.
    pub saved: &'a BTreeMap<String, SavedClaim>,
}

/// What happens to one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    /// It is created.
    Created,
    /// It is created unless it had completed, which only the contents of the backup show.
    CreatedUnlessCompleted,
    /// It is removed first and then created.
    Replaced,
    /// It exists as it is in the backup.
    Same,
    /// It exists and stays as it is. The differences are none if they are not known.
    Kept {
        /// How it differs from the backup.
        #[serde(skip_serializing_if = "Option::is_none")]
        differences: Option<Vec<Difference>>,
    },
    /// It exists and is changed. The differences are none if they are not known: then it may be the same already.
    Updated {
        /// What changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        differences: Option<Vec<Difference>>,
    },
    /// A PersistentVolume: it comes back with its claim, or the claim gets a new one.
    WithItsClaim,
    /// A rule leaves it out.
    LeftOut {
        /// The rule.
        by: LeftOutBy,
    },
    /// It cannot be said.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// What happens to one object of the backup.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPreview {
    /// The group-resource, or the kind if the cluster does not serve it.
    pub resource: String,
    /// The name that it would have in the namespace.
    pub name: String,
    /// What happens.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What a restore would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Object by object.
    pub objects: Vec<ObjectPreview>,
    /// Claim by claim.
    pub volumes: Vec<VolumePreview>,
}

impl Preview {
    /// Whether something that is in the backup, and is not left out on purpose, would not be as it was.
    pub fn something_stays_away(&self) -> bool {
        self.objects.iter().any(|object| object.effect.stays_away())
            || self.volumes.iter().any(|volume| volume.effect.stays_away())
    }
}

impl Effect {
    /// Whether the object would not be as it was in the backup, or that is not known. What the request itself leaves
    /// out, and what nacre and Velero never restore, is no surprise.
    pub fn stays_away(&self) -> bool {
        match self {
            Self::Kept { .. } | Self::Unknown { .. } => true,
            Self::LeftOut { by } => by.is_surprise(),
            Self::Created
            | Self::CreatedUnlessCompleted
            | Self::Replaced
            | Self::Same
            | Self::Updated { .. }
            | Self::WithItsClaim => false,
        }
    }

    /// Whether Velero creates the object.
    pub const fn creates(&self) -> bool {
        matches!(self, Self::Created | Self::CreatedUnlessCompleted | Self::Replaced)
    }
}

/// Says what a restore would do.
pub fn preview(seen: &Observed<'_>) -> Preview {
    let brought = left_out::claims_of_selected_pods(seen);
    let of_namespace =
        |item: &&Item| item.namespace.is_none() || item.namespace.as_deref() == Some(seen.namespace);
    let mut objects: Vec<ObjectPreview> = seen
        .items
        .iter()
        .filter(of_namespace)
        .map(|item| {
            let served = seen.served_as(item);
            let resource = served.map_or_else(|| item.kind.clone(), Served::name);
            let effect = effect(seen, item, served, &brought);
            ObjectPreview { resource, name: item.name.clone(), effect }
        })
        .collect();
    objects.sort_by(|one, other| (&one.resource, &one.name).cmp(&(&other.resource, &other.name)));
    let volumes = volumes::preview(seen, &objects);
    Preview { objects, volumes }
}

/// The rule that leaves a whole resource out of the restore, if there is one.
pub fn resource_left_out(seen: &Observed<'_>, resource: &str) -> Option<LeftOutBy> {
    match seen.served.iter().find(|one| one.name() == resource) {
        Some(served) => left_out::by_resource(seen, resource, served),
        None => Some(LeftOutBy::NotServed),
    }
}

fn effect(seen: &Observed<'_>, item: &Item, served: Option<&Served>, brought: &BTreeSet<String>) -> Effect {
    let Some(served) = served else {
        return Effect::LeftOut { by: LeftOutBy::NotServed };
    };
    let resource = served.name();
    if let Some(by) = left_out::by_resource(seen, &resource, served) {
        return Effect::LeftOut { by };
    }
    if resource == "persistentvolumes" {
        return Effect::WithItsClaim;
    }
    let content = seen.content(&resource, &item.name);
    match left_out::by_labels(seen, content) {
        // Velero adds the claims of a pod that it restores.
        _ if resource == CLAIMS && brought.contains(&item.name) => {}
        Some(true) => return Effect::LeftOut { by: left_out::selector_of(seen) },
        None => {
            let why =
                "its labels are not known, because the contents of the backup cannot be read".to_owned();
            return Effect::Unknown { why };
        }
        Some(false) => {}
    }
    if let Some(by) = content.and_then(|content| left_out::by_content(seen, &resource, content)) {
        return Effect::LeftOut { by };
    }
    if seen.removed_first.contains(&(resource.clone(), item.name.clone())) {
        return Effect::Replaced;
    }
    match seen.existing.get(&resource) {
        None => Effect::Unknown { why: "it was not looked up".to_owned() },
        Some(Existing::NotAllowed(why)) => Effect::Unknown { why: why.clone() },
        Some(Existing::Listed(found)) => match found.get(&item.name) {
            Some(live) => existing(seen, &resource, &item.name, content, live.as_ref()),
            None if content.is_none() && left_out::may_have_completed(&resource) => {
                Effect::CreatedUnlessCompleted
            }
            None => Effect::Created,
        },
    }
}

fn existing(
    seen: &Observed<'_>,
    resource: &str,
    name: &str,
    content: Option<&Value>,
    live: Option<&Value>,
) -> Effect {
    // Kubernetes makes these itself in every namespace.
    if matches!((resource, name), ("configmaps", "kube-root-ca.crt") | ("serviceaccounts", "default")) {
        return Effect::Same;
    }
    // Velero adds to a service account what is missing, whatever the policy for existing objects.
    let merged = resource == "serviceaccounts";
    let differences = content.zip(live).map(|(content, live)| {
        if merged { difference::missing(content, live) } else { difference::between(resource, content, live) }
    });
    if differences.as_ref().is_some_and(Vec::is_empty) {
        return Effect::Same;
    }
    if merged || seen.spec.existing_resource_policy.as_deref() == Some("update") {
        Effect::Updated { differences }
    } else {
        Effect::Kept { differences }
    }
}

impl<'a> Observed<'a> {
    /// The resource that an item is of, if the cluster serves its kind. The version may be another.
    fn served_as(&self, item: &Item) -> Option<&'a Served> {
        let group = item.api_version.split_once('/').map_or("", |(group, _)| group);
        let same = |one: &&Served| one.kind == item.kind && one.group == group;
        let exact = |one: &&Served| same(one) && one.api_version() == item.api_version;
        self.served.iter().find(exact).or_else(|| self.served.iter().find(same))
    }

    fn content(&self, resource: &str, name: &str) -> Option<&'a Value> {
        self.contents?.get(&(resource.to_owned(), name.to_owned()))
    }
}

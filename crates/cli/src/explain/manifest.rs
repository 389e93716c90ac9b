//! Requests in files, and what of them can be checked from here.

use std::{io::Read as _, path::Path};

use anyhow::{Context as _, Result, anyhow, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use kube::core::ObjectMeta;
use planner::view;
use serde_json::Value;

use super::Reported;
use crate::{
    allowed::Source,
    list::Readable,
    location::state::LocationState,
    progress::{RequestProgress, State},
};

/// A request that somebody asks about.
#[derive(Clone, Debug)]
pub(super) enum Manifest {
    Backup(Box<NonAdminBackup>),
    Restore(Box<NonAdminRestore>),
    Location(Box<NonAdminBackupStorageLocation>),
    /// One that cannot be read.
    Malformed {
        noun: &'static str,
        meta: Box<ObjectMeta>,
        why: String,
    },
}

/// Reads the requests in a file; other objects in it are passed over.
pub(super) fn read(file: &Path, namespace: &str) -> Result<Vec<Manifest>> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        text
    } else {
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?
    };
    parse(&text, namespace)
}

fn parse(text: &str, namespace: &str) -> Result<Vec<Manifest>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| invalid(&error))?;
    let items = documents.into_iter().flat_map(|document| match document["items"].as_array() {
        Some(items) if document["kind"] == "List" => items.clone(),
        _ => vec![document],
    });
    let mut manifests = Vec::new();
    for item in items {
        let there = item["metadata"]["namespace"].as_str().unwrap_or(namespace);
        if there != namespace {
            bail!("a manifest is for namespace {there}; say -n {there}");
        }
        match item["kind"].as_str() {
            Some("NonAdminBackup") => manifests.push(Manifest::of(view::read(&item), Manifest::Backup)),
            Some("NonAdminRestore") => manifests.push(Manifest::of(view::read(&item), Manifest::Restore)),
            Some("NonAdminBackupStorageLocation") => {
                manifests.push(Manifest::of(view::read(&item), Manifest::Location));
            }
            _ => {}
        }
    }
    if manifests.is_empty() {
        bail!("there is no NonAdminBackup, NonAdminRestore or NonAdminBackupStorageLocation in it");
    }
    Ok(manifests)
}

/// What is wrong with a file, in one line: the library adds excerpts, and advice to whoever wrote this program.
fn invalid(error: &serde_saphyr::Error) -> anyhow::Error {
    let said = error.to_string();
    anyhow!("it is not valid YAML: {}", said.lines().next().unwrap_or_default())
}

fn of_progress(progress: &RequestProgress<'_>) -> Option<Reported> {
    let state = progress.state();
    let needs_attention = matches!(state, State::Refused(_) | State::Waiting(_) | State::Gone(_));
    let (status, message) = (progress.word().to_owned(), progress.detail());
    (state != State::New).then_some(Reported { status, message, needs_attention })
}

impl Manifest {
    /// An object, or what is left of it.
    pub(super) fn of<K: Readable>(
        (object, unreadable): (K, Option<String>),
        make: impl FnOnce(Box<K>) -> Self,
    ) -> Self {
        let meta = Box::new(object.meta().clone());
        let whole = make(Box::new(object));
        match unreadable {
            None => whole,
            Some(why) => Self::Malformed { noun: whole.noun(), meta, why },
        }
    }

    pub(super) const fn noun(&self) -> &'static str {
        match self {
            Self::Backup(_) => "backup",
            Self::Restore(_) => "restore",
            Self::Location(_) => "location",
            Self::Malformed { noun, .. } => noun,
        }
    }

    pub(super) fn name(&self) -> String {
        let meta = match self {
            Self::Backup(object) => &object.metadata,
            Self::Restore(object) => &object.metadata,
            Self::Location(object) => &object.metadata,
            Self::Malformed { meta, .. } => meta,
        };
        meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_else(|| "(no name)".to_owned())
    }

    /// The status of the object, if nacre has written one.
    pub(super) fn reported(&self) -> Option<Reported> {
        match self {
            Self::Backup(object) => of_progress(&RequestProgress::from(object.as_ref())),
            Self::Restore(object) => of_progress(&RequestProgress::from(object.as_ref())),
            Self::Location(object) => {
                let state = LocationState::from(object.as_ref());
                let needs_attention = matches!(
                    state,
                    LocationState::Refused(_) | LocationState::Rejected(_) | LocationState::Waiting(_)
                );
                let (status, message) = (state.word().to_owned(), state.detail());
                (state != LocationState::New).then_some(Reported { status, message, needs_attention })
            }
            Self::Malformed { .. } => None,
        }
    }

    /// What was asked of Velero.
    pub(super) fn asked(&self) -> Value {
        let value = match self {
            Self::Backup(object) => serde_json::to_value(&object.spec.backup_spec),
            Self::Restore(object) => serde_json::to_value(&object.spec.restore_spec),
            Self::Location(object) => serde_json::to_value(&object.spec.backup_storage_location_spec),
            Self::Malformed { .. } => Ok(Value::Null),
        };
        value.unwrap_or_default()
    }

    /// What only nacre can see.
    pub(super) fn not_checked(&self, policy: Source) -> Vec<String> {
        let mut open = Vec::new();
        if policy == Source::Unreadable {
            open.push("the administrators' policy: you are not permitted to read it".to_owned());
        }
        let marked =
            |name: &str| format!("whether the ConfigMap {name} is one the administrators let you use");
        match self {
            Self::Backup(backup) => {
                open.extend(backup.spec.backup_spec.resource_policy.as_ref().map(|map| marked(&map.name)));
            }
            Self::Restore(restore) => {
                let spec = &restore.spec.restore_spec;
                let named = spec.resource_modifier.iter().chain(&spec.resource_policy);
                open.extend(named.map(|map| marked(&map.name)));
            }
            Self::Location(_) => {
                open.push("whether another location uses this place in the bucket".to_owned());
                open.push("whether Velero can reach the bucket with this key".to_owned());
            }
            Self::Malformed { .. } => {}
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_picked_out_of_a_file() {
        let text = "kind: ConfigMap\n---\nkind: NonAdminBackup\napiVersion: oadp.openshift.io/v1alpha1\nmetadata: {name: a}\nspec: {backupSpec: {}}\n---\n\
                    kind: NonAdminRestore\napiVersion: oadp.openshift.io/v1alpha1\nmetadata: {name: b}\nspec: {restoreSpec: {bakcupName: a}}\n";
        let found = parse(text, "shop").unwrap();
        assert!(matches!(found[0], Manifest::Backup(_)));
        assert!(
            matches!(&found[1], Manifest::Malformed { noun: "restore", why, .. } if why.contains("bakcupName"))
        );
        assert!(parse("kind: Pod", "shop").is_err());
        for broken in ["kind: [a", "a: b: c", "kind: NonAdminBackup\n  metadata: {}"] {
            let said = format!("{:#}", parse(broken, "shop").unwrap_err());
            assert!(said.starts_with("it is not valid YAML") && said.lines().count() == 1, "{said}");
            assert!(!said.contains("Option<"), "{said}");
        }
        let elsewhere = text.replace("{name: a}", "{name: a, namespace: other}");
        assert!(parse(&elsewhere, "shop").unwrap_err().to_string().contains("-n other"));
    }
}

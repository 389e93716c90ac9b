//! Who asked, as the API server recorded it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::ownership::annotation;

/// A person or a program that asked for something.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requester {
    /// The user name.
    pub user: String,
    /// The uid that the authenticator gives the user; empty if it gives none.
    pub uid: String,
    /// The groups. Too many are cut off, which only lowers permissions.
    pub groups: Vec<String>,
    /// What OpenShift limits the user's token to; empty for no limit.
    pub scopes: Vec<String>,
    /// Further extra fields of the user that the installation lists, by their keys.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What is known of who asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Nobody recorded it: the request is older than the record, or the cluster cannot keep one.
    #[default]
    Unrecorded,
    /// Something was recorded that cannot be read: nobody has any permission.
    Unreadable,
    /// This one.
    Known(Arc<Requester>),
    /// Nobody: the administrators' policy. Only nacre can write that, and it is what administrators want.
    Policy,
}

/// The record of what nacre does because the policy or a schedule's retention wants it.
pub(crate) const BY_POLICY: &str = r#"{"policy":true}"#;

/// The requester of an object: a tenant's request, or an object of Velero's kinds in a tenant's namespace.
pub fn of(meta: &ObjectMeta) -> Identity {
    read(meta, labels::REQUESTER)
}

/// Who asked for the data of a backup to be deleted.
pub fn of_deletion(meta: &ObjectMeta) -> Identity {
    read(meta, labels::DELETION_REQUESTER)
}

fn read(meta: &ObjectMeta, name: &str) -> Identity {
    let Some(text) = annotation(meta, name) else { return Identity::Unrecorded };
    if text == BY_POLICY {
        return Identity::Policy;
    }
    match serde_json::from_str::<Requester>(text) {
        Ok(requester) if !requester.user.is_empty() => Identity::Known(Arc::new(requester)),
        _ => Identity::Unreadable,
    }
}

impl Identity {
    /// The user name, if it is known.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Known(requester) => Some(&requester.user),
            Self::Unrecorded | Self::Unreadable | Self::Policy => None,
        }
    }

    /// Who asked, for the message of an Event.
    pub(crate) fn asked(&self) -> String {
        match self {
            Self::Known(requester) => format!("asked for by {:?}", requester.user),
            Self::Policy => {
                "as the administrators' policy or the retention of its schedule wants it".to_owned()
            }
            Self::Unrecorded => "and it was not recorded who asked".to_owned(),
            Self::Unreadable => "and the record of who asked cannot be read".to_owned(),
        }
    }
}

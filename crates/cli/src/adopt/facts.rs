//! Which backups of deleted namespaces exist, and which were adopted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use api::{
    labels,
    velero::{Backup, BackupStorageLocation},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, api::ListParams};
use planner::{
    ownership::annotation,
    sync::{adopter_key, is_given, left_by_a_namesake},
};
use serde::Serialize;

use super::record;
use crate::{connect::Session, list, style, table::Cell};

/// Everything there is.
pub(super) struct Facts {
    namespaces: Vec<Namespace>,
    backups: Vec<Backup>,
    storage: BTreeMap<String, BackupStorageLocation>,
    record: BTreeMap<String, String>,
}

/// A backup that an earlier namespace left.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Left {
    /// What its owner called it.
    pub(super) backup: String,
    pub(super) status: Option<String>,
    pub(super) completed: Option<Timestamp>,
    /// The uid of the namespace it was made in.
    pub(super) from: Option<String>,
    /// What Velero calls it.
    pub(super) velero: String,
}

/// How a namespace and what an earlier one left stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// Backups wait for an administrator.
    HeldBack,
    /// They were handed over.
    HandedOver,
    /// They were handed to a namespace that is gone.
    Gone,
    /// They were handed to an earlier namespace of this name.
    Outdated,
}

impl State {
    pub(super) fn cell(self) -> Cell {
        match self {
            Self::HeldBack => Cell::painted(style::WARNING, "held back"),
            Self::HandedOver => Cell::painted(style::GOOD, "adopted"),
            Self::Gone => Cell::painted(style::QUIET, "namespace gone"),
            Self::Outdated => Cell::painted(style::WARNING, "namespace re-created since"),
        }
    }
}

/// One namespace.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) namespace: String,
    pub(super) state: State,
    pub(super) held_back: usize,
    /// Whom they were handed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<String>,
    /// Who handed them over, if that was written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
}

impl Facts {
    pub(super) async fn read(session: &Session) -> Result<Self> {
        let spaces: Api<Namespace> = Api::all(session.client.clone());
        let storage = session.in_velero_namespace::<BackupStorageLocation>();
        let all = ListParams::default();
        let (spaces, backups, storage, record) = tokio::join!(
            spaces.list(&all),
            list::all::<Backup>(session, Some(&session.velero_namespace), None, false),
            storage.list(&all),
            record::read(session),
        );
        let named = |storage: BackupStorageLocation| Some((storage.metadata.name.clone()?, storage));
        Ok(Self {
            namespaces: spaces?.items,
            backups: backups?.items.into_iter().map(|(backup, _)| backup).collect(),
            storage: storage?.items.into_iter().filter_map(named).collect(),
            record: record?,
        })
    }

    pub(super) fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|space| space.metadata.name.as_deref() == Some(name))
    }

    /// Whether this namespace has been given what earlier ones left.
    pub(super) fn is_given(&self, namespace: &Namespace) -> bool {
        let map = ConfigMap { data: Some(self.record.clone()), ..ConfigMap::default() };
        is_given(Some(&map), namespace)
    }

    /// What earlier namespaces of this name left in the cluster's storage, the newest last.
    pub(super) fn left_for(&self, namespace: &Namespace) -> Vec<Left> {
        let mut left: Vec<Left> =
            self.backups.iter().filter_map(|backup| self.left(backup, namespace)).collect();
        left.sort_by(|one, other| (one.completed, &one.velero).cmp(&(other.completed, &other.velero)));
        left
    }

    fn left(&self, backup: &Backup, namespace: &Namespace) -> Option<Left> {
        let location = backup.spec.storage_location.as_ref().and_then(|name| self.storage.get(name));
        let name = left_by_a_namesake(backup, location, namespace)?;
        let status = backup.status.as_ref();
        Some(Left {
            backup: name.to_owned(),
            status: status.and_then(|status| status.phase.clone()),
            completed: status.and_then(|status| status.completion_timestamp.as_ref()).map(|time| time.0),
            from: annotation(&backup.metadata, labels::ORIGIN_NAMESPACE_UID).map(str::to_owned),
            velero: backup.metadata.name.clone().unwrap_or_default(),
        })
    }

    /// Every namespace that something is held back for, or was handed to.
    pub(super) fn overview(&self) -> Vec<Row> {
        let owners =
            self.backups.iter().filter_map(|backup| annotation(&backup.metadata, labels::NAB_NAMESPACE));
        // No namespace has a dot in its name: such keys say who handed them over.
        let given = self.record.keys().map(String::as_str).filter(|key| !key.contains('.'));
        let names: BTreeSet<&str> = owners.chain(given).collect();
        names.into_iter().filter_map(|name| self.row(name)).collect()
    }

    fn row(&self, name: &str) -> Option<Row> {
        let (namespace, uid) = (self.namespace(name), self.record.get(name).cloned());
        let by = uid.as_ref().and_then(|_| self.record.get(&adopter_key(name)).cloned());
        let left = namespace.map_or(0, |namespace| self.left_for(namespace).len());
        let given = namespace.is_some_and(|namespace| self.is_given(namespace));
        let state = match (namespace, &uid) {
            (None, Some(_)) => State::Gone,
            (Some(_), Some(_)) if given => State::HandedOver,
            (Some(_), Some(_)) => State::Outdated,
            (_, None) if left > 0 => State::HeldBack,
            (_, None) => return None,
        };
        // What was handed over is on its way, and held back no more.
        Some(Row { namespace: name.to_owned(), state, held_back: if given { 0 } else { left }, uid, by })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn backup(namespace: &str, name: &str, uid: &str) -> Backup {
        let own = format!("{namespace}-{name}-{uid}");
        serde_json::from_value(json!({
            "apiVersion": "velero.io/v1", "kind": "Backup",
            "metadata": {"name": own, "labels": {"openshift.io/oadp": "True",
                "app.kubernetes.io/managed-by": "oadp-nac-controller", "openshift.io/oadp-nab-origin-nacuuid": own},
                "annotations": {"openshift.io/oadp-nab-origin-namespace": namespace, "openshift.io/oadp-nab-origin-name": name,
                    "nacre.dev/origin-namespace-uid": uid}},
            "spec": {"storageLocation": "default"},
            "status": {"phase": "Completed", "completionTimestamp": "2026-11-15T12:00:00Z"},
        }))
        .unwrap()
    }

    fn space(name: &str, uid: &str) -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap()
    }

    fn facts() -> Facts {
        let storage: BackupStorageLocation = serde_json::from_value(json!({"apiVersion": "velero.io/v1",
            "kind": "BackupStorageLocation", "metadata": {"name": "default"},
            "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}}))
        .unwrap();
        Facts {
            namespaces: vec![space("shop", "2"), space("farm", "2"), space("mill", "3")],
            backups: vec![
                backup("shop", "daily", "1"),
                backup("shop", "own", "2"),
                backup("farm", "daily", "1"),
                backup("mill", "daily", "1"),
                backup("lost", "daily", "1"),
            ],
            storage: [("default".to_owned(), storage)].into(),
            record: [("farm", "2"), ("farm.requester", "root"), ("mill", "2"), ("void", "9")]
                .map(|(name, uid)| (name.to_owned(), uid.to_owned()))
                .into(),
        }
    }

    #[test]
    fn only_what_an_earlier_namespace_left_is_handed_over() {
        let facts = facts();
        let left = facts.left_for(facts.namespace("shop").unwrap());
        let names: Vec<&str> = left.iter().map(|left| left.velero.as_str()).collect();
        assert_eq!(names, ["shop-daily-1"]);
        assert_eq!((left[0].backup.as_str(), left[0].from.as_deref()), ("daily", Some("1")));
    }

    #[test]
    fn what_was_handed_over_holds_for_one_namespace_only() {
        let rows = facts().overview();
        let reported: Vec<_> =
            rows.iter().map(|row| (row.namespace.as_str(), row.state, row.held_back)).collect();
        let wanted = [
            ("farm", State::HandedOver, 0),
            ("mill", State::Outdated, 1),
            ("shop", State::HeldBack, 1),
            ("void", State::Gone, 0),
        ];
        assert_eq!(reported, wanted);
        assert_eq!((rows[0].by.as_deref(), rows[1].by.as_deref()), (Some("root"), None));
    }
}

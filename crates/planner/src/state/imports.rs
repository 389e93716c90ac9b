//! Which imports from tenants' storage were refused. That is in memory alone: Velero logs each of them again at its next look.

use std::collections::BTreeMap;
use std::time::Duration;

use api::velero::BackupStorageLocation;
use jiff::Timestamp;

use super::State;
use crate::Key;
use crate::affected::location_of;
use crate::imports::RefusedImport;

/// So many backups of a location are remembered.
pub(crate) const MOST: usize = 20;
/// How much later than it happened a refusal may be read: more than there is between two looks into Velero's log.
const LATE: Duration = Duration::from_mins(2);

/// What is known of refused imports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports {
    /// Between these times nothing of Velero's log was missed; none if it is not read.
    read: Option<(Timestamp, Timestamp)>,
    /// By location and backup: when it was last refused, and why.
    refused: BTreeMap<String, BTreeMap<String, (Timestamp, String)>>,
}

impl State {
    /// Velero's log is read up to now. Returns the locations to which something was refused.
    pub fn velero_log_read(&mut self) -> Vec<Key> {
        let since = self.imports.read.map_or(self.now, |(since, _)| since);
        self.imports.read = Some((since, self.now));
        let locations: Vec<_> = self.imports.refused.keys().cloned().collect();
        locations.iter().filter_map(|name| self.tenants_location(name)).collect()
    }

    /// Velero's log cannot be read, or something of it was missed.
    pub fn velero_log_not_read(&mut self) {
        self.imports.read = None;
    }

    /// Notes a refused import into a tenant's location; of each the first ones.
    pub fn note_refused_import(&mut self, import: &RefusedImport) {
        if self.tenants_location(&import.location).is_none() {
            return;
        }
        let known = self.imports.refused.entry(import.location.clone()).or_default();
        if known.len() < MOST || known.contains_key(&import.backup) {
            known.insert(import.backup.clone(), (self.now, import.why.clone()));
        }
    }

    /// The backups that Velero was refused when it last looked at a location, and why; none if that is not known.
    pub(crate) fn refused_imports(
        &self,
        storage: &BackupStorageLocation,
    ) -> Option<BTreeMap<String, String>> {
        let looked =
            storage.status.as_ref().and_then(|status| status.last_synced_time.as_ref()).map(|time| time.0);
        let is_before_the_last_look = |time: Timestamp| {
            looked.zip(self.imports.read).is_some_and(|(looked, (_, read))| {
                looked <= read && looked > time && looked.duration_since(time).unsigned_abs() > LATE
            })
        };
        let refused = storage.metadata.name.as_ref().and_then(|name| self.imports.refused.get(name));
        let refused = refused.into_iter().flatten().filter(|(_, (last, _))| !is_before_the_last_look(*last));
        let refused: BTreeMap<_, _> = refused.map(|(name, (_, why))| (name.clone(), why.clone())).collect();
        // Without a look since the log is read, what was said before may still hold.
        let is_known = self.imports.read.is_some_and(|(since, _)| is_before_the_last_look(since));
        (is_known || !refused.is_empty()).then_some(refused)
    }

    /// Forgets what is over or gone, so that there is room for others.
    pub(super) fn forget_refused_imports(&mut self, name: &str, after: Option<&BackupStorageLocation>) {
        let current = after.and_then(|storage| self.refused_imports(storage)).unwrap_or_default();
        let Some(known) = self.imports.refused.get_mut(name) else { return };
        known.retain(|backup, _| current.contains_key(backup));
        if known.is_empty() {
            self.imports.refused.remove(name);
        }
    }

    fn tenants_location(&self, name: &str) -> Option<Key> {
        location_of(&self.admin::<BackupStorageLocation>(name)?.metadata)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::velero::BackupStorageLocation;
    use api::{Kind, labels};
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::{Moment, RawObject, State, Update};
    use super::MOST;
    use crate::imports::RefusedImport;

    /// A cluster with a tenant's location and one of the administrators'.
    struct Cluster(State, u64);

    impl Cluster {
        fn new() -> Self {
            let mut cluster = Self(State::new("velero"), 0);
            cluster.looked("own", None);
            cluster.looked("default", None);
            cluster
        }

        /// So many seconds after the start.
        fn at(&mut self, second: i64) -> &mut State {
            self.0.set_now(Timestamp::from_second(second).unwrap());
            &mut self.0
        }

        /// Velero has looked at a location.
        fn looked(&mut self, name: &str, second: Option<i64>) {
            self.1 += 1;
            let mut metadata = json!({"name": name, "namespace": "velero", "uid": name, "resourceVersion": self.1.to_string()});
            if name == "own" {
                metadata["annotations"] =
                    json!({labels::NABSL_NAMESPACE: "shop", labels::NABSL_NAME: "bucket"});
            }
            let time = second.map(|second| Timestamp::from_second(second).unwrap());
            let text = json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
                "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}, "status": {"lastSyncedTime": time}});
            let now = Moment { clock: self.0.now(), uptime: Duration::ZERO };
            self.0.update(
                Kind::BackupStorageLocation,
                Update::Observed(&RawObject::new(&text.to_string())),
                now,
            );
        }

        /// Velero is refused a backup.
        fn refuse(&mut self, location: &str, backup: &str) {
            let (location, backup) = (location.to_owned(), backup.to_owned());
            self.0.note_refused_import(&RefusedImport { location, backup, why: "no".to_owned() });
        }

        /// Which backups are known to be refused.
        fn refused(&self) -> Option<Vec<String>> {
            let storage = self.0.admin::<BackupStorageLocation>("own").unwrap();
            Some(self.0.refused_imports(&storage)?.into_keys().collect())
        }
    }

    #[test]
    fn a_refused_import_is_known_until_velero_has_looked_again_and_was_not_refused_it() {
        let mut cluster = Cluster::new();
        assert!(cluster.at(0).velero_log_read().is_empty());
        assert_eq!(cluster.refused(), None, "Velero has not looked yet");
        cluster.at(70);
        cluster.looked("own", Some(65));
        cluster.refuse("own", "nightly");
        let read = cluster.at(70).velero_log_read();
        assert_eq!(read.len(), 1, "the location is decided about");
        assert_eq!(cluster.refused(), Some(vec!["nightly".to_owned()]));
        // It is refused again, and again.
        for second in [130, 190, 250] {
            cluster.looked("own", Some(second - 5));
            cluster.at(second);
            cluster.refuse("own", "nightly");
            cluster.0.velero_log_read();
            assert_eq!(cluster.refused(), Some(vec!["nightly".to_owned()]), "{second}");
        }
        // Then it is not. The log is read after Velero's look, and late by a minute at most.
        cluster.looked("own", Some(375));
        assert!(cluster.refused().is_some_and(|refused| !refused.is_empty()), "the log is not read so far");
        cluster.at(380).velero_log_read();
        assert_eq!(cluster.refused(), Some(Vec::new()));
    }

    #[test]
    fn what_was_said_before_stays_until_velero_has_looked_at_it_since_the_log_is_read() {
        let mut cluster = Cluster::new();
        cluster.at(1000).velero_log_read();
        cluster.looked("own", Some(1030));
        cluster.at(1060).velero_log_read();
        assert_eq!(cluster.refused(), None, "the log may have been read from after the refusal on");
        cluster.looked("own", Some(1150));
        cluster.at(1160).velero_log_read();
        assert_eq!(cluster.refused(), Some(Vec::new()));
        cluster.at(2000).velero_log_not_read();
        assert_eq!(cluster.refused(), None, "something may have been missed");
    }

    #[test]
    fn nothing_is_remembered_of_the_administrators_storage_and_little_of_a_tenants() {
        let mut cluster = Cluster::new();
        cluster.at(0);
        cluster.refuse("default", "nightly");
        cluster.refuse("nobodys", "nightly");
        assert!(cluster.at(0).velero_log_read().is_empty());
        for number in 0..3 * MOST {
            cluster.refuse("own", &format!("b{number}"));
        }
        assert_eq!(cluster.refused().unwrap().len(), MOST);
        // What is over makes room.
        cluster.at(300).velero_log_read();
        cluster.looked("own", Some(299));
        cluster.refuse("own", "new");
        assert_eq!(cluster.refused(), Some(vec!["new".to_owned()]));
    }
}

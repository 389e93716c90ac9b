//! nacre's own ConfigMap with the work of what was deleted today: everything else can be seen in Velero's objects.
//!
//! It is written only where somebody deletes what Velero worked on the same day, and for all namespaces together.

use std::collections::BTreeMap;

use jiff::civil::Date;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};

use super::Owner;
use super::ledger::Ledger;
use crate::{Action, config_map};

/// The ConfigMap in Velero's namespace.
pub const RECORD: &str = "nacre-usage";
/// Its only key.
const KEY: &str = "deleted.json";
/// The most owners that it lists, those with the most work first: it must stay below the size of an object.
const MOST: usize = 5000;

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The day it is about.
    day: Date,
    /// The seconds, by namespace and uid.
    seconds: BTreeMap<String, u64>,
}

impl Ledger {
    /// The write that makes the record say what was deleted today, if there is something new.
    pub(crate) fn record(&self, namespace: &str, today: Date, found: Option<&ConfigMap>) -> Option<Action> {
        let mut deleted: Vec<_> = self.deleted(today).into_iter().collect();
        if deleted.is_empty() {
            return None;
        }
        deleted.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
        let seconds = deleted.into_iter().take(MOST).map(|(owner, seconds)| (owner.text(), seconds));
        let record = Record { day: today, seconds: seconds.collect() };
        let text = serde_json::to_string(&record).ok()?;
        config_map::ensure(namespace, RECORD, config_map::single(KEY, text), found)
    }

    /// Takes what the record says.
    pub(crate) fn read(&mut self, map: &ConfigMap) {
        let text = map.data.as_ref().and_then(|data| data.get(KEY));
        let Some(record) = text.and_then(|text| serde_json::from_str::<Record>(text).ok()) else { return };
        for (owner, seconds) in record.seconds {
            self.recall(&Owner::read(&owner), record.day, seconds.min(u64::from(u32::MAX)));
        }
    }
}

impl Owner {
    fn text(&self) -> String {
        format!("{}/{}", self.namespace, self.uid.as_deref().unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        let (namespace, uid) = text.split_once('/').unwrap_or((text, ""));
        Self { namespace: namespace.to_owned(), uid: Some(uid.to_owned()).filter(|uid| !uid.is_empty()) }
    }
}

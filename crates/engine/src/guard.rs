//! One odd object never stops the others: whatever cannot be read is kept with what can.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use planner::view;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// An object as it came, or what is left of it and why.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K> {
    pub(crate) object: K,
    pub(crate) unreadable: Option<String>,
}

impl<'de, K> Deserialize<'de> for Guarded<K>
where
    K: DeserializeOwned + Serialize + Default + Resource,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        // Who set which field is of no interest here, and often longer than the object.
        if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
        }
        Ok(Self::read(&Value::Object(fields)))
    }
}

impl<K: DeserializeOwned + Serialize + Default> Guarded<K> {
    fn read(given: &Value) -> Self {
        let (object, unreadable) = view::read(given);
        Self { object, unreadable }
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    // Says only that a namespace may be given; a kind without namespaces is never given one.
    type Scope = NamespaceResourceScope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use api::{NonAdminBackup, Phase};
    use serde_json::json;

    use super::Guarded;

    fn read(value: serde_json::Value) -> Guarded<NonAdminBackup> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_sound_object_is_read_without_its_managed_fields() {
        let seen = read(json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}, "spec": {"backupSpec": {"ttl": "1h"}}}));
        assert!(seen.unreadable.is_none());
        assert!(seen.object.metadata.managed_fields.is_none());
        assert_eq!(seen.object.spec.backup_spec.ttl, Some("1h".into()));
    }

    #[test]
    fn an_odd_object_keeps_its_metadata_and_status() {
        let seen = read(json!({"metadata": {"name": "a", "uid": "u"}, "status": {"phase": "BackingOff"}}));
        assert!(seen.unreadable.unwrap().contains("spec"));
        assert_eq!(seen.object.metadata.uid.as_deref(), Some("u"));
        assert_eq!(seen.object.status.unwrap().phase, Some(Phase::BackingOff));
    }

    #[test]
    fn an_odd_status_is_dropped() {
        let seen = read(json!({"metadata": {"name": "a"}, "spec": 7, "status": {"phase": 7}}));
        assert_eq!(seen.object.metadata.name.as_deref(), Some("a"));
        assert!(seen.unreadable.is_some() && seen.object.status.is_none());
    }

    #[test]
    fn nothing_at_all_is_still_a_value() {
        assert!(read(json!({"metadata": 3})).unreadable.is_some());
    }
}

//! One odd object never stops the others: whatever cannot be read is kept with what can.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use planner::view;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
        Ok(Self::read(&Part::Whole.deserialize(deserializer)?))
    }
}

/// Reads JSON of any shape. Who set which field is of no interest here and often longer than the object, so that
/// `managedFields` is passed over while reading.
enum Part {
    Whole,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = given.next_key::<String>()? {
            let value = match (&self, name.as_str()) {
                (Self::Metadata, "managedFields") => {
                    given.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Self::Whole, "metadata") => given.next_value_seed(Self::Metadata)?,
                _ => given.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, given: A) -> Result<Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(given))
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<Value, E> {
        Ok(given.into())
    }

    fn visit_i64<E: Error>(self, given: i64) -> Result<Value, E> {
        Ok(given.into())
    }

    fn visit_u64<E: Error>(self, given: u64) -> Result<Value, E> {
        Ok(given.into())
    }

    fn visit_f64<E: Error>(self, given: f64) -> Result<Value, E> {
        Ok(given.into())
    }

    fn visit_bool<E: Error>(self, given: bool) -> Result<Value, E> {
        Ok(given.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
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
        for odd in
            [json!(3), json!(-3), json!(0.5), json!("x"), json!([1, {"a": 2}]), json!(true), json!(null)]
        {
            assert!(read(json!({"metadata": odd})).unreadable.is_some(), "{odd}");
            // Some shapes of a whole object are for the watch to complain about; none is a reason to stop.
            assert!(read(odd.clone()).unreadable.is_some(), "{odd}");
        }
    }

    #[test]
    fn only_the_metadatas_own_managed_fields_are_passed_over() {
        let seen = read(json!({"metadata": {"name": "a", "labels": {"managedFields": "mine"}},
            "spec": {"backupSpec": {"labelSelector": {"matchLabels": {"managedFields": "too"}}}}}));
        assert_eq!(seen.object.metadata.labels.unwrap()["managedFields"], "mine");
        assert!(format!("{:?}", seen.object.spec.backup_spec).contains("managedFields"));
    }
}

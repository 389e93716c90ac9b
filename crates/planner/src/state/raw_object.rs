//! An object as the API server sent it. It is decoded only if it is newer than what is known; and one invalid object
//! never stops the others: whatever cannot be decoded is kept with what can.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, DynamicResourceScope, ObjectMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Incoming, WatchedKind, prune};
use crate::view::Seen;

/// An object of any kind: its name, uid, resourceVersion and text. Three in four are watch events of our own writes,
/// whose text is never decoded.
#[derive(Clone)]
pub struct RawObject {
    meta: ObjectMeta,
    text: String,
    /// Where its spec is in the text.
    spec: Option<Range<usize>>,
}

/// Debug output without the text, which may be a Secret's.
impl Debug for RawObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("RawObject")
            .field(&self.meta.namespace)
            .field(&self.meta.name)
            .finish_non_exhaustive()
    }
}

/// The parts of metadata that identify an object.
#[derive(Default, Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(Box::<RawValue>::deserialize(deserializer)?.get()))
    }
}

impl RawObject {
    /// Wraps the JSON text of an object, valid or not.
    pub fn new(text: &str) -> Self {
        let Head { metadata: found, spec } = serde_json::from_str(text).unwrap_or_default();
        let meta = ObjectMeta {
            name: found.name,
            namespace: found.namespace,
            uid: found.uid,
            resource_version: found.resource_version,
            ..ObjectMeta::default()
        };
        let dropped = found.managed_fields.map(|part| place(text, part));
        let spec = spec.map(|spec| place(text, spec));
        // What stands after a dropped part moves.
        let spec = spec.map(|spec| match &dropped {
            Some(dropped) if dropped.start < spec.start => {
                let moved = |at: usize| at - dropped.len() + NULL.len();
                moved(spec.start)..moved(spec.end)
            }
            _ => spec,
        });
        let text = dropped.map_or_else(|| text.to_owned(), |part| without(text, &part));
        Self { meta, text, spec }
    }

    /// Decodes it, or what can be saved of it.
    fn decode<K: DeserializeOwned + Serialize + Default>(&self) -> Seen<K> {
        decode(&self.text)
    }

    /// The same without a spec that is larger than a tenant's may be.
    fn decode_small<K: DeserializeOwned + Serialize + Default>(&self) -> Seen<K> {
        let spec = self.spec.clone().unwrap_or_default();
        let Some(why) = prune::too_big(spec.len()) else { return self.decode() };
        let saved: Seen<K> = decode(&without(&self.text, &spec));
        Seen { object: saved.object, unreadable: Some(why.into()) }
    }
}

impl Incoming for RawObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read<K: WatchedKind>(&self) -> Seen<K> {
        let mut seen = if prune::is_outsize_volume(K::KIND, self.text.len()) {
            Seen::read(&prune::remains(&serde_json::from_str(&self.text).unwrap_or(Value::Null)))
        } else if prune::is_tenants(K::KIND) {
            self.decode_small()
        } else {
            self.decode()
        };
        prune::object(&mut seen);
        seen
    }

    fn read_any(&self) -> Seen<DynamicObject> {
        let blank = || DynamicObject { types: None, metadata: self.meta.clone(), data: Value::Null };
        let object = serde_json::from_str(&self.text).unwrap_or_else(|_| blank());
        Seen { object: Arc::new(object), unreadable: None }
    }
}

fn decode<K: DeserializeOwned + Serialize + Default>(text: &str) -> Seen<K> {
    match serde_json::from_str(text) {
        Ok(object) => Seen { object: Arc::new(object), unreadable: None },
        Err(_) => Seen::read(&serde_json::from_str(text).unwrap_or(Value::Null)),
    }
}

/// What stands in place of a dropped part.
const NULL: &str = "null";

/// Where a part is in the text it was read from.
fn place(text: &str, part: &RawValue) -> Range<usize> {
    let begin = part.get().as_ptr().addr() - text.as_ptr().addr();
    begin..begin + part.get().len()
}

/// The text with `null` in place of this part, such as managedFields, which are not used and often longer than the
/// object.
fn without(text: &str, part: &Range<usize>) -> String {
    [&text[..part.start], NULL, &text[part.end..]].concat()
}

impl Resource for RawObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(dt)
    }

    fn group(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(dt)
    }

    fn version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(dt)
    }

    fn plural(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use api::{NonAdminBackup, Phase};
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    use super::{Incoming, RawObject, Seen};

    fn read(value: &serde_json::Value) -> Seen<NonAdminBackup> {
        RawObject::new(&value.to_string()).decode()
    }

    #[test]
    fn a_sound_object_is_read_without_its_managed_fields() {
        let seen = read(&json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}, "spec": {"backupSpec": {"ttl": "1h"}}}));
        assert!(seen.unreadable.is_none());
        assert!(seen.object.metadata.managed_fields.is_none());
        assert_eq!(seen.object.spec.backup_spec.ttl, Some("1h".into()));
    }

    #[test]
    fn it_comes_by_watches_and_lists() {
        let object = r#"{"kind": "x", "metadata": {"managedFields": [{"a": "]"}], "name": "a", "uid": "u"}, "spec": 7}"#;
        let event: WatchEvent<RawObject> =
            serde_json::from_str(&format!(r#"{{"type": "ADDED", "object": {object}}}"#)).unwrap();
        let list: ObjectList<RawObject> =
            serde_json::from_str(&format!(r#"{{"kind": "List", "apiVersion": "v1", "items": [{object}]}}"#))
                .unwrap();
        let WatchEvent::Added(added) = event else { panic!("{event:?}") };
        for reported in [&added, &list.items[0]] {
            assert_eq!((reported.meta.name.as_deref(), reported.meta.uid.as_deref()), (Some("a"), Some("u")));
            assert_eq!(reported.text, object.replace(r#"[{"a": "]"}]"#, "null"));
        }
    }

    #[test]
    fn what_it_holds_is_not_printed() {
        let text =
            r#"{"metadata": {"name": "keys", "namespace": "shop"}, "data": {"cloud": "aHVudGVyMg=="}}"#;
        assert_eq!(format!("{:?}", RawObject::new(text)), r#"RawObject(Some("shop"), Some("keys"), ..)"#);
    }

    #[test]
    fn an_odd_object_keeps_its_metadata_and_status() {
        let seen = read(&json!({"metadata": {"name": "a", "uid": "u"}, "status": {"phase": "BackingOff"}}));
        assert!(seen.unreadable.unwrap().contains("spec"));
        assert_eq!(seen.object.metadata.uid.as_deref(), Some("u"));
        assert_eq!(seen.object.status.as_ref().unwrap().phase, Some(Phase::BackingOff));
    }

    #[test]
    fn an_odd_status_is_dropped() {
        let seen = read(&json!({"metadata": {"name": "a"}, "spec": 7, "status": {"phase": 7}}));
        assert_eq!(seen.object.metadata.name.as_deref(), Some("a"));
        assert!(seen.unreadable.is_some() && seen.object.status.is_none());
    }

    #[test]
    fn nothing_at_all_is_still_a_value() {
        for odd in
            [json!(3), json!(-3), json!(0.5), json!("x"), json!([1, {"a": 2}]), json!(true), json!(null)]
        {
            assert!(read(&json!({"metadata": odd})).unreadable.is_some(), "{odd}");
            // Some shapes of a whole object are for the watch to complain about; none is a reason to stop.
            assert!(read(&odd).unreadable.is_some(), "{odd}");
        }
    }

    /// H9: hundreds of requests of more than a megabyte, in the spec, the labels or the annotations
    /// planted: objects are kept whole
    #[test]
    fn h9_a_huge_spec_is_not_kept_and_the_rest_of_the_object_is() {
        let names: Vec<_> = (0..100_000).map(|number| format!("resource-{number}")).collect();
        let huge = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}], "finalizers": ["f"],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x".repeat(300), "note": "n".repeat(5000)}},
            "spec": {"backupSpec": {"includedResources": names}}, "status": {"phase": "Created"}});
        let seen: Seen<NonAdminBackup> = RawObject::new(&huge.to_string()).read();
        let why = seen.unreadable.as_deref().unwrap();
        assert!(why.contains("at most 65536 are accepted"), "{why}");
        assert!(seen.object.spec.backup_spec.included_resources.is_none());
        assert_eq!(seen.object.status.as_ref().unwrap().phase, Some(Phase::Created));
        assert_eq!(seen.object.metadata.finalizers.as_deref(), Some(&["f".to_owned()][..]));
        assert!(seen.object.metadata.annotations.as_ref().unwrap().is_empty());
        // The planted weakness: read as it was written, every name stays in memory.
        let whole = read(&huge).object;
        assert_eq!(whole.spec.backup_spec.included_resources.as_ref().map(Vec::len), Some(100_000));
        assert!(!whole.metadata.annotations.as_ref().unwrap().is_empty());
        // One that is not too large is read whole, wherever its parts are.
        for text in [
            r#"{"spec": {"backupSpec": {"ttl": "1h"}}, "metadata": {"managedFields": [1], "name": "a"}}"#,
            r#"{"metadata": {"managedFields": [1], "name": "a"}, "spec": {"backupSpec": {"ttl": "1h"}}}"#,
        ] {
            let seen: Seen<NonAdminBackup> = RawObject::new(text).read();
            assert!(seen.unreadable.is_none() && seen.object.spec.backup_spec.ttl.is_some(), "{text}");
        }
    }

    #[test]
    fn only_the_metadatas_own_managed_fields_are_passed_over() {
        let seen = read(&json!({"metadata": {"name": "a", "labels": {"managedFields": "mine"}},
            "spec": {"backupSpec": {"labelSelector": {"matchLabels": {"managedFields": "too"}}}}}));
        assert_eq!(seen.object.metadata.labels.as_ref().unwrap()["managedFields"], "mine");
        assert!(format!("{:?}", seen.object.spec.backup_spec).contains("managedFields"));
    }
}

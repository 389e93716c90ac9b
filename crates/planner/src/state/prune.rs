//! What is not kept of an object: whatever no decision reads. A tenant can store objects of more than a megabyte, and
//! thousands of them; the memory of nacre must not grow with their content.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Kind, labels};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::WatchedKind;
use crate::install::TENANT_KINDS;
use crate::view::Seen;

/// The most bytes of JSON that the spec of a tenant's request may have. No honest one comes near.
pub(crate) const SPEC_LIMIT: usize = 64 * 1024;
/// The longest annotation that is kept. nacre's own, OADP's and Velero's are far shorter.
const ANNOTATION_LIMIT: usize = 4 * 1024;
/// The same of the record of who asked. The API server cuts it off at less.
const REQUESTER_LIMIT: usize = 64 * 1024;
/// The most bytes of labels that are kept unseen; of more, only those that decisions read are.
const LABELS_LIMIT: usize = 16 * 1024;
/// What kubectl writes down for itself: the whole object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Prefixes of the labels that decisions read.
const READ: [&str; 4] = [labels::OADP, "nacre.dev/", "velero.io/", labels::MANAGED_BY];

/// The label of a ConfigMap that Velero keeps results of volumes in.
const RESULT: &str = "velero.io/resource-usage";
/// The most bytes of an object about a volume. Velero's own have a hundredth of it; one in a tenant's bucket may have
/// any number.
const VOLUME_LIMIT: usize = 128 * 1024;
const VOLUMES: [Kind; 4] =
    [Kind::PodVolumeBackup, Kind::PodVolumeRestore, Kind::DataUpload, Kind::DataDownload];

/// Whether of an object of so many bytes only the metadata and the phase are kept.
pub(super) fn is_outsize_volume(kind: Kind, bytes: usize) -> bool {
    bytes > VOLUME_LIMIT && VOLUMES.contains(&kind)
}

/// What is kept of such an object.
pub(super) fn remains(object: &Value) -> Value {
    json!({"metadata": object["metadata"], "spec": {}, "status": {"phase": object["status"]["phase"]}})
}

/// Whether this is a kind of which tenants write the spec.
pub(super) fn is_tenants(kind: Kind) -> bool {
    TENANT_KINDS.contains(&kind)
}

/// Why a spec of this many bytes is not read; none if it may be.
pub(crate) fn too_big(bytes: usize) -> Option<String> {
    (bytes > SPEC_LIMIT).then(|| format!("it has {bytes} bytes, and at most {SPEC_LIMIT} are accepted"))
}

/// The same for an object that is not stored yet.
pub(crate) fn spec_too_big(object: &Value) -> Option<String> {
    too_big(object["spec"].to_string().len())
}

/// Drops what no decision reads.
pub(super) fn object<K: WatchedKind>(seen: &mut Seen<K>) {
    if let Some(object) = Arc::get_mut(&mut seen.object) {
        metadata(object.meta_mut());
        if let Some(map) = (object as &mut dyn Any).downcast_mut::<ConfigMap>() {
            drop_result(map);
        }
    }
}

/// Velero reads the results of volumes; nacre does not.
fn drop_result(map: &mut ConfigMap) {
    if map.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(RESULT)) {
        map.data = None;
        map.binary_data = None;
    }
}

fn metadata(meta: &mut ObjectMeta) {
    if let Some(annotations) = &mut meta.annotations {
        let limit = |key: &str| match key {
            labels::REQUESTER | labels::DELETION_REQUESTER => REQUESTER_LIMIT,
            _ => ANNOTATION_LIMIT,
        };
        // Without a record nobody would be checked; an empty one cannot be read, and permits nothing.
        for record in [labels::REQUESTER, labels::DELETION_REQUESTER] {
            if let Some(long) = annotations.get_mut(record).filter(|text| text.len() > limit(record)) {
                *long = String::new();
            }
        }
        annotations.retain(|key, value| key != LAST_APPLIED && value.len() <= limit(key));
    }
    if let Some(labels) = meta.labels.as_mut().filter(|labels| bytes(labels) > LABELS_LIMIT) {
        labels.retain(|key, _| READ.iter().any(|prefix| key.starts_with(prefix)));
    }
}

fn bytes(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(key, value)| key.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requester::{Identity, of, of_deletion};

    #[test]
    fn a_record_of_who_asked_that_is_too_long_permits_nothing() {
        let long = "x".repeat(REQUESTER_LIMIT + 1);
        let records = [labels::REQUESTER, labels::DELETION_REQUESTER];
        let annotations = records.map(|name| (name.to_owned(), long.clone())).into();
        let mut meta = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
        metadata(&mut meta);
        assert_eq!([of(&meta), of_deletion(&meta)], [Identity::Unreadable, Identity::Unreadable]);
        assert!(meta.annotations.is_some_and(|kept| kept.values().all(String::is_empty)));
    }
}

//! Objects that take little memory: those that have not changed for long are kept as compressed JSON, and decoded when
//! somebody reads them.
//!
//! Objects of one kind are alike: names, uids and times are most of what differs. So each is compressed against another
//! one of its kind, the template, and what is left is a tenth of the decoded object.

use std::fmt::{self, Debug};
use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// So many objects share a template. The next one is the template of those after it: objects change over the years.
const SHARE_A_TEMPLATE: usize = 1000;

/// Compresses objects of one kind.
#[derive(Clone, Default)]
pub(super) struct Packer {
    template: Arc<[u8]>,
    /// How many were compressed.
    count: usize,
}

/// A compressed object.
#[derive(Clone)]
pub(super) struct Packed {
    template: Arc<[u8]>,
    bytes: Arc<[u8]>,
    /// The length of the JSON.
    length: usize,
}

impl Packer {
    /// Compresses an object. None if it would not be the same when it is decoded again.
    pub(super) fn pack<K: Serialize + DeserializeOwned>(&mut self, object: &K) -> Option<Packed> {
        let text = serde_json::to_vec(object).ok()?;
        let again: K = serde_json::from_slice(&text).ok()?;
        if serde_json::to_vec(&again).ok()? != text {
            return None;
        }
        if self.count.is_multiple_of(SHARE_A_TEMPLATE) {
            self.template = text.as_slice().into();
        }
        self.count += 1;
        let bytes = compress_with_dict(&text, &self.template);
        Some(Packed { template: self.template.clone(), bytes: bytes.into(), length: text.len() })
    }
}

impl Packed {
    /// Decodes the object.
    ///
    /// # Panics
    ///
    /// Never: `Packer::pack` decoded the same JSON.
    #[expect(clippy::expect_used, reason = "an object that seemed to be gone would be worse than a retry")]
    pub(super) fn unpack<K: DeserializeOwned>(&self) -> K {
        let text = decompress_with_dict(&self.bytes, self.length, &self.template)
            .expect("the bytes and the template are those of `pack`");
        serde_json::from_slice(&text).expect("`pack` decoded the same JSON")
    }
}

/// Without the contents, which may be a tenant's.
impl Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::NonAdminBackup;
    use serde::{Deserialize, Serialize, Serializer};
    use serde_json::json;

    use super::{Packer, SHARE_A_TEMPLATE};

    fn backup(name: &str) -> NonAdminBackup {
        let excluded: Vec<_> = (0..20).map(|number| format!("kind{number}.example.com")).collect();
        let object = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-of-{name}")},
            "spec": {"backupSpec": {"ttl": "1h", "excludedResources": excluded}}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_is_the_same_afterwards_and_alike_ones_take_little() {
        let mut one = Packer::default();
        let packed = [backup("first"), backup("second")].map(|object| one.pack(&object).unwrap());
        assert_eq!(packed[0].unpack::<NonAdminBackup>(), backup("first"));
        assert_eq!(packed[1].unpack::<NonAdminBackup>(), backup("second"));
        assert!(packed[1].bytes.len() < packed[1].length / 5, "{:?} in {}", packed[1], packed[1].bytes.len());
    }

    #[test]
    fn the_template_changes_now_and_then_and_an_object_keeps_its_own() {
        let mut one = Packer::default();
        let packed: Vec<_> =
            (0..=SHARE_A_TEMPLATE).map(|number| one.pack(&backup(&number.to_string())).unwrap()).collect();
        let [first, .., before, last] = packed.as_slice() else { panic!("too few") };
        assert!(Arc::ptr_eq(&first.template, &before.template));
        assert!(!Arc::ptr_eq(&before.template, &last.template));
        for (number, packed) in packed.iter().enumerate() {
            assert_eq!(packed.unpack::<NonAdminBackup>(), backup(&number.to_string()));
        }
    }

    /// Its JSON says less than it holds.
    #[derive(Deserialize)]
    struct Counter(u32);

    impl Serialize for Counter {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u32(self.0 + 1)
        }
    }

    #[test]
    fn what_would_not_be_the_same_afterwards_is_not_packed() {
        assert!(Packer::default().pack(&Counter(1)).is_none());
    }
}

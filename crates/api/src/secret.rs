//! A Secret whose values are never printed: not in a log, not in a panic, not in a debug dump.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A Secret, with its values hidden from everything but whoever asks for them.
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[resource(inherit = Secret)]
#[serde(default)]
pub struct HiddenSecret {
    /// Its name, labels and owners.
    pub metadata: ObjectMeta,
    /// What kind of Secret.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Its values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, Hidden>,
}

/// Bytes that are not for showing.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(ByteString);

impl Hidden {
    /// The bytes.
    pub fn reveal(&self) -> &[u8] {
        &self.0.0
    }
}

impl From<Vec<u8>> for Hidden {
    fn from(bytes: Vec<u8>) -> Self {
        Self(ByteString(bytes))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::HiddenSecret;

    #[test]
    fn a_value_is_read_and_written_but_never_shown() {
        let written =
            json!({"metadata": {"name": "keys"}, "type": "Opaque", "data": {"cloud": "aHVudGVyMg=="}});
        let secret: HiddenSecret = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(secret.data["cloud"].reveal(), b"hunter2");
        assert_eq!(serde_json::to_value(&secret).unwrap(), written);
        let shown = format!("{secret:?}");
        assert!(shown.contains("cloud") && !shown.contains("hunter2") && !shown.contains("aHVud"), "{shown}");
    }
}

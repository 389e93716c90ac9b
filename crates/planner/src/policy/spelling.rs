//! How parts of the model are spelled where their shape is not the model's.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `allow` or `forbid`, kept as whether they are forbidden.
pub(super) mod backup_hooks {
    use super::{Deserialize, Deserializer, JsonSchema, Serialize, Serializer};

    /// Whether specs of backups may have hooks.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(in super::super) enum Word {
        /// They may.
        Allow,
        /// A spec with hooks is refused.
        Forbid,
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(forbid: &bool, to: S) -> Result<S::Ok, S::Error> {
        if *forbid { Word::Forbid } else { Word::Allow }.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Ok(matches!(Word::deserialize(from)?, Word::Forbid))
    }
}

/// `exec` or `forbid`, kept as whether they are forbidden. Containers that a hook would add are never allowed.
pub(super) mod restore_hooks {
    use super::{Deserialize, Deserializer, JsonSchema, Serialize, Serializer};

    /// Whether specs of restores may have hooks.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(in super::super) enum Word {
        /// Commands in containers are allowed, init containers are refused.
        Exec,
        /// A spec with hooks is refused.
        Forbid,
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(forbid: &bool, to: S) -> Result<S::Ok, S::Error> {
        if *forbid { Word::Forbid } else { Word::Exec }.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Ok(matches!(Word::deserialize(from)?, Word::Forbid))
    }
}

/// `auto`, `baseline` or `none`; `true` and `false` are older words for the last two.
mod tenant_pods {
    use std::fmt;

    use serde::de::{Error, Visitor};

    use super::super::TenantPods;
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    struct Word;

    impl Visitor<'_> for Word {
        type Value = TenantPods;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("auto, baseline or none")
        }

        fn visit_bool<E: Error>(self, pods: bool) -> Result<TenantPods, E> {
            Ok(if pods { TenantPods::Baseline } else { TenantPods::None })
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<TenantPods, E> {
            match word {
                "auto" => Ok(TenantPods::Auto),
                "baseline" => Ok(TenantPods::Baseline),
                "none" => Ok(TenantPods::None),
                other => Err(E::custom(format!("{other:?} was found where auto, baseline or none belongs"))),
            }
        }
    }

    impl Serialize for TenantPods {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_str(match self {
                Self::Auto => "auto",
                Self::Baseline => "baseline",
                Self::None => "none",
            })
        }
    }

    impl<'de> Deserialize<'de> for TenantPods {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(Word)
        }
    }
}

/// A block with room to grow, kept as its only list.
pub(super) mod from_platform_storage {
    use super::super::RestorePolicy;
    use super::{Deserialize, Deserializer, JsonSchema, Serialize, Serializer};

    /// What may come back from the cluster's own storage.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", default)]
    pub(in super::super) struct Block {
        /// These resources never come back, such as `resourcequotas`.
        excluded_resources: Vec<String>,
    }

    impl Default for Block {
        fn default() -> Self {
            Self { excluded_resources: RestorePolicy::default().excluded_from_platform_storage }
        }
    }

    pub(in super::super) fn serialize<S: Serializer>(excluded: &[String], to: S) -> Result<S::Ok, S::Error> {
        Block { excluded_resources: excluded.to_vec() }.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        Ok(Block::deserialize(from)?.excluded_resources)
    }
}

//! How parts of the model are spelled where their shape is not the model's.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `allow` or `forbid`, kept as whether they are forbidden.
pub(super) mod backup_hooks {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Allow,
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
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Exec,
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

/// `baseline` or `none`, kept as whether pods come back; `true` and `false` are older words for the same.
pub(super) mod tenant_pods {
    use std::fmt;

    use serde::de::{Error, Visitor};

    use super::{Deserializer, Serializer};

    struct Word;

    impl Visitor<'_> for Word {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("baseline or none")
        }

        fn visit_bool<E: Error>(self, pods: bool) -> Result<bool, E> {
            Ok(pods)
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<bool, E> {
            match word {
                "baseline" => Ok(true),
                "none" => Ok(false),
                other => Err(E::custom(format!("{other:?} was found where baseline or none belongs"))),
            }
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(pods: &bool, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(if *pods { "baseline" } else { "none" })
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        from.deserialize_any(Word)
    }
}

/// A block with room to grow, kept as its only list.
pub(super) mod from_platform_storage {
    use super::super::RestorePolicy;
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Block {
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

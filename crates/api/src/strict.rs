//! Strict parsing of tenants' specs: unknown fields are refused.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a value and fails on any field, at any depth, that its type does not have. The API server prunes such
/// fields where our own definitions are installed; where OADP's are, a newer one may let them through.
pub(crate) fn strict<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut unknown = Vec::new();
    let value = serde_ignored::deserialize(deserializer, |path| unknown.push(path.to_string()))?;
    if unknown.is_empty() {
        return Ok(value);
    }
    // serde_ignored writes `?` where it steps into an Option: readers know no such thing.
    let named = unknown.join(", ").replace("?.", "");
    Err(D::Error::custom(format!("{named}: this controller knows no such field; remove it")))
}

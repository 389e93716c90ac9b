//! What decisions read: a tenant's object as it was decoded, and a tenant's credential.

use std::sync::Arc;

use api::Hidden;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tenant's object as observed. An invalid object has its metadata, its status if that is valid, and the parse error,
/// so that it can still be refused and deleted.
#[derive(Debug, PartialEq)]
pub struct Seen<K> {
    /// The object, or what is left of it.
    pub object: Arc<K>,
    /// Why it could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
}

impl<K: DeserializeOwned + Serialize + Default> Seen<K> {
    /// Reads an object, or what can be saved of it.
    pub fn read(given: &Value) -> Self {
        let (object, unreadable) = read(given);
        Self { object: Arc::new(object), unreadable: unreadable.map(Arc::from) }
    }
}

/// Reads an object; or what can be saved of it, and what is wrong with it.
pub fn read<K: DeserializeOwned + Serialize + Default>(given: &Value) -> (K, Option<String>) {
    // Reading by reference leaves the value for a second try, and costs the sound ones nothing.
    let error = match K::deserialize(given) {
        Ok(object) => return (object, None),
        Err(error) => error.to_string(),
    };
    // Keep the status if it can be read without the spec, else at least the metadata.
    let saved = [&["metadata", "status"][..], &["metadata"]].into_iter().find_map(|kept| {
        let mut blank = serde_json::to_value(K::default()).ok()?;
        for name in kept {
            blank[*name] = given[*name].clone();
        }
        K::deserialize(&blank).ok()
    });
    (saved.unwrap_or_default(), Some(error))
}

impl<K> Clone for Seen<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), unreadable: self.unreadable.clone() }
    }
}

/// A tenant's credential. Tenants' Secrets are not watched: each named Secret is read periodically, and only the named
/// key is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Credential {
    /// Not read yet.
    #[default]
    Unseen,
    /// nacre is not permitted to read it.
    Withheld,
    /// The Secret or the key is missing since this time.
    Missing(Timestamp),
    /// The value of the key.
    Found(Arc<Hidden>),
}

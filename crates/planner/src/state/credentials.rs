//! Tenants' credentials as they were last fetched. Tenants' Secrets are not watched: each key that a location names is
//! fetched regularly by the engine, and only that key is kept.

use std::collections::HashMap;

use api::{Kind, NonAdminBackupStorageLocation, Phase};

use super::State;
use crate::view::Credential;
use crate::{Key, location};

/// One key of one Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretKey {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The key in its data.
    pub key: String,
}

impl SecretKey {
    /// This key of this Secret.
    pub fn new(namespace: &str, secret: &str, key: &str) -> Self {
        Self { namespace: namespace.to_owned(), secret: secret.to_owned(), key: key.to_owned() }
    }

    /// The key that a location names, if it names one.
    fn of(location: &NonAdminBackupStorageLocation) -> Option<Self> {
        let (secret, key) = location::named_key(&location.spec.backup_storage_location_spec)?;
        Some(Self::new(location.metadata.namespace.as_deref()?, secret, key))
    }
}

impl State {
    /// The keys that locations name, and for each whether a location waits for it.
    pub fn named_credentials(&self) -> HashMap<SecretKey, bool> {
        let mut named: HashMap<SecretKey, bool> = HashMap::new();
        for seen in self.locations.all().filter(|seen| seen.object.metadata.deletion_timestamp.is_none()) {
            if let Some(name) = SecretKey::of(&seen.object) {
                let phase = seen.object.status.as_ref().and_then(|status| status.phase);
                *named.entry(name).or_default() |= phase != Some(Phase::Created);
            }
        }
        named
    }

    /// Forgets credentials that no location names any more.
    pub fn retain_credentials(&mut self, named: impl Fn(&SecretKey) -> bool) {
        self.credentials.retain(|name, _| named(name));
    }

    /// Takes what was fetched of a credential. Returns the locations that name it, if it changed.
    pub fn set_credential(&mut self, name: &SecretKey, found: Credential) -> Vec<Key> {
        let known = match (self.credentials.get(name), &found) {
            // Since when it is missing is known already, and what was read before is not forgotten.
            (Some(Credential::Missing(_)), Credential::Missing(_)) | (Some(_), Credential::Withheld) => true,
            (before, found) => before == Some(found),
        };
        if known {
            return Vec::new();
        }
        self.credentials.insert(name.clone(), found);
        let naming = self.locations.within(&name.namespace).map(|seen| seen.object);
        let naming = naming.filter(|location| SecretKey::of(location).as_ref() == Some(name));
        naming.map(|location| Key::of(Kind::NonAdminBackupStorageLocation, &location.metadata)).collect()
    }
}

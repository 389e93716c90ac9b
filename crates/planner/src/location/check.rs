//! What a tenant may ask for. Each rule is a small function; the first refusal is reported to the user.

use api::Duration;
use api::velero::{BackupStorageLocationSpec, ObjectStorageLocation};

use k8s_openapi::api::core::v1::SecretKeySelector;

use super::config::{self, Asker, Settings};
use super::credentials::{self, Credential};
use super::provider::Provider;
use super::{PATH, ca, enforce, field, prefix};
use crate::Refusal;
use crate::policy::{StorageMode, StoragePolicy};

/// Velero looks every minute at best, and a location is no place to keep it busy.
const SHORTEST: i128 = 10 * SECOND;
/// A year: whoever means never writes 0.
const LONGEST: i128 = 365 * 24 * 3600 * SECOND;
const SECOND: i128 = 1_000_000_000;

/// The rules that need only the request and the policy. Controller, webhook and CLI share them.
pub fn check_spec(
    spec: &BackupStorageLocationSpec,
    namespace: &str,
    policy: &StoragePolicy,
) -> Option<Refusal> {
    // Every field is named, so that one that Velero adds does not compile until somebody decides about it.
    let BackupStorageLocationSpec {
        provider,
        config,
        credential: _,
        object_storage: ObjectStorageLocation { bucket, prefix, ca_cert, ca_cert_ref },
        default,
        access_mode,
        backup_sync_period,
        validation_frequency,
    } = spec;
    let asker = Asker { namespace, bucket, policy };
    mode(policy)
        .or_else(|| is_default(*default))
        .or_else(|| credential(spec))
        .or_else(|| enforce::conflict(&policy.enforce, spec))
        .or_else(|| unknown_provider(provider, policy))
        .or_else(|| Some(refuse("objectStorage.bucket", prefix::bucket_objection(bucket)?)))
        .or_else(|| configuration(provider, config.as_ref(), asker))
        .or_else(|| Some(refuse("objectStorage.prefix", prefix::objection(non_empty(prefix.as_deref())?)?)))
        .or_else(|| Some(refuse("objectStorage.caCert", ca::objection(non_empty(ca_cert.as_deref())?)?)))
        .or_else(|| ca_reference(ca_cert_ref.is_some()))
        .or_else(|| unknown_mode(non_empty(access_mode.as_deref())?))
        .or_else(|| duration("backupSyncPeriod", backup_sync_period.as_ref()?))
        .or_else(|| duration("validationFrequency", validation_frequency.as_ref()?))
}

/// Reads the credential a location refers to, and refuses one that Velero would not use, or not alone.
///
/// Whoever rotates a credential passes here again.
pub fn check_credential(
    spec: &BackupStorageLocationSpec,
    bytes: &[u8],
    namespace: &str,
    policy: &StoragePolicy,
) -> Result<Credential, Refusal> {
    let mut spec = spec.clone();
    enforce::fill(&policy.enforce, &mut spec);
    if let Some(refusal) = unknown_provider(&spec.provider, policy) {
        return Err(refusal);
    }
    // Just refused if it is none.
    let provider = Provider::of(&spec.provider).unwrap_or(Provider::Aws);
    let settings = spec.config.unwrap_or_default();
    let profile =
        non_empty(settings.get("profile").map(String::as_str)).filter(|_| provider == Provider::Aws);
    let credential = credentials::parse(provider, bytes, profile)
        .map_err(|refusal| Refusal::new(field("credential"), format!("cannot be used: {refusal}")))?;
    let asker = Asker { namespace, bucket: &spec.object_storage.bucket, policy };
    match config::disagrees(&settings, &credential, asker) {
        Some(refusal) => Err(refusal),
        None => Ok(credential),
    }
}

/// Refuses one more location where there are as many as there may be.
pub fn check_limit(others: usize, policy: &StoragePolicy) -> Option<Refusal> {
    let most = policy.max_per_namespace.filter(|most| others >= *most)?;
    let message = format!("this namespace has {others} storage locations and may have {most}");
    Some(Refusal::over_limit("metadata.namespace", message))
}

/// An empty word says nothing.
fn non_empty(word: Option<&str>) -> Option<&str> {
    word.filter(|word| !word.is_empty())
}

fn refuse(name: &str, message: &str) -> Refusal {
    Refusal::new(field(name), message)
}

fn mode(policy: &StoragePolicy) -> Option<Refusal> {
    let message =
        "the administrators provide the storage here; leave storageLocation out of your backups instead";
    (policy.mode == StorageMode::Platform).then(|| Refusal::new(PATH, message))
}

fn is_default(default: Option<bool>) -> Option<Refusal> {
    let message = "only administrators choose where backups go that name no location; leave the field out";
    (default == Some(true)).then(|| refuse("default", message))
}

fn credential(spec: &BackupStorageLocationSpec) -> Option<Refusal> {
    match &spec.credential {
        None => Some(refuse("credential", "is missing; name a Secret of this namespace and the key in it")),
        Some(reference) if reference.name.is_empty() => {
            Some(refuse("credential.name", "is missing; name a Secret of this namespace"))
        }
        Some(reference) if reference.key.is_empty() => {
            Some(refuse("credential.key", "is missing; name the key of the Secret that holds the credential"))
        }
        // Both become parts of paths: of the API, and of the file Velero writes the credential to.
        Some(reference) if !is_object_name(&reference.name) => {
            Some(refuse("credential.name", "cannot be the name of a Secret; name one of this namespace"))
        }
        Some(reference) if !is_secret_key(&reference.key) => {
            Some(refuse("credential.key", "cannot be a key of a Secret; name one of the Secret's"))
        }
        Some(_) => None,
    }
}

/// Whether a reference can be one to a key of a Secret: both parts stand in paths.
pub(super) fn names_a_secret(reference: &SecretKeySelector) -> bool {
    is_object_name(&reference.name) && !reference.key.is_empty() && is_secret_key(&reference.key)
}

/// As the API server has it: parts joined by dots, each of lower-case letters, digits and inner dashes.
fn is_object_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

fn is_secret_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    key.len() <= 253 && key.chars().all(plain) && !key.starts_with("..") && key != "."
}

fn unknown_provider(name: &str, policy: &StoragePolicy) -> Option<Refusal> {
    // The provider an administrator requires need not be listed a second time.
    let enforced = policy.enforce.provider.as_deref().and_then(Provider::of);
    let known = Provider::of(name)
        .or(if name.is_empty() { enforced } else { None })
        .filter(|provider| policy.provides(*provider) || Some(*provider) == enforced);
    known.is_none().then(|| {
        let names: Vec<&str> =
            Provider::ALL.into_iter().filter(|one| policy.provides(*one)).map(Provider::name).collect();
        Refusal::new(field("provider"), format!("must be one of {}", names.join(", ")))
    })
}

/// What an administrator requires has been compared already, and is theirs to answer for.
fn configuration(provider: &str, settings: Option<&Settings>, asker: Asker) -> Option<Refusal> {
    if asker.policy.enforce.config.is_some() {
        return None;
    }
    let enforced = asker.policy.enforce.provider.as_deref();
    let provider = Provider::of(provider).or_else(|| enforced.and_then(Provider::of))?;
    let none = Settings::new();
    config::check(provider, settings.unwrap_or(&none), asker)
}

fn ca_reference(given: bool) -> Option<Refusal> {
    let message = "names a Secret of the administrators'; put the certificates into caCert";
    given.then(|| refuse("objectStorage.caCertRef", message))
}

fn unknown_mode(mode: &str) -> Option<Refusal> {
    (!["ReadOnly", "ReadWrite"].contains(&mode))
        .then(|| refuse("accessMode", "must be ReadWrite or ReadOnly; leave it out for ReadWrite"))
}

fn duration(name: &str, value: &Duration) -> Option<Refusal> {
    let Some(nanos) = value.nanos() else {
        let message = format!("{:?} is not a duration; write for example 10m", value.to_string());
        return Some(Refusal::new(field(name), message));
    };
    let fine = nanos == 0 || (SHORTEST..=LONGEST).contains(&nanos);
    let message = "must be 0s, which means never, or from 10s to 8760h";
    (!fine).then(|| refuse(name, message))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;

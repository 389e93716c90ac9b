//! The storage path of a location, to detect that two locations overlap.

use std::collections::BTreeMap;

use api::velero::BackupStorageLocationSpec;

use super::config;
use super::endpoint::{Endpoint, Host, normalise};
use super::prefix::stored;
use super::provider::Provider;

/// Stores of many names: where they end, and how the part of the name begins that is not a bucket.
const FAMILIES: &[(&str, &str)] =
    &[("amazonaws.com", "s3"), ("amazonaws.com.cn", "s3"), ("googleapis.com", "storage")];

/// A folder in a bucket of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePath {
    store: String,
    port: Option<u16>,
    /// Bucket first, then the prefix.
    path: Vec<String>,
}

impl StoragePath {
    /// Where Velero keeps the bytes of a location as it has it. Administrators may write endpoints that tenants may
    /// not; one that cannot be read is a store of its own.
    pub fn of(spec: &BackupStorageLocationSpec) -> Self {
        Self::at(spec, spec.object_storage.prefix.as_deref().unwrap_or_default())
    }

    /// Where the bytes of a tenant's location will be.
    pub fn asked(spec: &BackupStorageLocationSpec, namespace: &str) -> Self {
        Self::at(spec, &stored(namespace, spec.object_storage.prefix.as_deref()))
    }

    fn at(spec: &BackupStorageLocationSpec, prefix: &str) -> Self {
        let none = BTreeMap::new();
        let settings = spec.config.as_ref().unwrap_or(&none);
        let (store, port, mut path) = match endpoint(&spec.provider, settings) {
            Ok(endpoint) => {
                let (store, mut path) = store(&endpoint.host);
                path.extend(
                    endpoint.path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned),
                );
                (store, endpoint.port, path)
            }
            Err(unread) => (unread, None, Vec::new()),
        };
        path.push(spec.object_storage.bucket.trim_matches('/').to_owned());
        let bucket = path.len();
        for segment in prefix.split('/').filter(|segment| !["", "."].contains(segment)) {
            if segment != ".." {
                path.push(segment.to_owned());
            } else if path.len() > bucket {
                path.pop(); // above the root is the root: nothing leads out of a bucket
            }
        }
        Self { store, port, path }
    }

    /// Whether one of the two is within the other.
    ///
    /// A bucket can be a host of its own: `https://b.store` and the bucket `b` of `https://store` are the same.
    pub fn overlaps(&self, other: &Self) -> bool {
        let within = |inner: &Self, outer: &Self| -> Option<Vec<String>> {
            if inner.store == outer.store || may_be_alias(&inner.store, &outer.store) {
                return Some(inner.path.clone());
            }
            let bucket = inner.store.strip_suffix(&outer.store)?.strip_suffix('.')?;
            Some([&[bucket.to_owned()], &inner.path[..]].concat())
        };
        let pair = within(self, other)
            .map(|mine| (mine, other.path.clone()))
            .or_else(|| within(other, self).map(|theirs| (self.path.clone(), theirs)));
        self.port == other.port
            && pair.is_some_and(|(one, two)| one.starts_with(&two) || two.starts_with(&one))
    }
}

/// Where a location's store is, in one normalised spelling for the approver; none if it is unknown.
pub fn endpoint_of(spec: &BackupStorageLocationSpec) -> Option<Endpoint> {
    let none = BTreeMap::new();
    endpoint(&spec.provider, spec.config.as_ref().unwrap_or(&none)).ok()
}

fn endpoint(provider: &str, settings: &BTreeMap<String, String>) -> Result<Endpoint, String> {
    let written = |key: &str| settings.get(key).map(String::as_str).filter(|url| !url.is_empty());
    // Velero takes a store of any provider for one like S3 if it has such a URL.
    let known = Provider::of(provider).or_else(|| written("s3Url").map(|_| Provider::Aws));
    match known {
        Some(provider) => match written(config::endpoint_key(provider)) {
            Some(url) => normalise(url).map_err(|_| url.to_ascii_lowercase()),
            None => Ok(config::usual_endpoint(provider, settings, None)),
        },
        None => Err(provider.to_owned()),
    }
}

/// Whether two stores may be one under two names: an address, and a name that may resolve to it. What a name resolves to
/// is not looked at, so a bucket of the same name on the same port is taken for the same. A cloud's own names are not
/// those of an address somebody writes down.
fn may_be_alias(one: &str, other: &str) -> bool {
    let is_address = |store: &str| store.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    let of_a_cloud = |store: &str| {
        let is_azure = store.rsplit_once('.').is_some_and(|(_, end)| end == "blob");
        is_azure || FAMILIES.iter().any(|(domain, _)| store == *domain)
    };
    is_address(one) != is_address(other) && !of_a_cloud(one) && !of_a_cloud(other)
}

/// The one name of a store, and the buckets its name begins with.
fn store(host: &Host) -> (String, Vec<String>) {
    let Host::Name(name) = host else {
        return (host.to_string(), Vec::new());
    };
    let labels: Vec<&str> = name.split('.').collect();
    for (domain, mark) in FAMILIES {
        if let Some(rest) = name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.')) {
            let labels: Vec<&str> = rest.split('.').collect();
            let ends = labels.iter().rposition(|label| label.starts_with(mark)).unwrap_or(0);
            // A private way to the store has labels of its own before the mark.
            let private = labels[..ends].iter().any(|label| label.starts_with("vpce-"));
            let own = |label: &&&str| !private || !(label.starts_with("vpce-") || **label == "bucket");
            let bucket: Vec<&str> = labels[..ends].iter().filter(own).copied().collect();
            let path = if bucket.is_empty() { Vec::new() } else { vec![bucket.join(".")] };
            return ((*domain).to_owned(), path);
        }
    }
    if let (Some(at), Some(account)) = (labels.iter().position(|label| *label == "blob"), labels.first())
        && at > 0
        && ["core", "storage"].contains(labels.get(at + 1).unwrap_or(&""))
    {
        return (format!("{account}.blob"), Vec::new());
    }
    let service = match labels[..] {
        [ref service @ .., "svc", "cluster", "local"] => [service, &["svc"]].concat().join("."),
        // Two parts are a service and its namespace to Velero.
        [service, namespace] if namespace != "svc" => format!("{service}.{namespace}.svc"),
        _ => name.clone(),
    };
    (service, Vec::new())
}

#[cfg(test)]
#[path = "storage_path_tests.rs"]
mod tests;

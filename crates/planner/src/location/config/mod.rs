//! The `config` of a location: settings of the provider's plugin.
//!
//! Each provider has a table of the keys its plugin and Velero itself read, and of what becomes of each; what is not
//! in it is refused by name. Nothing that names a file, a Secret or a variable of Velero's passes.

mod aws;
mod azure;
mod gcp;
mod values;

use std::collections::BTreeMap;

use super::credentials::{Credential, azure as account};
use super::endpoint::{Endpoint, normalise, objection};
use super::field;
use super::provider::Provider;
use super::table::{KeyHandling, Rule, find};
use crate::Refusal;
use crate::policy::StoragePolicy;

/// What a location says to its provider.
pub type Settings = BTreeMap<String, String>;

/// Every key of every provider, for the administrators' guide.
pub const TABLES: &[(&str, &[Rule])] = &[("aws", aws::KEYS), ("azure", azure::KEYS), ("gcp", gcp::KEYS)];

/// Who asks, and what is needed to judge where they may send Velero.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) namespace: &'a str,
    pub(super) bucket: &'a str,
    pub(super) policy: &'a StoragePolicy,
}

/// Refuses keys and values that a tenant may not write.
pub(super) fn check(provider: Provider, settings: &Settings, asker: Asker) -> Option<Refusal> {
    let keys = settings.iter().find_map(|(key, value)| one(provider, key, value, asker));
    keys.or_else(|| missing(provider, settings)).or_else(|| unsaid_endpoint(provider, settings, None, asker))
}

fn one(provider: Provider, key: &str, value: &str, asker: Asker) -> Option<Refusal> {
    let Some(rule) = find(table(provider), key) else {
        // A key is no secret, but it may be as long as one likes.
        let shown: String = key.chars().take(64).collect();
        let message = format!("{shown:?} is not a key for {} that nacre knows; take it out", provider.name());
        return Some(Refusal::new(field("config"), message));
    };
    let refuse = |message: String| Some(Refusal::new(field(&format!("config.{key}")), message));
    match rule.verdict {
        KeyHandling::Refused => return refuse(rule.advice()),
        KeyHandling::Ignored => return None,
        // Go reads an empty value as none at all.
        KeyHandling::Kept if value.is_empty() => return None,
        KeyHandling::Kept => {}
    }
    if key == "insecureSkipTLSVerify" {
        let allowed = asker.policy.allow_insecure_skip_tls_verify || values::switch(value) == Some(false);
        let message = "the administrators require that certificates are checked; name the authority in objectStorage.caCert";
        return if allowed { values::is_switch(value).and_then(refuse) } else { refuse(message.to_owned()) };
    }
    if endpoint_keys(provider).contains(&key) {
        return endpoint(provider, value, asker).and_then(refuse);
    }
    let wrong = match provider {
        Provider::Aws => aws::objection(key, value),
        Provider::Azure => azure::objection(key, value),
        Provider::Gcp => gcp::objection(key, value),
    };
    wrong.and_then(refuse)
}

fn endpoint(provider: Provider, url: &str, asker: Asker) -> Option<String> {
    let endpoint = match normalise(url) {
        Ok(endpoint) => endpoint,
        Err(wrong) => return Some(wrong),
    };
    // Velero itself refuses one for S3 once it backs up volumes.
    if provider == Provider::Aws && !endpoint.path.is_empty() {
        return Some("must not have a path; use objectStorage.prefix".to_owned());
    }
    objection(&endpoint, host_bucket(provider, asker), asker.namespace, &asker.policy.endpoints)
}

/// Only S3 makes hosts of buckets.
fn host_bucket(provider: Provider, asker: Asker<'_>) -> Option<&str> {
    (provider == Provider::Aws).then_some(asker.bucket)
}

/// What is not said has a usual value, and the administrator's lists hold for that too.
fn unsaid_endpoint(
    provider: Provider,
    settings: &Settings,
    domain: Option<&str>,
    asker: Asker,
) -> Option<Refusal> {
    if settings.get(endpoint_key(provider)).is_some_and(|url| !url.is_empty()) {
        return None;
    }
    let usual = usual_endpoint(provider, settings, domain);
    let why = objection(&usual, host_bucket(provider, asker), asker.namespace, &asker.policy.endpoints)?;
    Some(Refusal::new(field("config"), format!("leads to {usual}, which {why}")))
}

fn missing(provider: Provider, settings: &Settings) -> Option<Refusal> {
    let account = settings.get("storageAccount").is_some_and(|account| !account.is_empty());
    (provider == Provider::Azure && !account).then(|| {
        Refusal::new(field("config.storageAccount"), "is missing; name the storage account of the bucket")
    })
}

/// Refuses a configuration with which Velero would not use the credential it is given, but some other.
pub(super) fn disagrees(settings: &Settings, credential: &Credential, asker: Asker) -> Option<Refusal> {
    let Credential::Azure(account) = credential else {
        return None;
    };
    let named = settings.get("storageAccountKeyEnvVar").is_some_and(|name| !name.is_empty());
    let refuse = |message: String| {
        Some(Refusal::new(field("config.storageAccountKeyEnvVar"), format!("{message} in the credential")))
    };
    match (named, account.has_access_key(), account.has_service_principal()) {
        (true, false, _) => refuse(format!("there is no {}; take it out or put one", account::ACCESS_KEY)),
        (false, _, false) => {
            refuse(format!("must be {0}, since there is no service principal", account::ACCESS_KEY))
        }
        _ => unsaid_endpoint(Provider::Azure, settings, Some(account.blob_domain()), asker),
    }
}

/// What Velero gets: what was allowed, in one spelling, and made explicit where Velero would look around otherwise.
pub fn for_velero(settings: &Settings, credential: &Credential) -> Settings {
    let table = table(credential.provider());
    let kept = |key: &str| find(table, key).is_none_or(|rule| rule.verdict != KeyHandling::Ignored);
    let mut given: Settings = settings.clone();
    given.retain(|key, _| kept(key));
    if let Credential::Aws(keys) = credential {
        // With a profile set, the SDK does not prefer the keys in its environment, which are not the tenant's.
        given.insert("profile".to_owned(), keys.profile().to_owned());
        // Many stores that speak S3 know no checksums; the operator of OADP does the same.
        given.entry("checksumAlgorithm".to_owned()).or_default();
        for key in endpoint_keys(Provider::Aws) {
            if let Some(url) = given.get_mut(*key)
                && let Ok(endpoint) = normalise(url)
            {
                *url = endpoint.to_string();
            }
        }
    }
    given
}

fn table(provider: Provider) -> &'static [Rule] {
    match provider {
        Provider::Aws => aws::KEYS,
        Provider::Azure => azure::KEYS,
        Provider::Gcp => gcp::KEYS,
    }
}

fn endpoint_keys(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Aws => &["s3Url", "publicUrl"],
        Provider::Azure => &["storageAccountURI"],
        Provider::Gcp => &["storeEndpoint"],
    }
}

/// The key that says where the store is.
pub(super) fn endpoint_key(provider: Provider) -> &'static str {
    endpoint_keys(provider)[0]
}

/// Where the store is if that is not said. Azure has several clouds; which one, the credential says.
pub(super) fn usual_endpoint(provider: Provider, settings: &Settings, domain: Option<&str>) -> Endpoint {
    let said = |key: &str| settings.get(key).map(|text| text.to_ascii_lowercase()).unwrap_or_default();
    match provider {
        Provider::Gcp => Endpoint::usual("storage.googleapis.com"),
        Provider::Azure => {
            let domain = domain.unwrap_or(account::CLOUDS[0].1);
            Endpoint::usual(format!("{}.{domain}", said("storageAccount")))
        }
        Provider::Aws => match said("region").as_str() {
            "" => Endpoint::usual("s3.amazonaws.com"),
            region if region.starts_with("cn-") => Endpoint::usual(format!("s3.{region}.amazonaws.com.cn")),
            region => Endpoint::usual(format!("s3.{region}.amazonaws.com")),
        },
    }
}

#[cfg(test)]
mod tests;

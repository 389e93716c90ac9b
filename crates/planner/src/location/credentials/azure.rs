//! Azure: a file of environment variables. Velero looks up what it knows, and older plugins put every line of it into
//! their own environment.

use std::collections::BTreeMap;

use super::super::table::{KeyHandling, Rule, allowed_key, find, refused};
use super::{CredentialRefusal, LONGEST_VALUE, is_plain, is_word, lines};

/// The key of the storage account: also the only thing the location may name as `storageAccountKeyEnvVar`.
pub const ACCESS_KEY: &str = "AZURE_STORAGE_ACCOUNT_ACCESS_KEY";
const SUBSCRIPTION: &str = "AZURE_SUBSCRIPTION_ID";
const TENANT: &str = "AZURE_TENANT_ID";
const CLIENT: &str = "AZURE_CLIENT_ID";
const SECRET: &str = "AZURE_CLIENT_SECRET";
const GROUP: &str = "AZURE_RESOURCE_GROUP";
const CLOUD: &str = "AZURE_CLOUD_NAME";

/// Every variable Velero, its plugin and the Azure library read.
pub const KEYS: &[Rule] = &[
    allowed_key(SUBSCRIPTION, "says which subscription the storage account belongs to"),
    allowed_key(TENANT, "belongs to the service principal"),
    allowed_key(CLIENT, "belongs to the service principal"),
    allowed_key(SECRET, "is the key of the service principal"),
    allowed_key(ACCESS_KEY, "is the key of the storage account"),
    allowed_key(GROUP, "says which resource group the storage account belongs to"),
    allowed_key(CLOUD, "says which of Azure's clouds it is"),
    refused("AZURE_STORAGE_KEY", "is Velero's own word; write AZURE_STORAGE_ACCOUNT_ACCESS_KEY"),
    refused("AZURE_CLIENT_CERTIFICATE_PATH", "reads a file in Velero's pod"),
    refused("AZURE_CLIENT_CERTIFICATE", "is no plain secret; use AZURE_CLIENT_SECRET"),
    refused("AZURE_CLIENT_CERTIFICATE_PASSWORD", "only goes with a certificate"),
    refused("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN", "only goes with a certificate"),
    refused("AZURE_USERNAME", "signs in as a person; use a service principal"),
    refused("AZURE_PASSWORD", "signs in as a person; use a service principal"),
    refused("AZURE_FEDERATED_TOKEN_FILE", "reads a file in Velero's pod"),
    refused("AZURE_AUTHORITY_HOST", "asks a server of its choice for tokens"),
    refused("AZURE_REGIONAL_AUTHORITY_NAME", "asks a server of its choice for tokens"),
    refused("AZURE_ADDITIONALLY_ALLOWED_TENANTS", "asks for tokens of other tenants"),
    refused("AZURE_TOKEN_CREDENTIALS", "chooses among the identities of Velero's pod"),
    refused("AZURE_CREDENTIALS_FILE", "names a file in Velero's pod"),
    refused("AZURE_CONFIG_DIR", "names a folder in Velero's pod"),
    refused("IDENTITY_ENDPOINT", "asks a server of its choice for an identity"),
    refused("IDENTITY_HEADER", "asks for the identity of Velero's pod"),
    refused("IDENTITY_SERVER_THUMBPRINT", "asks for the identity of Velero's pod"),
    refused("MSI_ENDPOINT", "asks a server of its choice for an identity"),
    refused("MSI_SECRET", "asks for the identity of Velero's pod"),
];

/// The names Velero knows Azure's clouds by, whatever their case, and where blobs are in each.
pub const CLOUDS: &[(&str, &str)] = &[
    ("AzureCloud", "blob.core.windows.net"),
    ("AzurePublicCloud", "blob.core.windows.net"),
    ("AzureChinaCloud", "blob.core.chinacloudapi.cn"),
    ("AzureUSGovernment", "blob.core.usgovcloudapi.net"),
    ("AzureUSGovernmentCloud", "blob.core.usgovcloudapi.net"),
];

/// The key of a storage account, a whole service principal, or both.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    values: BTreeMap<&'static str, String>,
}

impl Account {
    /// Whether it can open the storage account by itself.
    pub fn has_access_key(&self) -> bool {
        self.values.contains_key(ACCESS_KEY)
    }

    /// Whether it can ask Azure for tokens. The parser sees to it that all of it is there or none.
    pub fn has_service_principal(&self) -> bool {
        self.values.contains_key(SECRET)
    }

    /// Where its cloud keeps blobs.
    pub fn blob_domain(&self) -> &'static str {
        let name = self.values.get(CLOUD).map_or(CLOUDS[0].0, String::as_str);
        CLOUDS.iter().find(|(cloud, _)| *cloud == name).map_or(CLOUDS[0].1, |(_, domain)| domain)
    }

    pub(super) fn render(&self) -> String {
        // Single quotes are taken literally by every reader there has been; a bare word needs none.
        let quote = |value: &str| if is_word(value, "_.~+/=-") { "" } else { "'" };
        let line = |(key, value): (&&str, &String)| {
            let quote = quote(value);
            format!("{key}={quote}{value}{quote}\n")
        };
        self.values.iter().map(line).collect()
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Account, CredentialRefusal> {
    let mut values = BTreeMap::new();
    for (line, text) in lines::speaking(bytes, &['#'])? {
        let text = text.strip_prefix("export ").unwrap_or(text);
        let Some((key, raw)) = text.split_once('=') else {
            return Err(CredentialRefusal::line(line, "is not of the form KEY=value"));
        };
        let key = key.trim_matches([' ', '\t']);
        let Some(rule) = find(KEYS, key) else {
            return Err(CredentialRefusal::unknown(Some(line), key));
        };
        if rule.verdict != KeyHandling::Kept {
            return Err(CredentialRefusal::ruled(Some(line), rule));
        }
        let value = usable(line, rule.key, raw)?;
        if values.insert(rule.key, value).is_some() {
            return Err(CredentialRefusal::key(Some(line), rule.key, "is there twice; keep one of them"));
        }
    }
    complete(&values)?;
    Ok(Account { values })
}

/// The value, unless readers of such files differ about it: some cut it at a number sign, some put other values in
/// for what follows a dollar sign.
fn usable(line: usize, key: &str, raw: &str) -> Result<String, CredentialRefusal> {
    let refuse = |why: &str| Err(CredentialRefusal::key(Some(line), key, why));
    let raw = raw.trim_matches([' ', '\t']);
    let literal = raw.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let quoted = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let value = literal.or(quoted).unwrap_or(raw);
    if value.is_empty() {
        return refuse("is empty; give it a value or take it out");
    }
    if value.len() > LONGEST_VALUE {
        return refuse("is too long");
    }
    if !is_plain(value) || value.contains(['\'', '"', '\\', '`']) {
        return refuse("holds blanks, quotation marks or backslashes where none can be");
    }
    if literal.is_none() && value.contains(['#', '$']) {
        return refuse("holds a sign with a meaning of its own; put the value in single quotes");
    }
    match key {
        CLOUD => match CLOUDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(value)) {
            Some((name, _)) => Ok((*name).to_owned()),
            None => {
                refuse("is no cloud of Azure's; write AzurePublicCloud, AzureChinaCloud or AzureUSGovernment")
            }
        },
        // These become parts of addresses.
        SUBSCRIPTION | TENANT | CLIENT if !is_word(value, ".-") => {
            refuse("can only have letters, digits, dots and dashes")
        }
        GROUP if !is_word(value, "_.()-") => {
            refuse("can only have letters, digits, dots, dashes, underscores and brackets")
        }
        _ => Ok(value.to_owned()),
    }
}

/// With neither an account key nor a whole service principal Velero would use the identity of its pod.
fn complete(values: &BTreeMap<&str, String>) -> Result<(), CredentialRefusal> {
    let principal = [TENANT, CLIENT, SECRET];
    let there = principal.iter().filter(|key| values.contains_key(*key)).count();
    let missing = principal.iter().find(|key| !values.contains_key(*key));
    match missing {
        Some(key) if there > 0 => {
            let why = "is missing; without it Velero would use the identity of its own pod";
            Err(CredentialRefusal::key(None, key, why))
        }
        Some(_) if !values.contains_key(ACCESS_KEY) => Err(CredentialRefusal::whole(
            "holds neither AZURE_STORAGE_ACCOUNT_ACCESS_KEY nor a service principal; without one Velero would use the identity of its own pod",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "azure_tests.rs"]
mod tests;

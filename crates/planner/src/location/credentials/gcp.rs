//! Google Cloud: a JSON file, of which `type` decides what the library does with the rest.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::super::table::{KeyHandling, Rule, allowed_key, find, ignored_key, refused};
use super::{CredentialRefusal, LONGEST_VALUE, is_word};

const TYPE: &str = "type";
const PROJECT: &str = "project_id";
const KEY_ID: &str = "private_key_id";
const KEY: &str = "private_key";
const EMAIL: &str = "client_email";
const TOKEN_URI: &str = "token_uri";
const UNIVERSE: &str = "universe_domain";
/// The type of the key of a service account.
const SERVICE_ACCOUNT: &str = "service_account";

/// The types of credential the Google library knows.
pub const TYPES: &[Rule] = &[
    allowed_key(SERVICE_ACCOUNT, "is the key of a service account"),
    refused(
        "external_account",
        "reads a file, asks a server or runs a program in Velero's pod, and sends what it gets elsewhere",
    ),
    refused("external_account_authorized_user", "asks a server of its choice for tokens"),
    refused("impersonated_service_account", "takes on another identity"),
    refused("authorized_user", "signs in as a person"),
    refused("gdch_service_account", "asks a server of its choice for tokens"),
];

/// Every key of every type.
pub const KEYS: &[Rule] = &[
    allowed_key(TYPE, "must be service_account"),
    allowed_key(PROJECT, "says which project the account belongs to"),
    allowed_key(KEY_ID, "is the name of the key"),
    allowed_key(KEY, "is the key itself; required"),
    allowed_key(EMAIL, "is the name of the account; required"),
    allowed_key(TOKEN_URI, "must be Google's own"),
    allowed_key(UNIVERSE, "must be googleapis.com"),
    ignored_key("client_id", "is not needed"),
    ignored_key("auth_uri", "is not needed"),
    ignored_key("auth_provider_x509_cert_url", "is not needed"),
    ignored_key("client_x509_cert_url", "is not needed"),
    refused("credential_source", "reads a file, asks a server or runs a program in Velero's pod"),
    refused("source_credentials", "takes on another identity"),
    refused("service_account_impersonation_url", "takes on another identity"),
    refused("service_account_impersonation", "takes on another identity"),
    refused("delegates", "takes on another identity"),
    refused("audience", "asks for tokens for somebody else"),
    refused("subject_token_type", "only goes with an external account"),
    refused("token_url", "asks a server of its choice for tokens"),
    refused("token_info_url", "asks a server of its choice about tokens"),
    refused("revoke_url", "asks a server of its choice about tokens"),
    refused("workforce_pool_user_project", "only goes with an external account"),
    refused("quota_project_id", "charges another project"),
    refused("client_secret", "signs in as a person"),
    refused("refresh_token", "signs in as a person"),
    refused("scopes", "asks for permissions of its choice"),
    refused("ca_cert_path", "reads a file in Velero's pod"),
    refused("format_version", "only goes with another type"),
    refused("project", "only goes with another type"),
    refused("name", "only goes with another type"),
];

/// Where Google hands out tokens, and has done; what is written is always the first.
const TOKEN_URIS: [&str; 3] = [
    "https://oauth2.googleapis.com/token",
    "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
];
const GOOGLE: &str = "googleapis.com";

/// The key of a service account.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    project: Option<String>,
    key_id: Option<String>,
    key: String,
    email: String,
}

impl ServiceAccount {
    pub(super) fn render(&self) -> String {
        let fields = [
            (TYPE, Some(SERVICE_ACCOUNT)),
            (PROJECT, self.project.as_deref()),
            (KEY_ID, self.key_id.as_deref()),
            (KEY, Some(self.key.as_str())),
            (EMAIL, Some(self.email.as_str())),
            (TOKEN_URI, Some(TOKEN_URIS[0])),
            (UNIVERSE, Some(GOOGLE)),
        ];
        let line = |(key, value): (&str, Option<&str>)| Some(format!("  \"{key}\": {}", Value::from(value?)));
        let lines: Vec<String> = fields.into_iter().filter_map(line).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }
}

/// The entries of a JSON object in order, duplicates included: readers differ on which of two they take.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<ServiceAccount, CredentialRefusal> {
    let Entries(entries) = serde_json::from_slice(bytes).map_err(|error| {
        CredentialRefusal::line(error.line().max(1), "is not JSON; use the file as Google made it")
    })?;
    let line = |key: &str| line_of(bytes, key);
    let refuse = |key: &'static str, why: &str| CredentialRefusal::key(line(key), key, why);
    for (at, (key, _)) in entries.iter().enumerate() {
        if entries[..at].iter().any(|(other, _)| other == key) {
            let known = find(KEYS, key).map(|rule| rule.key.to_owned());
            return Err(CredentialRefusal {
                line: line(key),
                key: known,
                why: "is there twice; keep one of them".to_owned(),
            });
        }
    }
    let named = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    if named(TYPE).and_then(Value::as_str) != Some(SERVICE_ACCOUNT) {
        return Err(refuse(
            TYPE,
            "must be service_account; make a key for a service account and use that file",
        ));
    }
    let mut account =
        ServiceAccount { project: None, key_id: None, key: String::new(), email: String::new() };
    for (key, value) in &entries {
        let Some(rule) = find(KEYS, key) else {
            return Err(CredentialRefusal::unknown(None, key));
        };
        match rule.verdict {
            KeyHandling::Refused => return Err(CredentialRefusal::ruled(line(rule.key), rule)),
            KeyHandling::Ignored => continue,
            KeyHandling::Kept => {}
        }
        let text = value.as_str().ok_or_else(|| refuse(rule.key, "is not a text"))?;
        account.take(rule.key, text).map_err(|why| refuse(rule.key, why))?;
    }
    match (account.key.is_empty(), account.email.is_empty()) {
        (true, _) => Err(refuse(KEY, "is missing")),
        (_, true) => Err(refuse(EMAIL, "is missing")),
        _ => Ok(account),
    }
}

impl ServiceAccount {
    fn take(&mut self, key: &str, text: &str) -> Result<(), &'static str> {
        let odd = "holds something that cannot be there; use the file as Google made it";
        let word =
            |also: &str| (text.len() <= 256 && is_word(text, also)).then(|| text.to_owned()).ok_or(odd);
        match key {
            PROJECT => self.project = Some(word("-.:")?),
            KEY_ID => self.key_id = Some(word("-_")?),
            EMAIL if text.matches('@').count() == 1 => self.email = word("@.-_+:")?,
            EMAIL => return Err(odd),
            KEY if is_private_key(text) => text.clone_into(&mut self.key),
            KEY => return Err("is not a private key in PEM; use the file as Google made it"),
            TOKEN_URI if !TOKEN_URIS.contains(&text) => {
                return Err("must be Google's own; use the file as Google made it");
            }
            UNIVERSE if text != GOOGLE => return Err("must be googleapis.com"),
            _ => {}
        }
        Ok(())
    }
}

fn is_private_key(text: &str) -> bool {
    ["PRIVATE KEY", "RSA PRIVATE KEY"].iter().any(|label| {
        let body = text
            .strip_prefix(&format!("-----BEGIN {label}-----\n"))
            .and_then(|rest| rest.trim_end_matches('\n').strip_suffix(&format!("\n-----END {label}-----")));
        body.is_some_and(|body| text.len() <= LONGEST_VALUE && is_word(body, "+/=\n"))
    })
}

/// The line of a key, found by a plain text search; not useful in a file of a single line.
fn line_of(bytes: &[u8], key: &str) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?;
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.trim_start().starts_with(&quoted)).map(|at| at + 1)
}

#[cfg(test)]
#[path = "gcp_tests.rs"]
mod tests;

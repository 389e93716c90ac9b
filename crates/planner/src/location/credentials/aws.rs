//! AWS: the shared credentials file, of which Velero's plugin makes the shared configuration file too. Every key of
//! either can therefore stand in a tenant's Secret.

use std::collections::BTreeMap;

use super::super::table::{KeyHandling, Rule, allowed_key, find, ignored_key, refused};
use super::{CredentialRefusal, LONGEST_VALUE, is_plain, is_word, lines};

const ID: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";
const TOKEN: &str = "aws_session_token";
/// The profile everybody means who names none.
const DEFAULT: &str = "default";

/// Every key the AWS library reads, and a few that only its command line does.
pub const KEYS: &[Rule] = &[
    allowed_key(ID, "is the name of the key; required"),
    allowed_key(SECRET, "is the key itself; required"),
    allowed_key(TOKEN, "goes with keys that expire"),
    ignored_key("region", "belongs into the configuration of the location"),
    ignored_key("output", "only concerns the command line"),
    refused("credential_process", "runs a program in Velero's pod"),
    refused("credential_source", "uses the identity of Velero's pod or node"),
    refused("web_identity_token_file", "reads a file in Velero's pod"),
    refused("ca_bundle", "reads a file in Velero's pod"),
    refused("role_arn", "takes on another identity"),
    refused("source_profile", "takes on another identity"),
    refused("role_session_name", "only serves to take on another identity"),
    refused("duration_seconds", "only serves to take on another identity"),
    refused("external_id", "only serves to take on another identity"),
    refused("mfa_serial", "only serves to take on another identity"),
    refused("sso_session", "signs in with a token from a file"),
    refused("sso_start_url", "signs in with a token from a file"),
    refused("sso_region", "signs in with a token from a file"),
    refused("sso_account_id", "signs in with a token from a file"),
    refused("sso_role_name", "signs in with a token from a file"),
    refused("sso_registration_scopes", "signs in with a token from a file"),
    refused("login_session", "signs in with a token from a file"),
    refused("endpoint_url", "sends requests elsewhere; use s3Url in the configuration of the location"),
    refused("ignore_configured_endpoint_urls", "changes where requests go"),
    refused("services", "sends requests elsewhere"),
    refused("s3", "holds settings of its own"),
    refused("ec2_metadata_service_endpoint", "asks a server of its choice for an identity"),
    refused("ec2_metadata_service_endpoint_mode", "asks the node for an identity"),
    refused("ec2_metadata_v1_disabled", "changes how the node is asked for an identity"),
    refused("endpoint_discovery_enabled", "changes where requests go"),
    refused("use_dualstack_endpoint", "changes where requests go"),
    refused("use_fips_endpoint", "changes where requests go"),
    refused("s3_use_arn_region", "changes where requests go"),
    refused("s3_disable_multiregion_access_points", "changes where requests go"),
    refused("s3_disable_express_session_auth", "changes how requests are signed"),
    refused("aws_account_id", "changes where requests go"),
    refused("account_id_endpoint_mode", "changes where requests go"),
    refused("auth_scheme_preference", "changes how requests are signed"),
    refused("defaults_mode", "changes how Velero's requests are made"),
    refused("max_attempts", "changes how often Velero tries"),
    refused("retry_mode", "changes how often Velero tries"),
    refused("sdk_ua_app_id", "changes how Velero presents itself"),
    refused("disable_request_compression", "changes how Velero's requests are made"),
    refused("request_min_compression_size_bytes", "changes how Velero's requests are made"),
    refused("disable_clock_skew_correction", "changes how Velero's requests are made"),
    refused("request_checksum_calculation", "changes how Velero's requests are made"),
    refused("response_checksum_validation", "changes how Velero's requests are made"),
];

/// An access key and its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    profile: String,
    id: String,
    secret: String,
    token: Option<String>,
}

impl Keys {
    /// The section they are written under. It must be set in Velero's config, even if it is the default one: without a
    /// profile, the SDK prefers the keys in its environment.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    pub(super) fn render(&self) -> String {
        let Self { profile, id, secret, token } = self;
        let token = token.as_ref().map(|token| format!("{TOKEN} = {token}\n")).unwrap_or_default();
        format!("[{profile}]\n{ID} = {id}\n{SECRET} = {secret}\n{token}")
    }
}

/// Whether a profile can be called that.
pub fn is_profile(name: &str) -> bool {
    name.len() <= 64 && is_word(name, "_.-")
}

struct Section<'a> {
    line: usize,
    name: &'a str,
    values: BTreeMap<&'static str, &'a str>,
}

/// Reads the keys of one profile; every other section has to be harmless too.
pub(super) fn parse(bytes: &[u8], profile: Option<&str>) -> Result<Keys, CredentialRefusal> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in lines::speaking(bytes, &['#', ';'])? {
        if let Some(rest) = text.strip_prefix('[') {
            let name = header(line, rest)?;
            if sections.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
                return Err(CredentialRefusal::line(
                    line,
                    "begins a profile that is there already; keep one of them",
                ));
            }
            sections.push(Section { line, name, values: BTreeMap::new() });
            continue;
        }
        let (key, value) = property(line, text)?;
        let Some(section) = sections.last_mut() else {
            return Err(CredentialRefusal::key(
                Some(line),
                key,
                "stands before any profile; put [default] above it",
            ));
        };
        if section.values.insert(key, value).is_some() {
            return Err(CredentialRefusal::key(Some(line), key, "is there twice; keep one of them"));
        }
    }
    keys(&choose(sections, profile)?, profile)
}

/// `[name]`, or `[profile name]`, which the library takes for the same.
fn header(line: usize, rest: &str) -> Result<&str, CredentialRefusal> {
    let odd = || CredentialRefusal::line(line, "is not the name of a profile; write for example [default]");
    let (inside, after) = rest.split_once(']').ok_or_else(odd)?;
    let after = after.trim_matches([' ', '\t']);
    if !after.is_empty() && !after.starts_with(['#', ';']) {
        return Err(odd());
    }
    let words: Vec<&str> = inside.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [name] | ["profile", name] if is_profile(name) => Ok(name),
        [_, _] => Err(CredentialRefusal::line(line, "begins a section that is not a profile; take it out")),
        _ => Err(odd()),
    }
}

fn property(line: usize, text: &str) -> Result<(&'static str, &str), CredentialRefusal> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(CredentialRefusal::line(line, "is not of the form key = value"));
    };
    // The library does not mind how keys are capitalised.
    let key = key.trim_matches([' ', '\t']).to_ascii_lowercase();
    let Some(rule) = find(KEYS, &key) else {
        return Err(CredentialRefusal::unknown(Some(line), &key));
    };
    match rule.verdict {
        KeyHandling::Refused => Err(CredentialRefusal::ruled(Some(line), rule)),
        KeyHandling::Ignored => Ok((rule.key, "")),
        KeyHandling::Kept => usable(line, rule.key, value).map(|value| (rule.key, value)),
    }
}

/// The value as the library would read it, as long as it could not be read otherwise.
fn usable<'a>(line: usize, key: &str, raw: &'a str) -> Result<&'a str, CredentialRefusal> {
    let ends = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| raw.find(mark)).min();
    let value = raw[..ends.unwrap_or(raw.len())].trim_matches([' ', '\t']);
    let bare = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let value = bare.unwrap_or(value);
    let refuse = |why: &str| Err(CredentialRefusal::key(Some(line), key, why));
    if value.is_empty() {
        return refuse("is empty; without it Velero would use an identity of its own");
    }
    if value.len() > LONGEST_VALUE {
        return refuse("is too long");
    }
    let quoted = value.starts_with(['"', '\'']) || value.ends_with(['"', '\'']);
    if !is_plain(value) || quoted || value.starts_with(['#', ';']) {
        return refuse("holds blanks, quotation marks or a comment sign where none can be");
    }
    Ok(value)
}

fn choose<'a>(sections: Vec<Section<'a>>, profile: Option<&str>) -> Result<Section<'a>, CredentialRefusal> {
    let alone = sections.len() == 1 && profile.is_none();
    let wanted = profile.unwrap_or(DEFAULT);
    let none = match (sections.is_empty(), profile) {
        (true, _) => "holds no profile; write [default] and the two keys below it",
        (false, Some(_)) => "does not hold the profile that the configuration of the location names",
        (false, None) => {
            "holds several profiles and no [default]; name one as profile in the configuration of the location"
        }
    };
    sections
        .into_iter()
        .find(|section| alone || section.name == wanted)
        .ok_or_else(|| CredentialRefusal::whole(none))
}

fn keys(section: &Section, profile: Option<&str>) -> Result<Keys, CredentialRefusal> {
    let value = |key: &str| section.values.get(key).map(|value| (*value).to_owned());
    let required = |key: &str| {
        let why = "is missing from this profile; without it Velero would use an identity of its own";
        value(key).ok_or_else(|| CredentialRefusal::key(Some(section.line), key, why))
    };
    Ok(Keys {
        profile: profile.unwrap_or(DEFAULT).to_owned(),
        id: required(ID)?,
        secret: required(SECRET)?,
        token: value(TOKEN),
    })
}

#[cfg(test)]
#[path = "aws_tests.rs"]
mod tests;

//! Credentials are parsed, not copied.
//!
//! What a tenant puts into a Secret ends up as a file in Velero's pod, where the cloud's own library reads it. Those
//! SDKs can be made by such a file to run programs, to read other files, to ask other token services, or to do nothing,
//! upon which they go looking for the pod's own identity. So only a static credential is taken, field by field, and a
//! new file is generated from the fields: [`parse`], then [`Credential::render`].
//!
//! [`aws`], [`gcp`] and [`azure`] each hold a table of the keys their file can have; what is not in it is refused.

pub mod aws;
pub mod azure;
pub mod gcp;
mod lines;
#[cfg(test)]
mod properties;
mod refusal;

use std::fmt;

pub use refusal::CredentialRefusal;

use super::provider::Provider;
use super::table::Rule;

/// No credential is anywhere near this long.
pub const LARGEST_FILE: usize = 32 * 1024;
/// Session tokens are the longest values there are, and stay well below.
const LONGEST_VALUE: usize = 16 * 1024;

/// Every key of every provider's file, for the administrators' guide.
pub const TABLES: &[(&str, &[Rule])] =
    &[("aws", aws::KEYS), ("azure", azure::KEYS), ("gcp", gcp::KEYS), ("gcp types", gcp::TYPES)];

/// A static credential and nothing else.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Access key and secret key.
    Aws(aws::Keys),
    /// An account key, a service principal, or both.
    Azure(azure::Account),
    /// The key of a service account.
    Gcp(gcp::ServiceAccount),
}

/// Reads one credential. Where a file can hold several, `profile` says which, and the usual one is taken if nothing
/// is said.
pub fn parse(
    provider: Provider,
    bytes: &[u8],
    profile: Option<&str>,
) -> Result<Credential, CredentialRefusal> {
    if bytes.len() > LARGEST_FILE {
        return Err(CredentialRefusal::whole("is too long for a credential; 32 KiB are allowed"));
    }
    match provider {
        Provider::Aws => aws::parse(bytes, profile).map(Credential::Aws),
        Provider::Azure => azure::parse(bytes).map(Credential::Azure),
        Provider::Gcp => gcp::parse(bytes).map(Credential::Gcp),
    }
}

impl Credential {
    /// Generates the file from the parsed fields and nothing else.
    pub fn render(&self) -> String {
        match self {
            Self::Aws(keys) => keys.render(),
            Self::Azure(account) => account.render(),
            Self::Gcp(account) => account.render(),
        }
    }

    /// Whose credential it is.
    pub fn provider(&self) -> Provider {
        match self {
            Self::Aws(_) => Provider::Aws,
            Self::Azure(_) => Provider::Azure,
            Self::Gcp(_) => Provider::Gcp,
        }
    }
}

/// Debug output without the secret values.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.provider().name())
    }
}

/// Whether all of it is visible ASCII, none of it blank. Anything else could mean one thing here and another to the
/// library that reads the file.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether it is made of letters, digits and these.
fn is_word(text: &str, also: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

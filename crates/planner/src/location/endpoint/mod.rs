//! Where a location's bytes go: the address, in one spelling only.
//!
//! [`normalise`] reads a URL so narrowly that Go, the resolver and nacre cannot take it for different places; what
//! they could differ about is refused. [`objection`] says whether a tenant may send Velero there: `address` knows the
//! addresses nobody may name, `name` the names, and [`HostPattern`] what an administrator allows or denies.
//!
//! What a name resolves to is not looked at: it may change at any time, and is for egress policy to limit.

mod address;
mod name;
mod parse;
mod pattern;
mod rules;

use std::fmt;
use std::net::IpAddr;

pub use parse::normalise;
pub use pattern::HostPattern;
pub use rules::{EndpointPolicy, objection};

/// The scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// http.
    Http,
    /// https.
    Https,
}

/// The host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name, in lower case.
    Name(String),
    /// An address. An IPv4-mapped IPv6 address is converted to IPv4.
    Address(IpAddr),
}

/// An endpoint in its one spelling: equal endpoints are equal values, and print alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port, unless it is the usual one of the scheme.
    pub port: Option<u16>,
    /// What the path begins with: empty, or a slash and segments.
    pub path: String,
}

impl Endpoint {
    /// The usual place of a service, by name.
    pub(super) fn usual(name: impl Into<String>) -> Self {
        Self { scheme: Scheme::Https, host: Host::Name(name.into()), port: None, path: String::new() }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

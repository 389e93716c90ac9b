//! What an administrator writes to allow or deny hosts.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Host;
use crate::policy::matches;

/// One entry: a name in which a star stands for any run of characters, an address, or a network such as 10.0.0.0/8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// A name, or a pattern of names, in lower case.
    Name(String),
    /// One address.
    Address(IpAddr),
    /// All addresses that begin with the same bits.
    Network {
        /// Any address of it.
        base: IpAddr,
        /// How many bits.
        bits: u8,
    },
}

impl HostPattern {
    /// Whether the host is one of those meant.
    pub fn fits(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(pattern), Host::Name(name)) => matches(pattern, name),
            (Self::Address(wanted), Host::Address(address)) => wanted == address,
            (Self::Network { base, bits }, Host::Address(address)) => shares(*base, *address, *bits),
            _ => false,
        }
    }

    /// Whether it means this host and no other.
    pub fn names(&self, host: &Host) -> bool {
        let alone = match self {
            Self::Name(pattern) => !pattern.contains('*'),
            Self::Address(_) => true,
            Self::Network { .. } => false,
        };
        alone && self.fits(host)
    }
}

fn shares(base: IpAddr, address: IpAddr, bits: u8) -> bool {
    // A shift by the whole width is no shift at all in hardware; zero bits are shared by all.
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            let differ = base.to_bits() ^ address.to_bits();
            differ.checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            let differ = base.to_bits() ^ address.to_bits();
            differ.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let odd = || {
            format!(
                "{text:?} is neither a host, a pattern of hosts such as *.example.com, nor a network such as 10.0.0.0/8"
            )
        };
        if let Some((base, bits)) = text.split_once('/') {
            let base: IpAddr = base.parse().map_err(|_| odd())?;
            let most = if base.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(odd)?;
            return Ok(Self::Network { base, bits });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.to_ascii_lowercase();
        // A pattern that fits no host at all is a mistake: an address with a star, a URL, a port.
        let example = name.replace('*', "x");
        match super::parse::host(&example) {
            Ok(Host::Name(_)) => Ok(Self::Name(name)),
            _ => Err(odd()),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => f.write_str(pattern),
            Self::Address(address) => write!(f, "{address}"),
            Self::Network { base, bits } => write!(f, "{base}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, HostPattern};

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    fn host(text: &str) -> Host {
        text.parse().map_or_else(|_| Host::Name(text.to_owned()), Host::Address)
    }

    #[test]
    fn an_entry_fits_what_it_says() {
        for (entry, fitting, other) in [
            ("s3.example.com", "s3.example.com", "xs3.example.com"),
            ("*.Example.com", "a.b.example.com", "example.com"),
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "8.8.8.8", "2001:db8::1"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("::/0", "2001:db8::1", "8.8.8.8"),
            ("[2001:db8::1]", "2001:db8::1", "2001:db8::2"),
            ("*", "s3.example.com", "10.1.2.3"),
        ] {
            assert!(pattern(entry).fits(&host(fitting)), "{entry}");
            assert!(!pattern(entry).fits(&host(other)), "{entry}");
            assert_eq!(pattern(&pattern(entry).to_string()), pattern(entry));
        }
    }

    #[test]
    fn an_entry_is_written_as_it_is_read() {
        for text in ["*.shop.example", "192.0.2.7", "2001:db8::1", "10.0.0.0/8"] {
            assert_eq!(serde_json::to_value(pattern(text)).unwrap(), text);
        }
    }

    #[test]
    fn only_a_single_host_is_named() {
        assert!(pattern("minio.minio.svc").names(&host("minio.minio.svc")));
        assert!(pattern("10.1.2.3").names(&host("10.1.2.3")));
        assert!(!pattern("*.minio.svc").names(&host("minio.minio.svc")));
        assert!(!pattern("10.1.2.3/32").names(&host("10.1.2.3")));
    }

    #[test]
    fn what_fits_nothing_is_a_mistake() {
        for text in
            ["", "10.0.0.0/33", "10.0.0/8", "10.0.*.1", "https://x", "x:80", "a b", "x/8", "127.1", "*.5"]
        {
            assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        }
    }
}

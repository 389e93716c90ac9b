//! Addresses that no tenant may use, in every notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Single addresses at which clouds hand out identities and settings to whoever asks from within.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// What is wrong with an address, if anything is.
pub(super) fn forbidden(address: IpAddr) -> Option<&'static str> {
    worn(address).into_iter().find_map(|address| {
        if METADATA.contains(&address) {
            return Some("is where a cloud hands out identities");
        }
        match address {
            IpAddr::V4(address) => forbidden_v4(address),
            IpAddr::V6(address) => forbidden_v6(address),
        }
    })
}

/// Whether an address is in a private range. Pods, Services and nodes of a cluster have such addresses, and so may
/// another tenant's store.
pub(super) fn is_private(address: IpAddr) -> bool {
    worn(address).into_iter().any(|address| match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            // Shared addresses of carriers, and those for benchmarks, are used for pods too.
            address.is_private()
                || (first == 100 && (64..128).contains(&second))
                || (first == 198 && (18..20).contains(&second))
        }
        IpAddr::V6(address) => (0xfc00..=0xfdff).contains(&address.segments()[0]),
    })
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    let first = address.octets()[0];
    if address.is_loopback() {
        Some("is Velero's own pod")
    } else if address.is_link_local() {
        Some("is link-local, where clouds hand out identities")
    } else if first == 0 {
        Some("is no address to connect to")
    } else if first >= 224 {
        Some("is a multicast, broadcast or reserved address")
    } else {
        None
    }
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [first, second, ..] = address.segments();
    if address.is_loopback() {
        Some("is Velero's own pod")
    } else if address.is_unspecified() {
        Some("is no address to connect to")
    } else if (0xfe80..=0xfeff).contains(&first) {
        Some("is link-local, where clouds hand out identities")
    } else if first >= 0xff00 {
        Some("is a multicast address")
    } else if (first, second) == (0xfd00, 0xec2) {
        Some("is where a cloud hands out identities")
    } else {
        None
    }
}

/// The address itself, and every IPv4 address that one of the schemes for carrying such makes of it.
pub(super) fn worn(address: IpAddr) -> Vec<IpAddr> {
    let mut found = vec![address];
    let IpAddr::V6(v6) = address else {
        return found;
    };
    let segments = v6.segments();
    let pair = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let last = pair(segments[6], segments[7]);
    match segments {
        // ::1 and :: are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => {}
        // Compatible, mapped and translated; NAT64 with the well-known prefix and the local ones; ISATAP.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => found.push(last),
        // 6to4.
        [0x2002, high, low, ..] => found.push(pair(high, low)),
        // Teredo keeps the client's address with every bit turned, and its server's as it is.
        [0x2001, 0, ..] => found.extend([pair(!segments[6], !segments[7]), pair(segments[2], segments[3])]),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{forbidden, is_private};

    #[test]
    fn what_is_near_or_hands_out_identities_is_forbidden_in_any_dress() {
        for text in [
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "169.254.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd20:ce::254",
            "fd00:42::42",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:808:808:3:4:80ff:fffe",
            "2001:0:808:808:3:4:9b9b:9b37",
            "2001:0:a9fe:a9fe:3:4:f7f7:f7f7",
            "2001:db8::5efe:7f00:1",
            "2001:db8::200:5efe:a9fe:a9fe",
        ] {
            assert!(forbidden(text.parse().unwrap()).is_some(), "{text}");
        }
    }

    #[test]
    fn stores_at_home_and_abroad_may_be_named_and_those_at_home_are_private() {
        for (text, private) in [
            ("10.1.2.3", true),
            ("192.168.1.1", true),
            ("172.16.0.1", true),
            ("172.32.0.1", false),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("198.18.0.1", true),
            ("8.8.8.8", false),
            ("223.255.255.254", false),
            ("fd00::1", true),
            ("fc00::1", true),
            ("2001:db8::1", false),
            ("2001:4860::1", false),
            ("2002:808:808::", false),
            ("2002:a01:203::", true),
            ("64:ff9b::808:808", false),
            ("64:ff9b::a01:203", true),
            ("::ffff:10.1.2.3", true),
        ] {
            let address = text.parse().unwrap();
            assert_eq!((forbidden(address), is_private(address)), (None, private), "{text}");
        }
    }
}

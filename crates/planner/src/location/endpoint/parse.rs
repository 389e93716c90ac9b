//! Reading a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Endpoint, Host, Scheme};

/// Longer than any name can be, with room for a path.
const LONGEST: usize = 512;

/// Reads a URL, or says what is wrong with it.
///
/// Go's `net/url` takes much more than this: names of any characters, escapes in them, ports with leading zeros.
/// Resolvers then take for addresses what no parser here would: `127.1`, `0x7f.1`, `2130706433`. None of that is
/// needed to name a store.
pub fn normalise(url: &str) -> Result<Endpoint, String> {
    let wrong = |why: &str| Err(why.to_owned());
    if url.len() > LONGEST {
        return wrong("is too long for a URL");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return wrong("may hold only plain ASCII characters and no blanks");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return wrong("must begin with https:// or http://");
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return wrong("must begin with https:// or http://"),
    };
    if rest.contains('@') {
        return wrong("must not hold a user or password");
    }
    if rest.contains(['?', '#']) {
        return wrong("must not hold a query or fragment; leave out what follows the path");
    }
    if rest.contains(['%', '\\']) {
        return wrong("must not hold percent signs or backslashes; write the characters themselves");
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = host_and_port(authority)?;
    let usual = match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    Ok(Endpoint { scheme, host, port: port.filter(|port| *port != usual), path: plain_path(path)? })
}

fn host_and_port(authority: &str) -> Result<(Host, Option<u16>), String> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or("holds a bracket that is not closed")?;
        let address: Ipv6Addr =
            inside.parse().map_err(|_| "does not hold an IPv6 address in its brackets")?;
        let port = match after.strip_prefix(':') {
            Some(digits) => Some(port(digits)?),
            None if after.is_empty() => None,
            None => return Err("holds something after the bracket that is not a port".to_owned()),
        };
        return Ok((Host::Address(IpAddr::V6(address).to_canonical()), port));
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, digits)) => (name, Some(port(digits)?)),
        None => (authority, None),
    };
    Ok((host(name)?, port))
}

fn port(digits: &str) -> Result<u16, String> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let number = digits.parse().ok().filter(|_| plain);
    number.ok_or_else(|| "must have a port from 1 to 65535, without leading zeros, or none".to_owned())
}

/// A name or an IPv4 address. What ends in a number is an address to some readers, so it must be one to all.
pub(super) fn host(text: &str) -> Result<Host, String> {
    let name = text.to_ascii_lowercase();
    if name.is_empty() {
        return Err("must name a host".to_owned());
    }
    if name.ends_with('.') {
        return Err("must not have a dot at the end of the host".to_owned());
    }
    let labels: Vec<&str> = name.split('.').collect();
    if labels.last().is_some_and(|last| is_number(last)) {
        let address: Result<Ipv4Addr, _> = name.parse();
        return address.map(|address| Host::Address(address.into())).map_err(|_| {
            "must have an address written as four decimal numbers, or a name that does not end in a number"
                .to_owned()
        });
    }
    if name.len() > 253 || !labels.iter().all(|label| is_label(label)) {
        return Err(
            "must have a host of letters, digits and dashes, in parts joined by single dots".to_owned()
        );
    }
    Ok(Host::Name(name))
}

fn is_number(label: &str) -> bool {
    label.starts_with("0x") || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Segments of plain characters; a slash at the end means nothing.
fn plain_path(path: &str) -> Result<String, String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let plain = |segment: &str| {
        let fine = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.~".contains(&byte));
        fine && !segment.is_empty() && segment.bytes().any(|byte| byte != b'.')
    };
    if path.split('/').skip(1).all(plain) {
        return Ok(path.to_owned());
    }
    Err("must have a path of plain segments, or none".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, normalise};

    #[test]
    fn one_place_has_one_spelling() {
        for (given, wanted) in [
            ("https://S3.Example.COM", "https://s3.example.com"),
            ("HTTPS://s3.example.com:443/", "https://s3.example.com"),
            ("http://s3.example.com:80", "http://s3.example.com"),
            ("http://s3.example.com:443", "http://s3.example.com:443"),
            ("https://10.1.2.3:9000/", "https://10.1.2.3:9000"),
            ("https://[2001:DB8:0::1]:9000", "https://[2001:db8::1]:9000"),
            ("https://[::ffff:10.1.2.3]", "https://10.1.2.3"),
            ("https://store.example/storage/v1/", "https://store.example/storage/v1"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
            ("https://3com.example", "https://3com.example"),
        ] {
            let once = normalise(given).unwrap().to_string();
            assert_eq!(once, wanted);
            assert_eq!(normalise(&once).unwrap().to_string(), once);
        }
    }

    #[test]
    fn names_and_urls_are_as_long_as_they_may_be() {
        let host = |many: usize| format!("{}{}", "a.".repeat(125), "b".repeat(many));
        assert!(normalise(&format!("https://{}", host(3))).is_ok());
        assert!(normalise(&format!("https://{}", host(4))).is_err(), "254 characters");
        let url = |many: usize| format!("https://s3.example.com/{}", "a".repeat(many - 23));
        assert!(normalise(&url(LONGEST)).is_ok());
        assert!(normalise(&url(LONGEST + 1)).is_err());
    }

    #[test]
    fn what_readers_could_differ_about_is_refused() {
        for given in [
            // not a URL of a store
            "",
            "s3.example.com",
            "//s3.example.com",
            "ftp://s3.example.com",
            "file:///etc/passwd",
            "https://",
            "https:///x",
            "https:s3.example.com",
            "https:/s3.example.com",
            "http+unix://x",
            // a host that is not the host
            "https://good.example@evil.example",
            "https://good.example\\@evil.example",
            "https://good.example%2eevil.example",
            "https://good.example%00.evil.example",
            "https://a?b.example",
            "https://a#b.example",
            "https://good.example:80:90",
            "https://a b.example",
            "https://a\t.example",
            "https://a\n.example",
            "https://a,b.example",
            "https://a_b.example",
            "https://a..b",
            "https://.a.example",
            "https://-a.example",
            "https://a-.example",
            "https://a.example.",
            "https://a.example.:9000",
            "https://b\u{fc}cher.example",
            "https://a\u{3002}example",
            "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "https://127\u{2024}0.0.1",
            "https://\u{24}\u{7b}x\u{7d}",
            // an address in other words
            "https://2130706433",
            "https://0177.0.0.1",
            "https://0x7f.0.0.1",
            "https://0x7f000001",
            "https://127.1",
            "https://127.0.1",
            "https://127.0.0.1.",
            "https://127.0.0.01",
            "https://1.2.3.4.5",
            "https://256.1.1.1",
            "https://0",
            "https://a.0x7f",
            "https://a.1",
            "https://017700000001",
            "https://0X7F.1",
            "https://[::1%25eth0]",
            "https://[::1%eth0]",
            "https://[::1",
            "https://::1",
            "https://[127.0.0.1]",
            "https://[::1]9000",
            "https://[::ffff:127.1]",
            "https://[1::2::3]",
            // a port or path that is more than one
            "https://a.example:",
            "https://a.example:0",
            "https://a.example:080",
            "https://a.example:65536",
            "https://a.example:+80",
            "https://a.example:80x",
            "https://a.example//x",
            "https://a.example/../x",
            "https://a.example/x/./y",
            "https://a.example/...",
            "https://a.example/x y",
            "https://a.example/x;y",
        ] {
            assert!(normalise(given).is_err(), "{given:?}");
        }
        assert!(normalise(&format!("https://a.example/{}", "x".repeat(600))).is_err());
        assert!(normalise(&format!("https://{}.example", "x".repeat(64))).is_err());
    }
}

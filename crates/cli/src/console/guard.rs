//! What every request and every answer goes through: who may call this server at all, and what a browser may do with an
//! answer.

use axum::http::{HeaderMap, HeaderValue, Method, header};

/// Nothing inline, nothing from elsewhere, nothing framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Under which addresses the console is called.
#[derive(Clone, Debug)]
pub(super) enum Address {
    /// On this port of the loopback interface. Any other name that leads here was made to deceive a browser.
    Loopback(u16),
    /// Under this URL: scheme and host, with the port if it is not the scheme's.
    Url { scheme: String, host: String },
    /// Under any name: behind a proxy whose name nobody gave.
    Any,
}

impl Address {
    /// Reads `https://console.example.com`; nothing is any name.
    pub(super) fn of_url(url: &str) -> Result<Self, String> {
        let wrong = || format!("{url:?} is not a URL such as https://console.example.com");
        if url.is_empty() {
            return Ok(Self::Any);
        }
        let (scheme, host) = planner::install::web_address(url).ok_or_else(wrong)?;
        Ok(Self::Url { scheme: scheme.to_owned(), host: host.to_ascii_lowercase() })
    }

    /// Whether browsers reach the console by encrypted connections alone.
    fn is_encrypted(&self) -> bool {
        matches!(self, Self::Url { scheme, .. } if scheme == "https")
    }

    /// The name of the cookie. Cookies do not know ports: each console on a laptop has its own. With the prefix, browsers
    /// take it from this very host alone, and encrypted.
    pub(super) fn cookie(&self) -> String {
        match self {
            Self::Loopback(port) => format!("nacre-console-{port}"),
            Self::Url { .. } if self.is_encrypted() => "__Host-nacre-console".to_owned(),
            Self::Url { .. } | Self::Any => "nacre-console".to_owned(),
        }
    }

    /// The header that gives a browser its cookie; without a value, the one that deletes it.
    pub(super) fn set_cookie(&self, value: Option<&str>) -> Option<HeaderValue> {
        let secure = if self.is_encrypted() { "; Secure" } else { "" };
        let end = if value.is_none() { "; Max-Age=0" } else { "" };
        let (name, value) = (self.cookie(), value.unwrap_or_default());
        let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{end}");
        HeaderValue::from_str(&text).ok()
    }

    fn is_host(&self, host: &str) -> bool {
        match self {
            Self::Loopback(port) => [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
                .iter()
                .any(|own| own.eq_ignore_ascii_case(host)),
            Self::Url { host: own, .. } => own.eq_ignore_ascii_case(host),
            Self::Any => true,
        }
    }

    fn is_origin(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, from)) = origin.split_once("://") else { return false };
        match self {
            Self::Loopback(_) => scheme == "http" && from.eq_ignore_ascii_case(host),
            Self::Url { scheme: own, host } => scheme == own && from.eq_ignore_ascii_case(host),
            Self::Any => from.eq_ignore_ascii_case(host),
        }
    }

    /// Why a request is not answered; nothing if it is.
    pub(super) fn refuses(&self, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST).unwrap_or_default();
        if !self.is_host(host) {
            return Some("this console is not called that: open the link that it printed");
        }
        // Reading changes nothing, and another site cannot see the answer.
        let reads = [Method::GET, Method::HEAD].contains(method);
        let origin = text(header::ORIGIN);
        match origin {
            Some(origin) if !self.is_origin(origin, host) => Some("the form is on another site"),
            None if !reads => Some("a browser says where a form comes from, and this one did not"),
            _ => None,
        }
    }
}

/// Whether a link on another site led here. Browsers then send no cookie that is `SameSite=Strict`, so nothing is known of
/// who follows it.
pub(super) fn is_from_another_site(method: &Method, headers: &HeaderMap) -> bool {
    let is =
        |name: &str, value: &str| headers.get(name).is_some_and(|found| found.as_bytes() == value.as_bytes());
    *method == Method::GET && is("sec-fetch-site", "cross-site") && is("sec-fetch-mode", "navigate")
}

/// Tells the browser what it may do with an answer.
pub(super) fn protect(headers: &mut HeaderMap) {
    let fixed = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &Address, method: &Method, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        address.refuses(method, &headers).is_some()
    }

    #[test]
    fn a_page_runs_and_loads_nothing_that_is_not_the_consoles() {
        let mut headers = HeaderMap::new();
        protect(&mut headers);
        let policy = headers["content-security-policy"].to_str().unwrap();
        let directives: Vec<(&str, &str)> =
            policy.split(';').filter_map(|one| one.trim().split_once(' ')).collect();
        assert!(directives.contains(&("default-src", "'none'")), "{policy}");
        for (name, sources) in directives {
            assert!(["'self'", "'none'"].contains(&sources), "{name} {sources}");
        }
        assert!(policy.contains("base-uri 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(headers[header::CACHE_CONTROL], "no-store");
    }

    #[test]
    fn a_name_that_was_bound_to_the_loopback_address_is_not_ours() {
        let own = Address::Loopback(7000);
        assert!(!refused(&own, &Method::GET, "127.0.0.1:7000", None));
        assert!(!refused(&own, &Method::GET, "LOCALHOST:7000", None));
        for host in ["evil.example:7000", "127.0.0.1", "127.0.0.1:7001", "127.0.0.1.nip.io:7000", ""] {
            assert!(refused(&own, &Method::GET, host, None), "{host}");
        }
    }

    #[test]
    fn a_form_comes_from_the_same_origin() {
        let own = Address::Loopback(7000);
        let post = |origin| refused(&own, &Method::POST, "127.0.0.1:7000", origin);
        assert!(!post(Some("http://127.0.0.1:7000")));
        for origin in ["http://127.0.0.1:7001", "https://127.0.0.1:7000", "http://evil.example", "null"] {
            assert!(post(Some(origin)), "{origin}");
        }
        assert!(post(None));
    }

    #[test]
    fn in_a_cluster_it_has_the_name_it_was_given() {
        let own = Address::of_url("https://Console.example.com/").unwrap();
        assert!(own.is_encrypted() && !refused(&own, &Method::GET, "console.example.com", None));
        let host = "console.example.com";
        assert!(!refused(&own, &Method::POST, host, Some("https://console.example.com")));
        assert!(refused(&own, &Method::POST, host, Some("http://console.example.com")));
        assert!(refused(&own, &Method::GET, "other.example.com", None));
        let any = Address::Any;
        assert!(!refused(&any, &Method::POST, "a.example", Some("https://a.example")));
        assert!(refused(&any, &Method::POST, "a.example", Some("https://b.example")));
        for odd in ["console.example.com", "ftp://a", "https://", "https://a/b", "https://a b"] {
            assert!(Address::of_url(odd).is_err(), "{odd}");
        }
    }
}

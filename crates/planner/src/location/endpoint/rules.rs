//! Whether a tenant may send Velero to an endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Endpoint, Host, HostPattern, address, name};

/// Which endpoints an administrator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndpointPolicy {
    /// If there are any, no other host is allowed. An entry is a name in which a star stands for any run of
    /// characters, an address, or a network such as `10.0.0.0/8`. What is in here need not follow the rules about
    /// services of other namespaces and private addresses; a host written out in full need not follow any.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<HostPattern>,
    /// None of these is allowed, whatever else is set.
    #[schemars(with = "Vec<String>")]
    pub deny: Vec<HostPattern>,
    /// How the API server is reached. Not for administrators to say: the operator knows.
    #[serde(skip)]
    pub api_server: Vec<HostPattern>,
}

/// Why a tenant of this namespace may not use the endpoint, as the end of a sentence; none if they may.
///
/// A store whose buckets are hosts is asked for `bucket.host`: a bucket makes any name of it, so that has to be
/// allowed too.
pub fn objection(
    endpoint: &Endpoint,
    bucket: Option<&str>,
    namespace: &str,
    policy: &EndpointPolicy,
) -> Option<String> {
    let host = &endpoint.host;
    let listed = policy.allow.iter().any(|entry| entry.fits(host));
    let named = policy.allow.iter().any(|entry| entry.names(host));
    let bucket_host = match (bucket, host) {
        (Some(bucket), Host::Name(name)) => {
            Some(Host::Name(format!("{}.{name}", bucket.to_ascii_lowercase())))
        }
        _ => None,
    };
    let bucket_host = bucket_host.as_ref();
    // Whoever names what is forbidden to all means it; that still says nothing of other names.
    let forbidden = match never(host, policy) {
        Some(why) => (!named).then_some(why),
        None => bucket_host.and_then(|host| never(host, policy)),
    };
    denied(host, policy)
        .or_else(|| denied(bucket_host?, policy))
        .or(forbidden)
        .or_else(|| if listed { None } else { unlisted_or_theirs(host, bucket_host, namespace, policy) })
}

fn denied(host: &Host, policy: &EndpointPolicy) -> Option<String> {
    let meant = |entry: &HostPattern| match host {
        Host::Name(_) => entry.fits(host),
        Host::Address(ip) => address::worn(*ip).into_iter().any(|ip| entry.fits(&Host::Address(ip))),
    };
    policy.deny.iter().any(meant).then(|| "is not allowed by the administrators; use another".to_owned())
}

/// What no tenant has any business with.
fn never(host: &Host, policy: &EndpointPolicy) -> Option<String> {
    let (api_server, why) = match host {
        Host::Name(text) => (policy.api_server.iter().any(|entry| entry.fits(host)), name::forbidden(text)),
        Host::Address(ip) => {
            let meant = |ip| policy.api_server.iter().any(|entry| entry.fits(&Host::Address(ip)));
            (address::worn(*ip).into_iter().any(meant), address::forbidden(*ip))
        }
    };
    let why = if api_server { Some("is the host of the cluster's API server") } else { why }?;
    Some(format!("{why}; use the address of a store"))
}

fn unlisted_or_theirs(
    host: &Host,
    bucket_host: Option<&Host>,
    namespace: &str,
    policy: &EndpointPolicy,
) -> Option<String> {
    unlisted(policy).or_else(|| theirs(host, namespace)).or_else(|| theirs(bucket_host?, namespace))
}

fn unlisted(policy: &EndpointPolicy) -> Option<String> {
    let entries: Vec<String> = policy.allow.iter().map(ToString::to_string).collect();
    (!entries.is_empty())
        .then(|| format!("is not among what the administrators allow: {}", entries.join(", ")))
}

fn theirs(host: &Host, namespace: &str) -> Option<String> {
    match host {
        Host::Name(text) => name::foreign(text, namespace),
        Host::Address(ip) => address::is_private(*ip).then(|| {
            "is a private address, which may be inside the cluster; use the name of a store, or ask the administrators \
             to allow it in storageLocations.endpoints.allow"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{EndpointPolicy, HostPattern, objection};
    use crate::location::endpoint::normalise;

    fn patterns(list: &[&str]) -> Vec<HostPattern> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn ask(url: &str, bucket: &str, policy: &EndpointPolicy) -> Option<String> {
        objection(&normalise(url).unwrap(), Some(bucket), "shop", policy)
    }

    #[test]
    fn without_a_policy_only_what_is_near_is_refused() {
        let open = EndpointPolicy::default();
        for url in [
            "https://s3.example.com",
            "http://198.51.100.3:9000",
            "http://minio.shop.svc:9000",
            "http://minio.shop",
        ] {
            assert_eq!(ask(url, "bucket", &open), None, "{url}");
        }
        for url in [
            "http://169.254.169.254",
            "http://[::ffff:169.254.169.254]",
            "http://localhost:9000",
            "http://kubernetes.default.svc",
            "http://minio.other.svc",
            "http://minio:9000",
        ] {
            assert!(ask(url, "bucket", &open).is_some(), "{url}");
        }
    }

    /// H12: a ClusterIP, a pod's or a node's address as the endpoint of a location, in any notation
    #[test]
    fn h12_private_addresses_are_refused_until_the_policy_allows_them() {
        let open = EndpointPolicy::default();
        let urls = [
            "http://10.96.0.10",
            "http://192.168.7.7:9000",
            "http://[fd00:10::1]",
            "http://[::ffff:172.20.0.1]",
            "http://[64:ff9b::a60:a]",
            "http://100.64.3.4",
        ];
        for url in urls {
            let refused = ask(url, "bucket", &open).unwrap_or_default();
            assert!(refused.starts_with("is a private address"), "{url}: {refused}");
        }
        // With the rule off, which is an administrator's list, the same endpoints pass, and only those.
        let listed =
            EndpointPolicy { allow: patterns(&["10.0.0.0/8", "192.168.7.7"]), ..EndpointPolicy::default() };
        assert_eq!((ask(urls[0], "bucket", &listed), ask(urls[1], "bucket", &listed)), (None, None));
        assert!(ask("http://192.168.7.8:9000", "bucket", &listed).is_some());
    }

    #[test]
    fn the_words_say_what_would_do() {
        let open = EndpointPolicy::default();
        let reported = |url: &str| ask(url, "bucket", &open).unwrap();
        assert_eq!(reported("http://127.0.0.1"), "is Velero's own pod; use the address of a store");
        assert_eq!(
            reported("http://minio.other.svc"),
            "is a service of another namespace; only those of \"shop\" can be used, as name.shop.svc"
        );
    }

    #[test]
    fn a_bucket_cannot_make_a_name_of_it() {
        let open = EndpointPolicy::default();
        for (url, bucket) in [
            ("http://svc.cluster.local", "minio.other"),
            ("http://google.internal.example", "x"),
            ("http://default.svc", "kubernetes"),
            ("http://a.svc.cluster.local", "Minio.OTHER.svc"),
        ] {
            let refused = ask(url, bucket, &open).is_some();
            assert_eq!(refused, !url.ends_with("example"), "{url} {bucket}");
        }
        let google = EndpointPolicy { allow: patterns(&["*.internal"]), ..EndpointPolicy::default() };
        assert!(ask("http://google.internal", "metadata", &google).is_some());
        let exact = EndpointPolicy {
            allow: patterns(&["google.internal", "localhost"]),
            ..EndpointPolicy::default()
        };
        assert!(ask("http://google.internal", "metadata", &exact).is_some());
        assert_eq!(ask("http://google.internal", "backups", &exact), None);
        assert_eq!(ask("http://localhost:9000", "backups", &exact), None);
    }

    #[test]
    fn an_administrator_can_open_and_close() {
        let policy = EndpointPolicy {
            allow: patterns(&["*.example.com", "10.0.0.0/8", "minio.minio.svc", "127.0.0.1", "*.local"]),
            deny: patterns(&["bad.example.com", "10.9.0.0/16", "*.denied.example.com"]),
            api_server: patterns(&["10.0.0.1", "api.example.com"]),
        };
        for url in [
            "https://s3.example.com",
            "http://10.1.2.3",
            "http://minio.minio.svc:9000",
            "http://127.0.0.1:9000",
            "http://minio.other.svc.cluster.local",
        ] {
            assert_eq!(ask(url, "bucket", &policy), None, "{url}");
        }
        for url in [
            "https://bad.example.com",
            "http://10.9.1.1",
            "http://[64:ff9b::a09:101]",
            "http://10.0.0.1",
            "http://[64:ff9b::a00:1]",
            "https://api.example.com",
            "https://s3.amazonaws.com",
            "http://127.0.0.2",
            "http://kubernetes.default.svc.cluster.local",
            "https://denied.example.com",
        ] {
            assert!(ask(url, "bucket", &policy).is_some(), "{url}");
        }
    }
}

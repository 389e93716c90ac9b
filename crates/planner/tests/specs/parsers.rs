//! The parsers of tenants' input: no panic, the same answer for equivalent spellings, and no refusal that contains a
//! secret.

use api::velero::BackupStorageLocationSpec;
use api::{Duration, velero_name};
use planner::Policy;
use planner::location::endpoint::{EndpointPolicy, Host, normalise, objection};
use planner::location::{StoragePath, check_credential, check_spec, stored_prefix};
use proptest::prelude::*;
use serde_json::json;

/// Occurs in no refusal by chance.
const SECRET: &str = "Zq9Secret";

const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[a-zA-Z0-9.-]{1,20}",
        1 => "[0-9]{1,3}(\\.[0-9]{1,3}){1,3}",
        1 => "0x[0-9a-f]{1,8}(\\.[0-9]{1,3}){0,2}",
        1 => "\\[[0-9a-f:.]{0,20}\\]",
        1 => prop::sample::select(vec!["localhost", "LOCALHOST.", "169.254.169.254", "[::ffff:169.254.169.254]",
            "metadata.google.internal", "kubernetes.default.svc", "s3.shop.svc", "s3.victim.svc.cluster.local",
            "2130706433", "127.1", "s3.example.com", "[fe80::1]", "0.0.0.0"]).prop_map(str::to_owned),
        1 => "\\PC{0,10}",
    ]
}

fn url() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["http://", "https://", "HTTPS://", "ftp://", "//", "", "http:/"]);
    let port = prop::sample::select(vec!["", ":443", ":80", ":9000", ":0", ":99999", ":0443", ":"]);
    let path = prop_oneof![Just(String::new()), "/[a-z./%?#@]{0,10}"];
    (scheme, host(), port, path).prop_map(|(scheme, host, port, path)| format!("{scheme}{host}{port}{path}"))
}

fn location(spec: &serde_json::Value) -> Option<BackupStorageLocationSpec> {
    serde_json::from_value(spec.clone()).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_endpoint_is_read_the_same_however_it_is_written(url in url()) {
        if let Ok(endpoint) = normalise(&url) {
            let scheme = format!("{:?}", endpoint.scheme).to_lowercase();
            let port = endpoint.port.map(|port| format!(":{port}")).unwrap_or_default();
            let host = match &endpoint.host {
                Host::Name(name) => name.clone(),
                Host::Address(std::net::IpAddr::V6(address)) => format!("[{address}]"),
                Host::Address(address) => address.to_string(),
            };
            let again = normalise(&format!("{scheme}://{host}{port}{}", endpoint.path));
            prop_assert_eq!(again.as_ref().ok(), Some(&endpoint), "{}", url);
        }
    }

    #[test]
    fn no_spelling_of_a_forbidden_address_is_allowed(url in url()) {
        let Ok(endpoint) = normalise(&url) else { return Ok(()) };
        let objected = objection(&endpoint, None, "shop", &EndpointPolicy::default()).is_some();
        match &endpoint.host {
            Host::Address(std::net::IpAddr::V4(address)) => {
                let bad = address.is_loopback() || address.is_link_local() || address.is_unspecified();
                prop_assert!(objected || !bad, "{}", url);
            }
            Host::Address(std::net::IpAddr::V6(address)) => {
                let bad = address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local();
                prop_assert!(objected || !bad, "{}", url);
            }
            Host::Name(name) => {
                let foreign = name.contains(".victim.svc") || name == "localhost";
                prop_assert!(objected || !foreign, "{}", url);
                // Resolvers take such names for addresses.
                let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
                prop_assert!(objected || !last.chars().all(|c| c.is_ascii_digit()), "{}", url);
            }
        }
    }

    #[test]
    fn an_accepted_prefix_stays_below_the_namespace(prefix in "([a-zA-Z0-9._/-]|\\.\\.|//|\\PC){0,20}", bucket in "[a-z0-9.-]{0,12}") {
        let spec = json!({
            "provider": "aws", "objectStorage": {"bucket": bucket, "prefix": prefix}, "config": {"region": "eu-west-1"},
            "credential": {"name": "keys", "key": "cloud"},
        });
        let Some(spec) = location(&spec) else { return Ok(()) };
        if check_spec(&spec, "shop", &Policy::default().storage_locations).is_some() {
            return Ok(());
        }
        let stored = stored_prefix("shop", Some(&prefix));
        let parts: Vec<_> = stored.split('/').collect();
        prop_assert_eq!(parts[0], "shop");
        prop_assert!(parts.iter().all(|part| !["", ".", ".."].contains(part)) || prefix.is_empty(), "{}", stored);
        // Another tenant's place in the same bucket is never touched, the own one always.
        let own = StoragePath::asked(&spec, "shop");
        prop_assert!(!own.overlaps(&StoragePath::asked(&spec, "victim")));
        prop_assert!(own.overlaps(&own));
    }

    #[test]
    fn no_refusal_of_a_location_or_its_credential_repeats_a_secret(
        provider in prop::sample::select(vec!["aws", "gcp", "azure", "other", SECRET]),
        key in prop::sample::select(vec!["region", "s3Url", "profile", "credentialsFile", "caCertRef", "storageAccount", "x"]),
        value in "\\PC{0,8}",
        bytes in prop_oneof![
            Just(format!("[default]\naws_access_key_id={SECRET}\naws_secret_access_key={SECRET}\ncredential_process={SECRET}\n").into_bytes()),
            Just(format!("{{\"type\":\"external_account\",\"private_key\":\"{SECRET}\"}}").into_bytes()),
            "\\PC{0,40}".prop_map(|text| format!("{text}={SECRET}\n{SECRET}").into_bytes()),
            prop::collection::vec(any::<u8>(), 0..60).prop_map(|mut bytes| { bytes.extend(SECRET.bytes()); bytes }),
        ],
    ) {
        let spec = json!({
            "provider": provider, "objectStorage": {"bucket": "b"}, "config": {key: value},
            "credential": {"name": "keys", "key": "cloud"},
        });
        let Some(spec) = location(&spec) else { return Ok(()) };
        let policy = Policy::default().storage_locations;
        check_spec(&spec, "shop", &policy);
        if let Err(refusal) = check_credential(&spec, &bytes, "shop", &policy) {
            let reported = refusal.to_string();
            prop_assert!(!reported.contains(SECRET) || provider == SECRET, "{}", reported);
        }
    }

    #[test]
    fn a_name_is_a_name_whatever_it_is_made_of(namespace in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name in "[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?){0,4}") {
        let made = velero_name(&namespace, &name, UID);
        prop_assert!(made.len() <= 63 && made.ends_with(UID), "{}", made);
        prop_assert!(made.starts_with(|c: char| c.is_ascii_alphanumeric()));
        prop_assert!(!made.contains(".-"), "{}", made);
        prop_assert_eq!(velero_name(&namespace, &name, UID), made);
    }

    #[test]
    fn any_name_at_all_gives_one(namespace in "\\PC{0,80}", name in "\\PC{0,80}", uid in "\\PC{0,80}") {
        velero_name(&namespace, &name, &uid);
    }

    #[test]
    fn a_duration_is_what_it_says_or_nothing(text in prop_oneof!["[-+]?([0-9]{1,12}(\\.[0-9]{0,10})?(h|m|s|ms|us|µs|ns)){0,3}", "\\PC{0,12}"]) {
        let duration = Duration::from(text.as_str());
        prop_assert_eq!(duration.to_string(), text);
        if let Some(nanos) = duration.nanos() {
            prop_assert!(nanos.unsigned_abs() <= 1 << 63);
            prop_assert_eq!(duration.is_zero(), nanos == 0);
            let again = Duration::from(format!("{nanos}ns").as_str());
            prop_assert_eq!(again.nanos(), Some(nanos));
            prop_assert_eq!(again, duration);
        }
    }
}

//! The NetworkPolicy that keeps Velero's pods from addresses inside the cluster: endpoints are checked as they are
//! written, and a name can resolve to anything, at any time. Whatever Velero connects to, redirects included, has to pass
//! this.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::labels;
use api::velero::BackupStorageLocation;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};

use crate::Policy;
use crate::location::endpoint::{Host, HostPattern};
use crate::location::endpoint_of;
use crate::ownership::tenant_of;

/// The name of the NetworkPolicy.
pub const NAME: &str = "nacre-velero-egress";

/// Addresses inside a cluster, of its nodes, and at which clouds hand out identities. The rest of the world is open: a
/// NetworkPolicy knows no names.
const INSIDE_V4: [&str; 7] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
];
const INSIDE_V6: [&str; 3] = ["::1/128", "fc00::/7", "fe80::/10"];

/// Where Velero's pods may connect to, and what could not be expressed.
pub struct Egress {
    /// The policy.
    pub policy: NetworkPolicy,
    /// Endpoints by name of which nobody knows whether they resolve to an address inside.
    pub unknown: Vec<String>,
}

/// The policy for Velero's namespace: DNS, the API server, every address outside, and inside what the administrators
/// allow tenants or use themselves.
pub fn decide(
    namespace: &str,
    policy: &Policy,
    storage: &[BackupStorageLocation],
    api_server: &[(IpAddr, u16)],
) -> Egress {
    let mut networks = BTreeSet::new();
    let mut namespaces = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    let mut name = |text: &str| match service_namespace(text) {
        Some(found) => _ = namespaces.insert(found.to_owned()),
        None => _ = unknown.insert(text.to_owned()),
    };
    for entry in &policy.storage_locations.endpoints.allow {
        match entry {
            HostPattern::Address(address) => _ = networks.insert(alone(*address)),
            HostPattern::Network { base, bits } => _ = networks.insert(format!("{base}/{bits}")),
            HostPattern::Name(text) => name(text),
        }
    }
    let own = storage.iter().filter(|location| tenant_of(location).is_none());
    for endpoint in own.filter_map(|location| endpoint_of(&location.spec)) {
        match endpoint.host {
            Host::Address(address) => _ = networks.insert(alone(address)),
            Host::Name(text) => name(&text),
        }
    }
    let dns = json!({"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
        "to": [{"namespaceSelector": {}}]});
    let outside = json!({"to": [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": INSIDE_V4}}, {"ipBlock": {"cidr": "::/0", "except": INSIDE_V6}}]});
    let mut rules = vec![dns, outside];
    for (address, port) in api_server {
        rules.push(json!({"to": [{"ipBlock": {"cidr": alone(*address)}}], "ports": [{"protocol": "TCP", "port": port}]}));
    }
    let blocks = networks.iter().map(|network| json!({"ipBlock": {"cidr": network}}));
    let spaces = namespaces
        .iter()
        .map(|name| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}));
    let inside: Vec<Value> = blocks.chain(spaces).collect();
    if !inside.is_empty() {
        rules.push(json!({"to": inside}));
    }
    // Every pod there is Velero's or nacre's: the server, node agents, data movers, maintenance.
    let marks = json!({labels::PART_OF: labels::PART_OF_VALUE});
    let object = json!({"metadata": {"name": NAME, "namespace": namespace, "labels": marks},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}});
    Egress {
        policy: serde_json::from_value(object).unwrap_or_default(),
        unknown: unknown.into_iter().collect(),
    }
}

fn alone(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

/// The namespace of a name that means a Service: `name.namespace.svc`, with or without the cluster's domain.
fn service_namespace(name: &str) -> Option<&str> {
    let labels: Vec<&str> = name.trim_end_matches(".cluster.local").split('.').collect();
    match labels[..] {
        [_, namespace, "svc"] if !namespace.contains('*') => Some(namespace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::decide;
    use crate::Policy;

    /// H12: a name that resolves into the cluster, or a store that redirects there
    #[test]
    fn h12_velero_reaches_nothing_inside_but_what_the_administrators_allow() {
        let mut policy = Policy::default();
        let allow = ["10.9.0.0/16", "10.1.2.3", "minio.stores.svc", "*.example.com"];
        policy.storage_locations.endpoints.allow = allow.map(|text| text.parse().unwrap()).to_vec();
        let storage = |name: &str, url: &str, tenant: bool| {
            let mut object = json!({"metadata": {"name": name, "namespace": "velero"},
                "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}, "config": {"s3Url": url}}});
            if tenant {
                object["metadata"]["labels"] = json!({"openshift.io/oadp-nabsl-origin-nacuuid": "x"});
                object["metadata"]["annotations"] =
                    json!({"openshift.io/oadp-nabsl-origin-namespace": "shop"});
            }
            serde_json::from_value(object).unwrap()
        };
        let locations = [
            storage("own", "http://store.backups.svc:9000", false),
            storage("far", "https://s3.example.org", false),
            storage("tenants", "http://10.77.0.1", true),
        ];
        let made = decide("velero", &policy, &locations, &[("192.168.0.5".parse().unwrap(), 6443)]);
        let text = serde_json::to_string(&made.policy).unwrap();
        for allowed in ["10.9.0.0/16", "10.1.2.3/32", "\"stores\"", "\"backups\"", "192.168.0.5/32", "6443"] {
            assert!(text.contains(allowed), "{allowed}: {text}");
        }
        assert!(!text.contains("10.77.0.1"), "what a tenant wrote opens nothing");
        let outside = &serde_json::to_value(&made.policy).unwrap()["spec"]["egress"][1];
        assert!(outside.to_string().contains("169.254.0.0/16") && outside.to_string().contains("10.0.0.0/8"));
        assert_eq!(made.unknown, ["*.example.com", "s3.example.org"]);
    }
}

//! Names that no tenant may use, and names that only their own namespace may.
//!
//! Velero's pod looks names up with the cluster's search path, so `minio.shop` is the service `minio` of the namespace
//! `shop` to it, and `minio` one of the administrators' own.

/// Where clouds hand out identities, by name.
const METADATA: &[&str] = &[
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
    "metadata.azure.internal",
];

/// What is wrong with a name whoever asks, if anything is.
pub(super) fn forbidden(name: &str) -> Option<&'static str> {
    let labels: Vec<&str> = name.split('.').collect();
    match labels[..] {
        [.., "localhost" | "localdomain"] | ["ip6-localhost" | "ip6-loopback"] => Some("is Velero's own pod"),
        ["kubernetes" | "openshift"] | ["kubernetes" | "openshift", "default", ..] => {
            Some("is the cluster's API server")
        }
        _ if METADATA.contains(&name) => Some("is where a cloud hands out identities"),
        _ => None,
    }
}

/// What is wrong with a name for a tenant of this namespace, if it is looked up within the cluster.
pub(super) fn foreign(name: &str, namespace: &str) -> Option<String> {
    let labels: Vec<&str> = name.split('.').collect();
    let last = labels.len() - 1;
    let marked = |at: usize| at >= 2 || at == last;
    let theirs = |owner: &str| {
        (owner != namespace).then(|| {
            format!("is a service of another namespace; only those of {namespace:?} can be used, as name.{namespace}.svc")
        })
    };
    if labels.iter().enumerate().skip(1).any(|(at, label)| *label == "pod" && marked(at)) {
        return Some("is the name of a pod; use that of a service".to_owned());
    }
    let mut services =
        labels.iter().enumerate().skip(1).filter(|(at, label)| **label == "svc" && marked(*at)).peekable();
    if services.peek().is_some() {
        return services.find_map(|(at, _)| theirs(labels[at - 1]));
    }
    match labels[..] {
        [_] => Some(
            "has no dot, and would be looked up among the administrators' own services; write the full name"
                .to_owned(),
        ),
        [_, owner] if owner == namespace => None,
        [_, _] => Some(
            "has a single dot, and would be looked up as service.namespace; write the full name".to_owned(),
        ),
        [.., "cluster", "local"] => Some("is a name within the cluster that is no service".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{forbidden, foreign};

    #[test]
    fn some_names_are_for_nobody() {
        for name in [
            "localhost",
            "a.localhost",
            "localhost.localdomain",
            "ip6-localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "openshift.default.svc",
            "metadata.google.internal",
            "instance-data.ec2.internal",
        ] {
            assert!(forbidden(name).is_some(), "{name}");
        }
        for name in
            ["s3.example.com", "kubernetes.example.com", "localhost.example.com", "metadata.example.com"]
        {
            assert_eq!(forbidden(name), None, "{name}");
        }
    }

    #[test]
    fn services_are_for_their_own_namespace() {
        for name in [
            "minio.shop.svc",
            "minio.shop.svc.cluster.local",
            "minio-0.minio.shop.svc",
            "minio.shop",
            "shop.svc",
            "minio.shop.svc.corp.example",
            "s3.example.com",
            "svc.example.com",
            "pod.example.com",
            "a.pod.example.com",
            "a.svc.example.com",
        ] {
            assert_eq!(foreign(name, "shop"), None, "{name}");
        }
        for name in [
            "minio",
            "minio.other",
            "example.com",
            "minio.other.svc",
            "minio.other.svc.cluster.local",
            "other.svc",
            "minio-0.minio.other.svc",
            "minio.shop.svc.other.svc",
            "minio.other.svc.corp.example",
            "10-0-0-1.shop.pod",
            "10-0-0-1.shop.pod.cluster.local",
            "a.cluster.local",
            "shop.svc.x.svc",
            "minio.shop.x.svc",
        ] {
            assert!(foreign(name, "shop").is_some(), "{name}");
        }
    }
}

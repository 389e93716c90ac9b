//! The resources that a cluster serves, and the names that Velero takes for them.

use std::collections::BTreeSet;

use serde_json::Value;

/// One resource that the cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is what discovery reports")]
pub struct Served {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural, as in URLs.
    pub plural: String,
    /// The kind, as in manifests.
    pub kind: String,
    /// The singular and the short names.
    pub aliases: Vec<String>,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    /// Whether it can be listed.
    pub listable: bool,
    /// Whether objects of it can be got, created and deleted.
    pub writable: bool,
    /// Whether the version is the one that Velero uses: the first of its group that has the resource.
    pub preferred: bool,
}

/// All kinds of a cluster in one answer; Kubernetes before 1.30 has only the older format, which reads the same.
pub const DISCOVERY: &str = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2,\
                             application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2beta1";

/// Reads an answer of the API server; none if it is something else.
pub fn read(list: &Value) -> Option<Vec<Served>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for group in list["items"].as_array()? {
        let mut known = BTreeSet::new();
        for version in group["versions"].as_array().into_iter().flatten() {
            for resource in version["resources"].as_array().into_iter().flatten() {
                let short = resource["shortNames"].as_array().into_iter().flatten().map(text);
                let verbs = resource["verbs"].as_array();
                let can = |verb: &str| verbs.into_iter().flatten().any(|one| one == verb);
                found.push(Served {
                    group: text(&group["metadata"]["name"]),
                    version: text(&version["version"]),
                    plural: text(&resource["resource"]),
                    kind: text(&resource["responseKind"]["kind"]),
                    aliases: std::iter::once(text(&resource["singularResource"])).chain(short).collect(),
                    namespaced: resource["scope"] == "Namespaced",
                    listable: can("list"),
                    writable: ["get", "create", "delete"].into_iter().all(can),
                    // Versions are in order of preference. Some resources are in later ones only.
                    preferred: known.insert(resource["resource"].as_str()),
                });
            }
        }
    }
    Some(found)
}

impl Served {
    /// The group-resource, as Velero's filters spell it.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The apiVersion, as in manifests.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether it lives in namespaces and can be listed, in the version that Velero uses.
    pub const fn is_for_backups(&self) -> bool {
        self.namespaced && self.listable && self.preferred
    }

    /// Whether Velero backs it up: it does so only with what it could also create.
    pub const fn is_for_velero(&self) -> bool {
        self.is_for_backups() && self.writable
    }

    /// Whether Velero takes this name for it: plural, singular or short, alone or with the group or its beginning.
    pub fn is_called(&self, name: &str) -> bool {
        let (name, group) = name.split_once('.').unwrap_or((name, ""));
        let named = self.plural == name || self.aliases.iter().any(|alias| alias == name);
        named && self.group.starts_with(group)
    }
}

/// Whether Velero reads a name in a list of resources as a pattern.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

/// Whether a name in a list of resources selects a group-resource. Velero resolves a name to the first resource that is
/// called so, and matches patterns against the group-resource.
pub(crate) fn selects(name: &str, group_resource: &str, served: &[Served]) -> bool {
    if is_pattern(name) {
        return glob(name.as_bytes(), group_resource.as_bytes());
    }
    let lower = name.to_ascii_lowercase();
    match served.iter().find(|one| one.is_called(&lower)) {
        Some(one) => one.name() == group_resource,
        None => lower.trim_end_matches('.') == group_resource,
    }
}

/// Whether a pattern matches a whole text, as Velero's library does: a star also matches dots.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.first() {
        None => text.is_empty(),
        Some(b'*') => (0..=text.len()).any(|at| glob(&pattern[1..], &text[at..])),
        Some(b'?') => !text.is_empty() && glob(&pattern[1..], &text[1..]),
        Some(b'[') => match pattern.iter().position(|byte| *byte == b']') {
            Some(end) => text.first().is_some_and(|first| {
                one_of(&pattern[1..end], *first) && glob(&pattern[end + 1..], &text[1..])
            }),
            None => false,
        },
        Some(b'{') => match pattern.iter().position(|byte| *byte == b'}') {
            Some(end) => pattern[1..end]
                .split(|byte| *byte == b',')
                .any(|choice| glob(&[choice, &pattern[end + 1..]].concat(), text)),
            None => false,
        },
        Some(letter) => text.first() == Some(letter) && glob(&pattern[1..], &text[1..]),
    }
}

/// Whether a letter is in `abc`, `a-z` or `!abc`.
fn one_of(set: &[u8], letter: u8) -> bool {
    let (negated, set) = set.strip_prefix(b"!").map_or((false, set), |rest| (true, rest));
    let found = match set {
        [from, b'-', to] => (from..=to).contains(&&letter),
        letters => letters.contains(&letter),
    };
    found != negated
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn served(group: &str, plural: &str, aliases: &[&str]) -> Served {
        Served {
            group: group.to_owned(),
            plural: plural.to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            ..Served::default()
        }
    }

    #[test]
    fn a_resource_that_only_a_later_version_has_is_one_that_velero_uses() {
        let resource = |plural: &str| json!({"resource": plural, "scope": "Namespaced", "verbs": ["get", "list", "create", "delete"]});
        let found = read(&json!({"items": [{"metadata": {"name": "networking.istio.io"}, "versions": [
            {"version": "v1", "resources": [resource("gateways")]},
            {"version": "v1alpha3", "resources": [resource("gateways"), resource("envoyfilters")]},
        ]}]}));
        let used: Vec<_> = found.iter().flatten().filter(|one| one.is_for_velero()).collect();
        let used: Vec<_> = used.iter().map(|one| (one.plural.as_str(), one.version.as_str())).collect();
        assert_eq!(used, [("gateways", "v1"), ("envoyfilters", "v1alpha3")]);
    }

    #[test]
    fn a_name_means_the_first_resource_that_is_called_so() {
        let served = [
            served("", "events", &["ev"]),
            served("events.k8s.io", "events", &["ev"]),
            served("apps", "deployments", &["deploy"]),
        ];
        for (name, resource, selected) in [
            ("events", "events", true),
            ("ev", "events", true),
            ("events", "events.events.k8s.io", false),
            ("events.events", "events.events.k8s.io", true),
            ("Deploy", "deployments.apps", true),
            ("*", "deployments.apps", true),
            ("*.apps", "deployments.apps", true),
            ("*.velero.io", "backups.velero.io", true),
            ("{deployments,jobs}.apps", "deployments.apps", true),
            ("deployment[a-z].app?", "deployments.apps", true),
            ("deployment[!s].apps", "deployments.apps", false),
            ("gadgets.example.com", "gadgets.example.com", true),
        ] {
            assert_eq!(selects(name, resource, &served), selected, "{name} {resource}");
        }
    }
}

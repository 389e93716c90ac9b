//! What one RBAC rule allows, as Kubernetes' own authorizer reads it.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;

/// Something a subject asks to do, without saying to which object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural.
    pub resource: &'static str,
    /// What of the object; empty for the object itself.
    pub subresource: &'static str,
    /// What to do with it.
    pub verb: &'static str,
}

/// Which objects an allowed request may be about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Every object of the kind.
    All,
    /// Only objects of these names.
    Named(Vec<String>),
}

/// A rule over resources.
pub fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(owned(groups)),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

/// Which objects a rule lets this request be about, if any.
pub fn reach(rule: &PolicyRule, request: &Request) -> Option<Reach> {
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    let resources = rule.resources.as_deref().unwrap_or_default();
    let allowed = names_or_star(&rule.verbs, request.verb)
        && names_or_star(groups, request.group)
        && resources.iter().any(|resource| covers(resource, request));
    allowed.then(|| match rule.resource_names.as_deref() {
        None | Some([]) => Reach::All,
        Some(names) => Reach::Named(names.to_vec()),
    })
}

/// Whether some rule allows the request for every object.
pub fn allow(rules: &[PolicyRule], request: &Request) -> bool {
    rules.iter().any(|rule| reach(rule, request) == Some(Reach::All))
}

/// Whether two rule sets say the same, whatever their order and grouping.
pub fn same(left: &[PolicyRule], right: &[PolicyRule]) -> bool {
    left == right || atoms(left) == atoms(right)
}

fn names_or_star(words: &[String], wanted: &str) -> bool {
    words.iter().any(|word| word == "*" || word == wanted)
}

/// A rule names `machines`, `machines/start`, `*/start` for that part of every kind, or `*` for everything.
fn covers(named: &str, request: &Request) -> bool {
    match (named.split_once('/'), request.subresource) {
        _ if named == "*" => true,
        (None, "") => named == request.resource,
        (Some((resource, sub)), wanted) if !wanted.is_empty() => {
            sub == wanted && (resource == "*" || resource == request.resource)
        }
        _ => false,
    }
}

/// One single right. `None` where a rule does not narrow by object name.
type Atom<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

fn atoms(rules: &[PolicyRule]) -> BTreeSet<Atom<'_>> {
    rules.iter().flat_map(split).collect()
}

fn split(rule: &PolicyRule) -> Vec<Atom<'_>> {
    let names: Vec<Option<&str>> = match rule.resource_names.as_deref() {
        None | Some([]) => vec![None],
        Some(names) => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut found = Vec::new();
    for verb in &rule.verbs {
        for url in rule.non_resource_urls.iter().flatten() {
            found.push(("", url.as_str(), verb.as_str(), None));
        }
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                found.extend(
                    names.iter().map(|name| (group.as_str(), resource.as_str(), verb.as_str(), *name)),
                );
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: Request =
        Request { group: "kubevirt.io", resource: "virtualmachines", subresource: "", verb: "create" };
    const MIGRATE: Request =
        Request { group: "kubevirt.io", resource: "virtualmachines", subresource: "migrate", verb: "update" };

    #[test]
    fn a_resource_does_not_stand_for_its_subresources_but_a_star_does() {
        let plain = rule(&["kubevirt.io"], &["virtualmachines"], &["*"]);
        assert_eq!(reach(&plain, &CREATE), Some(Reach::All));
        assert_eq!(reach(&plain, &MIGRATE), None);
        assert_eq!(reach(&rule(&["*"], &["*"], &["update"]), &MIGRATE), Some(Reach::All));
        assert_eq!(reach(&rule(&["kubevirt.io"], &["*/migrate"], &["update"]), &MIGRATE), Some(Reach::All));
        assert_eq!(reach(&rule(&["kubevirt.io"], &["*/migrate"], &["create"]), &CREATE), None);
        assert_eq!(reach(&rule(&["apps"], &["*"], &["*"]), &CREATE), None);
    }

    #[test]
    fn names_narrow_a_rule() {
        let named = PolicyRule {
            resource_names: Some(vec!["db".to_owned()]),
            ..rule(&["kubevirt.io"], &["virtualmachines"], &["create"])
        };
        assert_eq!(reach(&named, &CREATE), Some(Reach::Named(vec!["db".to_owned()])));
        assert!(!allow(std::slice::from_ref(&named), &CREATE));
        assert!(!same(&[named], &[rule(&["kubevirt.io"], &["virtualmachines"], &["create"])]));
    }

    #[test]
    fn order_and_grouping_do_not_count_but_content_does() {
        let together = [rule(&["a"], &["x", "y"], &["get", "list"])];
        let apart = [rule(&["a"], &["y"], &["list", "get"]), rule(&["a"], &["x"], &["get", "list", "get"])];
        assert!(same(&together, &apart));
        assert!(!same(&together, &apart[..1]));
        assert!(!same(&together, &[rule(&["a"], &["*"], &["get", "list"])]));
    }
}

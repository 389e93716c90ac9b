//! Which extra fields of users are recorded: the policy's list, in a ConfigMap that the API server reads.
//!
//! The admission policies around the record take it as their parameter, so that a change of the list needs no new
//! installation and holds while nacre is down. Without the ConfigMap no further fields are recorded.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::policy::Policy;
use crate::{Action, config_map};

/// nacre's own ConfigMap in the administrators' namespace.
pub const LIST: &str = "nacre-requester";

/// The key in it.
pub(crate) const KEY: &str = "extra";

/// Between two keys of extra fields; no key that a policy may list has one.
pub(crate) const SEPARATOR: char = ',';

/// What OpenShift limits a token to, among the extra fields of a user. It is always recorded.
pub(crate) const SCOPES: &str = "scopes.authorization.openshift.io";

/// The keys that the policy lists, in the order of the record.
pub(crate) fn wanted(policy: &Policy) -> BTreeSet<&str> {
    policy.requester.extra.iter().map(String::as_str).filter(|key| *key != SCOPES).collect()
}

/// The keys that are recorded.
pub(crate) fn listed(found: Option<&ConfigMap>) -> Vec<String> {
    let text = found.and_then(|map| map.data.as_ref()?.get(KEY)).map(String::as_str).unwrap_or_default();
    text.split(SEPARATOR).filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// The write that makes the ConfigMap say what the policy says, if it does not.
pub(crate) fn write(policy: &Policy, namespace: &str, found: Option<&ConfigMap>) -> Option<Action> {
    let keys: Vec<&str> = wanted(policy).into_iter().collect();
    let text = keys.join(&SEPARATOR.to_string());
    let data = if keys.is_empty() { config_map::Data::new() } else { config_map::single(KEY, text) };
    config_map::ensure(namespace, LIST, data, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(keys: &[&str]) -> Policy {
        let mut policy = Policy::default();
        policy.requester.extra = keys.iter().map(|key| (*key).to_owned()).collect();
        policy
    }

    /// The ConfigMap after these policies, one after the other, and the number of writes.
    fn after(policies: &[&[&str]]) -> (Option<ConfigMap>, usize) {
        let (mut map, mut writes) = (None::<ConfigMap>, 0);
        for keys in policies {
            match write(&policy(keys), "velero", map.as_ref()) {
                None => continue,
                Some(Action::Create(object)) => map = serde_json::from_value(object.body).ok(),
                Some(Action::Patch(_, patch)) => {
                    let text = patch["data"][KEY].as_str();
                    let map = map.as_mut().expect("a patch changes something");
                    map.data = Some(text.map(|text| config_map::single(KEY, text)).unwrap_or_default());
                }
                other => panic!("{other:?}"),
            }
            writes += 1;
        }
        (map, writes)
    }

    #[test]
    fn the_list_is_written_when_it_changes_and_at_no_other_time() {
        let of = |policies: &[&[&str]]| {
            let (map, writes) = after(policies);
            (listed(map.as_ref()), writes)
        };
        assert_eq!(after(&[&[]]), (None, 0), "nothing to record needs no ConfigMap");
        let (both, one) = (["b".to_owned(), "a.b/c".to_owned()], ["b".to_owned()]);
        let sorted = [both[1].clone(), both[0].clone()].to_vec();
        assert_eq!(of(&[&["b", "a.b/c"], &["b", "a.b/c"]]), (sorted.clone(), 1));
        assert_eq!(of(&[&["b", "a.b/c"], &["a.b/c", "b", "b"]]), (sorted, 1), "another order is no change");
        assert_eq!(of(&[&["b", "a.b/c"], &["b"]]), (one.to_vec(), 2));
        assert_eq!(of(&[&["b"], &[], &[]]), (Vec::new(), 2));
    }

    #[test]
    fn scopes_are_recorded_anyway_and_not_twice() {
        assert_eq!(after(&[&[SCOPES]]), (None, 0));
    }

    #[test]
    fn what_somebody_else_wrote_is_no_list() {
        assert!(listed(None).is_empty());
        assert!(listed(Some(&ConfigMap::default())).is_empty());
        let odd = ConfigMap { data: Some(config_map::single(KEY, ",a,,")), ..ConfigMap::default() };
        assert_eq!(listed(Some(&odd)), ["a"]);
        assert!(write(&policy(&[]), "velero", Some(&odd)).is_some());
    }
}

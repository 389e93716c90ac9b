//! What may come back from storage that a tenant can write to. The tarball there may be forged, so nothing in it is
//! believed: only resources on the administrators' list come back, spelled in the one way Velero cannot misread.

use api::velero::RestoreSpec;

use super::check::field;
use crate::Refusal;
use crate::policy::{FromTenantStorage, never_from_tenants};

/// Other words for the resources that are allowed unless the policy says otherwise.
const SHORT: [(&str, &str); 17] = [
    ("cm", "configmaps"),
    ("svc", "services"),
    ("sa", "serviceaccounts"),
    ("pvc", "persistentvolumeclaims"),
    ("rc", "replicationcontrollers"),
    ("deploy", "deployments"),
    ("sts", "statefulsets"),
    ("ds", "daemonsets"),
    ("rs", "replicasets"),
    ("cj", "cronjobs"),
    ("ing", "ingresses"),
    ("hpa", "horizontalpodautoscalers"),
    ("pdb", "poddisruptionbudgets"),
    ("vm", "virtualmachines"),
    ("vms", "virtualmachines"),
    ("dv", "datavolumes"),
    ("po", "pods"),
];

/// What Velero reads as a pattern rather than as a name.
const PATTERN: [char; 8] = ['*', '?', '[', ']', '{', '}', '\\', '!'];

/// The resources to bring back, as group-resources; never none, since that would mean all.
pub(super) fn resources(spec: &RestoreSpec, policy: &FromTenantStorage) -> Result<Vec<String>, Refusal> {
    let allowed = allowed(policy);
    let asked = spec.included_resources.as_deref().unwrap_or_default();
    let mut wanted = allowed.clone();
    if !asked.is_empty() && !asked.iter().all(|name| name == "*") {
        let meant: Vec<_> = asked
            .iter()
            .map(|name| canonical(name, &allowed).ok_or(name))
            .collect::<Result<_, _>>()
            .map_err(|name| {
                let message = format!(
                    "{name:?} does not come back from your own storage; what does is {}",
                    allowed.join(", ")
                );
                Refusal::new(field("includedResources"), message)
            })?;
        wanted.retain(|name| meant.contains(&name.as_str()));
    }
    for name in spec.excluded_resources.iter().flatten() {
        if name.contains(PATTERN) {
            let message = format!("{name:?} is a pattern; from your own storage, name each resource");
            return Err(Refusal::new(field("excludedResources"), message));
        }
        let out = canonical(name, &allowed);
        wanted.retain(|name| Some(name.as_str()) != out);
    }
    if wanted.is_empty() {
        let message = "nothing is left to restore; name less to leave out";
        return Err(Refusal::new(field("excludedResources"), message));
    }
    Ok(wanted)
}

/// The names in a backup's lists that no restore brings back from such storage. A pattern names nothing in particular, and
/// a claim gets a new volume.
pub(crate) fn never_restored<'a>(named: &[&'a str], policy: &FromTenantStorage) -> Vec<&'a str> {
    let allowed = allowed(policy);
    let is_outside = |name: &&&str| {
        let volume =
            ["pv", "persistentvolume", "persistentvolumes"].contains(&name.to_ascii_lowercase().as_str());
        !volume && !name.contains(PATTERN) && canonical(name, &allowed).is_none()
    };
    named.iter().filter(is_outside).copied().collect()
}

/// The administrators' list. What can never be allowed is left out of it here too, however it got there.
fn allowed(policy: &FromTenantStorage) -> Vec<String> {
    let listed = policy.allowed_resources.iter().filter(|name| never_from_tenants(name).is_none());
    let mut names: Vec<_> = listed.map(|name| name.to_ascii_lowercase()).collect();
    names.extend(policy.pods_come_back().then(|| "pods".to_owned()));
    names.dedup();
    names
}

/// The one resource of the list that a user's word means: in capitals, with a dot too many, in the singular, short,
/// or without its group.
fn canonical<'a>(given: &str, allowed: &'a [String]) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    let given = given.strip_suffix('.').unwrap_or(&given);
    let (word, group) = given.split_once('.').map_or((given, None), |(word, group)| (word, Some(group)));
    let word = SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, long)| long);
    let fits = |entry: &&String| {
        let (plural, of) = entry.split_once('.').unwrap_or((entry, ""));
        let named = plural == word
            || plural.strip_suffix('s') == Some(word)
            || plural.strip_suffix("es") == Some(word);
        named && group.is_none_or(|group| group == of)
    };
    let exact = allowed.iter().find(|entry| *entry == given);
    let mut fitting = allowed.iter().filter(fits);
    let only = fitting.next().filter(|_| fitting.next().is_none());
    exact.or(only).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use api::velero::RestoreSpec;
    use serde_json::json;

    use super::{canonical, resources};
    use crate::policy::{FromTenantStorage, TenantPods};

    fn asking(included: &[&str], excluded: &[&str]) -> Result<Vec<String>, String> {
        let spec: RestoreSpec =
            serde_json::from_value(json!({"includedResources": included, "excludedResources": excluded}))
                .unwrap();
        resources(&spec, &FromTenantStorage::default()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_star_and_silence_mean_all_of_the_list_and_nothing_more() {
        let list = FromTenantStorage::default().allowed_resources;
        assert_eq!(asking(&[], &[]).unwrap(), list);
        assert_eq!(asking(&["*"], &[]).unwrap(), list);
        assert!(!list.iter().any(|name| name.starts_with("role") || name == "pods"));
    }

    #[test]
    fn every_spelling_of_an_allowed_resource_becomes_its_group_resource() {
        let list = FromTenantStorage::default().allowed_resources;
        for (given, meant) in [
            ("secrets", "secrets"),
            ("secrets.", "secrets"),
            ("Secrets", "secrets"),
            ("secret", "secrets"),
            ("cm", "configmaps"),
            ("deployments", "deployments.apps"),
            ("Deployment.apps", "deployments.apps"),
            ("deploy", "deployments.apps"),
            ("ingress", "ingresses.networking.k8s.io"),
            ("pvc", "persistentvolumeclaims"),
            ("vm", "virtualmachines.kubevirt.io"),
        ] {
            assert_eq!(canonical(given, &list), Some(meant), "{given}");
        }
        for outside in [
            "rolebindings",
            "rolebindings.rbac.authorization.k8s.io",
            "pods",
            "po",
            "sec*",
            "*",
            "{secrets}",
            "secrets.v1",
            "deployments.ap",
            "deployments.v1.apps",
            "",
            ".",
            "persistentvolumes",
        ] {
            assert_eq!(canonical(outside, &list), None, "{outside}");
        }
    }

    #[test]
    fn what_is_outside_is_refused_by_name() {
        let refusal = asking(&["secrets", "RoleBindings"], &[]).unwrap_err();
        assert!(refusal.starts_with("spec.restoreSpec.includedResources: \"RoleBindings\""), "{refusal}");
        assert!(refusal.contains("what does is configmaps, secrets"), "{refusal}");
    }

    #[test]
    fn what_is_left_out_is_taken_off_the_list_and_an_empty_list_is_never_made() {
        assert_eq!(asking(&["secrets", "cm"], &["Secret"]).unwrap(), ["configmaps"]);
        assert_eq!(asking(&["secrets"], &["foos.example.com"]).unwrap(), ["secrets"]);
        assert!(asking(&["secrets"], &["secrets"]).unwrap_err().contains("nothing is left"));
        assert!(asking(&[], &["sec*"]).unwrap_err().contains("pattern"));
    }

    #[test]
    fn what_can_never_be_allowed_is_not_whatever_the_policy_says() {
        let policy = FromTenantStorage {
            allowed_resources: ["roles.rbac.authorization.k8s.io", "{a,b}.c", "persistentvolumes", "secrets"]
                .map(str::to_owned)
                .to_vec(),
            pods: TenantPods::Baseline,
            ..FromTenantStorage::default()
        };
        assert_eq!(resources(&RestoreSpec::default(), &policy).unwrap(), ["secrets", "pods"]);
    }

    #[test]
    fn pods_come_back_by_default_where_the_api_server_holds_them_to_baseline() {
        let back = |pods, pods_are_fenced| {
            let policy = FromTenantStorage { pods, pods_are_fenced, ..FromTenantStorage::default() };
            resources(&RestoreSpec::default(), &policy).unwrap().contains(&"pods".to_owned())
        };
        assert!(back(TenantPods::Auto, true) && !back(TenantPods::Auto, false));
        assert!(back(TenantPods::Baseline, false) && !back(TenantPods::None, true));
    }
}

//! Sentences for tests: a small cluster's roles and bindings.

use k8s_openapi::{
    api::rbac::v1::{
        AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{ResourceExt, core::ObjectMeta};
use proptest::prelude::*;

use super::roles::{AGGREGATE, Era, Role};
use planner::kubevirt::{KUBEVIRT, MIGRATIONS, SUBRESOURCES};
use planner::rbac::{aggregate::settle, rules::rule};

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(format!("uid-of-{name}")),
        resource_version: Some("1".to_owned()),
        ..ObjectMeta::default()
    }
}

/// A plain role.
pub(crate) fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole { metadata: meta(name), rules: Some(rules), aggregation_rule: None }
}

/// A role that is made of others.
pub(crate) fn aggregated(name: &str) -> ClusterRole {
    let selector = LabelSelector {
        match_labels: Some([(format!("{AGGREGATE}{name}"), "true".to_owned())].into()),
        ..LabelSelector::default()
    };
    ClusterRole {
        aggregation_rule: Some(AggregationRule { cluster_role_selectors: Some(vec![selector]) }),
        ..cluster_role(name, Vec::new())
    }
}

/// Puts a label on a role.
pub(crate) fn labelled(all: &mut [ClusterRole], name: &str, key: &str, value: &str) {
    let role = all.iter_mut().find(|role| role.name_any() == name).unwrap();
    role.labels_mut().insert(key.to_owned(), value.to_owned());
}

/// Kubernetes' own roles and KubeVirt's four, settled. The old era had no role to migrate.
pub(crate) fn standard_roles(era: Era) -> Vec<ClusterRole> {
    let mut all = vec![
        cluster_role("cluster-admin", vec![rule(&["*"], &["*"], &["*"])]),
        cluster_role(
            "system:aggregate-to-edit",
            vec![
                rule(&[""], &["pods"], &["create", "delete", "update", "patch"]),
                rule(&[""], &["pods/eviction", "serviceaccounts/token"], &["create"]),
                rule(&[""], &["serviceaccounts"], &["impersonate"]),
            ],
        ),
        aggregated("admin"),
        aggregated("edit"),
        aggregated("view"),
    ];
    labelled(&mut all, "system:aggregate-to-edit", "rbac.authorization.k8s.io/aggregate-to-edit", "true");
    labelled(&mut all, "view", "rbac.authorization.k8s.io/aggregate-to-edit", "true");
    labelled(&mut all, "edit", "rbac.authorization.k8s.io/aggregate-to-admin", "true");
    for role in Role::ALL.into_iter().filter(|role| era == Era::Current || *role != Role::Migrate) {
        let object = role.object(era);
        all.push(ClusterRole {
            metadata: ObjectMeta { labels: object.metadata.labels, ..meta(role.name()) },
            ..object
        });
    }
    settle(&all)
}

/// `user:alice`, `group:devs` or `sa:shop:robot`.
pub(crate) fn subject(text: &str) -> Subject {
    let words: Vec<&str> = text.split(':').collect();
    match words.as_slice() {
        ["sa", namespace, name] => Subject {
            kind: "ServiceAccount".to_owned(),
            name: (*name).to_owned(),
            namespace: Some((*namespace).to_owned()),
            api_group: None,
        },
        [kind, rest @ ..] => Subject {
            kind: if *kind == "user" { "User" } else { "Group" }.to_owned(),
            name: rest.join(":"),
            namespace: None,
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
        },
        [] => Subject::default(),
    }
}

fn role_ref(role: &str) -> RoleRef {
    let (kind, name) = role.strip_prefix("role/").map_or(("ClusterRole", role), |name| ("Role", name));
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// A binding in a namespace.
pub(crate) fn bound(namespace: &str, name: &str, role: &str, who: &[&str]) -> RoleBinding {
    RoleBinding {
        metadata: ObjectMeta { namespace: Some(namespace.to_owned()), ..meta(name) },
        role_ref: role_ref(role),
        subjects: Some(who.iter().map(|who| subject(who)).collect()),
    }
}

/// A binding everywhere.
pub(crate) fn bound_everywhere(name: &str, role: &str, who: &[&str]) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: meta(name),
        role_ref: role_ref(role),
        subjects: Some(who.iter().map(|who| subject(who)).collect()),
    }
}

fn words(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(from.to_vec(), 1..=from.len())
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

/// Any rule, often one that has to do with migrations.
pub(crate) fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let groups = words(&[KUBEVIRT, SUBRESOURCES, "snapshot.kubevirt.io", "", "*"]);
    let resources =
        words(&[MIGRATIONS, "virtualmachines", "virtualmachines/migrate", "*/migrate", "pods", "*"]);
    let verbs = words(&["get", "watch", "create", "update", "deletecollection", "*"]);
    let names = prop::option::weighted(0.2, words(&["a", "b"]));
    let on_resources =
        (groups, resources, verbs, names).prop_map(|(groups, resources, verbs, names)| PolicyRule {
            api_groups: Some(groups),
            resources: Some(resources),
            verbs,
            resource_names: names,
            ..PolicyRule::default()
        });
    let on_urls = words(&["/metrics", "*"]).prop_map(|urls| PolicyRule {
        non_resource_urls: Some(urls),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    });
    prop_oneof![8 => on_resources, 1 => on_urls]
}

//! A fence around a Velero for tenants alone, whatever it works on and whatever labels say. RBAC keeps it in tenants'
//! namespaces; these policies say what it may write there. Velero's own namespace is exempt: the pods of its data movers
//! mount folders of the node.
//!
//! The API server does not put admission policies and webhooks themselves under such policies. There RBAC alone holds.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::baseline::{PODS, at_baseline};
use super::restored::{IN_NAMESPACE, RESOURCE, among};
use super::sources::{kinds, of_own_namespace};
use crate::dedicated::VELERO_ACCOUNT;
use crate::fence;
use crate::vap::{Draft, cel::list};

/// Who may do what, and what the API server asks and serves.
const NOT_FOR_VELERO: [&str; 6] = [
    "rbac.authorization.k8s.io",
    "authorization.openshift.io",
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "apiextensions.k8s.io",
    "certificates.k8s.io",
];

/// What Velero writes without a namespace: volumes that were restored are bound to claims, and snapshots have contents.
const WITHOUT_NAMESPACE: [&str; 2] = ["persistentvolumes", "volumesnapshotcontents.snapshot.storage.k8s.io"];

pub(super) fn policies(namespace: &str) -> [ValidatingAdmissionPolicy; 3] {
    [
        objects(namespace),
        at_baseline(
            over_all("nacre-dedicated-pods", &["CREATE", "UPDATE"], &PODS, namespace),
            "pods that this Velero creates are at Pod Security level baseline",
        ),
        of_own_namespace(over_all("nacre-dedicated-sources", &["CREATE", "UPDATE"], &kinds(), namespace)),
    ]
}

/// A policy over what Velero does to these kinds outside its own namespace.
fn over_all(name: &'static str, operations: &[&str], kinds: &[(&str, &[&str])], namespace: &str) -> Draft {
    let velero = format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{VELERO_ACCOUNT}'");
    // One condition, which ends at the user's name: the API server would evaluate a second one whatever the first says.
    Draft::over(name, operations, kinds)
        .only_if("velero-elsewhere", format!("{velero} && {IN_NAMESPACE} != '{namespace}'"))
}

/// What is refused in a namespace, by group and plural. About other kinds the policy is not evaluated: it would be at
/// every write in the cluster, whoever writes.
fn refused() -> Vec<(String, String)> {
    let groups = NOT_FOR_VELERO.map(|group| (group.to_owned(), "*".to_owned()));
    let out = fence::out_of_restores().into_iter().map(|resource| match resource.split_once('.') {
        Some((plural, group)) => (group.to_owned(), plural.to_owned()),
        None => (String::new(), resource),
    });
    let mut all: Vec<_> = groups.into_iter().chain(out).collect();
    let whole: Vec<_> = all.iter().filter(|(_, plural)| plural == "*").cloned().collect();
    all.retain(|one| one.1 == "*" || !whole.iter().any(|(group, _)| *group == one.0));
    all
}

fn objects(namespace: &str) -> ValidatingAdmissionPolicy {
    let creates = "request.operation == 'CREATE'";
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let refused = refused();
    let plurals: Vec<[&str; 1]> = refused.iter().map(|(_, plural)| [plural.as_str()]).collect();
    let groups = refused.iter().map(|(group, _)| group.as_str());
    let kinds: Vec<(&str, &[&str])> = groups.zip(plurals.iter().map(<[&str; 1]>::as_slice)).collect();
    over_all("nacre-dedicated-velero", &operations, &kinds, namespace)
        .and_cluster_scoped(&operations)
        .with("resource", RESOURCE)
        .demand(
            "variables.resource != 'namespaces'",
            "this Velero is for tenants alone, and neither creates, changes nor deletes namespaces",
        )
        .demand(
            format!("{IN_NAMESPACE} != '' || variables.resource in {}", list(&WITHOUT_NAMESPACE)),
            "this Velero is for tenants alone, and writes nothing without a namespace but volumes and contents of snapshots",
        )
        .demand(
            format!("!({creates}) || variables.resource != '{}'", WITHOUT_NAMESPACE[0]),
            "this Velero is for tenants alone, and creates no PersistentVolumes: claims get theirs from their storage class",
        )
        .demand(
            format!("!(request.resource.group in {})", list(&NOT_FOR_VELERO)),
            "this Velero is for tenants alone, and gives nobody permissions",
        )
        .demand(
            format!("!({creates}) || !{}", among(&fence::out_of_restores())),
            "objects of this kind do not come back by a tenant's restore",
        )
        .done()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::{Value, json};

    use super::{objects, policies};
    use crate::vap::harness::Ask;

    const VELERO: &str = "system:serviceaccount:velero:velero";

    fn passes(ask: &Ask) -> bool {
        policies("velero").iter().all(|policy| ask.passes(policy))
    }

    fn by_velero(object: Value, (group, plural): (&'static str, &'static str)) -> Ask {
        Ask::create(object).of(group, plural).by(VELERO)
    }

    #[test]
    fn velero_writes_what_tenants_may_have_in_tenants_namespaces() {
        for resource in [("", "configmaps"), ("apps", "deployments"), ("", "persistentvolumeclaims")] {
            assert!(passes(&by_velero(json!({"metadata": {}}), resource)), "{resource:?}");
        }
    }

    #[test]
    fn a7_a9_h3_nothing_without_a_namespace_and_nobodys_permissions() {
        let cluster_wide = [
            ("", "namespaces"),
            ("", "persistentvolumes"),
            ("storage.k8s.io", "storageclasses"),
            ("rbac.authorization.k8s.io", "clusterrolebindings"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("apiregistration.k8s.io", "apiservices"),
        ];
        for resource in cluster_wide {
            let ask = by_velero(json!({"metadata": {}}), resource).inside("", "");
            assert!(!passes(&ask), "{resource:?}");
            // The planted weakness: with these demands switched off it would be created.
            let demands: &[&str] = match resource {
                ("", "namespaces") => {
                    &["nor deletes namespaces", "nothing without a namespace", "do not come back"]
                }
                ("", "persistentvolumes") => &["creates no PersistentVolumes"],
                ("storage.k8s.io", _) => &["nothing without a namespace"],
                _ => &["nothing without a namespace", "gives nobody permissions"],
            };
            assert!(
                ask.is_refused_only_by(&objects("velero"), demands),
                "{:?}",
                ask.unmet(&objects("velero"))
            );
            assert!(passes(&ask.by("ann")), "of others nothing is demanded");
        }
        for resource in
            [("rbac.authorization.k8s.io", "rolebindings"), ("oadp.openshift.io", "nonadminbackups")]
        {
            let ask = by_velero(json!({"metadata": {}}), resource);
            assert!(!passes(&ask), "{resource:?}");
            let demands: &[&str] = match resource.1 {
                "rolebindings" => &["gives nobody permissions"],
                _ => &["do not come back"],
            };
            assert!(
                ask.is_refused_only_by(&objects("velero"), demands),
                "{:?}",
                ask.unmet(&objects("velero"))
            );
        }
    }

    /// Whether the API server would ask the policy about this, by its rules.
    fn is_asked(policy: &ValidatingAdmissionPolicy, (group, plural): (&str, &str), namespaced: bool) -> bool {
        let constraints = policy.spec.as_ref().and_then(|spec| spec.match_constraints.as_ref()).unwrap();
        let has = |list: &Option<Vec<String>>, one: &str| {
            list.iter().flatten().any(|found| [one, "*", "*/*"].contains(&found.as_str()))
        };
        constraints.resource_rules.iter().flatten().any(|rule| {
            let scope = rule.scope.as_deref() == Some("*") || !namespaced;
            scope && has(&rule.api_groups, group) && has(&rule.resources, plural)
        })
    }

    #[test]
    fn whatever_is_refused_is_asked_about_and_what_everybody_writes_is_not() {
        let policy = objects("velero");
        for group in super::NOT_FOR_VELERO.into_iter().chain(["oadp.openshift.io", "velero.io"]) {
            assert!(is_asked(&policy, (group, "whatever"), true), "{group}");
        }
        assert!(is_asked(&policy, ("kubevirt.io", "virtualmachineinstancemigrations"), true));
        for kind in [("", "namespaces"), ("", "persistentvolumes"), ("example.com", "anything")] {
            assert!(is_asked(&policy, kind, false), "{kind:?}");
        }
        for kind in
            [("", "configmaps"), ("", "events"), ("coordination.k8s.io", "leases"), ("apps", "deployments")]
        {
            assert!(!is_asked(&policy, kind, true), "{kind:?}");
            let ask = by_velero(json!({"metadata": {}}), kind);
            assert!(ask.passes(&policy), "it would not be refused either: {kind:?}");
        }
    }

    #[test]
    fn a14_the_labels_of_the_tenants_own_namespace_stay() {
        let space = json!({"metadata": {"name": "shop"}});
        let ask = Ask::update(space.clone(), space).of("", "namespaces").by(VELERO);
        assert!(!passes(&ask), "a Namespace counts as being in itself");
        assert!(passes(&ask.by("ann")));
    }

    #[test]
    fn snapshots_have_contents_without_a_namespace() {
        let content = json!({"metadata": {}, "spec": {}});
        let kind = ("snapshot.storage.k8s.io", "volumesnapshotcontents");
        assert!(by_velero(content.clone(), kind).inside("", "").passes(&objects("velero")));
        let ask = Ask::update(content.clone(), content).of(kind.0, kind.1).inside("", "").by(VELERO);
        assert!(ask.passes(&objects("velero")));
    }

    #[test]
    fn volumes_that_were_restored_are_bound_to_claims() {
        let volume = json!({"metadata": {}, "spec": {}});
        let ask = Ask::update(volume.clone(), volume).of("", "persistentvolumes").inside("", "").by(VELERO);
        assert!(ask.passes(&objects("velero")));
    }

    #[test]
    fn a15_a_privileged_pod_comes_back_from_no_storage() {
        let context = json!({"privileged": true});
        let pod =
            json!({"metadata": {}, "spec": {"containers": [{"name": "a", "securityContext": context}]}});
        let ask = by_velero(pod, ("", "pods"));
        assert!(!passes(&ask));
        // The pods of data movers mount folders of the node.
        assert!(passes(&ask.inside("velero", "velero-uid")));
    }

    #[test]
    fn h1_no_source_in_another_namespace() {
        let source = json!({"pvc": {"namespace": "victim", "name": "disk"}});
        let volume = json!({"metadata": {}, "spec": {"source": source}});
        assert!(!passes(&by_velero(volume, ("cdi.kubevirt.io", "datavolumes"))));
    }
}

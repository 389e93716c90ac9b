//! What `--fence` does to Velero itself: it must be set up for it, and it loses cluster-admin.

use api::Kind;
use serde_json::{Value, json};

use super::found::{Found, is_ours, named, target};
use super::settings::Settings;
use super::wide::{Wide, binds_velero};
use crate::Action;
use crate::dedicated::{BINDING, NO_CACHE, VELERO_ACCOUNT};

/// What was seen of Velero.
#[derive(Clone, Debug, Default)]
pub struct VeleroFound {
    /// Its Deployment.
    pub deployment: Option<Found>,
    /// Every ClusterRoleBinding.
    pub bindings: Vec<Found>,
    /// Every ClusterRole.
    pub roles: Vec<Found>,
}

/// Velero's Deployment, as its own installer names it.
pub const DEPLOYMENT: &str = "velero";

/// What is done to Velero, what should be known, and what stands in the way.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FenceSteps {
    pub(super) actions: Vec<Action>,
    pub(super) remarks: Vec<String>,
    pub(super) refusals: Vec<String>,
}

/// Decides what `--fence` does to Velero.
pub(super) fn steps(settings: &Settings, velero: Option<&VeleroFound>) -> FenceSteps {
    let mut steps = FenceSteps::default();
    let Some(velero) = velero.filter(|_| settings.fence) else { return steps };
    steps.refusals.extend(not_prepared(&settings.namespace, velero.deployment.as_ref()));
    if let Some((action, remark)) = velero.deployment.as_ref().and_then(limited) {
        steps.actions.push(action);
        steps.remarks.push(remark);
    }
    let namespace = settings.namespace.as_str();
    for binding in velero.bindings.iter().filter(|binding| !is_ours(binding)) {
        let Some(wide) = binds_velero(binding, &velero.roles, namespace) else { continue };
        let (what, role) = (named(binding), binding.body["roleRef"]["name"].as_str().unwrap_or_default());
        match wide {
            Wide::Alone => {
                steps.actions.push(Action::Delete(target(binding)));
                steps.remarks.push(format!(
                    "{what} gave Velero the role {role} in all namespaces and goes; to give it back: kubectl create clusterrolebinding \
                     {} --clusterrole={role} --serviceaccount={namespace}:{VELERO_ACCOUNT}",
                    binding.name()
                ));
            }
            Wide::WithOthers => steps.refusals.push(format!(
                "{what} gives Velero and others the role {role}: take service account {VELERO_ACCOUNT} of {namespace} out of it"
            )),
            // Without it other accounts would lose the role, and those who need it are known to people alone.
            Wide::InGroup(group) => steps.refusals.push(format!(
                "{what} gives group {group}, which Velero is in, the role {role}: bind it to those that need it, without \
                 service account {VELERO_ACCOUNT} of {namespace}, and take the group out"
            )),
        }
    }
    steps
}

/// Why this Velero cannot work without cluster-admin.
fn not_prepared(namespace: &str, deployment: Option<&Found>) -> Option<String> {
    let Some(deployment) = deployment else {
        return Some(format!(
            "there is no deployment/{DEPLOYMENT} in {namespace}: install a Velero for tenants there first, with `velero install \
             --namespace {namespace} {NO_CACHE} ...`"
        ));
    };
    let pod = &deployment.body["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().unwrap_or("default");
    if account != VELERO_ACCOUNT {
        return Some(format!(
            "{} runs as service account {account}; --fence gives its permissions to {VELERO_ACCOUNT}",
            named(deployment)
        ));
    }
    let arguments = pod["containers"][0]["args"].as_array();
    let mut set = arguments.into_iter().flatten().filter_map(Value::as_str);
    let is_set = set.any(|one| one == NO_CACHE || one == format!("{NO_CACHE}=true"));
    let new = json!(format!("{NO_CACHE}=true"));
    let (field, value) = match arguments {
        Some(_) => ("args/-", new),
        None => ("args", json!(["server", new])),
    };
    let patch =
        json!([{"op": "add", "path": format!("/spec/template/spec/containers/0/{field}"), "value": value}]);
    (!is_set).then(|| {
        format!(
            "{} runs without {NO_CACHE}, and would wait for ever in a restore: kubectl patch deployment {DEPLOYMENT} -n {namespace} \
             --type json -p '{patch}'",
            named(deployment)
        )
    })
}

/// What Velero's container may use at most, where nobody said otherwise. It unpacks whole backups, and tenants write them:
/// beyond this Kubernetes restarts Velero, and before it would be the node that runs out.
const LIMITS: [(&str, &str); 2] = [("memory", "1Gi"), ("ephemeral-storage", "10Gi")];

/// Gives Velero's container the limits that it is without.
fn limited(deployment: &Found) -> Option<(Action, String)> {
    let mut containers = deployment.body["spec"]["template"]["spec"]["containers"].clone();
    let limits = &containers.get(0)?["resources"]["limits"];
    let missing: Vec<_> = LIMITS.into_iter().filter(|(resource, _)| limits[resource].is_null()).collect();
    if missing.is_empty() {
        return None;
    }
    for (resource, amount) in &missing {
        containers[0]["resources"]["limits"][resource] = json!(amount);
    }
    let given: Vec<String> =
        missing.iter().map(|(resource, amount)| format!("{resource}={amount}")).collect();
    let target = target(deployment);
    let patch = json!({
        "metadata": {"resourceVersion": deployment.body["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    let remark = format!(
        "{} gets the limits {}: a tenant's backup may be of any size once it is unpacked; to change them: kubectl set resources \
         deployment {DEPLOYMENT} -n {} --limits=...",
        named(deployment),
        given.join(","),
        target.namespace
    );
    Some((Action::Patch(target, patch), remark))
}

/// Whether an object is a RoleBinding that nacre keeps in a tenant's namespace.
pub(super) fn is_kept_by_nacre(found: &Found, settings: &Settings) -> bool {
    settings.fence && found.kind == Kind::RoleBinding && found.name() == BINDING
}

#[cfg(test)]
mod tests {
    use api::Kind;
    use serde_json::{Value, json};

    use super::{FenceSteps, VeleroFound, steps};
    use crate::install::{Found, Settings};
    use crate::{Action, Object};

    fn with(arguments: &Value, subjects: &Value) -> FenceSteps {
        limited_to(&json!({"memory": "2Gi", "ephemeral-storage": "2Gi"}), arguments, subjects)
    }

    fn limited_to(limits: &Value, arguments: &Value, subjects: &Value) -> FenceSteps {
        let container = json!({"name": "velero", "args": arguments, "resources": {"limits": limits}});
        let pod = json!({"serviceAccountName": "velero", "containers": [container, {"name": "other"}]});
        let deployment = json!({"metadata": {"name": "velero", "namespace": "tenants"}, "spec": {"template": {"spec": pod}}});
        let binding = json!({"metadata": {"name": "velero-tenants"}, "roleRef": {"name": "cluster-admin"}, "subjects": subjects});
        let found = |kind, body| -> Found { Object { kind, body } };
        let velero = VeleroFound {
            deployment: Some(found(Kind::Deployment, deployment)),
            bindings: vec![found(Kind::ClusterRoleBinding, binding)],
            roles: Vec::new(),
        };
        let settings = Settings { namespace: "tenants".to_owned(), fence: true, ..Settings::default() };
        assert_eq!(
            steps(&Settings { fence: false, ..settings.clone() }, Some(&velero)),
            FenceSteps::default()
        );
        steps(&settings, Some(&velero))
    }

    fn account(name: &str) -> Value {
        json!({"kind": "ServiceAccount", "name": name, "namespace": "tenants"})
    }

    #[test]
    fn velero_loses_cluster_admin_and_the_way_back_is_shown() {
        let done = with(&json!(["server", "--disable-informer-cache"]), &json!([account("velero")]));
        assert!(
            matches!(done.actions.as_slice(), [Action::Delete(target)] if target.name == "velero-tenants")
        );
        assert!(done.remarks[0].contains("kubectl create clusterrolebinding velero-tenants"), "{done:?}");
        assert_eq!(done.refusals, Vec::<String>::new());
    }

    /// A11: forged tarball: millions of objects, or gigabytes of zeros
    #[test]
    fn a11_velero_gets_the_limits_it_is_without_and_keeps_those_it_has() {
        let arguments = json!(["--disable-informer-cache"]);
        let done = limited_to(&json!({"memory": "512Mi"}), &arguments, &json!([]));
        let [Action::Patch(target, patch)] = done.actions.as_slice() else { panic!("{done:?}") };
        assert_eq!(target.name, "velero");
        let containers = &patch["spec"]["template"]["spec"]["containers"];
        assert_eq!(
            containers[0]["resources"]["limits"],
            json!({"memory": "512Mi", "ephemeral-storage": "10Gi"})
        );
        assert_eq!(containers[0]["args"], arguments, "the list is replaced as a whole");
        assert_eq!(containers[1]["name"], "other");
        assert!(done.remarks[0].contains("ephemeral-storage=10Gi"), "{done:?}");
        assert_eq!(with(&arguments, &json!([])), FenceSteps::default());
        assert_eq!(limited_to(&json!(null), &arguments, &json!([])).actions.len(), 1);
    }

    #[test]
    fn what_velero_shares_with_others_is_for_people_to_change() {
        let done =
            with(&json!(["--disable-informer-cache=true"]), &json!([account("velero"), account("other")]));
        assert_eq!(done.actions, []);
        assert!(done.refusals[0].contains("take service account velero of tenants out of it"), "{done:?}");
        let others = with(&json!(["--disable-informer-cache=true"]), &json!([account("other")]));
        assert_eq!(others, FenceSteps::default());
    }

    /// Deleting it would take the role from every account of the namespace, and the way back would be Velero's alone.
    #[test]
    fn what_velero_has_by_a_group_is_for_people_to_change() {
        let group = json!([{"kind": "Group", "name": "system:serviceaccounts:tenants"}]);
        let done = with(&json!(["--disable-informer-cache=true"]), &group);
        assert_eq!(done.actions, []);
        assert!(done.refusals[0].contains("gives group system:serviceaccounts:tenants"), "{done:?}");
    }

    #[test]
    fn a_velero_that_would_hang_is_refused_with_the_command_that_helps() {
        let done = with(&json!(["server"]), &json!([]));
        assert!(done.refusals[0].contains("kubectl patch deployment velero -n tenants"), "{done:?}");
        assert!(done.refusals[0].contains("/spec/template/spec/containers/0/args/-"), "{done:?}");
    }
}

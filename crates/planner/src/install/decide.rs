//! What has to be done to a cluster so that nacre is installed as asked: nothing the second time.

use api::Kind;
use serde_json::{Value, json};

use super::differ::covers;
use super::fence::{self, VeleroFound};
use super::found::{Found, is_ours, named, release, same, target};
use super::program::CONTROLLER;
use super::record::record;
use super::roles::{EDITORS, SERVICE_ACCOUNT};
use super::{Settings, objects_without};
use crate::dpa_operator::is_by_operator;
use crate::{Action, Object, Plan};

/// Everything the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// Everything that has a name nacre uses or bears its mark, and the namespace if it is there.
    pub found: &'a [Found],
    /// Kinds that this API server does not know: policies that change objects came with Kubernetes 1.36.
    pub unserved: &'a [Kind],
    /// What was seen of Velero; none if nobody looked.
    pub velero: Option<&'a VeleroFound>,
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The steps; none if something stands in the way.
    pub plan: Plan,
    /// What stays as it is, and why.
    pub remarks: Vec<String>,
    /// What stands in the way, and what would help.
    pub refusals: Vec<String>,
    /// What has to be over before the next steps can be decided.
    pub waiting_for: Option<String>,
}

/// Decides how to install nacre, or to bring an installation up to date.
pub fn decide(seen: &Observed<'_>) -> Decision {
    let mut refusals = refusals(seen);
    let fence = fence::steps(seen.settings, seen.velero);
    refusals.extend(fence.refusals);
    if !refusals.is_empty() {
        return Decision { refusals, ..Decision::default() };
    }
    let mut wanted = objects_without(seen.settings, seen.unserved);
    wanted.push(record(seen.settings));
    let Decision { mut plan, mut remarks, .. } = changes(&wanted, seen.found);
    if seen.unserved.contains(&Kind::MutatingAdmissionPolicy) {
        remarks.push(if seen.settings.webhook { RECORDED_BY_WEBHOOK } else { NOT_RECORDED }.to_owned());
    }
    if let Some(namespace) = missing_namespace(seen) {
        plan.actions.insert(0, namespace);
    }
    let kept = |found: &Found| fence::is_kept_by_nacre(found, seen.settings);
    let obsolete = seen.found.iter().filter(|found| is_obsolete(found, &wanted) && !kept(found));
    plan.actions.extend(obsolete.map(|found| Action::Delete(target(found))));
    // Last, so that Velero is never without permissions.
    plan.actions.extend(fence.actions);
    remarks.extend(fence.remarks);
    Decision { plan, remarks, ..Decision::default() }
}

/// What is missing without policies that change objects, and without the webhook too.
const NOT_RECORDED: &str = "this API server has no MutatingAdmissionPolicy (Kubernetes 1.36 and later have it), and the webhook is \
                            off, so nobody records who asks: requests are judged by their namespace alone";
/// What is different without policies that change objects.
const RECORDED_BY_WEBHOOK: &str = "this API server has no MutatingAdmissionPolicy (Kubernetes 1.36 and later have it), so nacre's \
                                   webhook records who asks; nobody does while nacre is down: the policy's requester.unrecorded \
                                   says what becomes of such requests";

/// What it takes to make these objects as they should be, given what was found under their names: a change carries the uid of
/// what is changed. What somebody else made is left to them.
pub fn changes(wanted: &[Object], found: &[Found]) -> Decision {
    let mut decision = Decision::default();
    for wanted in wanted {
        match found.iter().find(|found| same(found, wanted)) {
            None => decision.plan.actions.push(Action::Apply(wanted.clone())),
            Some(found) if !is_ours(found) => decision
                .remarks
                .push(format!("{} was made by somebody else and stays as it is", named(found))),
            Some(found) if covers(&found.body, &wanted.body) => {}
            Some(found) => {
                let mut changed = wanted.clone();
                changed.body["metadata"]["uid"] = found.body["metadata"]["uid"].clone();
                decision.plan.actions.push(Action::Apply(changed));
            }
        }
    }
    decision
}

fn missing_namespace(seen: &Observed<'_>) -> Option<Action> {
    let name = &seen.settings.namespace;
    let is_it = |found: &Found| found.kind == Kind::Namespace && found.name() == name;
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    (!seen.found.iter().any(is_it)).then_some(Action::Create(Object { kind: Kind::Namespace, body }))
}

/// Ours, and of no more use. A definition is never taken away: all objects of its kind would go with it.
fn is_obsolete(found: &Found, wanted: &[Object]) -> bool {
    let keeps = [Kind::CustomResourceDefinition, Kind::Namespace];
    is_ours(found) && !keeps.contains(&found.kind) && !wanted.iter().any(|wanted| same(found, wanted))
}

/// What stands in the way.
fn refusals(seen: &Observed<'_>) -> Vec<String> {
    let mut refusals = seen.settings.problems();
    let namespace = seen.settings.namespace.as_str();
    if namespace.is_empty() || namespace.starts_with("kube-") {
        refusals.push(format!("namespace is {namespace:?}; it has to be the one Velero is installed in"));
    }
    let ours = || seen.found.iter().filter(|found| is_ours(found));
    // Definitions are left alone by Helm once they are there, so nobody owns them.
    let released = ours().filter(|found| found.kind != Kind::CustomResourceDefinition).find_map(release);
    if let Some((release, place)) = released {
        refusals.push(format!(
            "nacre was installed by Helm as release {release} in {place}: use `helm upgrade`, or `helm uninstall` first"
        ));
    }
    let elsewhere = ours().find(|found| found.kind == Kind::Deployment && found.namespace() != namespace);
    if let Some(other) = elsewhere {
        refusals.push(format!(
            "nacre is installed in namespace {} already, and there is one per cluster: `kubectl nacre uninstall -n {0}` first",
            other.namespace()
        ));
    }
    refusals.extend(by_operator(seen.found));
    let wanted = objects_without(seen.settings, seen.unserved);
    let foreign = seen.found.iter().filter(|found| {
        !is_ours(found) && !may_be_others(found) && wanted.iter().any(|wanted| same(found, wanted))
    });
    refusals.extend(foreign.map(in_the_way));
    refusals
}

/// Two hands on one Deployment would never rest.
pub(super) fn by_operator(found: &[Found]) -> Option<String> {
    let theirs = found.iter().find(|found| found.kind == Kind::Deployment && is_by_operator(found))?;
    Some(format!(
        "{} was made by `nacre operator` for a DataProtectionApplication: change spec.nonAdmin there instead",
        named(theirs)
    ))
}

/// What somebody else may have made under the same name, and does as well: OADP's definitions and its account, and the
/// role that administrators had to write by hand.
pub(crate) fn may_be_others(found: &Found) -> bool {
    match found.kind {
        Kind::CustomResourceDefinition | Kind::Namespace => true,
        Kind::ServiceAccount => found.name() == SERVICE_ACCOUNT,
        Kind::ClusterRole => found.name() == EDITORS,
        _ => false,
    }
}

fn in_the_way(found: &Found) -> String {
    let what = named(found);
    if found.kind != Kind::Deployment || found.name() != CONTROLLER {
        return format!("{what} is not nacre's: delete or rename it");
    }
    let owner = found.body["metadata"]["ownerReferences"][0]["kind"].as_str();
    let by = if owner == Some("DataProtectionApplication") { " (OADP's operator made it)" } else { "" };
    let image: &Value = &found.body["spec"]["template"]["spec"]["containers"][0]["image"];
    format!(
        "{what} runs {} and is not nacre's{by}: on OADP set spec.unsupportedOverrides.nonAdminControllerImageFqin to nacre's image \
         instead of installing it; otherwise delete the Deployment first",
        image.as_str().unwrap_or("another program")
    )
}

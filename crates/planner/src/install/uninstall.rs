//! Taking nacre out of a cluster, in an order that leaves nothing stuck: first the program, then our finalizers once nobody is
//! left who would put them back, then the rest. What tenants and Velero own stays.

use api::{Kind, labels};

use super::decide::Decision;
use super::found::{Found, is_ours, release, target};
use crate::{Action, Plan, Target};

/// What the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// How much shall go.
    pub scope: Scope,
    /// Everything that bears nacre's mark.
    pub found: &'a [Found],
    /// Every request in the cluster that is held by finalizers.
    pub held: &'a [Target],
    /// Who may still act: a pod, or the holder of the lease.
    pub at_work: Option<&'a str>,
}

/// How much shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The program alone, as when it is disabled: everything else is ready for the day it is enabled again.
    Program,
    /// Everything but the definitions, with which all requests would go.
    Installation,
    /// The definitions too, and with them every request; Velero's objects stay.
    Definitions,
}

/// The finalizer nacre puts on each kind.
pub const FINALIZERS: [(Kind, &str); 3] = [
    (Kind::NonAdminBackup, labels::NAB_FINALIZER),
    (Kind::NonAdminRestore, labels::NAR_FINALIZER),
    (Kind::NonAdminBackupStorageLocation, labels::NABSL_FINALIZER),
];

/// Decides the next steps. There are more as long as there are actions or something is waited for.
pub fn decide(seen: &Observed<'_>) -> Decision {
    let refusals: Vec<_> = by_helm(seen).into_iter().collect();
    if !refusals.is_empty() {
        return Decision { refusals, ..Decision::default() };
    }
    let program = going(seen, &PROGRAM);
    if !program.is_empty() {
        return then(program);
    }
    if let Some(who) = seen.at_work {
        return Decision { waiting_for: Some(who.to_owned()), ..Decision::default() };
    }
    let releases = releases(seen.held);
    if !releases.is_empty() {
        return then(releases);
    }
    then(match seen.scope {
        Scope::Program => Vec::new(),
        Scope::Installation => going(seen, &REST),
        Scope::Definitions => going(seen, &[&REST[..], &[Kind::CustomResourceDefinition]].concat()),
    })
}

/// Whoever acts, and whatever asks them.
const PROGRAM: [Kind; 4] =
    [Kind::ValidatingWebhookConfiguration, Kind::Deployment, Kind::PodDisruptionBudget, Kind::Service];

const REST: [Kind; 7] = [
    Kind::ValidatingAdmissionPolicyBinding,
    Kind::ValidatingAdmissionPolicy,
    Kind::ClusterRoleBinding,
    Kind::RoleBinding,
    Kind::ClusterRole,
    Kind::Role,
    Kind::ServiceAccount,
];

/// What bears our mark, in the order of these kinds.
fn going(seen: &Observed<'_>, kinds: &[Kind]) -> Vec<Action> {
    let of_kind = |kind: &Kind| {
        let found =
            seen.found.iter().filter(|found| found.kind == *kind && is_ours(found) && !leaving(found));
        found.map(|found| Action::Delete(target(found))).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// On its way out already: there is nothing more to be done about it.
fn leaving(found: &Found) -> bool {
    found.body["metadata"]["deletionTimestamp"].is_string()
}

fn then(actions: Vec<Action>) -> Decision {
    Decision { plan: Plan { actions, ..Plan::default() }, ..Decision::default() }
}

/// Taking our finalizers off.
pub fn releases(held: &[Target]) -> Vec<Action> {
    held.iter().filter_map(released).collect()
}

fn released(held: &Target) -> Option<Action> {
    let (_, finalizer) = FINALIZERS.into_iter().find(|(kind, _)| *kind == held.kind)?;
    held.finalizers.iter().any(|found| found == finalizer).then(|| Action::Release(held.clone(), finalizer))
}

fn by_helm(seen: &Observed<'_>) -> Option<String> {
    let others = seen.found.iter().filter(|found| found.kind != Kind::CustomResourceDefinition);
    let (release, place) = others.filter(|found| is_ours(found)).find_map(release)?;
    Some(format!("nacre was installed by Helm: use `helm uninstall {release} -n {place}`"))
}

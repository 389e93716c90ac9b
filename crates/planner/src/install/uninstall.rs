//! Taking nacre out of a cluster, in an order that leaves nothing stuck: first the program, then our finalizers once nobody is
//! left who would put them back, then the rest. What tenants and Velero own stays.

use api::{Kind, labels};

use super::decide::{Decision, by_operator};
use super::found::{Found, is_ours, release, target};
use super::operator::OPERATOR;
use super::record::RECORD;
use super::roles::{LEASE, LEASE_NAMESPACE, LEASE_SECRET};
use crate::admission::certificate;
use crate::{Action, Plan, Target, backup, kubevirt, policy, requester, restore, turns, usage, velero_view};

/// Everything the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What is uninstalled.
    pub scope: Scope,
    /// Everything that bears nacre's mark, and what is left behind by the program: see [`left_behind`].
    pub found: &'a [Found],
    /// Every request in the cluster with finalizers.
    pub with_finalizer: &'a [Target],
    /// Every copy of a Velero object in a tenant's namespace, and every link for a download.
    pub copies: &'a [Target],
    /// Who may still act: a pod, or the holder of the lease.
    pub at_work: Option<&'a str>,
}

/// What is uninstalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only what is in tenants' namespaces is let go: the rest is removed by somebody else, such as Helm.
    Requests,
    /// Everything but the definitions, with which all requests would go.
    Installation,
    /// The definitions too, and with them every request; Velero's objects stay.
    Definitions,
}

/// The finalizer nacre puts on each kind.
pub const FINALIZERS: [(Kind, &str); 4] = [
    (Kind::NonAdminBackup, labels::NAB_FINALIZER),
    (Kind::NonAdminRestore, labels::NAR_FINALIZER),
    (Kind::NonAdminBackupStorageLocation, labels::NABSL_FINALIZER),
    (Kind::NonAdminSchedule, labels::NAS_FINALIZER),
];

/// Decides the next steps. There are more as long as there are actions or something is waited for.
pub fn decide(seen: &Observed<'_>) -> Decision {
    if seen.scope != Scope::Requests {
        if let Some(refusal) = by_operator(seen.found) {
            return Decision { refusals: vec![refusal], ..Decision::default() };
        }
        let program = going(seen, &PROGRAM);
        if !program.is_empty() {
            return then(program);
        }
    }
    if let Some(who) = seen.at_work {
        return Decision { waiting_for: Some(who.to_owned()), ..Decision::default() };
    }
    let finalizer_removals = finalizer_removals(seen.with_finalizer);
    if !finalizer_removals.is_empty() {
        return then(finalizer_removals);
    }
    let copies = copy_removals(seen.copies);
    if !copies.is_empty() {
        return then(copies);
    }
    then(match seen.scope {
        Scope::Requests => Vec::new(),
        Scope::Installation => going(seen, &REST),
        Scope::Definitions => going(seen, &[&REST[..], &[Kind::CustomResourceDefinition]].concat()),
    })
}

/// What ends Velero's reading of the buckets of tenants. Nothing in them is deleted.
pub fn delete_tenants_locations(namespace: &str) -> String {
    let resource = Kind::BackupStorageLocation.plural();
    format!("kubectl delete {resource}.velero.io -n {namespace} -l {}", labels::NABSL_NACUUID)
}

/// What so many storage locations of tenants mean once nacre's admission policies are gone; nothing if there are none.
pub fn unfenced(locations: i64, namespace: &str) -> Option<String> {
    let plural = if locations == 1 { "" } else { "s" };
    (locations > 0).then(|| {
        format!(
            "{locations} storage location{plural} of tenants in {namespace}: nacre's admission policies fence Velero no longer, and it \
             goes on importing and expiring what tenants write there; to end that: {}",
            delete_tenants_locations(namespace)
        )
    })
}

/// The controller, whatever calls it, and whatever puts its finalizers on.
const PROGRAM: [Kind; 7] = [
    Kind::ValidatingWebhookConfiguration,
    Kind::MutatingWebhookConfiguration,
    Kind::MutatingAdmissionPolicyBinding,
    Kind::MutatingAdmissionPolicy,
    Kind::Deployment,
    Kind::PodDisruptionBudget,
    Kind::Service,
];

const REST: [Kind; 10] = [
    Kind::Secret,
    Kind::ConfigMap,
    Kind::Lease,
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
        let goes = |found: &&Found| {
            let nacres = is_ours(found) || is_left(found);
            found.kind == *kind && nacres && !is_by_olm(found) && !is_deleting(found)
        };
        seen.found.iter().filter(goes).map(|found| Action::Delete(target(found))).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// What the program makes for itself while it runs and what it is given later, by kind, namespace and name: its certificate,
/// what it has Velero do to what comes back from tenants' storage, which volumes it has Velero save, its copy of the policy, the note that there are copies, what it records of users,
/// the values of the installation, leases, and the permissions to look after live migration. Roles, grants and guard
/// themselves stay: whoever asked for them still wants them.
pub fn left_behind(namespace: &str) -> Vec<(Kind, String, String)> {
    let in_velero_namespace = [
        (Kind::Secret, certificate::SECRET),
        (Kind::Secret, LEASE_SECRET),
        (Kind::ConfigMap, velero_view::RECORD),
        (Kind::ConfigMap, RECORD),
        (Kind::Lease, OPERATOR),
    ];
    let maps = restore::MODIFIERS.into_iter().chain([
        policy::IN_FORCE,
        backup::VOLUME_POLICY,
        usage::RECORD,
        turns::LEDGER,
        requester::LIST,
    ]);
    let in_velero_namespace = in_velero_namespace.into_iter().chain(maps.map(|name| (Kind::ConfigMap, name)));
    let in_velero_namespace = in_velero_namespace.map(|(kind, name)| (kind, namespace, name));
    let elsewhere = [
        (Kind::Lease, LEASE_NAMESPACE, LEASE),
        (Kind::ClusterRoleBinding, "", kubevirt::ACCESS),
        (Kind::RoleBinding, kubevirt::SETTINGS_NAMESPACE, kubevirt::ACCESS),
        (Kind::ClusterRole, "", kubevirt::ACCESS),
        (Kind::Role, kubevirt::SETTINGS_NAMESPACE, kubevirt::ACCESS),
    ];
    let all = in_velero_namespace.chain(elsewhere);
    all.map(|(kind, namespace, name)| (kind, namespace.to_owned(), name.to_owned())).collect()
}

fn is_left(found: &Found) -> bool {
    let same = |(kind, namespace, name): &(Kind, String, String)| {
        (found.kind, found.namespace(), found.name()) == (*kind, namespace, name)
    };
    left_behind(found.namespace()).iter().any(same)
}

/// Whether OLM installed it: a CRD of OADP's that was brought up to date has our label too, and stays, since OADP needs it.
fn is_by_olm(found: &Found) -> bool {
    let labels = found.body["metadata"]["labels"].as_object();
    let is_olms = |label: &String| label == "olm.managed" || label.starts_with("operators.coreos.com/");
    labels.is_some_and(|labels| labels.keys().any(is_olms))
}

/// Already being deleted.
fn is_deleting(found: &Found) -> bool {
    found.body["metadata"]["deletionTimestamp"].is_string()
}

fn then(actions: Vec<Action>) -> Decision {
    Decision { plan: Plan { actions, ..Plan::default() }, ..Decision::default() }
}

/// Removes copies of Velero's objects from tenants' namespaces, since nobody would keep them true, and links for downloads.
pub fn copy_removals(copies: &[Target]) -> Vec<Action> {
    let release = |copy: &Target| {
        let held = copy.finalizers.iter().any(|finalizer| finalizer == labels::VELERO_VIEW_FINALIZER);
        held.then(|| Action::RemoveFinalizer(copy.clone(), labels::VELERO_VIEW_FINALIZER))
    };
    copies.iter().flat_map(|copy| release(copy).into_iter().chain([Action::Delete(copy.clone())])).collect()
}

/// Removes nacre's finalizers.
pub fn finalizer_removals(with_finalizer: &[Target]) -> Vec<Action> {
    with_finalizer.iter().filter_map(finalizer_removal).collect()
}

fn finalizer_removal(with_finalizer: &Target) -> Option<Action> {
    let (_, finalizer) = FINALIZERS.into_iter().find(|(kind, _)| *kind == with_finalizer.kind)?;
    with_finalizer
        .finalizers
        .iter()
        .any(|found| found == finalizer)
        .then(|| Action::RemoveFinalizer(with_finalizer.clone(), finalizer))
}

/// The Helm release that an installation is, and where that is: Helm keeps a record of it, which is Helm's to remove.
pub fn helm_release(found: &[Found]) -> Option<(&str, &str)> {
    let others = found.iter().filter(|found| found.kind != Kind::CustomResourceDefinition);
    others.filter(|found| is_ours(found)).find_map(release)
}

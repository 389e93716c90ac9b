//! What a replacement removes: claims, and every workload that uses them. Or why it does not begin.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};

use super::managers;
use super::objects::{Claim, Workload, WorkloadKind};
use super::record::{ClaimRef, WorkloadRef};
use crate::restore_preview::SavedClaim;

/// A pod in the backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupPod {
    /// The pod's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The claims that it names.
    pub claims: Vec<String>,
}

/// Everything the choice reads.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// The name of the backup.
    pub backup: &'a str,
    /// The claims in the namespace.
    pub claims: &'a [Claim],
    /// The workloads in the namespace, pods included.
    pub workloads: &'a [Workload],
    /// What is known about the data of claims in the backup.
    pub saved: BTreeMap<String, SavedClaim>,
    /// Whether the backup holds the data of every claim that was there when it began; none if that is not known.
    pub all_saved: Option<bool>,
    /// When the backup began.
    pub backup_started: Option<Timestamp>,
    /// Only these claims; all if empty.
    pub only_claims: &'a [String],
    /// Selectors of the request: one of them must fit, if there are any.
    pub selectors: &'a [LabelSelector],
    /// Resources that the restore leaves out, and by which rule.
    pub left_out: BTreeMap<String, String>,
    /// Go on although an operator or GitOps manages the workloads.
    pub ignore_managers: bool,
    /// The pods in the backup; none if the contents of the backup cannot be read.
    pub backup_pods: Option<&'a [BackupPod]>,
}

/// What is removed and then restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The claims.
    pub claims: Vec<ClaimRef>,
    /// Claims that are gone already, and come back. What uses them still has to go: Velero restores their data through pods
    /// of the backup, and a workload that is there would remove those.
    pub lost: Vec<String>,
    /// The workloads, in the order in which they are removed.
    pub workloads: Vec<WorkloadRef>,
    /// Claims that stay, and why.
    pub kept: Vec<(String, String)>,
}

/// Chooses what is removed; or says everything that is in the way.
pub fn choose(seen: &Observed<'_>) -> Result<Scope, Vec<String>> {
    let mut problems = Vec::new();
    let chosen = chosen_claims(seen, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let lost = lost_claims(seen);
    if chosen.is_empty() && lost.is_empty() && holds_data(seen) {
        // The claims are gone already: the restore brings them back.
        return Ok(Scope::default());
    }
    if chosen.is_empty() && lost.is_empty() {
        return Err(vec![format!(
            "no claim in the namespace has data in backup {}, so there is nothing to replace; \
             use restore create without --replace",
            seen.backup
        )]);
    }
    let chosen: BTreeSet<&str> = chosen.union(&lost).copied().collect();
    let roots = roots(seen, &chosen);
    problems.extend(together(seen, &chosen, &roots));
    problems.extend(comes_back(seen, &chosen, &roots));
    problems.extend(written_over(seen, &chosen));
    if !seen.ignore_managers {
        problems.extend(roots.iter().filter_map(|root| managers::problem(root)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let claims = seen.claims.iter().filter(|claim| chosen.contains(claim.name.as_str()));
    let kept =
        seen.claims.iter().filter(|claim| !chosen.contains(claim.name.as_str()) && !claim.is_ephemeral);
    let mut workloads: Vec<WorkloadRef> = roots.iter().map(|root| WorkloadRef::of(root)).collect();
    workloads.sort();
    Ok(Scope {
        claims: claims.map(|claim| ClaimRef { name: claim.name.clone(), uid: claim.uid.clone() }).collect(),
        lost: lost.into_iter().map(ToOwned::to_owned).collect(),
        workloads,
        kept: kept.map(|claim| (claim.name.clone(), why_kept(seen, claim))).collect(),
    })
}

/// Claims that are gone, whose data is in the backup, and that a workload still uses.
fn lost_claims<'a>(seen: &'a Observed<'_>) -> BTreeSet<&'a str> {
    // The labels of a claim that is gone are not known.
    if !seen.selectors.is_empty() {
        return BTreeSet::new();
    }
    let is_used = |name: &str| seen.workloads.iter().any(|workload| workload.uses(name));
    let is_asked = |name: &str| seen.only_claims.is_empty() || is_named(seen, name);
    let names = seen.saved.keys().map(String::as_str);
    names.filter(|name| is_lost(seen, name) && is_used(name) && is_asked(name)).collect()
}

fn is_named(seen: &Observed<'_>, claim: &str) -> bool {
    seen.only_claims.iter().any(|name| name == claim)
}

fn is_lost(seen: &Observed<'_>, name: &str) -> bool {
    !seen.claims.iter().any(|claim| claim.name == name)
        && matches!(seen.saved.get(name), Some(SavedClaim::Saved(_)))
}

/// Whether the backup holds the data of a claim that is not in the namespace.
fn holds_data(seen: &Observed<'_>) -> bool {
    let absent = |name: &String| !seen.claims.iter().any(|claim| claim.name == *name);
    let listed =
        |(name, saved): (&String, &SavedClaim)| absent(name) && matches!(saved, SavedClaim::Saved(_));
    seen.saved.iter().any(listed) || (seen.claims.is_empty() && seen.all_saved == Some(true))
}

/// Whether the data of a claim is in the backup; none if that is not known.
fn has_data(seen: &Observed<'_>, claim: &Claim) -> Option<bool> {
    match seen.saved.get(&claim.name) {
        Some(SavedClaim::Saved(_)) => Some(true),
        Some(SavedClaim::NotSaved(_)) => Some(false),
        None if claim.created.is_some() && claim.created >= seen.backup_started => Some(false),
        None => seen.all_saved.filter(|all| *all),
    }
}

fn is_selected(seen: &Observed<'_>, labels: &BTreeMap<String, String>) -> bool {
    let fits = |selector: &LabelSelector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
    };
    seen.selectors.is_empty() || seen.selectors.iter().any(fits)
}

fn chosen_claims<'a>(seen: &Observed<'a>, problems: &mut Vec<String>) -> BTreeSet<&'a str> {
    let backup = seen.backup;
    if seen.only_claims.is_empty() {
        let own = seen.claims.iter().filter(|claim| !claim.is_ephemeral && is_selected(seen, &claim.labels));
        let mut chosen = BTreeSet::new();
        for claim in own {
            match has_data(seen, claim) {
                Some(true) => {
                    chosen.insert(claim.name.as_str());
                }
                Some(false) => {}
                None => problems.push(format!(
                    "it is not known whether the data of claim {} is in backup {backup}; \
                     `kubectl nacre backup describe {backup}` shows what is known",
                    claim.name
                )),
            }
        }
        return chosen;
    }
    let mut chosen = BTreeSet::new();
    for name in seen.only_claims {
        let Some(claim) = seen.claims.iter().find(|claim| claim.name == *name) else {
            if lost_claims(seen).contains(name.as_str()) {
                continue;
            }
            problems.push(format!(
                "there is no claim {name} in the namespace; a restore without --replace creates it"
            ));
            continue;
        };
        match has_data(seen, claim) {
            Some(true) if is_selected(seen, &claim.labels) => {
                chosen.insert(claim.name.as_str());
            }
            Some(true) => problems.push(format!("claim {name} does not have the labels that -l asks for")),
            Some(false) => {
                problems.push(format!("claim {name}: {}; it would come back empty", why_kept(seen, claim)));
            }
            None => problems
                .push(format!("it is not known whether the data of claim {name} is in backup {backup}")),
        }
    }
    chosen
}

fn why_kept(seen: &Observed<'_>, claim: &Claim) -> String {
    match (seen.saved.get(&claim.name), has_data(seen, claim)) {
        (Some(SavedClaim::NotSaved(why)), _) => format!("its data is not in backup {}: {why}", seen.backup),
        (_, Some(false)) => format!("it was made after backup {}", seen.backup),
        _ => "the request does not ask for it".to_owned(),
    }
}

/// The workloads to remove: those that use a chosen claim, up to the one that nothing built in controls.
fn roots<'a>(seen: &Observed<'a>, chosen: &BTreeSet<&str>) -> Vec<&'a Workload> {
    let uses = |workload: &&Workload| chosen.iter().any(|claim| workload.uses(claim));
    let mut roots: Vec<&Workload> = Vec::new();
    for user in seen.workloads.iter().filter(uses) {
        let root = root(seen.workloads, user);
        if !roots.iter().any(|known| known.uid == root.uid) {
            roots.push(root);
        }
    }
    roots
}

/// The topmost workload that controls this one.
pub fn root<'a>(workloads: &'a [Workload], workload: &'a Workload) -> &'a Workload {
    let mut at = workload;
    // Nobody owns themselves, but an object may say so.
    for _ in 0..WorkloadKind::ALL.len() {
        let above = at.owner.as_ref().and_then(|owner| workloads.iter().find(|one| one.uid == owner.uid));
        match above {
            Some(above) => at = above,
            None => break,
        }
    }
    at
}

/// Velero restores every volume of a pod that it creates, so the claims of one pod go together.
fn together(seen: &Observed<'_>, chosen: &BTreeSet<&str>, roots: &[&Workload]) -> Vec<String> {
    let uids: BTreeSet<&str> = roots.iter().map(|root| root.uid.as_str()).collect();
    let affected = |workload: &&Workload| uids.contains(root(seen.workloads, workload).uid.as_str());
    let mut problems = BTreeSet::new();
    for workload in seen.workloads.iter().filter(affected) {
        let others = seen.claims.iter().filter(|claim| {
            workload.uses(&claim.name)
                && !claim.is_ephemeral
                && !chosen.contains(claim.name.as_str())
                && has_data(seen, claim) != Some(false)
        });
        for other in others {
            problems.insert(format!(
                "{} uses claim {} too, whose data Velero would restore over what is there; \
                 replace it together with the others (--only-claim {})",
                root(seen.workloads, workload).called(),
                other.name,
                other.name
            ));
        }
    }
    problems.into_iter().collect()
}

/// What is removed must be part of the restore.
fn comes_back(seen: &Observed<'_>, chosen: &BTreeSet<&str>, roots: &[&Workload]) -> Vec<String> {
    let mut resources: BTreeSet<String> = roots.iter().map(|root| root.kind.resource()).collect();
    resources.insert(crate::restore_preview::CLAIMS.to_owned());
    if !roots.is_empty() {
        resources.insert(WorkloadKind::Pod.resource());
    }
    let mut problems: Vec<String> = resources
        .iter()
        .filter_map(|resource| {
            let by = seen.left_out.get(resource)?;
            Some(format!("{resource} would be removed and not come back: they are left out by {by}"))
        })
        .collect();
    let not_selected = roots.iter().filter(|root| !is_selected(seen, &root.labels));
    problems.extend(not_selected.map(|root| {
        let claims: Vec<&str> = chosen.iter().copied().filter(|claim| root.uses(claim)).collect();
        format!(
            "{} uses {} and would be removed, but does not have the labels that -l asks for, so it would not come back",
            root.called(),
            claims.join(", ")
        )
    }));
    problems
}

/// Pods in the backup that are gone now would be created again, and their volumes restored over claims that stay.
fn written_over(seen: &Observed<'_>, chosen: &BTreeSet<&str>) -> Vec<String> {
    let stays = |claim: &&Claim| {
        !chosen.contains(claim.name.as_str()) && !claim.is_ephemeral && has_data(seen, claim) != Some(false)
    };
    let kept: Vec<&Claim> = seen.claims.iter().filter(stays).collect();
    if kept.is_empty() {
        return Vec::new();
    }
    let live =
        |name: &str| seen.workloads.iter().any(|one| one.kind == WorkloadKind::Pod && one.name == name);
    let Some(pods) = seen.backup_pods else {
        let at_risk = kept.into_iter().filter(|claim| !has_lasting_pods(seen, &claim.name));
        return at_risk
            .map(|claim| {
                format!(
                    "claim {} stays, but a pod in backup {} may use it, and Velero would write the old data over it; \
                     whether there is one is not known, because the contents of the backup cannot be read. \
                     Replace all claims, or ask the administrators to allow downloads",
                    claim.name, seen.backup
                )
            })
            .collect();
    };
    let created = pods.iter().filter(|pod| !live(&pod.name) && is_selected(seen, &pod.labels));
    let mut problems = Vec::new();
    for pod in created {
        for claim in kept.iter().filter(|claim| pod.claims.contains(&claim.name)) {
            problems.push(format!(
                "claim {} stays, but Velero would create pod {} of backup {} and write the old data over it; \
                 replace claim {} too, or narrow the restore with -l",
                claim.name, pod.name, seen.backup, claim.name
            ));
        }
    }
    problems
}

/// Whether the pods that use a claim have names that do not change, and are there now: Velero leaves those alone.
fn has_lasting_pods(seen: &Observed<'_>, claim: &str) -> bool {
    let mut users = seen.workloads.iter().filter(|one| one.uses(claim)).peekable();
    let lasting = |user: &Workload| match user.kind {
        WorkloadKind::StatefulSet => true,
        WorkloadKind::Pod => {
            user.owner.as_ref().is_none_or(|owner| owner.built_in == Some(WorkloadKind::StatefulSet))
        }
        _ => false,
    };
    let has_pod = seen.workloads.iter().any(|one| one.kind == WorkloadKind::Pod && one.uses(claim));
    users.peek().is_some() && has_pod && users.all(lasting)
}

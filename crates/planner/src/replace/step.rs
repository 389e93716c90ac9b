//! The next step of a replacement, from what is there. Each step may be the last one that runs, and may run twice.
//!
//! At no point is there neither the old data nor a complete safety backup: a claim is removed only after both backups
//! were found to be complete, and that is found again before each removal.

use api::{ClaimState, NonAdminBackup, NonAdminRestore, condition};
use jiff::{SignedDuration, Timestamp};

use super::evidence::{self, Restored, Standing, cannot_rely_on};
use super::objects::{Claim, Workload, WorkloadKind};
use super::record::{ClaimRef, Record};
use super::scope;

/// A safety backup that ended longer ago holds too little of what was written since.
const SAFETY_BACKUP_IS_FRESH: SignedDuration = SignedDuration::from_mins(30);
/// How long workloads get to become available.
const WORKLOADS_GET: SignedDuration = SignedDuration::from_mins(10);

/// What a request is doing that Velero is done with.
const CHECKING: &str = "nacre is checking the volumes";

/// Everything the next step depends on.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// What was agreed to.
    pub record: &'a Record,
    /// The backup to go back to.
    pub backup: Option<&'a NonAdminBackup>,
    /// The safety backup.
    pub safety_backup: Option<&'a NonAdminBackup>,
    /// The restore.
    pub restore: Option<&'a NonAdminRestore>,
    /// The claims in the namespace.
    pub claims: &'a [Claim],
    /// The workloads in the namespace, pods included.
    pub workloads: &'a [Workload],
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// How an object is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A workload and its pods; or the workload alone.
    Workload {
        /// Its kind.
        kind: WorkloadKind,
        /// The workload's name.
        name: String,
        /// Its uid.
        uid: String,
        /// Whether its pods are left behind.
        orphan: bool,
    },
    /// A claim.
    Claim(ClaimRef),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create the safety backup.
    CreateSafetyBackup,
    /// Wait for the safety backup.
    WaitForSafetyBackup(String),
    /// Nothing has been removed, and nothing will be: say why, and forget the record.
    Stop(String),
    /// Both backups are complete: write that down. Removing begins after that.
    RecordChecked,
    /// Remove these.
    Remove(Vec<Removal>),
    /// Wait until these are gone.
    WaitForRemoval(Vec<String>),
    /// Create the restore.
    CreateRestore,
    /// Wait for the restore.
    WaitForRestore(String),
    /// Wait for workloads to be available.
    WaitForWorkloads(Vec<String>),
    /// The data is back. What is not as it should be is named; then forget the record.
    Done(Vec<String>),
    /// Something was removed and did not come back: say why and where it stands, and forget the record.
    Failed(String),
}

/// Decides what to do next.
pub fn next_step(seen: &Observed<'_>) -> Step {
    match seen.restore {
        Some(restore) => after_restore(seen, restore),
        None => before_restore(seen),
    }
}

impl Observed<'_> {
    /// The claims with the old data that are still there.
    fn old_claims(&self) -> Vec<&Claim> {
        let old = |claim: &&Claim| self.record.claims.iter().any(|one| one.uid == claim.uid);
        self.claims.iter().filter(old).collect()
    }

    /// The recorded workloads that are still there.
    fn old_workloads(&self) -> Vec<&Workload> {
        let old = |one: &&Workload| self.record.workloads.iter().any(|known| known.uid == one.uid);
        self.workloads.iter().filter(old).collect()
    }

    /// Nothing has been removed, or asked to go.
    fn is_untouched(&self) -> bool {
        let (claims, workloads) = (self.old_claims(), self.old_workloads());
        claims.len() == self.record.claims.len()
            && workloads.len() == self.record.workloads.len()
            && claims.iter().all(|claim| !claim.is_deleting)
            && workloads.iter().all(|one| !one.is_deleting)
    }

    /// Something is wrong before the restore: a stop if nothing is lost, else a failure.
    fn problem(&self, why: String) -> Step {
        if self.is_untouched() { Step::Stop(why) } else { Step::Failed(why) }
    }
}

fn before_restore(seen: &Observed<'_>) -> Step {
    if let Some(name) = &seen.record.safety_backup {
        match seen.safety_backup {
            None if seen.is_untouched() && !seen.record.checked => return Step::CreateSafetyBackup,
            None => return seen.problem(format!("safety backup {name} is gone")),
            Some(safety) => {
                if let Standing::Running(how) = evidence::of_backup(safety)
                    && safety.metadata.deletion_timestamp.is_none()
                {
                    return Step::WaitForSafetyBackup(how);
                }
                if let Some(why) = unreliable(seen, safety) {
                    if evidence::backup_report_is_due(safety, seen.now) && !seen.record.checked {
                        return Step::WaitForSafetyBackup(CHECKING.to_owned());
                    }
                    return seen.problem(without_it(seen, safety, why));
                }
                if seen.is_untouched() && is_stale(safety, seen.now) {
                    return Step::Stop(format!(
                        "safety backup {name} is older than half an hour, and what was written since is not in it"
                    ));
                }
            }
        }
    }
    match seen.backup {
        None => return seen.problem(format!("backup {} is gone", seen.record.backup)),
        Some(backup) if backup.metadata.uid.as_deref() != Some(&seen.record.backup_uid) => {
            return seen
                .problem(format!("backup {} was replaced by another of that name", seen.record.backup));
        }
        Some(backup) => {
            if let Some(why) = unreliable(seen, backup) {
                return seen.problem(why);
            }
        }
    }
    if !seen.record.checked {
        return Step::RecordChecked;
    }
    remove(seen)
}

/// Why a backup cannot be relied on. Once the checks are recorded, the claims and pods that they read may be gone.
fn unreliable(seen: &Observed<'_>, backup: &NonAdminBackup) -> Option<String> {
    let claims = if seen.record.checked { &[] } else { seen.record.claims.as_slice() };
    cannot_rely_on(backup, claims, seen.claims, seen.workloads, seen.now)
}

/// Where only the data of a claim is missing in the safety backup, no other safety backup would have it: nothing saves a claim
/// whose pod waits for the data of an earlier restore.
fn without_it(seen: &Observed<'_>, safety: &NonAdminBackup, why: String) -> String {
    if cannot_rely_on(safety, &[], seen.claims, seen.workloads, seen.now).is_some() {
        return why;
    }
    format!("{why}. If what is in the claim now is not needed, add --no-safety-backup")
}

fn is_stale(safety: &NonAdminBackup, now: Timestamp) -> bool {
    let ended = evidence::velero_status(safety).and_then(|velero| velero.completion_timestamp.as_ref());
    ended.is_some_and(|ended| ended.0 + SAFETY_BACKUP_IS_FRESH < now)
}

/// Workloads first, then pods that were left behind, then claims.
fn remove(seen: &Observed<'_>) -> Step {
    let old = seen.old_workloads();
    let orphan = |uid: &str| seen.record.workloads.iter().any(|one| one.uid == uid && one.orphan);
    let removal = |one: &Workload| Removal::Workload {
        kind: one.kind,
        name: one.name.clone(),
        uid: one.uid.clone(),
        orphan: orphan(&one.uid),
    };
    let mut standing: Vec<&&Workload> = old.iter().filter(|one| !one.is_deleting).collect();
    if !standing.is_empty() {
        standing.sort_by_key(|one| one.kind);
        return Step::Remove(standing.into_iter().map(|one| removal(one)).collect());
    }
    let claims = seen.record.all_claims();
    let mounts_one = |one: &&Workload| claims.iter().any(|claim| one.uses(&claim.name));
    let users: Vec<&Workload> = seen.workloads.iter().filter(mounts_one).collect();
    let left_behind: Vec<Removal> = users
        .iter()
        .filter(|one| !one.is_deleting && of_orphaned_set(seen, one))
        .map(|one| removal(one))
        .collect();
    if !left_behind.is_empty() {
        return Step::Remove(left_behind);
    }
    let in_the_way: Vec<String> = users.iter().map(|one| in_the_way(seen, one)).collect();
    if !in_the_way.is_empty() || !old.is_empty() {
        let deleting = old.iter().filter(|one| !users.iter().any(|user| user.uid == one.uid));
        return Step::WaitForRemoval(deleting.map(|one| one.called()).chain(in_the_way).collect());
    }
    remove_claims(seen)
}

/// Whether this is a pod of a StatefulSet that was deleted without its pods. Any other pod was not shown to the person who
/// agreed, so it is not removed.
fn of_orphaned_set(seen: &Observed<'_>, pod: &Workload) -> bool {
    let ordinal_of = |set: &str| pod.name.strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
    let is_ordinal = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let mut orphaned = seen.record.workloads.iter().filter(|one| one.orphan);
    pod.kind == WorkloadKind::Pod
        && pod.owner.is_none()
        && orphaned.any(|set| ordinal_of(&set.name).is_some_and(is_ordinal))
}

/// Why a workload that uses the claims is still there.
fn in_the_way(seen: &Observed<'_>, user: &Workload) -> String {
    let root = scope::root(seen.workloads, user);
    let known = seen.record.workloads.iter().any(|one| one.uid == root.uid)
        || root
            .owner
            .as_ref()
            .is_some_and(|owner| seen.record.workloads.iter().any(|one| one.uid == owner.uid));
    if known || user.is_deleting || user.uid != root.uid {
        return user.called();
    }
    format!("{}, which came after the replacement had begun; remove it", user.called())
}

fn remove_claims(seen: &Observed<'_>) -> Step {
    let old = seen.old_claims();
    let standing: Vec<Removal> = old
        .iter()
        .filter(|claim| !claim.is_deleting)
        .map(|claim| Removal::Claim(ClaimRef { name: claim.name.clone(), uid: claim.uid.clone() }))
        .collect();
    if !standing.is_empty() {
        return Step::Remove(standing);
    }
    if !old.is_empty() {
        let waits =
            |claim: &&Claim| format!("claim {} (finalizers: {})", claim.name, claim.finalizers.join(", "));
        return Step::WaitForRemoval(old.iter().map(waits).collect());
    }
    let all = seen.record.all_claims();
    let again = seen.claims.iter().find(|claim| all.iter().any(|one| one.name == claim.name));
    match again {
        Some(claim) => Step::Failed(format!(
            "claim {} was created by somebody else meanwhile, so Velero would not restore it",
            claim.name
        )),
        None => Step::CreateRestore,
    }
}

fn after_restore(seen: &Observed<'_>, restore: &NonAdminRestore) -> Step {
    let name = &seen.record.restore;
    let phase = match evidence::of_restore(restore) {
        Standing::Running(how) => return Step::WaitForRestore(how),
        Standing::Refused(why) => return Step::Failed(format!("restore {name} was refused: {why}")),
        Standing::Over(phase) => phase,
    };
    if !matches!(phase.as_str(), "Completed" | "PartiallyFailed") {
        return Step::Failed(format!("restore {name} ended as {phase}"));
    }
    let claims = seen.record.all_claims();
    match evidence::restored(restore, &claims, seen.now) {
        Restored::NotYet => return Step::WaitForRestore(CHECKING.to_owned()),
        Restored::No(why) => return Step::Failed(format!("restore {name}: {why}")),
        Restored::Yes => {}
    }
    let missing = claims
        .iter()
        .find(|claim| !seen.claims.iter().any(|one| one.name == claim.name && one.uid != claim.uid));
    if let Some(claim) = missing {
        return Step::Failed(format!("restore {name} is over, and claim {} is not there", claim.name));
    }
    let mut open: Vec<String> = Vec::new();
    if phase != "Completed" {
        open.push(format!(
            "restore {name} ended as {phase}; `kubectl nacre restore describe {name} --details` says why"
        ));
    }
    let conditions = restore.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let missing =
        condition::get(conditions, condition::DATA_RESTORED).filter(|found| found.status == "False");
    open.extend(missing.filter(|_| !is_all_else_as_agreed(seen, restore)).map(|found| found.message.clone()));
    let (mut not_back, mut not_available) = (Vec::new(), Vec::new());
    for workload in &seen.record.workloads {
        let back = seen.workloads.iter().find(|one| one.kind == workload.kind && one.name == workload.name);
        match back {
            // Pods and Jobs may have another name, or be over.
            None if matches!(workload.kind, WorkloadKind::Pod | WorkloadKind::Job) => {}
            None => not_back.push(format!(
                "{} is not there: it is not in backup {}",
                workload.called(),
                seen.record.backup
            )),
            Some(back) if !back.is_available => not_available.push(workload.called()),
            Some(_) => {}
        }
    }
    open.append(&mut not_back);
    if !not_available.is_empty() && !is_over_for_long(restore, seen.now) {
        return Step::WaitForWorkloads(not_available);
    }
    open.extend(not_available.into_iter().map(|name| format!("{name} is not available")));
    Step::Done(open)
}

/// Whether every claim that is not part of the replacement was left as it was: that is what somebody agreed to.
fn is_all_else_as_agreed(seen: &Observed<'_>, restore: &NonAdminRestore) -> bool {
    let Some(status) = restore.status.as_ref().filter(|status| status.claims_not_listed.is_none()) else {
        return false;
    };
    let all = seen.record.all_claims();
    let replaced = |name: &str| all.iter().any(|claim| claim.name == name);
    let was_there = |name: &str| {
        let claim = seen.claims.iter().find(|claim| claim.name == name);
        let asked = restore.metadata.creation_timestamp.as_ref();
        claim.and_then(|claim| claim.created).zip(asked).is_some_and(|(created, asked)| created < asked.0)
    };
    let mut others = status.claims.iter().filter(|claim| !replaced(&claim.name)).peekable();
    others.peek().is_some()
        && others.all(|claim| match claim.state {
            ClaimState::Restored => true,
            ClaimState::Kept | ClaimState::NoData => was_there(&claim.name),
            _ => false,
        })
}

/// Whether the restore was refused and would still begin if the policy changed, after the replacement was given up.
pub fn is_refused(seen: &Observed<'_>) -> bool {
    seen.restore.is_some_and(|restore| matches!(evidence::of_restore(restore), Standing::Refused(_)))
}

/// Where a replacement stands, object by object.
pub fn stands(seen: &Observed<'_>) -> Vec<String> {
    let claims = seen.record.all_claims().into_iter().map(|claim| {
        let found: Vec<&Claim> = seen.claims.iter().filter(|one| one.name == claim.name).collect();
        let how = match found.first() {
            None => "removed",
            Some(one) if one.uid != claim.uid => "there again, as a new claim",
            Some(one) if one.is_deleting => "being deleted, with the old data",
            Some(_) => "there, with the old data",
        };
        format!("claim {}: {how}", claim.name)
    });
    let workloads = seen.record.workloads.iter().map(|workload| {
        let found = seen.workloads.iter().find(|one| one.kind == workload.kind && one.name == workload.name);
        let how = match found {
            None => "removed",
            Some(one) if one.uid != workload.uid => "there again",
            Some(one) if one.is_deleting => "being deleted",
            Some(_) => "there, as before",
        };
        format!("{}: {how}", workload.called())
    });
    claims.chain(workloads).collect()
}

fn is_over_for_long(restore: &NonAdminRestore, now: Timestamp) -> bool {
    let velero = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
    let ended = velero.and_then(|velero| velero.completion_timestamp.as_ref());
    ended.is_none_or(|ended| ended.0 + WORKLOADS_GET < now)
}

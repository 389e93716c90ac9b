//! The promise: at no point is there neither the old data nor a complete safety backup. The world moves between any two
//! writes, and the program is killed between any two of them.

use std::collections::{BTreeMap, BTreeSet};

use api::{NonAdminBackup, NonAdminRestore};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::step::{backup, condition, now, restore};
use super::{claim, owned_by, workload};
use crate::replace::objects::{Claim, Workload, WorkloadKind};
use crate::replace::record::{ClaimRef, Record};
use crate::replace::scope::{self, choose};
use crate::replace::step::{Observed, Removal, Step, next_step};
use crate::restore_preview::SavedClaim;

/// What somebody else does between two writes.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Velero goes on with what it has.
    Velero,
    /// Velero fails what it has.
    VeleroFails,
    /// The garbage collector removes what is being deleted.
    Collect,
    /// The CronJob fires.
    CronJobFires,
    /// The program is killed, and started again.
    Killed,
    /// Nothing: the program goes on.
    Nothing,
    /// Somebody deletes the safety backup.
    SafetyDeleted,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Velero),
        1 => Just(Event::VeleroFails),
        4 => Just(Event::Collect),
        2 => Just(Event::CronJobFires),
        3 => Just(Event::Killed),
        3 => Just(Event::Nothing),
        1 => Just(Event::SafetyDeleted),
    ]
}

/// What decides about the next step: the program's, or one with a planted bug.
type Next = fn(&Observed<'_>) -> Step;

struct World {
    next: Next,
    record: Option<Record>,
    /// Which claims hold the old data, by uid.
    old_data: BTreeSet<String>,
    claims: Vec<Claim>,
    workloads: Vec<Workload>,
    /// The phase of the safety backup, and the claims whose data it holds.
    safety: Option<(&'static str, BTreeSet<String>)>,
    /// Whether the node agent saves all claims, or forgets one.
    forgets_one: bool,
    restore: Option<&'static str>,
    fired: usize,
    /// What the program had decided to remove, and has not sent yet.
    pending: Vec<Removal>,
    ended: Option<Step>,
}

fn new_world(next: Next, forgets_one: bool, orphan: bool) -> World {
    let retention = if orphan { "Delete" } else { "Retain" };
    let set = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": retention}}});
    let workloads = vec![
        workload(WorkloadKind::Deployment, "web", &["files"], &json!({})),
        workload(WorkloadKind::ReplicaSet, "web-1", &["files"], &owned_by("apps/v1", "Deployment", "web")),
        workload(WorkloadKind::Pod, "web-1-a", &["files"], &owned_by("apps/v1", "ReplicaSet", "web-1")),
        workload(WorkloadKind::StatefulSet, "db", &[], &set),
        workload(WorkloadKind::Pod, "db-0", &["data-db-0"], &owned_by("apps/v1", "StatefulSet", "db")),
        workload(WorkloadKind::CronJob, "clean", &["files"], &json!({})),
    ];
    let claims: Vec<Claim> = ["files", "data-db-0"].map(claim).to_vec();
    let saved: BTreeMap<_, _> =
        claims.iter().map(|claim| (claim.name.clone(), SavedClaim::Saved(None))).collect();
    let seen = scope::Observed {
        backup: "good",
        claims: &claims,
        workloads: &workloads,
        saved,
        ..Default::default()
    };
    let scope = choose(&seen).unwrap();
    World {
        next,
        record: Some(Record {
            backup: "good".to_owned(),
            backup_uid: "uid-good".to_owned(),
            safety_backup: Some("before".to_owned()),
            restore: "back".to_owned(),
            claims: scope.claims,
            workloads: scope.workloads,
            ..Record::default()
        }),
        old_data: claims.iter().map(|claim| claim.uid.clone()).collect(),
        claims,
        workloads,
        safety: None,
        forgets_one,
        restore: None,
        fired: 0,
        pending: Vec::new(),
        ended: None,
    }
}

impl World {
    fn safety_backup(&self) -> Option<NonAdminBackup> {
        let (phase, holds) = self.safety.as_ref()?;
        let all = holds.len() == 2;
        let claims: Vec<_> = ["files", "data-db-0"]
            .iter()
            .map(|name| json!({"name": name, "state": if holds.contains(*name) { "Saved" } else { "NotSaved" }}))
            .collect();
        let (status, reason) = if all { ("True", "AllClaimsSaved") } else { ("False", "ClaimsNotSaved") };
        let over = *phase != "InProgress";
        let report = json!({"status": {"claims": if over { json!(claims) } else { json!([]) },
            "conditions": [if over { condition("DataProtected", status, reason) } else { condition("DataProtected", "Unknown", "StillRunning") }]}});
        Some(backup("before", phase, &report))
    }

    fn restore(&self) -> Option<NonAdminRestore> {
        let data = match self.restore? {
            "Completed" => condition("DataRestored", "True", "AllVolumesRestored"),
            "InProgress" => condition("DataRestored", "Unknown", "StillRunning"),
            _ => condition("DataRestored", "False", "VolumesFailed"),
        };
        Some(restore(self.restore?, &[data]))
    }

    /// One write of the program, or the decision about the next ones.
    fn act(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if let Some(removal) = (!self.pending.is_empty()).then(|| self.pending.remove(0)) {
            return self.remove(&removal);
        }
        let Some(record) = &self.record else { return };
        let (good, safety, restored) =
            (backup("good", "Completed", &json!({})), self.safety_backup(), self.restore());
        let step = (self.next)(&Observed {
            record,
            backup: Some(&good),
            safety_backup: safety.as_ref(),
            restore: restored.as_ref(),
            claims: &self.claims,
            workloads: &self.workloads,
            now: now(),
        });
        match step {
            Step::CreateSafetyBackup => self.safety = Some(("InProgress", BTreeSet::new())),
            Step::RecordChecked => {
                if let Some(record) = &mut self.record {
                    record.checked = true;
                }
            }
            Step::Remove(removals) => self.pending = removals,
            Step::CreateRestore => self.restore = Some("InProgress"),
            Step::WaitForSafetyBackup(_)
            | Step::WaitForRemoval(_)
            | Step::WaitForRestore(_)
            | Step::WaitForWorkloads(_) => {}
            Step::Stop(_) | Step::Done(_) | Step::Failed(_) => {
                self.record = None;
                self.ended = Some(step);
            }
        }
    }

    fn remove(&mut self, removal: &Removal) {
        match removal {
            Removal::Workload { uid, orphan, .. } => {
                for one in self.workloads.iter_mut().filter(|one| one.uid == *uid) {
                    one.is_deleting = true;
                }
                if *orphan {
                    for one in &mut self.workloads {
                        one.owner = one.owner.take().filter(|owner| owner.uid != *uid);
                    }
                }
            }
            Removal::Claim(ClaimRef { uid, .. }) => {
                for one in self.claims.iter_mut().filter(|one| one.uid == *uid) {
                    one.is_deleting = true;
                }
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Velero => self.velero(true),
            Event::VeleroFails => self.velero(false),
            Event::Collect => self.collect(),
            Event::CronJobFires => {
                let alive =
                    self.workloads.iter().any(|one| one.kind == WorkloadKind::CronJob && !one.is_deleting);
                // The new Jobs of a CronJob that is restored belong to a new one.
                if alive && self.restore.is_none() && self.fired < 3 {
                    self.fired += 1;
                    let (job, pod) = (format!("clean-{}", self.fired), format!("clean-{}-a", self.fired));
                    self.workloads.push(workload(
                        WorkloadKind::Job,
                        &job,
                        &["files"],
                        &owned_by("batch/v1", "CronJob", "clean"),
                    ));
                    self.workloads.push(workload(
                        WorkloadKind::Pod,
                        &pod,
                        &["files"],
                        &owned_by("batch/v1", "Job", &job),
                    ));
                }
            }
            // What was decided and not sent is lost; everything else is in the cluster.
            Event::Killed => self.pending.clear(),
            Event::Nothing => {}
            Event::SafetyDeleted => {
                // Not while something depends on it: nobody can promise anything then.
                if self.old_data.len() == 2
                    && self.claims.iter().all(|claim| !claim.is_deleting)
                    && self.pending.is_empty()
                {
                    self.safety = None;
                }
            }
        }
    }

    fn velero(&mut self, well: bool) {
        if let Some((phase, holds)) = self.safety.as_mut().filter(|(phase, _)| *phase == "InProgress") {
            *phase = if well { "Completed" } else { "PartiallyFailed" };
            holds.insert("files".to_owned());
            if !self.forgets_one && well {
                holds.insert("data-db-0".to_owned());
            }
        }
        if self.restore == Some("InProgress") {
            self.restore = Some(if well { "Completed" } else { "PartiallyFailed" });
            for name in ["files", "data-db-0"] {
                self.claims.push(Claim { uid: format!("new-{name}"), ..claim(name) });
            }
            for (kind, name) in [
                (WorkloadKind::Deployment, "web"),
                (WorkloadKind::StatefulSet, "db"),
                (WorkloadKind::CronJob, "clean"),
            ] {
                let mut back =
                    workload(kind, name, &[], &json!({"metadata": {"uid": format!("new-{name}")}}));
                back.is_available = true;
                self.workloads.push(back);
            }
        }
    }

    fn collect(&mut self) {
        self.workloads.retain(|one| !one.is_deleting);
        let alive: BTreeSet<String> = self.workloads.iter().map(|one| one.uid.clone()).collect();
        for one in &mut self.workloads {
            one.is_deleting |= one.owner.as_ref().is_some_and(|owner| !alive.contains(&owner.uid));
        }
        // A claim that a pod uses stays.
        let used = |claim: &Claim| {
            self.workloads.iter().any(|one| one.kind == WorkloadKind::Pod && one.uses(&claim.name))
        };
        let gone: Vec<String> = self
            .claims
            .iter()
            .filter(|claim| claim.is_deleting && !used(claim))
            .map(|claim| claim.uid.clone())
            .collect();
        self.claims.retain(|claim| !gone.contains(&claim.uid));
        for uid in gone {
            self.old_data.remove(&uid);
        }
    }

    fn is_safe(&self) -> bool {
        let saved = |name: &str| {
            self.safety.as_ref().is_some_and(|(phase, holds)| *phase == "Completed" && holds.contains(name))
        };
        ["files", "data-db-0"].iter().all(|name| {
            let doomed = self.claims.iter().any(|claim| claim.name == *name && claim.is_deleting);
            (self.old_data.contains(&format!("uid-{name}")) && !doomed) || saved(name)
        })
    }
}

/// Everything that can happen to one attempt.
fn course() -> impl Strategy<Value = (Vec<Event>, bool, bool)> {
    (prop::collection::vec(event(), 0..80), any::<bool>(), any::<bool>())
}

/// The promise, for one attempt.
fn keeps_the_promise(
    next: Next,
    (events, forgets_one, orphan): (Vec<Event>, bool, bool),
) -> Result<(), TestCaseError> {
    let mut world = new_world(next, forgets_one, orphan);
    for event in events {
        world.act();
        prop_assert!(world.is_safe(), "after a write, before {event:?}");
        world.happens(event);
        prop_assert!(world.is_safe(), "after {event:?}");
    }
    // Left alone, it comes to an end.
    for _ in 0..60 {
        world.act();
        prop_assert!(world.is_safe());
        if world.pending.is_empty() {
            world.happens(Event::Collect);
            world.happens(Event::Velero);
        }
    }
    let untouched = world.old_data.len() == 2;
    match &world.ended {
        Some(Step::Stop(_)) => prop_assert!(untouched, "a stop has removed nothing"),
        Some(Step::Done(open)) => {
            prop_assert!(open.is_empty() && world.restore == Some("Completed"), "{open:?}");
        }
        Some(Step::Failed(_)) => prop_assert!(world.safety.is_some() || untouched),
        other => prop_assert!(false, "it hangs: {other:?}"),
    }
    if forgets_one {
        prop_assert!(untouched, "without a complete safety backup nothing is removed");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn at_no_point_is_there_neither_the_old_data_nor_a_safety_backup(course in course()) {
        keeps_the_promise(next_step, course)?;
    }
}

/// Each of these loses data now and then; the property must notice.
#[test]
fn the_property_finds_planted_bugs() {
    fn removes_all(seen: &Observed<'_>) -> Step {
        Step::Remove(seen.record.claims.iter().cloned().map(Removal::Claim).collect())
    }
    /// Does not wait for the safety backup.
    fn impatient(seen: &Observed<'_>) -> Step {
        match next_step(seen) {
            Step::WaitForSafetyBackup(_) => removes_all(seen),
            step => step,
        }
    }
    /// Takes whatever the safety backup holds for everything.
    fn credulous(seen: &Observed<'_>) -> Step {
        match next_step(seen) {
            Step::Stop(_) if seen.safety_backup.is_some() && !seen.record.checked => removes_all(seen),
            step => step,
        }
    }
    /// Waits for what is gone already, for ever.
    fn forgetful(seen: &Observed<'_>) -> Step {
        match next_step(seen) {
            Step::CreateRestore => Step::WaitForRemoval(Vec::new()),
            step => step,
        }
    }
    for (name, planted) in
        [("impatient", impatient as Next), ("credulous", credulous), ("forgetful", forgetful)]
    {
        let config = ProptestConfig {
            cases: 300,
            failure_persistence: None,
            max_shrink_iters: 0,
            ..Default::default()
        };
        let found = TestRunner::new(config).run(&course(), |course| keeps_the_promise(planted, course));
        assert!(found.is_err(), "{name} went unnoticed");
    }
}

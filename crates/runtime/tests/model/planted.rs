//! Planted bugs. The search must find each of them, or it proves nothing.

use api::velero::Backup;
use std::sync::Arc;
use std::time::Duration;

use api::{Kind, NonAdminBackup, labels};

use planner::schedule::Marked;
use planner::turns::Turn;
use planner::{Action, Key, Plan, State, backup};
use serde_json::json;

use crate::moves::Left;
use crate::search::explore;
use crate::setups::{self, Setup};
use runtime::Bug;

const NOTHING: Left = Left { faults: 0, delays: 0, tricks: 0, wishes: 0, minutes: 0 };

fn assert_found(as_what: &str, setup: Setup, left: Left, bug: Bug) {
    let found = explore(Setup { left, ..setup }, Some(bug)).expect_err("nobody noticed");
    assert!(found.contains(as_what), "{found}");
}

fn is_create(action: &Action) -> bool {
    matches!(action, Action::Create(_))
}

fn is_status(action: &Action) -> bool {
    matches!(action, Action::PatchStatus(..))
}

/// Moves the first such action behind the first of the others.
fn behind(mut plan: Plan, moved: fn(&Action) -> bool, other: fn(&Action) -> bool) -> Plan {
    let from = plan.actions.iter().position(moved);
    let to = plan.actions.iter().position(other);
    if let (Some(from), Some(to)) = (from, to)
        && from < to
    {
        let action = plan.actions.remove(from);
        plan.actions.insert(to, action);
    }
    plan
}

/// Decides about a backup that is seen otherwise than it is.
fn deluded(state: &State, key: &Key, plan: Plan, delude: fn(&State, &mut backup::Observed)) -> Plan {
    if key.kind != Kind::NonAdminBackup {
        return plan;
    }
    let Some(mut seen) = backup::observe(state, &key.namespace, &key.name) else { return plan };
    delude(state, &mut seen);
    backup::decide(&seen)
}

#[test]
fn creating_before_holding() {
    let left = Left { faults: 1, wishes: 2, ..NOTHING };
    assert_found("is left behind", setups::two_tenants(), left, |_, _, plan| {
        behind(plan, |action| matches!(action, Action::AddFinalizer(..)), is_create)
    });
}

#[test]
fn saying_it_is_created_before_it_is() {
    let left = Left { faults: 1, wishes: 1, ..NOTHING };
    assert_found("lost what Velero never had", setups::two_tenants(), left, |_, _, mut plan| {
        let held = plan.actions.iter().find_map(|action| match action {
            Action::AddFinalizer(target, _) => Some(target.clone()),
            _ => None,
        });
        if let (Some(held), Some(at)) = (held, plan.actions.iter().position(is_create)) {
            plan.actions.insert(at, Action::PatchStatus(held, json!({"status": {"phase": "Created"}})));
        }
        plan
    });
}

#[test]
fn believing_a_copied_label() {
    let left = Left { tricks: 2, ..NOTHING };
    assert_found("somebody else's", setups::hostile_neighbour(), left, |state, key, plan| {
        deluded(state, key, plan, |state, seen| {
            let label = seen.backup.metadata.labels.as_ref().and_then(|all| all.get(labels::SYNCED_FROM));
            if let Some(found) = label.and_then(|name| state.admin::<Backup>(name)) {
                seen.velero = Some(found);
            }
        })
    });
}

#[test]
fn making_what_is_lost_once_more() {
    let left = Left { wishes: 1, ..NOTHING };
    assert_found("2 times", setups::restore(), left, |state, key, plan| {
        deluded(state, key, plan, |_, seen| Arc::make_mut(&mut seen.backup).status = None)
    });
}

#[test]
fn deleting_data_that_was_to_stay() {
    let left = Left { wishes: 1, ..NOTHING };
    assert_found("nobody asked for this", setups::restore(), left, |state, key, plan| {
        deluded(state, key, plan, |_, seen| {
            let backup = Arc::make_mut(&mut seen.backup);
            if backup.metadata.deletion_timestamp.is_some() {
                backup.spec.delete_backup = Some(true);
            }
        })
    });
}

#[test]
fn letting_go_before_velero_has() {
    let left = Left { faults: 1, wishes: 1, ..NOTHING };
    assert_found("is left behind", setups::restore(), left, |state, key, mut plan| {
        let goes = |action: &Action| matches!(action, Action::Delete(gone) if gone.kind == Kind::Backup);
        let about =
            state.get::<NonAdminBackup>(&key.namespace, &key.name).filter(|_| plan.actions.iter().any(goes));
        if let Some(about) = about {
            let target = planner::Target::of(Kind::NonAdminBackup, &about.metadata);
            plan.actions.insert(0, Action::RemoveFinalizer(target, labels::NAB_FINALIZER));
        }
        plan
    });
}

#[test]
fn forgetting_to_say_why() {
    let left = Left { tricks: 1, ..NOTHING };
    assert_found(
        "neither ended nor says what it waits for",
        setups::hostile_neighbour(),
        left,
        |_, key, mut plan| {
            if key.kind == Kind::NonAdminRestore {
                plan.actions.retain(|action| !is_status(action));
            }
            plan
        },
    );
}

#[test]
fn never_resting() {
    let left = Left { wishes: 1, ..NOTHING };
    assert_found("busy for ever", setups::two_tenants(), left, |_, _, plan| {
        plan.requeue_after(Duration::ZERO)
    });
}

#[test]
fn reaching_for_another_namespace() {
    let left = Left { wishes: 1, ..NOTHING };
    assert_found("another namespace", setups::two_tenants(), left, |_, _, mut plan| {
        for action in &mut plan.actions {
            if let Action::Create(object) = action {
                object.body["spec"]["includedNamespaces"] = json!(["shop", "evil"]);
            }
        }
        plan
    });
}

#[test]
fn making_a_run_before_saying_so() {
    let left = Left { faults: 1, wishes: 1, minutes: 1, ..NOTHING };
    assert_found("2 times", setups::schedule(), left, |_, key, plan| match key.kind {
        Kind::NonAdminSchedule => behind(plan, is_status, is_create),
        _ => plan,
    });
}

#[test]
fn deleting_the_last_good_run() {
    let left = Left { minutes: 1, ..NOTHING };
    assert_found("the last good run is deleted", setups::schedule(), left, |state, key, plan| {
        let runs = state.runs_of(&key.namespace, &key.name);
        match runs.first().filter(|run| key.kind == Kind::NonAdminSchedule && run.status.is_some()) {
            Some(run) => plan.then(Action::Patch(
                planner::Target::of(Kind::NonAdminBackup, &run.metadata),
                json!({"spec": {"deleteBackup": true}}),
            )),
            None => plan,
        }
    });
}

#[test]
fn forgetting_a_run_that_is_due() {
    let wrong = "neither made nor reported";
    assert_found(wrong, setups::schedule(), NOTHING, |_, key, plan| {
        let makes = key.kind == Kind::NonAdminSchedule && plan.actions.iter().any(is_create);
        if makes { Plan::done() } else { plan }
    });
}

#[test]
fn leaving_what_is_not_kept() {
    let wrong = "more good runs than it keeps";
    assert_found(wrong, setups::schedule(), NOTHING, |_, key, mut plan| {
        if key.kind == Kind::NonAdminSchedule {
            let marks = |action: &Action| matches!(action, Action::Patch(_, body) if body["spec"]["deleteBackup"] == json!(true));
            plan.actions.retain(|action| !marks(action));
        }
        plan
    });
}

/// Its owner deletes the newer run between the decision and the write.
#[test]
fn deleting_data_without_looking_again() {
    let left = Left { wishes: 1, minutes: 1, ..NOTHING };
    assert_found("the data of the last good run is deleted", setups::schedule(), left, |state, key, plan| {
        deluded(state, key, plan, |_, seen| {
            if seen.marked == Marked::LastGood {
                seen.marked = Marked::Outdated;
            }
        })
    });
}

/// nacre has not heard of it yet.
#[test]
fn deleting_data_before_everything_was_heard() {
    let left = Left { wishes: 1, minutes: 1, delays: 1, ..NOTHING };
    assert_found("the data of the last good run is deleted", setups::schedule(), left, |state, key, plan| {
        deluded(state, key, plan, |_, seen| {
            if seen.marked == Marked::Unconfirmed {
                seen.marked = Marked::Outdated;
            }
        })
    });
}

#[test]
fn giving_a_turn_twice() {
    assert_found("a turn is given twice", setups::turns(), NOTHING, |_, _, mut plan| {
        plan.turn = None;
        plan
    });
}

#[test]
fn forgetting_a_turn_that_may_have_been_taken() {
    let left = Left { faults: 1, ..NOTHING };
    assert_found("a turn is given twice", setups::turns(), left, |_, _, mut plan| {
        // Only what is sent at once is counted, not what was sent without an answer.
        if plan.actions.first().is_some_and(is_create) {
            plan.turn = None;
        }
        plan
    });
}

#[test]
fn starving_a_namespace() {
    // With one more of evil, it would show earlier that two of them go first.
    let setup = setups::turns_of(&["evil/b", "evil/c", "shop/a"]);
    assert_found("Velero is idle while", setup, NOTHING, |_, key, plan| {
        let is_theirs = key.namespace == "shop" && plan.turn.is_some();
        if is_theirs { Plan::done() } else { plan }
    });
}

#[test]
fn leaving_velero_idle() {
    assert_found("Velero is idle while", setups::turns(), NOTHING, |_, key, mut plan| {
        // Whoever comes later never gets a turn, and says that others go first.
        if key.name != "b" && matches!(plan.turn, Some(Turn::Taken(..))) {
            plan = Plan { turn: Some(Turn::Waits), ..Plan::done() };
        }
        plan
    });
}

/// As if whoever asked first went first: two of another namespace pass somebody who has used nothing.
#[test]
fn letting_a_namespace_go_twice() {
    let mut setup = setups::turns_of(&["evil/b", "evil/c", "evil/d", "shop/a"]);
    for request in ["nab evil/c", "nab evil/d"] {
        setup.start.edit(request, json!({"metadata": {"annotations": {labels::QUEUE: labels::QUEUE_FRONT}}}));
    }
    setup.start.settle();
    assert_found("went before somebody who waited", setup, NOTHING, |_, _, plan| plan);
}

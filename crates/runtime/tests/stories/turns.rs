//! Turns: nobody waits behind somebody else's thousand.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use jiff::Timestamp;
use planner::refresh::Publisher;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{imported, nab, nab_with, nar, object, origin};
use crate::world::replay::Spared;

/// Velero's names for what it has of a kind, in the order in which it got them.
fn handed_over(world: &World) -> Vec<String> {
    let trace = world.whole_trace();
    let made = trace.lines().filter_map(|line| line.strip_prefix("create Backup velero/"));
    made.map(|name| name.rsplit_once("-<").unwrap().0.to_owned()).collect()
}

/// Velero works on a request for a minute and ends it.
fn finish(world: &mut World, request: &str) {
    let name = world.velero_name(request);
    world.velero_starts(&name);
    world.settle();
    world.pass(Duration::from_mins(1));
    world.velero_completes(&name);
    world.settle();
}

fn ask(world: &mut World, requests: &[&str]) {
    // Whoever has a write rejected is passed by the next one.
    world.spare(Spared::Rejections);
    for place in requests {
        world.apply(nab(place));
        world.settle();
        world.pass(Duration::from_secs(1));
    }
}

const FLOOD: [&str; 5] = ["shop/a", "shop/b", "shop/c", "shop/d", "shop/e"];

#[test]
fn whoever_asks_for_one_starts_after_what_velero_has() {
    let mut world = World::with(&["shop", "office"]);
    ask(&mut world, &FLOOD);
    assert_eq!(
        handed_over(&world),
        ["shop-a", "shop-b"],
        "one that runs, and one so that Velero is never idle"
    );
    ask(&mut world, &["office/one"]);
    finish(&mut world, "nab shop/a");
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "office-one"]);
    for request in ["shop/b", "office/one", "shop/c", "shop/d", "shop/e"] {
        finish(&mut world, &format!("nab {request}"));
    }
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "office-one", "shop-c", "shop-d", "shop-e"]);
}

#[test]
fn where_velero_is_given_everything_nobody_waits_in_whatever_order_they_are_decided() {
    for order in 0..10 {
        let mut world = World::with(&["shop", "office"]);
        world.shuffle(order, order % 2 == 0);
        world.policy(|policy| policy.queue.in_flight = Some(0));
        for place in FLOOD.iter().chain(&["office/one"]) {
            world.apply(nab(place));
        }
        world.settle();
        assert_eq!(world.names(Kind::Backup).len(), 6);
        let waited = world.whole_trace().lines().filter(|line| line.contains(" New ")).count();
        assert_eq!(waited, 0, "order {order}: {}", world.whole_trace());
    }
}

#[test]
fn what_waits_is_accepted_and_not_queued_and_costs_one_write_more() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD[..2]);
    world.trace();
    ask(&mut world, &["shop/c"]);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/c New Accepted=True/BackupAccepted WaitingForTurn=True/OthersFirst queue=3");
    assert_snapshot!(world.show("nab shop/c", "status"), @r#"
    {
      "conditions": [
        {
          "lastTransitionTime": "2026-01-01T00:00:02Z",
          "message": "the backup is allowed",
          "observedGeneration": 1,
          "reason": "BackupAccepted",
          "status": "True",
          "type": "Accepted"
        },
        {
          "lastTransitionTime": "2026-01-01T00:00:02Z",
          "message": "2 ahead of you, more if a namespace asks that has used less",
          "observedGeneration": 1,
          "reason": "OthersFirst",
          "status": "True",
          "type": "WaitingForTurn"
        }
      ],
      "phase": "New",
      "queueInfo": {
        "estimatedQueuePosition": 3
      }
    }
    "#);
    finish(&mut world, "nab shop/a");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress
    event Normal BackupStarted: Velero has started the backup
    hold NonAdminBackup shop/c
    create Backup velero/shop-c-<3>
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
}

/// `shop/c` waits, and its turn comes.
fn turn_of_c_comes() -> World {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD[..3]);
    let name = world.velero_name("nab shop/a");
    world.velero_starts(&name);
    world.velero_completes(&name);
    world.trace();
    world.settle();
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "shop-c"]);
    world
}

fn writes_about_c(trace: &str) -> String {
    let lines = trace.lines().filter(|line| line.contains("shop/c") && line.starts_with("status"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_write_shows_that_velero_was_given_it_and_what_velero_reports_a_moment_later() {
    let mut world = turn_of_c_comes();
    let name = world.velero_name("nab shop/c");
    world.velero_starts(&name);
    world.settle();
    assert_snapshot!(writes_about_c(&world.trace()), @"status NonAdminBackup shop/c Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress");
}

#[test]
fn a_request_shows_that_velero_was_given_it_although_velero_is_silent() {
    let mut world = turn_of_c_comes();
    assert_eq!(writes_about_c(&world.trace()), "");
    world.pass(Duration::from_secs(2));
    assert_snapshot!(writes_about_c(&world.trace()), @"status NonAdminBackup shop/c Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=2");
}

/// Somebody deletes the Velero Backup of c before the request shows that Velero has it.
fn c_is_not_made_again(world: &mut World) {
    let name = world.velero_name("nab shop/c");
    world.delete(&format!("backup {name}"));
    world.settle();
    world.pass(Duration::from_mins(1));
    assert_eq!(handed_over(world), ["shop-a", "shop-b", "shop-c"]);
    assert!(world.condition("nab shop/c", "Accepted").contains("is not made again"), "{}", world.trace());
}

#[test]
fn velero_is_not_given_a_request_again_that_never_showed_that_it_was() {
    let mut world = turn_of_c_comes();
    // Once its Velero object is gone, only nacre's memory has it until the request shows it a moment later.
    world.spare(Spared::Crashes);
    c_is_not_made_again(&mut world);
    // Another request of this name is another one.
    world.delete("nab shop/c");
    world.settle();
    ask(&mut world, &["shop/c"]);
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "shop-c", "shop-c"]);
}

/// nacre ended before the request showed that Velero was given it.
#[test]
fn velero_is_not_given_a_request_again_after_a_restart() {
    let mut world = turn_of_c_comes();
    world.restart();
    c_is_not_made_again(&mut world);
}

#[test]
fn a_namespace_that_is_alone_sees_no_difference() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/a"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/a
    create Backup velero/shop-a-<1>
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-a-<1>
    ");
}

#[test]
fn withdrawing_what_waits_costs_velero_nothing() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD[..3]);
    world.delete("nab shop/c");
    world.settle();
    assert!(!world.has("nab shop/c"));
    for request in ["nab shop/a", "nab shop/b"] {
        finish(&mut world, request);
    }
    assert_eq!(handed_over(&world), ["shop-a", "shop-b"]);
}

/// What Velero refused took no time, and says nothing about how long others take: else Velero would be given more at once.
#[test]
fn a_backup_that_velero_refuses_does_not_make_others_look_short() {
    for restarts in [false, true] {
        let mut world = World::with(&["shop", "office", "lab", "home"]);
        ask(&mut world, &["shop/wrong"]);
        let name = world.velero_name("nab shop/wrong");
        world.velero_fails_validation(&name, "no such location");
        world.settle();
        ask(&mut world, &["office/long"]);
        finish(&mut world, "nab office/long");
        if restarts {
            world.pass(Duration::from_hours(1));
            world.restart();
            world.settle();
        }
        ask(&mut world, &["shop/a", "office/a", "lab/a", "home/a"]);
        assert_eq!(
            handed_over(&world),
            ["shop-wrong", "office-long", "shop-a", "office-a"],
            "restarts: {restarts}"
        );
        let name = world.velero_name("nab shop/a");
        let tag =
            world.get(&format!("backup {name}"))["metadata"]["annotations"][planner::turns::TAG].clone();
        assert!(tag.as_str().unwrap().ends_with("/100/60000"), "as long as the other one took: {tag}");
    }
}

#[test]
fn a_backup_withdrawn_while_velero_has_it_queued_does_not_make_others_look_short() {
    let mut world = World::with(&["shop", "office", "lab", "home"]);
    ask(&mut world, &["shop/a", "shop/b"]);
    let name = world.velero_name("nab shop/a");
    world.velero_starts(&name);
    world.delete("nab shop/b");
    world.settle();
    assert_eq!(world.names(Kind::Backup).len(), 1);
    ask(&mut world, &["office/a", "lab/a", "home/a"]);
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "office-a"]);
}

#[test]
fn restores_are_not_held_up_by_backups_nor_the_other_way_round() {
    let mut world = World::with(&["shop"]).backed_up();
    ask(&mut world, &FLOOD[..3]);
    for name in ["r", "s", "t"] {
        world.apply(nar(&format!("shop/{name}"), "daily"));
        world.settle();
    }
    assert_eq!(world.names(Kind::Backup).len(), 3, "one is done, two are at Velero");
    assert_eq!(world.names(Kind::Restore).len(), 2);
    assert_snapshot!(world.show("nar shop/t", "status"), @r#"
    {
      "conditions": [
        {
          "lastTransitionTime": "2026-01-01T00:00:03Z",
          "message": "the restore is allowed",
          "observedGeneration": 1,
          "reason": "RestoreAccepted",
          "status": "True",
          "type": "Accepted"
        },
        {
          "lastTransitionTime": "2026-01-01T00:00:03Z",
          "message": "2 ahead of you, more if a namespace asks that has used less",
          "observedGeneration": 1,
          "reason": "OthersFirst",
          "status": "True",
          "type": "WaitingForTurn"
        }
      ],
      "phase": "New",
      "queueInfo": {
        "estimatedQueuePosition": 3
      }
    }
    "#);
    let name = world.velero_name("nar shop/r");
    world.velero_starts(&name);
    world.velero_completes(&name);
    world.settle();
    assert_eq!(world.names(Kind::Restore).len(), 3);
}

#[test]
fn while_velero_is_down_nothing_is_given_out_and_afterwards_nothing_is_stuck() {
    let mut world = World::with(&["shop", "office"]);
    ask(&mut world, &FLOOD);
    world.pass(Duration::from_hours(48));
    ask(&mut world, &["office/one"]);
    assert_eq!(handed_over(&world), ["shop-a", "shop-b"]);
    for request in ["shop/a", "shop/b", "office/one", "shop/c", "shop/d", "shop/e"] {
        finish(&mut world, &format!("nab {request}"));
    }
    assert_eq!(handed_over(&world).len(), 6);
}

#[test]
fn what_administrators_give_velero_counts_too() {
    let mut world = World::with(&["shop"]);
    for name in ["nightly-1", "nightly-2"] {
        world.apply(object(Kind::Backup, &format!("velero/{name}"), json!({"spec": {}})));
    }
    ask(&mut world, &["shop/a"]);
    assert_eq!(handed_over(&world), [""; 0]);
    world.velero_starts("nightly-1");
    world.velero_completes("nightly-1");
    world.settle();
    assert_eq!(handed_over(&world), ["shop-a"]);
}

/// Velero works through all it has and is given, in order.
fn drain(world: &mut World) -> Vec<String> {
    let over = |world: &World, name: &str| !world.get(&format!("backup {name}"))["status"]["phase"].is_null();
    for _ in 0..100 {
        let trace = world.whole_trace();
        let made = trace.lines().filter_map(|line| line.strip_prefix("create Backup velero/"));
        let Some(next) = made.map(str::to_owned).find(|name| !over(world, name)) else { break };
        world.velero_starts(&next);
        world.pass(Duration::from_mins(1));
        world.velero_completes(&next);
        world.settle();
    }
    handed_over(world)
}

#[test]
fn a_restart_keeps_the_order_and_writes_nothing() {
    let [calm, restarted] = [false, true].map(|restarts| {
        let mut world = World::with(&["shop", "office", "lab"]);
        ask(&mut world, &FLOOD);
        finish(&mut world, "nab shop/a");
        ask(&mut world, &["office/one", "lab/one", "office/two"]);
        world.refresh_positions();
        if restarts {
            let before = world.writes();
            world.restart();
            world.settle();
            assert_eq!(world.writes(), before);
        }
        drain(&mut world)
    });
    assert_eq!(calm, restarted);
    assert_eq!(calm.len(), 8);
}

#[test]
fn deleting_ones_backups_does_not_erase_what_was_used() {
    for is_written in [true, false] {
        let mut world = World::with(&["shop", "office", "lab"]);
        world.policy(|policy| policy.queue.in_flight = Some(1));
        ask(&mut world, &["shop/a", "shop/b", "shop/c"]);
        drain(&mut world);
        let ledger = world.state().ledger_write();
        if let Some(planner::Action::Create(map)) = ledger.filter(|_| is_written) {
            world.apply(map.body);
        }
        for request in ["nab shop/a", "nab shop/b", "nab shop/c"] {
            world.delete(request);
            world.settle();
        }
        world.restart();
        world.settle();
        ask(&mut world, &["lab/first", "shop/d", "office/z"]);
        finish(&mut world, "nab lab/first");
        let expected = if is_written { "office-z" } else { "shop-d" };
        assert_eq!(handed_over(&world).last().map(String::as_str), Some(expected));
        assert!(world.state().ledger_write().is_some(), "more was used since");
    }
}

#[test]
fn one_that_cannot_start_when_its_turn_comes_stops_no_other() {
    let mut world = World::with(&["shop", "office"]);
    let location = world.tenant_storage("shop/own");
    ask(&mut world, &["office/a", "office/b"]);
    world.apply(nab_with("shop/first", json!({"storageLocation": "own"})));
    world.settle();
    ask(&mut world, &["office/c", "shop/second"]);
    world.forge_status("nabsl shop/own", json!({"phase": "BackingOff"}));
    world.edit(&format!("bsl {location}"), json!({"status": {"phase": "Unavailable"}}));
    world.settle();
    finish(&mut world, "nab office/a");
    finish(&mut world, "nab office/b");
    assert_eq!(handed_over(&world), ["office-a", "office-b", "shop-second", "office-c"]);
    assert_eq!(world.get("nab shop/first")["status"]["phase"], "BackingOff");
    world.edit(&format!("bsl {location}"), json!({"status": {"phase": "Available"}}));
    world.forge_status("nabsl shop/own", json!({"phase": "Created"}));
    finish(&mut world, "nab shop/second");
    assert_eq!(handed_over(&world).last().unwrap(), "shop-first");
}

#[test]
fn an_administrator_holds_one_back_and_moves_another_to_the_front() {
    let mut world = World::with(&["shop", "office"]);
    ask(&mut world, &FLOOD);
    ask(&mut world, &["office/one"]);
    let say = |what: &str| json!({"metadata": {"annotations": {labels::QUEUE: what}}});
    world.edit("nab shop/e", say("front"));
    world.edit("nab shop/c", say("hold"));
    world.settle();
    finish(&mut world, "nab shop/a");
    finish(&mut world, "nab shop/b");
    assert_eq!(handed_over(&world), ["shop-a", "shop-b", "shop-e", "office-one"]);
    finish(&mut world, "nab shop/e");
    finish(&mut world, "nab office/one");
    assert_eq!(handed_over(&world).last().unwrap(), "shop-d");
    finish(&mut world, "nab shop/d");
    assert_eq!(handed_over(&world).len(), 5, "what is held back stays where it is");
    world.edit("nab shop/c", json!({"metadata": {"annotations": {labels::QUEUE: null}}}));
    world.settle();
    assert_eq!(handed_over(&world).last().unwrap(), "shop-c");
}

#[test]
fn backups_that_a_tenant_planted_hold_up_nobody() {
    let mut world = World::with(&["shop", "evil"]);
    let storage = world.tenant_storage("evil/own");
    for number in 0..5 {
        let mut planted = imported(&format!("planted-{number}"), &storage, origin("evil", "x"));
        planted["status"] = json!({"phase": "InProgress", "startTimestamp": "2026-01-01T00:00:00Z"});
        planted["metadata"]["annotations"][planner::turns::TAG] = json!("0/9007199254740991/1/1");
        world.apply(planted);
    }
    ask(&mut world, &FLOOD[..2]);
    assert_eq!(handed_over(&world), ["shop-a"]);
    finish(&mut world, "nab shop/a");
    assert_eq!(handed_over(&world), ["shop-a", "shop-b"], "one after the other");
}

/// Each has another priority in its tag. None of them is that of the namespace.
#[test]
fn tags_that_a_tenant_forged_are_not_written_down() {
    let mut world = World::with(&["shop", "evil"]);
    let storage = world.tenant_storage("evil/own");
    let uid = world.get("ns evil")["metadata"]["uid"].clone();
    for number in 1..50 {
        let mut planted = imported(&format!("planted-{number}"), &storage, origin("evil", "x"));
        planted["status"] = json!({"phase": "InProgress", "startTimestamp": "2026-01-01T00:00:00Z"});
        let annotations = &mut planted["metadata"]["annotations"];
        annotations[planner::turns::TAG] = json!(format!("{number}/5000/1/1"));
        annotations[labels::ORIGIN_NAMESPACE_UID] = uid.clone();
        world.apply(planted);
    }
    world.settle();
    assert_eq!(world.state().ledger_write(), None);
}

/// A backup of another cluster, or of one that is gone, which Velero found in the storage of the platform.
#[test]
fn what_velero_imported_says_nothing_about_turns() {
    let mut world = World::with(&["shop", "office", "lab"]);
    let mut found = imported("old", "default", origin("shop", "old"));
    let time = "2025-12-31T00:00:00Z";
    found["status"] = json!({"phase": "Completed", "startTimestamp": time, "completionTimestamp": time});
    found["metadata"]["annotations"][planner::turns::TAG] = json!("0/123456789000/100/0");
    found["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!("elsewhere");
    world.apply(found);
    world.settle();
    ask(&mut world, &["shop/a", "office/a", "lab/a"]);
    assert_eq!(handed_over(&world), ["shop-a", "office-a"], "nobody knows that they are short");
    let name = world.velero_name("nab shop/a");
    let tag = world.get(&format!("backup {name}"))["metadata"]["annotations"][planner::turns::TAG].clone();
    assert_eq!(tag, "0/0/100/30000");
}

#[test]
fn without_a_limit_everything_is_handed_over_at_once() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD[..3]);
    world.policy(|policy| policy.queue.in_flight = Some(0));
    world.settle();
    ask(&mut world, &FLOOD[3..]);
    assert_eq!(handed_over(&world).len(), 5);
}

#[test]
fn positions_of_those_that_wait_are_brought_up_to_date() {
    let mut world = World::with(&["shop", "office"]);
    ask(&mut world, &FLOOD);
    let position = |world: &World, request: &str| {
        world.get(request)["status"]["queueInfo"]["estimatedQueuePosition"].clone()
    };
    assert_eq!(position(&world, "nab shop/e"), json!(5));
    let mut publisher = Publisher::default();
    assert_eq!(publisher.next(&world.state(), 0, world.clock()), []);
    ask(&mut world, &["office/one"]);
    assert_eq!(position(&world, "nab office/one"), json!(3), "it goes before the others of shop");
    assert_eq!(publisher.next(&world.state(), 0, world.clock()).len(), 3);
    world.refresh_positions();
    assert_eq!(position(&world, "nab shop/e"), json!(6), "a position may rise");
    assert_eq!(publisher.next(&world.state(), 0, world.clock()), []);
    finish(&mut world, "nab shop/a");
    world.refresh_positions();
    assert_eq!(position(&world, "nab shop/e"), json!(5));
}

/// What a request shows of when it starts.
fn starts(world: &World, request: &str) -> [String; 3] {
    let info = world.get(request)["status"]["queueInfo"].clone();
    ["earliestStart", "estimatedStart", "latestStart"]
        .map(|field| info[field].as_str().unwrap_or_default().to_owned())
}

#[test]
fn once_one_has_ended_those_that_wait_show_when_they_start() {
    let mut world = World::with(&["shop", "office"]);
    ask(&mut world, &FLOOD);
    assert_eq!(starts(&world, "nab shop/e"), ["", "", ""], "nobody knows how long one takes");
    finish(&mut world, "nab shop/a");
    world.refresh_positions();
    assert_eq!(
        world.condition("nab shop/e", "WaitingForTurn"),
        "True/OthersFirst: starts at about 2026-01-01 00:04 UTC (00:01 to 00:07); 3 ahead of you, more if a namespace asks that \
         has used less"
    );
    let minutes = [1, 4, 7].map(|minute| format!("2026-01-01T00:0{minute}:00Z"));
    assert_eq!(starts(&world, "nab shop/e"), minutes);
    ask(&mut world, &["office/one"]);
    let message = world.condition("nab office/one", "WaitingForTurn");
    assert!(message.contains("starts at about 2026-01-01 00:03"), "{message}");
    assert!(message.contains("; 2 ahead of you, "), "{message}");
    let name = world.velero_name("nab shop/b");
    world.velero_starts(&name);
    world.velero_completes(&name);
    world.settle();
    finish(&mut world, "nab shop/c");
    assert_eq!(world.condition("nab office/one", "WaitingForTurn"), "/: ", "Velero has it");
    assert_eq!(starts(&world, "nab office/one"), ["", "", ""]);
}

/// Velero works on a request for ten seconds, and then moves its data.
fn move_data(world: &mut World, request: &str) {
    let name = world.velero_name(request);
    world.velero_starts(&name);
    world.settle();
    world.pass(Duration::from_secs(10));
    let moves = json!({"phase": "WaitingForPluginOperations", "backupItemOperationsAttempted": 1});
    world.velero_says(&name, moves);
    world.settle();
}

#[test]
fn those_that_wait_do_not_wait_for_data_that_is_moved_meanwhile() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD);
    for request in FLOOD {
        move_data(&mut world, &format!("nab {request}"));
    }
    world.pass(Duration::from_hours(1));
    for request in FLOOD {
        let name = world.velero_name(&format!("nab {request}"));
        world.velero_completes(&name);
        world.settle();
    }
    ask(&mut world, &["shop/f", "shop/g", "shop/h"]);
    move_data(&mut world, "nab shop/f");
    let name = world.velero_name("nab shop/g");
    world.velero_starts(&name);
    world.settle();
    ask(&mut world, &["shop/i", "shop/j"]);
    let [_, about, latest] = starts(&world, "nab shop/j").map(|time| time.parse::<Timestamp>().unwrap());
    let wait = |time: Timestamp| time.duration_since(world.clock()).as_secs();
    assert!((10..=40).contains(&wait(about)) && wait(latest) < 90, "{about} to {latest}");
    // After a restart nobody knows how long a worker was busy with what is over.
    for request in ["nab shop/f", "nab shop/g"] {
        let name = world.velero_name(request);
        world.velero_says(&name, json!({"backupItemOperationsAttempted": 1}));
        world.velero_completes(&name);
        world.settle();
    }
    world.restart();
    world.settle();
    ask(&mut world, &["shop/k"]);
    assert_eq!(starts(&world, "nab shop/k"), ["", "", ""]);
}

/// Velero hangs for two days. What is shown is written again when it is over, and more and more rarely.
#[test]
fn an_estimate_that_did_not_come_true_is_written_again_a_few_times() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD);
    finish(&mut world, "nab shop/a");
    let name = world.velero_name("nab shop/b");
    world.velero_starts(&name);
    world.settle();
    let mut publisher = Publisher::default();
    let mut round = |world: &mut World| {
        let now = world.clock();
        let due = publisher.next(&world.state(), 0, now);
        if !due.is_empty() {
            world.publish_positions(due);
        }
    };
    for _ in 0..5 {
        round(&mut world);
    }
    let before = world.writes();
    for _ in 0..5 {
        round(&mut world);
    }
    assert_eq!(world.writes(), before, "nothing is written while nothing happens");
    let first = starts(&world, "nab shop/e");
    for _ in 0..2 * 24 * 60 {
        world.pass(Duration::from_mins(1));
        round(&mut world);
    }
    let writes = world.writes() - before;
    assert!((6..=30).contains(&writes), "{writes} writes for three that waited two days");
    assert!(starts(&world, "nab shop/e")[0] > first[2], "{:?}", starts(&world, "nab shop/e"));
}

/// OADP's CRDs do not know estimates: the API server drops the fields, and nothing is written again because of that.
#[test]
fn an_estimate_that_the_crd_drops_is_not_written_again() {
    let mut world = World::with(&["shop"]);
    ask(&mut world, &FLOOD);
    finish(&mut world, "nab shop/a");
    world.refresh_positions();
    assert_ne!(starts(&world, "nab shop/e")[1], "");
    for request in ["nab shop/d", "nab shop/e"] {
        let dropped = json!({"estimatedStart": null, "earliestStart": null, "latestStart": null});
        world.forge_status(request, json!({"queueInfo": dropped}));
    }
    world.pass(Duration::from_secs(2));
    let before = world.writes();
    world.pass(Duration::from_hours(3));
    world.refresh_positions();
    assert_eq!(world.writes(), before);
    let now = world.clock();
    assert_eq!(Publisher::default().next(&world.state(), 0, now), []);
}

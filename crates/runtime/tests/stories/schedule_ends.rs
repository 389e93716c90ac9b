//! What becomes of the backups of a schedule that is deleted, and of the runs of one that nobody confirms.

use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use planner::policy::RequesterMode;
use serde_json::{Value, json};

use super::schedules::{days_pass, nas, runs, velero_works, world};
use crate::world::World;
use crate::world::people::{EDIT, asked_by};

const DAY: Duration = Duration::from_hours(24);

/// When the only Velero Backup expires.
fn expiration(world: &World) -> Timestamp {
    let name = world.names(Kind::Backup).pop().unwrap();
    let text = world.get(&format!("backup {name}"))["status"]["expiration"].clone();
    text.as_str().unwrap().parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn backups_of_a_deleted_schedule_stay_for_the_ttl_of_its_template() {
    for (template, until) in
        [(json!({}), "2026-02-01T00:00:00Z"), (json!({"ttl": "48h"}), "2026-01-04T00:00:00Z")]
    {
        let mut world = world();
        let spec = json!({"retention": {"keepLast": 1}, "template": {"backupSpec": template}});
        world.apply(nas("shop/nightly", "0 2 * * *", spec.clone()));
        days_pass(&mut world, 1);
        let longest = expiration(&world);
        assert!(longest > at("2035-01-01T00:00:00Z"), "nacre deletes it, and not Velero: {longest}");
        assert_eq!(world.shorten_lives(), 0, "it has a schedule");

        world.delete("nas shop/nightly");
        world.settle();
        assert_eq!(world.shorten_lives(), 1);
        assert_eq!(expiration(&world), at(until));
        assert_eq!((runs(&world).len(), world.shorten_lives()), (1, 0), "it stays until then, moved once");
        world.pass(DAY);
        assert_eq!(world.shorten_lives(), 0);

        // It comes back, and takes its backups over again.
        world.apply(nas("shop/nightly", "0 2 * * *", spec));
        world.settle();
        assert_eq!(expiration(&world), longest);
        world.trace();
        world.pass(Duration::from_mins(30));
        assert_eq!(world.trace(), "", "given back once");
    }
}

/// The policy may be changed after the runs were made, and a tenant can write the time onto them.
#[test]
fn backups_of_a_deleted_schedule_stay_at_least_as_long_as_the_policy_in_force_requires() {
    for (least, until) in [("72h", "2026-01-05T00:00:00Z"), ("24h", "2026-01-04T00:00:00Z")] {
        for is_floor in [false, true] {
            let mut world = world();
            let spec = json!({"retention": {"keepLast": 5}, "template": {"backupSpec": {"ttl": "48h"}}});
            world.apply(nas("shop/nightly", "0 2 * * *", spec));
            days_pass(&mut world, 1);
            world.policy(|policy| {
                if is_floor {
                    policy.schedules.retention.min.keep_within = Some(least.to_owned());
                } else {
                    policy.backup.ttl.min = Some(least.into());
                }
            });
            world.delete("nas shop/nightly");
            world.settle();
            assert_eq!((world.shorten_lives(), expiration(&world)), (1, at(until)), "{least}");
            assert_eq!(world.shorten_lives(), 0);
        }
    }
}

#[test]
fn a_template_whose_ttl_is_too_short_is_refused_with_a_retention_too() {
    let mut world = world();
    world.policy(|policy| {
        policy.backup.ttl.min = Some("720h".into());
        policy.backup.ttl.max = Some("2160h".into());
    });
    let with = |ttl: &str| {
        let template = json!({"backupSpec": {"ttl": ttl}});
        nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 5}, "template": template}))
    };
    world.apply(with("1h"));
    world.settle();
    assert_eq!(
        world.condition("nas shop/nightly", "Accepted"),
        "False/InvalidScheduleSpec: spec.template.backupSpec.ttl: the administrator requires backups to be kept at least 720h; ask for that or more"
    );
    // Longer than allowed is what the runs do not get.
    for allowed in ["720h", "9000h"] {
        let template = json!({"backupSpec": {"ttl": allowed}});
        world.edit("nas shop/nightly", json!({"spec": {"template": template}}));
        world.settle();
        assert!(world.condition("nas shop/nightly", "Accepted").starts_with("True/"), "{allowed}");
    }
}

#[test]
fn backups_without_a_schedule_keep_the_ttl_they_have() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"template": {"backupSpec": {"ttl": "9000h"}}})));
    days_pass(&mut world, 1);
    let before = expiration(&world);
    world.delete("nas shop/nightly");
    world.settle();
    assert_eq!((world.shorten_lives(), expiration(&world)), (0, before));
}

/// A schedule that ada made, into a bucket of the namespace.
fn into_own_storage(world: &mut World) -> Value {
    world.tenant_storage("shop/bucket");
    world.may("ada", EDIT);
    let template = json!({"backupSpec": {"storageLocation": "bucket"}});
    asked_by("ada", nas("shop/weekly", "0 2 * * 0", json!({ "template": template })))
}

fn weeks_pass(world: &mut World, weeks: u32) {
    for _ in 0..weeks {
        world.pass(7 * DAY);
        velero_works(world, "Completed");
    }
}

#[test]
fn a_schedule_has_to_be_confirmed_and_says_so_in_time() {
    let mut world = world();
    world.stop_recording(); // A hundred days under a hundred seeds take too long.
    let schedule = into_own_storage(&mut world);
    world.apply(schedule);
    world.settle();
    let confirmed = |world: &World| world.condition("nas shop/weekly", "RequesterConfirmed");
    assert_eq!(
        confirmed(&world),
        "True/RecentlyConfirmed: \"ada\" asks for the runs, which has to be confirmed until 2026-04-01T00:00:00Z"
    );
    weeks_pass(&mut world, 10);
    assert!(confirmed(&world).starts_with("True/"), "{}", confirmed(&world));
    weeks_pass(&mut world, 2);
    assert!(
        confirmed(&world).starts_with("False/ConfirmationDue: \"ada\" asks for the runs")
            && confirmed(&world).ends_with("run kubectl nacre schedule confirm weekly, or change its spec"),
        "{}",
        confirmed(&world)
    );
    assert_eq!(world.whole_trace().matches("event Warning ConfirmationDue").count(), 1);
    let made = runs(&world).len();
    weeks_pass(&mut world, 2);
    assert!(confirmed(&world).starts_with("False/ConfirmationOverdue"), "{}", confirmed(&world));
    assert!(confirmed(&world).contains("no run is made"), "{}", confirmed(&world));
    assert_eq!(world.whole_trace().matches("event Warning ConfirmationOverdue").count(), 1);
    assert_eq!(runs(&world).len(), made + 1, "the one before the end");
    let reported = world.condition("nas shop/weekly", "RunsOnTime");
    assert!(reported.contains("nobody confirmed the schedule until 2026-04-01T00:00:00Z"), "{reported}");

    // A label is no confirmation; a change of the spec is.
    world.edit("nas shop/weekly", json!({"metadata": {"labels": {"team": "a"}}}));
    weeks_pass(&mut world, 1);
    assert_eq!(runs(&world).len(), made + 1);
    world.edit("nas shop/weekly", json!({"spec": {"confirmedAt": "2026-04-16T00:00:00Z"}}));
    world.settle();
    assert!(confirmed(&world).starts_with("True/RecentlyConfirmed"), "{}", confirmed(&world));
    weeks_pass(&mut world, 1);
    assert_eq!(runs(&world).len(), made + 2);
}

#[test]
fn runs_that_need_no_permissions_go_on_unconfirmed() {
    let run = |mode: Option<RequesterMode>, template: Value| {
        let mut world = world();
        world.stop_recording();
        if let Some(mode) = mode {
            world.policy(|policy| policy.requester.mode = mode);
        }
        world.tenant_storage("shop/bucket");
        world.may("ada", EDIT);
        world.apply(asked_by(
            "ada",
            nas("shop/weekly", "0 2 * * 0", json!({"template": {"backupSpec": template}})),
        ));
        weeks_pass(&mut world, 15);
        (runs(&world).len(), world.condition("nas shop/weekly", "RequesterConfirmed"))
    };
    let own = || json!({"storageLocation": "bucket"});
    let (made, reported) = run(None, json!({}));
    assert_eq!(made, 15, "{reported}");
    assert!(reported.contains("runs go on, since they need no permissions"), "{reported}");
    let (made, reported) = run(Some(RequesterMode::Warn), own());
    assert_eq!(made, 15, "{reported}");
    assert!(reported.starts_with("False/ConfirmationOverdue"), "{reported}");
    assert_eq!(run(Some(RequesterMode::Ignore), own()), (15, "/: ".to_owned()));
    let hooks = json!({"hooks": {"resources": [{"name": "dump", "pre": [{"exec": {"command": ["dump"]}}]}]}});
    let (made, _) = run(None, hooks);
    assert_eq!(made, 13, "commands need a permission");
}

#[test]
fn a_schedule_of_which_nobody_recorded_who_asked_needs_no_confirmation() {
    let mut world = world();
    world.stop_recording();
    world.apply(nas("shop/weekly", "0 2 * * 0", json!({})));
    weeks_pass(&mut world, 15);
    assert_eq!(runs(&world).len(), 15);
    assert_eq!(world.condition("nas shop/weekly", "RequesterConfirmed"), "/: ");
}

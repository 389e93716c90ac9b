//! The bounds of the administrators: what holds, what the webhook refuses, and bounds that contradict each other.

use api::{NonAdminSchedule, Retention};
use serde_json::{Value, json};

use super::{check, effective, keep, reach};
use crate::Policy;

fn schedule(retention: &Value) -> NonAdminSchedule {
    serde_json::from_value(json!({
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "@daily", "template": {"backupSpec": {}}, "retention": retention},
    }))
    .unwrap()
}

fn policy(min: &Value, max: &Value) -> Policy {
    let mut policy = Policy::default();
    policy.schedules.retention.min = serde_json::from_value(min.clone()).unwrap();
    policy.schedules.retention.max = serde_json::from_value(max.clone()).unwrap();
    policy
}

const NUMBERS: [&str; 6] = ["keepLast", "keepHourly", "keepDaily", "keepWeekly", "keepMonthly", "keepYearly"];

#[test]
fn each_number_is_kept_within_its_bounds() {
    for field in NUMBERS {
        let one = |number: Option<u32>| number.map_or_else(|| json!({}), |number| json!({ field: number }));
        for (asked, min, max, holds) in [
            (Some(5), None, None, Some(5)),
            (Some(5), Some(7), None, Some(7)),
            (Some(5), None, Some(3), Some(3)),
            (Some(5), Some(2), Some(7), Some(5)),
            (Some(9), Some(2), Some(7), Some(7)),
            (Some(1), Some(2), Some(7), Some(2)),
            (None, Some(2), Some(7), Some(2)),
            (None, None, Some(7), None),
        ] {
            // Another field is asked for, so that there is a retention.
            let mut spec = one(asked);
            spec["keepWithin"] = json!("1d");
            let mut most = one(max);
            if max.is_some() {
                most["keepWithin"] = json!("1d");
            }
            let found = effective(&schedule(&spec), &policy(&one(min), &most)).unwrap();
            let mut expected = one(holds);
            expected["keepWithin"] = json!("1d");
            let expected: Retention = serde_json::from_value(expected).unwrap();
            assert_eq!(found, expected, "{field}: {asked:?} between {min:?} and {max:?}");
        }
    }
}

#[test]
fn the_time_is_kept_within_its_bounds_too() {
    let within = |asked: &Value, min: &Value, max: &Value| {
        let bound = |of: &Value| json!({ "keepWithin": of });
        let mut spec = bound(asked);
        spec["keepLast"] = json!(1);
        let mut most = bound(max);
        if !max.is_null() {
            most["keepLast"] = json!(1);
        }
        effective(&schedule(&spec), &policy(&bound(min), &most)).unwrap().keep_within
    };
    let none = Value::Null;
    for (asked, min, max, holds) in [
        (json!("5d"), none.clone(), none.clone(), Some("5d")),
        (json!("5d"), json!("1w"), none.clone(), Some("1w")),
        (json!("5d"), none.clone(), json!("36h"), Some("36h")),
        (json!("5d"), json!("1d"), json!("1w"), Some("5d")),
        (none.clone(), json!("1d"), json!("1w"), Some("1d")),
        (none.clone(), none.clone(), json!("1w"), None),
    ] {
        assert_eq!(within(&asked, &min, &max).as_deref(), holds, "{asked} between {min} and {max}");
    }
}

/// A ceiling for one field would be none at all, if another one could be set in its place.
#[test]
fn what_a_ceiling_does_not_name_is_not_kept() {
    let holds = |asked: Value, min: Value, max: Value| {
        serde_json::to_value(effective(&schedule(&asked), &policy(&min, &max)).unwrap()).unwrap()
    };
    let daily = json!({"keepDaily": 30});
    let asked = json!({"keepDaily": 7, "keepHourly": 100_000, "keepWithin": "90w"});
    assert_eq!(holds(asked.clone(), json!({}), daily.clone()), json!({"keepDaily": 7}));
    assert_eq!(holds(json!({"keepHourly": 100_000}), json!({}), daily.clone()), daily, "all that is allowed");
    assert_eq!(holds(json!({"keepWithin": "90w"}), json!({}), daily.clone()), daily);
    let floor = json!({"keepHourly": 5, "keepWithin": "2d"});
    let expected = json!({"keepDaily": 7, "keepHourly": 5, "keepWithin": "2d"});
    assert_eq!(
        holds(asked.clone(), floor.clone(), daily.clone()),
        expected,
        "the floor is kept all the same"
    );

    let refusal = |asked: &Value, min: &Value| {
        let asked: Retention = serde_json::from_value(asked.clone()).unwrap();
        let policy = policy(min, &json!({"keepDaily": 30, "keepLast": 3}));
        check::beyond_bounds(&asked, &policy.schedules.retention)
    };
    let why = "the administrator does not allow this field; allowed is keepLast up to 3, keepDaily up to 30";
    for (field, value) in [("keepHourly", json!(1)), ("keepYearly", json!(2)), ("keepWithin", json!("90w"))] {
        assert_eq!(refusal(&json!({ field: value }), &json!({})), Some((field, why.to_owned())));
    }
    assert_eq!(
        refusal(&json!({"keepHourly": 5, "keepWithin": "2d"}), &floor),
        None,
        "what is required is allowed"
    );
    assert_eq!(refusal(&json!({"keepHourly": 6}), &floor), Some(("keepHourly", why.to_owned())));
    assert_eq!(refusal(&json!({"keepHourly": 0, "keepDaily": 30}), &json!({})), None);
}

#[test]
fn who_asks_for_no_retention_is_within_the_bounds() {
    let none = json!(null);
    let few = json!({"keepLast": 3});
    let holds = |min: &Value, max: &Value| {
        let policy = policy(min, max);
        let replaced = keep::replaces_ttl(&schedule(&none), &policy);
        (effective(&schedule(&none), &policy).and_then(|kept| kept.keep_last), replaced)
    };
    assert_eq!(holds(&json!({}), &json!({})), (None, false));
    assert_eq!(holds(&few, &json!({})), (Some(3), true), "the floor is kept, whatever the ttl says");
    assert_eq!(holds(&json!({}), &few), (Some(3), false), "the ceiling does not make a ttl longer");
}

#[test]
fn the_webhook_refuses_what_is_beyond_the_bounds() {
    let refusal = |asked: Value, min: Value, max: Value| {
        let asked: Retention = serde_json::from_value(asked).unwrap_or_default();
        let refusal = check::beyond_bounds(&asked, &policy(&min, &max).schedules.retention);
        refusal.map(|(field, why)| format!("spec.retention.{field}: {why}")).unwrap_or_default()
    };
    for field in NUMBERS {
        let number = |number: u32| json!({ field: number });
        assert_eq!(
            refusal(number(2), number(3), json!({})),
            format!("spec.retention.{field}: the administrator requires at least 3; ask for that or more")
        );
        assert_eq!(
            refusal(number(4), json!({}), number(3)),
            format!("spec.retention.{field}: the administrator allows at most 3; ask for that or less")
        );
        assert_eq!(refusal(number(3), number(3), number(3)), "");
        assert_eq!(refusal(json!(null), number(3), number(3)), "");
    }
    let within = |time: &str| json!({ "keepWithin": time });
    assert!(refusal(within("1d"), within("25h"), json!({})).contains("requires at least 25h"));
    assert!(refusal(within("2d"), json!({}), within("47h")).contains("allows at most 47h"));
    assert_eq!(refusal(within("2d"), within("48h"), within("48h")), "");
}

#[test]
fn bounds_that_no_schedule_could_satisfy_are_reported() {
    let reported = |min: &Value, max: &Value| {
        let policy = serde_json::json!({"schedules": {"retention": {"min": min, "max": max}}}).to_string();
        crate::policy::check(&policy).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for field in NUMBERS {
        let found = reported(&json!({ field: 4 }), &json!({ field: 3 }));
        assert!(found.contains(&format!("schedules.retention.min.{field}")), "{field}: {found}");
        assert_eq!(reported(&json!({ field: 3 }), &json!({ field: 3 })), "");
    }
    let found = reported(&json!({"keepWithin": "8d"}), &json!({"keepWithin": "1w"}));
    assert!(found.contains("schedules.retention.min.keepWithin"), "{found}");
    assert_eq!(reported(&json!({"keepWithin": "7d"}), &json!({"keepWithin": "1w"})), "");
}

#[test]
fn a_default_schedule_beyond_the_bounds_is_reported() {
    let policy = json!({"schedules": {
        "retention": {"max": {"keepDaily": 30}},
        "defaults": [{"name": "nightly", "schedule": "@daily", "retention": {"keepDaily": 7, "keepWeekly": 4}}],
    }});
    let found = crate::policy::check(&policy.to_string());
    let found = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(found.contains("schedules.defaults[0].retention.keepWeekly"), "{found}");
    assert!(found.contains("allowed is keepDaily up to 30"), "{found}");
}

#[test]
fn the_webhook_warns_of_a_retention_that_leaves_no_place_for_the_next_run() {
    let warning = |asked: Value, most: Option<usize>| {
        let mut policy = Policy::default();
        policy.backup.max_per_namespace = most;
        reach::warning(&schedule(&asked), &policy).map(|found| found.to_string()).unwrap_or_default()
    };
    let five = json!({"keepLast": 2, "keepDaily": 5});
    assert!(warning(five.clone(), Some(5)).starts_with("spec.retention: the retention keeps 5 backups"));
    assert_eq!(warning(five.clone(), Some(6)), "");
    assert_eq!(warning(five, None), "");
    assert_eq!(warning(json!(null), Some(1)), "");
}

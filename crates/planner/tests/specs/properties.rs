//! The properties, and bugs that they find.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::accepted::{self, Made, Source};
use crate::arbitrary::OWN;
use crate::{arbitrary, lint};

/// Enough to meet every field in company of every other.
const CASES: u32 = 4000;

fn runner() -> TestRunner {
    // Always the same cases: a failure can be repeated, and a planted bug is found or not.
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let seed = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, seed)
}

fn source() -> impl Strategy<Value = Source> {
    (any::<bool>(), any::<bool>()).prop_map(|(tenants, data_moved)| Source { tenants, data_moved })
}

/// Generates many restores; returns the first that is wrong. Returns how many were accepted.
fn restores(decide: impl Fn(&Value, &Value, Source) -> Option<Made>) -> Result<u32, String> {
    let accepted = std::cell::Cell::new(0);
    let given = (arbitrary::restore_spec(), arbitrary::enforced_restore(), source());
    let outcome = runner().run(&given, |(spec, enforced, source)| {
        if let Some(made) = decide(&spec, &enforced, source) {
            accepted.set(accepted.get() + 1);
            lint::restore(&made, source).map_err(TestCaseError::fail)?;
        }
        Ok(())
    });
    outcome.map(|()| accepted.get()).map_err(|error| error.to_string())
}

fn backups(decide: impl Fn(&Value, &Value) -> Option<Made>) -> Result<u32, String> {
    let accepted = std::cell::Cell::new(0);
    let given = (arbitrary::backup_spec(), arbitrary::enforced_backup());
    let outcome = runner().run(&given, |(spec, enforced)| {
        if let Some(made) = decide(&spec, &enforced) {
            accepted.set(accepted.get() + 1);
            lint::backup(&made).map_err(TestCaseError::fail)?;
        }
        Ok(())
    });
    outcome.map(|()| accepted.get()).map_err(|error| error.to_string())
}

/// B5
#[test]
fn every_accepted_restore_stays_inside_the_fence() {
    let accepted = restores(accepted::restore).unwrap();
    assert!(accepted > CASES / 20, "only {accepted} of {CASES} were accepted: the property says little");
}

/// B5
#[test]
fn every_accepted_backup_stays_inside_the_fence() {
    let accepted = backups(accepted::backup).unwrap();
    assert!(accepted > CASES / 20, "only {accepted} of {CASES} were accepted: the property says little");
}

/// A bug: nobody looks at this field, and it is passed on as it came.
fn unchecked(field: &str, spec: &Value, decide: impl FnOnce(&Value) -> Option<Made>) -> Option<Made> {
    let mut rest = spec.clone();
    let passed_on = rest.as_object_mut()?.remove(field);
    let mut made = decide(&rest)?;
    if let Some(value) = passed_on {
        made.object["spec"][field] = value;
    }
    Some(made)
}

/// B5
/// B6
/// planted: a field is passed on unread
#[test]
fn b5_b6_a_field_of_a_restore_that_nobody_looks_at_is_found() {
    for field in [
        "scheduleName",
        "includedNamespaces",
        "excludedNamespaces",
        "includedResources",
        "excludedResources",
        "namespaceMapping",
        "labelSelector",
        "orLabelSelectors",
        "restorePVs",
        "restoreStatus",
        "includeClusterResources",
        "hooks",
        "resourceModifier",
    ] {
        let found = restores(|spec, enforced, source| {
            unchecked(field, spec, |rest| accepted::restore(rest, enforced, source))
        });
        assert!(found.is_err(), "{field} was passed on and nothing was found");
    }
}

/// B2
/// B5
/// B6
/// planted: a field is passed on unread
#[test]
fn b2_b5_b6_a_field_of_a_backup_that_nobody_looks_at_is_found() {
    for field in [
        "includedNamespaces",
        "excludedNamespaces",
        "includedResources",
        "excludedResources",
        "includedClusterScopedResources",
        "excludedClusterScopedResources",
        "includedNamespaceScopedResources",
        "excludedNamespaceScopedResources",
        "labelSelector",
        "orLabelSelectors",
        "includeClusterResources",
        "hooks",
        "storageLocation",
        "volumeSnapshotLocations",
        "orderedResources",
    ] {
        let found = backups(|spec, enforced| unchecked(field, spec, |rest| accepted::backup(rest, enforced)));
        assert!(found.is_err(), "{field} was passed on and nothing was found");
    }
}

/// B1
/// planted: init containers of hooks are passed on
#[test]
fn b1_an_init_hook_that_is_passed_on_is_found() {
    let found = restores(|spec, enforced, source| {
        let hooks = spec["hooks"]["resources"].as_array().into_iter().flatten();
        let commands = hooks.filter_map(|hook| hook["postHooks"].as_array()).flatten();
        let init: Vec<&Value> = commands.filter(|command| !command["init"].is_null()).collect();
        let mut rest = spec.clone();
        rest.as_object_mut()?.remove("hooks");
        let mut made = accepted::restore(&rest, enforced, source)?;
        if !init.is_empty() {
            // Everything else about it is as it should be.
            made.object["spec"]["hooks"] =
                json!({"resources": [{"name": "x", "includedNamespaces": [OWN], "postHooks": init}]});
        }
        Some(made)
    });
    let found = found.expect_err("nobody noticed");
    assert!(found.contains("an init hook"), "{found}");
}

#[test]
fn a_forgotten_fence_is_found() {
    let found = restores(|spec, enforced, source| {
        let mut made = accepted::restore(spec, enforced, source)?;
        made.object["spec"]["excludedResources"] = spec["excludedResources"].clone();
        Some(made)
    });
    assert!(found.is_err());
    let found = backups(|spec, enforced| {
        let mut made = accepted::backup(spec, enforced)?;
        made.object["spec"]["excludedResources"] = spec["excludedResources"].clone();
        Some(made)
    });
    assert!(found.is_err());
}

#[test]
fn tenant_storage_that_is_taken_for_the_platforms_is_found() {
    let found = restores(|spec, enforced, source| {
        accepted::restore(spec, enforced, Source { tenants: false, ..source })
    });
    assert!(found.is_err());
}

#[test]
fn what_administrators_add_is_checked_too() {
    // A bug: the request is checked alone, and what is added comes after.
    let found = restores(|spec, enforced, source| {
        let mut made = accepted::restore(spec, &serde_json::json!({}), source)?;
        for (field, value) in enforced.as_object().into_iter().flatten() {
            if spec[field].is_null() {
                made.object["spec"][field] = value.clone();
            }
        }
        Some(made)
    });
    assert!(found.is_err());
}

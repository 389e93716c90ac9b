//! Arbitrary policies: no panic, and an answer.

use planner::Policy;
use planner::policy::{Adoption, Downloads, Import, NativeSnapshots, StorageMode, check, render};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::{loaded, policy};

/// A policy that makes sense, in all its parts.
fn sensible() -> impl Strategy<Value = Policy> {
    let counts = (option::of(0_usize..5), option::of(0_usize..5), option::of(0_usize..5));
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let words = (0_usize..3, 0_usize..3, 0_usize..3, 0_usize..2);
    let names = vec(prop::sample::select(vec!["configmaps", "deployments.apps", "secrets"]), 0..3);
    let spaces = vec("[a-z*][a-z*-]{0,5}", 1..3);
    (counts, switches, words, names, spaces, option::of("[a-z]{1,8}")).prop_map(
        |(counts, switches, words, names, spaces, word)| {
            let mut policy = Policy::default();
            policy.backup.max_per_namespace = counts.0;
            policy.backup.max_active_per_namespace = counts.1;
            policy.storage_locations.max_per_namespace = counts.2;
            policy.backup.forbid_hooks = switches.0;
            policy.restore.forbid_hooks = switches.1;
            policy.storage_locations.require_approval = switches.2;
            policy.storage_locations.allow_insecure_skip_tls_verify = switches.3;
            policy.backup.enforce.snapshot_volumes = Some(switches.4);
            policy.backup.defaults.datamover.clone_from(&word);
            policy.storage_locations.enforce.config =
                word.map(|word| [(word.clone(), format!("{word}: \"#'"))].into_iter().collect());
            policy.storage_locations.mode =
                [StorageMode::Any, StorageMode::Own, StorageMode::Platform][words.0];
            policy.storage_locations.import = [Import::Auto, Import::On, Import::Off][words.1];
            policy.storage_locations.native_snapshots =
                [NativeSnapshots::Refuse, NativeSnapshots::Accept][usize::from(switches.0)];
            policy.downloads.platform_storage = [Downloads::None, Downloads::Logs, Downloads::All][words.2];
            policy.sync.adoption = [Adoption::Approval, Adoption::Name][words.3];
            let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
            policy.restore.excluded_from_platform_storage.clone_from(&names);
            policy.restore.from_tenant_storage.allowed_resources = names;
            policy.namespaces.included = spaces;
            policy
        },
    )
}

proptest! {
    #[test]
    fn what_is_rendered_reads_as_the_same(wanted in sensible()) {
        let text = render(&wanted);
        prop_assert_eq!(check(&text), []);
        prop_assert_eq!(policy(&text), wanted);
    }

    /// A policy with something in the wrong place, as happens while editing.
    #[test]
    fn an_edit_gone_wrong_is_told_where_it_is(
        wanted in sensible(), at in any::<prop::sample::Index>(), gone in 0_usize..4, put in "[ \\n:{}\\[\\]\"'&*#\t-]{0,3}|\\PC{0,3}",
    ) {
        let mut text: Vec<char> = render(&wanted).chars().collect();
        let at = at.index(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, put.chars());
        let text: String = text.into_iter().collect();
        let lines = text.split('\n').count();
        for problem in check(&text) {
            let position = problem.position.unwrap();
            prop_assert!((1..=lines + 1).contains(&(position.line as usize)), "{problem} in {text:?}");
        }
    }

    #[test]
    fn anything_at_all_gets_an_answer(text in "\\PC*") {
        check(&text);
    }

    #[test]
    fn anything_that_looks_like_yaml_gets_an_answer(text in "([ \\n:{}\\[\\]\"'&*#?|>!%@,-]|backup|ttl|overrides|selector|enforce|a|1){0,40}") {
        check(&text);
    }

    /// What one source requires is required by both together, or there is no policy.
    #[test]
    fn nothing_that_either_requires_gets_lost(ours in option::of(1_u8..4), theirs in option::of(1_u8..4)) {
        let text = ours.map_or(String::new(), |hours| format!("backup: {{ enforce: {{ ttl: {hours}h }} }}"));
        let ttl = theirs.map(|hours| format!("{hours}h"));
        let policies = loaded(&text, &json!({"nonAdmin": {"enforceBackupSpec": {"ttl": ttl}}})).policies;
        let agreed = ours.is_none() || theirs.is_none() || ours == theirs;
        prop_assert_eq!(policies.is_some(), agreed);
        let required = policies.and_then(|policies| policies.base().backup.enforce.ttl.clone());
        let wanted = ours.or(theirs).filter(|_| agreed).map(|hours| api::Duration::from(format!("{hours}h").as_str()));
        prop_assert_eq!(required, wanted);
    }
}

#[test]
fn a_bottomless_or_exploding_text_gets_an_answer() {
    let lists = "[".repeat(100_000);
    let blocks: Vec<_> = (0..500).map(|depth| format!("{}a:", " ".repeat(depth))).collect();
    let bomb: Vec<_> =
        (1..30).map(|at| format!("a{at}: &a{at} [{}]", format!("*a{}, ", at - 1).repeat(9))).collect();
    let bomb = format!("a0: &a0 [x, x]\n{}", bomb.join("\n"));
    for (what, text) in [("lists", lists), ("blocks", blocks.join("\n")), ("bomb", bomb)] {
        let problems = check(&text);
        assert!(problems.iter().any(planner::policy::Problem::is_error), "{what}");
    }
}

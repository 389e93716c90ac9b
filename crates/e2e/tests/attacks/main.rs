//! What a hostile tenant can try, one scenario each, named as in docs/security.md: a namespace owner with nothing but the
//! `admin` role of their namespace, against real Velero, a real store and a victim who has a backup.
//!
//! All scenarios share one cluster, each with a namespace of its own; so the program has a main of its own.

mod attack_cluster;
mod bucket;
mod identity;
mod limits;
mod specs;
mod storage;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use crate::attack_cluster::AttackCluster;

type Scenario = for<'a> fn(&'a AttackCluster) -> LocalBoxFuture<'a, Result<()>>;

/// Names each scenario by its function.
macro_rules! scenarios {
    ($($module:ident :: { $($name:ident),* $(,)? }),* $(,)?) => {
        [$($((
            stringify!($name),
            (|attack_cluster| Box::pin($module::$name(attack_cluster))) as Scenario,
        )),*),*]
    };
}

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // They mostly wait, for nacre and for Velero.
    arguments.test_threads.get_or_insert(4);
    let scenarios = scenarios![
        bucket::{
            a1_a_planted_backup_of_the_whole_cluster,
            a2_a_planted_copy_of_somebody_elses_volume,
            a3_a_backup_planted_for_the_victim,
            a11_a_backup_with_more_objects_than_the_policy_allows,
            h2_a6_a_planted_backup_that_passes_for_somebody_elses,
        },
        specs::{
            b1_a_hook_that_brings_its_own_container,
            b2_a_hook_where_the_policy_forbids_hooks,
            b3_a_field_nobody_has_decided_about,
            b4_an_administrators_config_map_by_its_name,
            b5_somebody_elses_namespace_anywhere_in_a_backup,
            b5_somebody_elses_namespace_anywhere_in_a_restore,
            b6_another_spelling_of_what_is_fenced_off,
            b7_more_than_the_policy_allows,
        },
        storage::{
            c1_c2_a_credential_that_sends_veleros_own_token_away,
            c3_a_credential_that_reads_a_file,
            c4_a_credential_that_falls_back_to_the_clusters_own,
            c5_a_setting_that_names_the_administrators_file,
            c7_an_endpoint_inside_the_cluster,
            c7_h12_c8_c17_with_the_rules_off_such_locations_reach_velero,
            c8_transport_security_switched_off,
            c9_a_prefix_that_climbs_out,
            c10_the_same_folder_by_the_name_of_a_store_and_by_its_address,
            c13_a_request_for_approval_that_approves_itself,
            c15_a_provider_nobody_allowed,
            c17_a_flood_of_locations,
            h5_a_location_deleted_behind_a_foreign_finalizer,
            h12_an_address_of_the_cluster_as_endpoint,
        },
        identity::{
            c11_a_namespace_that_bears_a_dead_ones_name,
            d1_d4_a_copied_label_and_the_wish_to_delete,
            d2_a_copied_label_and_the_wish_to_download,
            d3_a_forged_status,
            d9_requests_in_veleros_own_namespace,
        },
        limits::{
            e1_contents_of_the_clusters_own_storage,
            b7_e3_a_ttl_below_the_minimum_is_refused,
            f1_more_backups_than_their_share,
            f5_a_flood_of_downloads,
            x1_objects_that_are_not_what_they_should_be,
        },
    ];
    let runtime = Arc::new(Runtime::new()?);
    let asked_only = arguments.list;
    // Listing the names needs no cluster.
    let attack_cluster =
        if asked_only { None } else { Some(Arc::new(runtime.block_on(AttackCluster::prepare())?)) };
    let trials = scenarios.into_iter().map(|(name, scenario)| {
        let (runtime, attack_cluster) = (runtime.clone(), attack_cluster.clone());
        Trial::test(name, move || {
            let attack_cluster = attack_cluster.ok_or("there is no cluster to attack")?;
            let reported = runtime.block_on(async {
                scenario(&attack_cluster).await?;
                attack_cluster.unharmed().await
            });
            reported.map_err(|error| Failed::from(format!("{error:?}")))
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    Ok(conclusion.exit_code())
}

//! How the data of claims gets into a backup.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::Claim;
use api::velero::BackupSpec;
use proptest::prelude::*;
use serde_json::json;

use super::{Choice, SnapshotClasses, VolumeFacts, VolumeMethod, rules, volume_method};
use crate::Policy;
use crate::policy::Volumes;
use crate::state::State;

fn claim(class: &str) -> Arc<Claim> {
    let object =
        json!({"metadata": {"name": class}, "spec": {"storageClassName": class, "volumeName": "pv"}});
    Arc::new(serde_json::from_value(object).unwrap())
}

/// Claims of these StorageClasses; `fast` has a driver with a labelled VolumeSnapshotClass, `slow` has one without.
fn facts(classes: &[&str]) -> VolumeFacts {
    let drivers = [("fast", "fast.csi"), ("slow", "slow.csi")];
    let drivers = drivers.map(|(class, driver)| (class.to_owned(), driver.to_owned())).into();
    VolumeFacts {
        claims: Some(classes.iter().map(|class| claim(class)).collect()),
        node_agent_runs: true,
        takes_csi_snapshots: true,
        snapshot_classes: Arc::new(SnapshotClasses { drivers, labelled: ["fast.csi".to_owned()].into() }),
        velero_version: Some("v1.18.3".to_owned()),
        volume_policy: None,
        host_paths: BTreeSet::new(),
    }
}

fn method(asked: &BackupSpec, policy: &Policy, facts: &VolumeFacts) -> VolumeMethod {
    volume_method(asked, policy, facts, &facts.claims.as_ref().unwrap()[0])
}

fn own_storage() -> BackupSpec {
    BackupSpec { storage_location: Some("mine".to_owned()), ..BackupSpec::default() }
}

#[test]
fn the_request_comes_first_then_the_policy_then_what_can_be_done() {
    let (silent, auto) = (BackupSpec::default(), Policy::default());
    let mut velero = Policy::default();
    velero.backup.volumes = Volumes::Velero;
    let loud = BackupSpec { snapshot_volumes: Some(false), ..BackupSpec::default() };
    assert_eq!(method(&loud, &velero, &facts(&["slow"])), VolumeMethod::AsRequested);
    assert_eq!(method(&silent, &velero, &facts(&["slow"])), VolumeMethod::VeleroDefaults);
    assert_eq!(method(&silent, &auto, &facts(&["slow"])), VolumeMethod::FileByFile);
    let without_agent = VolumeFacts { node_agent_runs: false, ..facts(&["slow"]) };
    assert_eq!(method(&silent, &auto, &without_agent), VolumeMethod::NoNodeAgent);
    let mut defaults = Policy::default();
    defaults.backup.defaults.default_volumes_to_fs_backup = Some(false);
    assert_eq!(method(&silent, &defaults, &facts(&["slow"])), VolumeMethod::AsRequested);
}

#[test]
fn a_claim_whose_driver_has_a_class_for_velero_gets_a_snapshot() {
    let auto = Policy::default();
    let of = |asked: &BackupSpec, facts: &VolumeFacts| method(asked, &auto, facts);
    assert_eq!(of(&BackupSpec::default(), &facts(&["fast", "slow"])), VolumeMethod::Snapshot);
    assert_eq!(of(&own_storage(), &facts(&["fast", "slow"])), VolumeMethod::MovedSnapshot);
    // Velero was not told to take any.
    let off = VolumeFacts { takes_csi_snapshots: false, ..facts(&["fast"]) };
    assert_eq!(of(&BackupSpec::default(), &off), VolumeMethod::FileByFile);
    // Nobody moves it into the tenant's storage.
    let alone = VolumeFacts { node_agent_runs: false, ..facts(&["fast"]) };
    assert_eq!(of(&own_storage(), &alone), VolumeMethod::NoNodeAgent);
    assert_eq!(of(&BackupSpec::default(), &alone), VolumeMethod::Snapshot);
    // Without a volume policy there is one method for all claims.
    let old = |classes: &[&str]| VolumeFacts { velero_version: Some("v1.16.0".to_owned()), ..facts(classes) };
    assert_eq!(of(&BackupSpec::default(), &old(&["fast", "slow"])), VolumeMethod::FileByFile);
    assert_eq!(of(&BackupSpec::default(), &old(&["fast", "fast"])), VolumeMethod::Snapshot);
}

/// Velero saves neither from inside a pod. A snapshot of the driver saves a block device all the same.
#[test]
fn a_folder_of_a_node_and_a_block_device_are_not_saved_file_by_file() {
    let with = |class: &str, mode: &str, host_path: &str| {
        let object = json!({"metadata": {"name": "data", "uid": "u"},
            "spec": {"storageClassName": class, "volumeName": "pv", "volumeMode": mode}});
        let claim = Arc::new(serde_json::from_value(object).unwrap());
        let host_paths = BTreeSet::from([host_path.to_owned()]);
        let facts = VolumeFacts { claims: Some(vec![claim]), host_paths, ..facts(&[]) };
        method(&BackupSpec::default(), &Policy::default(), &facts)
    };
    assert_eq!(with("slow", "Filesystem", "u"), VolumeMethod::HostPath);
    assert_eq!(with("slow", "Filesystem", "another"), VolumeMethod::FileByFile);
    assert_eq!(with("slow", "Block", "another"), VolumeMethod::BlockDevice);
    assert_eq!(with("fast", "Block", "another"), VolumeMethod::Snapshot);
}

#[test]
fn the_volume_policy_names_the_drivers_and_nothing_of_a_tenant() {
    let with = rules(&facts(&["fast"]));
    assert_eq!(
        with["volumePolicies"][2],
        json!({"conditions": {"csi": {"driver": "fast.csi"}}, "action": {"type": "snapshot"}})
    );
    let off = VolumeFacts { takes_csi_snapshots: false, ..facts(&["fast"]) };
    assert_eq!(rules(&off)["volumePolicies"].as_array().unwrap().len(), 2);
}

/// An empty list would mean that there is nothing to lose.
#[test]
fn where_claims_may_not_be_listed_nothing_is_known_about_them() {
    assert!(VolumeFacts::gather(&State::new("velero"), "shop").claims.is_none());
}

#[test]
fn a_volume_policy_is_for_a_velero_that_knows_the_phases_of_claims() {
    let can = |version: Option<&str>| {
        let velero_version = version.map(str::to_owned);
        VolumeFacts { velero_version, ..VolumeFacts::default() }.can_use_policy()
    };
    assert!(can(Some("v1.18.0")) && can(Some("v1.18.3-OADP")) && can(Some("v2.0.1")));
    assert!(!can(Some("v1.17.9")) && !can(Some("main")) && !can(None));
}

proptest! {
    /// Whatever the cluster can do: nobody chooses what cannot work, nothing that can be saved is given up, and a snapshot
    /// in a tenant's own storage is always moved there.
    #[test]
    fn every_claim_gets_what_can_be_done(
        classes in prop::collection::vec(prop::sample::select(vec!["fast", "slow", "unknown"]), 1..5),
        agent: bool, csi: bool, own: bool, uses_policy: bool,
    ) {
        let facts = VolumeFacts { node_agent_runs: agent, takes_csi_snapshots: csi, ..facts(&classes) };
        let spec = if own { own_storage() } else { BackupSpec::default() };
        let policy = Policy::default();
        let choice = Choice::of(&spec, &policy, &facts, uses_policy);
        let methods: Vec<_> = facts.claims.iter().flatten().map(|claim| choice.method(claim)).collect();
        for (class, method) in classes.iter().zip(&methods) {
            match method {
                VolumeMethod::Snapshot => prop_assert!(csi && *class == "fast" && !own),
                VolumeMethod::MovedSnapshot => prop_assert!(csi && *class == "fast" && own && agent),
                VolumeMethod::FileByFile => prop_assert!(agent),
                VolumeMethod::NoNodeAgent => prop_assert!(!(agent || csi && *class == "fast" && !own)),
                VolumeMethod::AsRequested | VolumeMethod::VeleroDefaults => prop_assert!(false, "nobody else chose"),
                VolumeMethod::HostPath | VolumeMethod::BlockDevice => prop_assert!(false, "there is none"),
            }
        }
        // Without a policy, the one switch would also save the claims that get a snapshot.
        let mixed = methods.contains(&VolumeMethod::FileByFile) && methods.iter().any(|method| *method != VolumeMethod::FileByFile);
        prop_assert!(uses_policy || !mixed);
    }
}

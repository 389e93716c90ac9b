//! Volumes are saved by default: what Velero gets where a request says nothing about volumes.

use api::Kind;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{claim, nab, nab_with, node_agent, object};

const POLICY: &str = "cm nacre-volumes";

/// What Velero got about volumes.
fn given(world: &World) -> Value {
    let spec = world.get("backup shop-daily-<1>")["spec"].clone();
    json!([spec["defaultVolumesToFsBackup"], spec["resourcePolicy"]["name"]])
}

fn with_claim() -> World {
    let mut world = World::with(&["shop"]);
    world.apply(node_agent(1));
    world.apply(claim("shop/data"));
    world
}

#[test]
fn claims_are_saved_file_by_file_where_a_node_agent_runs() {
    let mut world = with_claim();
    world.hand_over_at_once();
    world.apply(nab("shop/daily"));
    insta::assert_snapshot!(world.trace(), @r"
    create ConfigMap velero/nacre-volumes
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
    assert_eq!(given(&world), json!([true, "nacre-volumes"]));
    let rules = world.get(POLICY)["data"].clone();
    let rules: Value = serde_json::from_str(rules["policy.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(rules["version"], "v1");
    assert_eq!(
        rules["volumePolicies"],
        json!([
            {"conditions": {"volumeTypes": ["emptyDir"]}, "action": {"type": "skip"}},
            {"conditions": {"pvcPhase": ["Pending", "Lost"]}, "action": {"type": "skip"}},
        ])
    );

    // The policy is written once, and mended before the next backup.
    world.apply(nab("shop/second"));
    assert!(!world.trace().contains("ConfigMap"));
    world.edit(POLICY, json!({"data": {"policy.yaml": "version: v1", "other": "x"}}));
    world.settle();
    world.apply(nab("shop/third"));
    assert!(world.trace().starts_with("patch ConfigMap velero/nacre-volumes"), "{}", world.whole_trace());
    let data = world.get(POLICY)["data"].clone();
    assert_eq!((data.as_object().unwrap().len(), data["policy.yaml"] == "version: v1"), (1, false));
}

/// Velero looks for claims when it begins, and nacre may hear of them after the request.
#[test]
fn a_claim_that_nacre_does_not_know_yet_is_saved_too() {
    let mut world = World::with(&["shop", "office"]);
    world.apply(node_agent(1));
    world.apply(claim("office/data"));
    world.apply(nab("shop/daily"));
    insta::assert_snapshot!(world.trace(), @r"
    create ConfigMap velero/nacre-volumes
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
    assert_eq!(given(&world), json!([true, "nacre-volumes"]));
    world.apply(claim("shop/data"));
    assert_eq!(given(&world), json!([true, "nacre-volumes"]));
}

/// What Velero gets is what it always got.
#[test]
fn without_claims_and_without_a_node_agent_nothing_changes() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(given(&world), json!([null, null]));
    assert!(!world.has(POLICY));
}

#[test]
fn whatever_the_request_or_the_administrators_say_about_volumes_is_left_alone() {
    let says = [
        json!({"snapshotVolumes": false}),
        json!({"snapshotMoveData": true}),
        json!({"defaultVolumesToFsBackup": false}),
    ];
    for said in &says {
        let mut world = with_claim();
        world.apply(nab_with("shop/daily", said.clone()));
        world.settle();
        assert_eq!(given(&world), json!([said["defaultVolumesToFsBackup"], null]), "{said}");
    }
    for enforced in [true, false] {
        let mut world = with_claim();
        world.policy(|policy| {
            let spec = if enforced { &mut policy.backup.enforce } else { &mut policy.backup.defaults };
            spec.snapshot_volumes = Some(true);
        });
        world.apply(nab("shop/daily"));
        world.settle();
        assert_eq!(given(&world), json!([null, null]));
        assert!(!world.has(POLICY));
    }
}

#[test]
fn the_policy_can_leave_volumes_to_velero() {
    let mut world = with_claim();
    world.policy(|policy| policy.backup.volumes = planner::policy::Volumes::Velero);
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(given(&world), json!([null, null]));
}

/// Velero would fail the backup in part.
#[test]
fn without_a_node_agent_nothing_is_saved_file_by_file() {
    let mut world = with_claim();
    world.apply(node_agent(0));
    world.edit("DaemonSet node-agent", json!({"status": {"numberReady": 0}}));
    world.apply(object(Kind::DaemonSet, "velero/other", json!({"status": {"numberReady": 3}})));
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(given(&world), json!([null, null]));
}

#[test]
fn a_volume_policy_that_cannot_be_written_stops_no_backup() {
    let mut world = with_claim();
    world.refuse(Kind::ConfigMap, false, 403);
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(given(&world), json!([true, null]));
}

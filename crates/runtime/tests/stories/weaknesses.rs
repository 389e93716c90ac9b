//! Planted weaknesses: the same steps are taken twice, by nacre as it is and by nacre with one defence switched off. The
//! attack fails the first time and succeeds the second. So it is a good one, and that defence is what stops it.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation};
use api::{Kind, NonAdminBackup, condition, labels};
use planner::download::{Behind, Sought};
use planner::policy::{DeleteBy, Downloads};
use planner::queue::Stage;
use planner::sync::{self, Finding};
use planner::{Action, Key, Object, Plan, State, backup, download, location, restore};
use runtime::Bug;
use serde_json::{Value, json};

use super::import_ownership::stored;
use super::storage;
use crate::world::World;
use crate::world::manifests::{imported, nab, nab_with, nar, object, origin};
use crate::world::people::asked_by;

/// Lets an attack happen with a defence and without it. With it no rule that holds for every story is broken either.
pub(crate) fn twice(flaw: Bug, attack: impl Fn(&mut World) -> bool, prepared: impl Fn() -> World) {
    let mut world = prepared();
    assert!(!attack(&mut world), "the attack succeeds:\n{}", world.whole_trace());
    assert!(world.complaints().is_empty(), "{:?}", world.complaints());
    let mut world = prepared();
    world.sabotage(Some(flaw));
    assert!(attack(&mut world), "the attack fails for another reason:\n{}", world.whole_trace());
}

/// A victim with a completed backup, and an attacker's namespace.
fn victim() -> World {
    let mut world = World::with(&["victim", "attacker"]);
    world.apply(nab("victim/daily"));
    world.settle();
    world.velero_starts("victim-daily-<1>");
    world.velero_completes("victim-daily-<1>");
    world.settle();
    // Which is about what can be written, and not about faults.
    world.stop_recording();
    world
}

fn loot(world: &World) -> String {
    world.velero_name("nab victim/daily")
}

/// The Velero Backup that a request names by itself, in its label or in its status, whoever it belongs to.
fn named_by_itself(state: &State, request: &NonAdminBackup) -> Option<Arc<Backup>> {
    let label = request.metadata.labels.as_ref().and_then(|all| all.get(labels::SYNCED_FROM).cloned());
    let status = request.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.name.clone());
    state.admin::<Backup>(&label.or(status)?)
}

/// The weakness: names in labels and statuses are believed, as they are by the Go controller.
fn believes_names(state: &State, key: &Key, plan: Plan) -> Plan {
    let found = |name: &str| {
        state.get::<NonAdminBackup>(&key.namespace, name).and_then(|request| named_by_itself(state, &request))
    };
    let place = |found: &Backup| {
        let name = found.spec.storage_location.as_deref().unwrap_or("default");
        state.admin::<BackupStorageLocation>(name)
    };
    match key.kind {
        Kind::NonAdminBackup => {
            let Some(mut seen) = backup::observe(state, &key.namespace, &key.name) else { return plan };
            let Some(velero) = found(&key.name) else { return plan };
            seen.velero_location = place(&velero);
            seen.velero = Some(velero);
            backup::decide(&seen)
        }
        Kind::NonAdminRestore => {
            let Some(mut seen) = restore::observe(state, &key.namespace, &key.name) else { return plan };
            let named = seen.restore.spec.restore_spec.backup_name.clone();
            let Some(velero) = named.and_then(|name| found(&name)) else { return plan };
            seen.velero_location = place(&velero);
            seen.source = Some(velero);
            restore::decide(&seen)
        }
        Kind::NonAdminDownloadRequest => {
            let Some(mut seen) = download::observe(state, &key.namespace, &key.name) else { return plan };
            let Some(velero) = found(&seen.request.spec.target.name) else { return plan };
            let name = velero.metadata.name.clone().unwrap_or_default();
            let velero_location = place(&velero);
            seen.sought = Sought::Backup(Some(Behind {
                velero: Some((name, Stage::Finished, "Completed".to_owned())),
                backup: Some(velero),
                velero_location,
            }));
            download::decide(&seen)
        }
        _ => plan,
    }
}

/// A request of the attacker's with a label that was copied from the victim's backup.
fn with_copied_label(world: &World, spec: Value) -> Value {
    let mut request = object(Kind::NonAdminBackup, "attacker/theft", json!({ "spec": spec }));
    request["metadata"]["labels"] = json!({ labels::SYNCED_FROM: loot(world) });
    request
}

/// planted: names in labels and statuses are believed
#[test]
fn d1_d4_with_copied_labels_believed_the_victims_data_would_be_deleted() {
    let attack = |world: &mut World| {
        world.apply(with_copied_label(world, json!({"backupSpec": {}})));
        world.rest();
        world.edit("nab attacker/theft", json!({"spec": {"deleteBackup": true}}));
        world.rest();
        let asked = world.names(Kind::DeleteBackupRequest);
        let about = |name: &String| world.get(&format!("dbr {name}"))["spec"]["backupName"] == loot(world);
        asked.iter().any(about)
    };
    twice(believes_names, attack, victim);
}

/// planted: names in labels and statuses are believed
#[test]
fn d2_d4_with_copied_labels_believed_the_victims_data_would_be_downloaded() {
    let prepared = || {
        let mut world = victim();
        world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
        world
    };
    let attack = |world: &mut World| {
        world.apply(with_copied_label(world, json!({"backupSpec": {}})));
        let target = json!({"spec": {"target": {"kind": "BackupContents", "name": "theft"}}});
        world.apply(object(Kind::NonAdminDownloadRequest, "attacker/link", target));
        world.rest();
        let asked = world.names(Kind::DownloadRequest);
        asked.iter().any(|name| world.get(&format!("dr {name}"))["spec"]["target"]["name"] == loot(world))
    };
    twice(believes_names, attack, prepared);
}

/// planted: names in labels and statuses are believed
#[test]
fn d3_with_a_forged_status_believed_the_victims_data_would_come_to_the_attacker() {
    let attack = |world: &mut World| {
        // It is refused, so that nothing but the forged status names a Velero Backup.
        world.apply(nab_with("attacker/theft", json!({"ttl": "soon"})));
        world.rest();
        let velero = json!({"nacuuid": loot(world), "name": loot(world), "namespace": "velero"});
        world.forge_status("nab attacker/theft", json!({"phase": "Created", "veleroBackup": velero}));
        world.apply(nar("attacker/steal", "theft"));
        world.rest();
        let made = world.names(Kind::Restore);
        made.iter().any(|name| world.get(&format!("restore {name}"))["spec"]["backupName"] == loot(world))
    };
    twice(believes_names, attack, victim);
}

/// planted: every name passes for a backup of the namespace
#[test]
fn f5_with_every_name_taken_for_a_backup_velero_would_be_asked_for_each_download() {
    let prepared = || {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
        world.stop_recording();
        world
    };
    let attack = |world: &mut World| {
        for number in 0..50 {
            let target = json!({"kind": "BackupLog", "name": format!("no-{number}")});
            let spec = json!({"spec": {"target": target}});
            world.apply(object(Kind::NonAdminDownloadRequest, &format!("shop/d{number}"), spec));
        }
        world.rest();
        world.names(Kind::DownloadRequest).len() == 50
    };
    let takes_every: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminDownloadRequest {
            return plan;
        }
        let Some(mut seen) = download::observe(state, &key.namespace, &key.name) else { return plan };
        let name = seen.request.spec.target.name.clone();
        seen.sought = Sought::Backup(Some(Behind {
            velero: Some((name, Stage::Finished, "Completed".to_owned())),
            backup: Some(Arc::default()),
            velero_location: None,
        }));
        download::decide(&seen)
    };
    twice(takes_every, attack, prepared);
}

/// Decides about a Velero Backup that was found as if it were another.
fn found_as(state: &State, key: &Key, plan: Plan, change: fn(&State, &mut Backup)) -> Plan {
    let Some(mut velero) = state.admin::<Backup>(&key.name).filter(|_| key.kind == Kind::Backup) else {
        return plan;
    };
    change(state, Arc::make_mut(&mut velero));
    match sync::find(state, &velero) {
        Finding::Wanted(request, _) => {
            Plan::done().then(Action::Create(Object::of(Kind::NonAdminBackup, &request)))
        }
        _ => plan,
    }
}

/// planted: annotations of a backup are believed, and not where it is stored
#[test]
fn a3_with_annotations_believed_before_the_storage_the_victim_would_be_given_a_planted_backup() {
    let prepared = || storage::world(&["victim", "attacker"]);
    let attack = |world: &mut World| {
        let theirs = storage::available(world, "attacker/bucket", "theirs");
        let mut gift = stored("gift", &theirs, "victim", "tempting");
        gift["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] =
            world.get("ns victim")["metadata"]["uid"].clone();
        world.apply(gift);
        world.rest();
        world.has("nab victim/tempting")
    };
    let believes_annotations: Bug = |state, key, plan| {
        found_as(state, key, plan, |_, velero| velero.spec.storage_location = Some("default".to_owned()))
    };
    twice(believes_annotations, attack, prepared);
}

/// planted: namespaces are known by name alone
#[test]
fn c11_with_namespaces_known_by_name_alone_the_next_owner_would_get_the_backups() {
    let prepared = || storage::world(&["shop"]);
    let attack = |world: &mut World| {
        let mut earlier = stored("shop-daily-<1>", "default", "shop", "daily");
        earlier["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!("of-the-one-before");
        world.apply(earlier);
        world.rest();
        world.has("nab shop/daily")
    };
    let by_name: Bug = |state, key, plan| {
        found_as(state, key, plan, |state, velero| {
            let uid = state.namespace("shop").and_then(|space| space.metadata.uid.clone());
            let annotations = velero.metadata.annotations.get_or_insert_default();
            annotations.insert(labels::ORIGIN_NAMESPACE_UID.to_owned(), uid.unwrap_or_default());
        })
    };
    twice(by_name, attack, prepared);
}

/// planted: what has the name already is left alone
#[test]
fn a6_with_squatters_left_alone_the_victims_backup_would_never_be_made() {
    let prepared = || World::with(&["victim", "attacker"]);
    let attack = |world: &mut World| {
        let theirs = world.tenant_storage("attacker/bucket");
        world.apply(imported("victim-daily-<1>", &theirs, origin("victim", "daily")));
        world.apply(nab("victim/daily"));
        world.rest();
        world.get("backup victim-daily-<1>")["spec"]["storageLocation"] == json!(theirs)
    };
    let leaves_them: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminBackup {
            return plan;
        }
        let Some(mut seen) = backup::observe(state, &key.namespace, &key.name) else { return plan };
        seen.squatter = None;
        backup::decide(&seen)
    };
    twice(leaves_them, attack, prepared);
}

/// planted: the status of a location is believed
#[test]
fn c13_with_the_locations_own_status_believed_a_tenant_would_approve_it() {
    let prepared = || {
        let mut world = storage::world(&["shop"]);
        world.policy(|policy| policy.storage_locations.require_approval = true);
        world
    };
    let attack = |world: &mut World| {
        world.apply(storage::bucket("shop/bucket", "mine"));
        world.rest();
        let mut status = world.get("nabsl shop/bucket")["status"].clone();
        for one in status["conditions"].as_array_mut().unwrap() {
            one["status"] = json!("True");
        }
        status["phase"] = json!("Created");
        world.forge_status("nabsl shop/bucket", status);
        world.rest();
        let velero = world.velero_name("nabsl shop/bucket");
        world.has(&format!("bsl {velero}"))
    };
    let believes_status: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminBackupStorageLocation {
            return plan;
        }
        let Some(mut seen) = location::observe(state, &key.namespace, &key.name) else { return plan };
        let status = seen.location.status.as_ref();
        let approved = status
            .is_some_and(|status| condition::is_true(&status.conditions, condition::CLUSTER_ADMIN_APPROVED));
        if let Some(policy) = seen.policy.as_mut().filter(|_| approved) {
            Arc::make_mut(policy).storage_locations.require_approval = false;
        }
        location::decide(&seen)
    };
    twice(believes_status, attack, prepared);
}

/// planted: no namespace is closed
#[test]
fn d9_with_no_namespace_closed_veleros_own_would_be_backed_up() {
    let prepared = || World::with(&["shop"]);
    let attack = |world: &mut World| {
        world.apply(nab("velero/all"));
        world.rest();
        let made = world.names(Kind::Backup);
        let covers = |name: &String| {
            world.get(&format!("backup {name}"))["spec"]["includedNamespaces"] == json!(["velero"])
        };
        made.iter().any(covers)
    };
    let closes_none: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminBackup {
            return plan;
        }
        let Some(mut seen) = backup::observe(state, &key.namespace, &key.name) else { return plan };
        let real = std::mem::replace(&mut seen.admin_namespace, "elsewhere".to_owned());
        let mut plan = backup::decide(&seen);
        for action in &mut plan.actions {
            if let Action::Create(object) = action {
                object.body["metadata"]["namespace"] = json!(real);
            }
        }
        plan
    };
    twice(closes_none, attack, prepared);
}

/// planted: every ConfigMap passes for one that tenants may use
#[test]
fn b4_with_every_config_map_taken_for_the_tenants_an_administrators_would_be_used() {
    let prepared = || {
        let mut world = World::with(&["shop"]);
        world.apply(object(Kind::ConfigMap, "velero/secret-plans", json!({})));
        world
    };
    let attack = |world: &mut World| {
        let reference = json!({"kind": "configmap", "name": "secret-plans"});
        world.apply(nab_with("shop/daily", json!({ "resourcePolicy": reference })));
        world.rest();
        let made = world.names(Kind::Backup);
        let uses = |name: &String| {
            world.get(&format!("backup {name}"))["spec"]["resourcePolicy"]["name"] == "secret-plans"
        };
        made.iter().any(uses)
    };
    let takes_every: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminBackup {
            return plan;
        }
        let Some(mut seen) = backup::observe(state, &key.namespace, &key.name) else { return plan };
        if let Some(map) = seen.resource_policy.as_mut() {
            let labels = Arc::make_mut(map).metadata.labels.get_or_insert_default();
            labels.insert(labels::TENANT_USABLE.to_owned(), "true".to_owned());
        }
        backup::decide(&seen)
    };
    twice(takes_every, attack, prepared);
}

/// planted: every name passes for another store
#[test]
fn c10_with_every_name_taken_for_another_store_two_locations_would_share_a_folder() {
    let at = |place: &str, url: &str| {
        let mut location = storage::bucket(place, "shared");
        location["spec"]["backupStorageLocationSpec"]["config"] =
            json!({"region": "x", "s3ForcePathStyle": "true", "s3Url": url});
        location
    };
    let prepared = || storage::world(&["shop"]);
    let attack = |world: &mut World| {
        world.apply(at("shop/bucket", "https://store.example.com:9000"));
        world.rest();
        // An address that may be the same store.
        world.apply(at("shop/other", "https://93.184.216.34:9000"));
        world.rest();
        let velero = world.velero_name("nabsl shop/other");
        world.has(&format!("bsl {velero}"))
    };
    let never_taken: Bug = |state, key, plan| {
        if key.kind != Kind::NonAdminBackupStorageLocation {
            return plan;
        }
        let Some(mut seen) = location::observe(state, &key.namespace, &key.name) else { return plan };
        seen.path_taken = false;
        location::decide(&seen)
    };
    twice(never_taken, attack, prepared);
}

/// planted: a policy without `ttl.min`
#[test]
fn b7_e3_without_a_lower_bound_a_backup_would_expire_at_once() {
    let brief = |min: Option<&str>| {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.backup.ttl.min = min.map(Into::into));
        world.apply(nab_with("shop/daily", json!({"ttl": "1s"})));
        world.settle();
        world
            .names(Kind::Backup)
            .pop()
            .map(|name| world.get(&format!("backup {name}"))["spec"]["ttl"].clone())
    };
    assert_eq!(brief(Some("1h")), None);
    assert_eq!(brief(None), Some(json!("1s")), "the planted weakness");
}

/// planted: `backup.delete: anyone`
#[test]
fn e3_where_anybody_may_delete_data_a_stolen_token_would() {
    let stolen = |by: DeleteBy| {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.backup.delete = by);
        world.apply(asked_by("ann", nab("shop/daily")));
        world.settle();
        world.velero_starts("shop-daily-<1>");
        world.velero_completes("shop-daily-<1>");
        world.settle();
        let thief = json!({"user": "eve"}).to_string();
        world.edit(
            "nab shop/daily",
            json!({"spec": {"deleteBackup": true}, "metadata": {"annotations": {labels::DELETION_REQUESTER: thief}}}),
        );
        world.settle();
        world.names(Kind::DeleteBackupRequest).len()
    };
    assert_eq!(stolen(DeleteBy::Own), 0);
    assert_eq!(stolen(DeleteBy::Anyone), 1, "the planted weakness");
}

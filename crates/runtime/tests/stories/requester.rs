//! The person behind a request: one who has just too little, and one who has just enough.

use std::time::Duration;

use api::{Kind, labels};
use planner::policy::{DeleteBy, Downloads, NotPermitted, RequesterMode};
use serde_json::{Value, json};

use super::import_ownership::stored;
use super::storage::{self, bucket};
use crate::world::World;
use crate::world::manifests::{nab_with, nar, nar_with, object};
use crate::world::people::{EDIT, asked_by};

/// More than the longest pause before a permission is asked for again.
const LATER: Duration = Duration::from_mins(6);

const ROLES: &str = "roles.rbac.authorization.k8s.io";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";

/// What it takes to bring Roles and RoleBindings back.
const OVER_ROLES: [&str; 5] = [
    "create roles.rbac.authorization.k8s.io",
    "create rolebindings.rbac.authorization.k8s.io",
    "escalate roles.rbac.authorization.k8s.io",
    "bind roles.rbac.authorization.k8s.io",
    "bind clusterroles.rbac.authorization.k8s.io",
];

/// A world with one completed backup.
fn completed() -> World {
    World::with(&["shop"]).backed_up()
}

fn with(more: &[&'static str]) -> Vec<&'static str> {
    [EDIT, more].concat()
}

fn excluded(world: &World, object: &str) -> Vec<String> {
    let list = world.get(object)["spec"]["excludedResources"].clone();
    serde_json::from_value(list).unwrap_or_default()
}

fn condition(world: &World, object: &str) -> String {
    world.condition(object, "RequesterPermitted")
}

/// E2: somebody who may create restores, and no Deployments or RoleBindings, has Velero create them
/// E4: an `edit` user brings back Roles and RoleBindings that were removed on purpose
#[test]
fn e2_e4_a_restore_leaves_out_what_the_requester_may_not_create() {
    let mut world = completed();
    world.may("eve", EDIT);
    world.apply(asked_by("eve", nar("shop/again", "daily")));
    world.settle();
    let out = excluded(&world, "restore shop-again-p-<r1>");
    assert!(out.iter().any(|name| name == ROLES) && out.iter().any(|name| name == BINDINGS), "{out:?}");
    for kept in ["secrets", "deployments.apps", "endpoints", "controllerrevisions.apps"] {
        assert!(!out.iter().any(|name| name == kept), "{kept}: {out:?}");
    }
    assert_eq!(
        condition(&world, "nar shop/again"),
        format!(
            "False/ResourcesLeftOut: left out, since \"eve\" does not have the permissions for it: {BINDINGS}, {ROLES}"
        )
    );
    assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
    let velero = world.get("restore shop-again-p-<r1>")["metadata"]["annotations"].clone();
    assert_eq!(velero["nacre.dev/requester"], "eve");
}

#[test]
fn a_restore_of_somebody_with_just_enough_leaves_nothing_out() {
    let mut world = completed();
    world.may("ann", &with(&OVER_ROLES));
    world.apply(asked_by("ann", nar("shop/again", "daily")));
    world.settle();
    let out = excluded(&world, "restore shop-again-p-<r1>");
    assert!(!out.iter().any(|name| name.contains("rbac")), "{out:?}");
    assert_eq!(condition(&world, "nar shop/again"), "/: ");
    // One permission less, of any of them, and the kind stays away.
    for less in OVER_ROLES {
        let mut world = completed();
        let rest: Vec<_> = OVER_ROLES.into_iter().filter(|one| *one != less).collect();
        world.may("ann", &with(&rest));
        world.apply(asked_by("ann", nar("shop/again", "daily")));
        world.settle();
        let out = excluded(&world, "restore shop-again-p-<r1>");
        assert!(out.iter().any(|name| name == ROLES || name == BINDINGS), "{less}: {out:?}");
    }
}

#[test]
fn a_wildcard_is_one_review() {
    let mut world = completed();
    world.may("root", &["*"]);
    world.apply(asked_by("root", nar("shop/again", "daily")));
    world.settle();
    assert_eq!(world.reviews(), 1);
    assert_eq!(condition(&world, "nar shop/again"), "/: ");
}

#[test]
fn the_administrators_may_let_roles_back_from_their_own_storage() {
    let mut world = completed();
    world.policy(|policy| policy.requester.roles_from_platform_storage = true);
    world.may("eve", EDIT);
    world.apply(asked_by("eve", nar("shop/again", "daily")));
    world.settle();
    assert_eq!(condition(&world, "nar shop/again"), "/: ");
}

#[test]
fn updating_what_exists_takes_the_permission_to_update() {
    let mut world = completed();
    world.may("ann", &with(&OVER_ROLES));
    let update = json!({"backupName": "daily", "existingResourcePolicy": "update", "includedResources": ["configmaps", "Secret"]});
    world.apply(asked_by("ann", nar_with("shop/again", update.clone())));
    world.settle();
    let refused = world.condition("nar shop/again", "Accepted");
    assert!(refused.contains("\"ann\" may not update configmaps, secrets"), "{refused}");
    world.may("bob", &["create configmaps", "update configmaps", "create secrets"]);
    world.apply(asked_by("bob", nar_with("shop/more", update)));
    world.settle();
    let made = world.get(&format!("restore {}", world.velero_name("nar shop/more")))["spec"].clone();
    assert_eq!(made["includedResources"], json!(["configmaps"]));
    assert!(made["excludedResources"].as_array().unwrap().contains(&json!("secrets")));
}

/// E1: somebody who may create backups, and may not read Secrets, copies them into a bucket of their own
#[test]
fn e1_a_backup_into_own_storage_leaves_out_what_the_requester_may_not_read() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.may("eve", &["get configmaps", "list configmaps", "list secrets"]);
    world.apply(asked_by("eve", nab_with("shop/mine", json!({"storageLocation": "bucket"}))));
    world.settle();
    let backup = world.velero_name("nab shop/mine");
    let out = excluded(&world, &format!("backup {backup}"));
    assert!(
        out.iter().any(|name| name == "secrets") && !out.iter().any(|name| name == "configmaps"),
        "{out:?}"
    );
    assert!(condition(&world, "nab shop/mine").contains("secrets"), "{}", condition(&world, "nab shop/mine"));
    assert_eq!(world.get("nab shop/mine")["status"]["phase"], "Created");
}

#[test]
fn a_backup_into_the_administrators_storage_is_whole_and_costs_no_review() {
    let mut world = World::with(&["shop"]);
    world.apply(asked_by("eve", nab_with("shop/daily", json!({}))));
    world.settle();
    assert_eq!((condition(&world, "nab shop/daily").as_str(), world.reviews()), ("/: ", 0));
    assert!(!excluded(&world, "backup shop-daily-<1>").iter().any(|name| name == "secrets"));
}

#[test]
fn a_backup_into_own_storage_of_somebody_who_may_read_all_is_whole() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    let read = [
        "get roles.rbac.authorization.k8s.io",
        "list roles.rbac.authorization.k8s.io",
        "get rolebindings.rbac.authorization.k8s.io",
        "list rolebindings.rbac.authorization.k8s.io",
    ];
    world.may("ann", &with(&read));
    world.apply(asked_by("ann", nab_with("shop/mine", json!({"storageLocation": "bucket"}))));
    world.settle();
    assert_eq!(condition(&world, "nab shop/mine"), "/: ");
    assert_eq!(world.get("nab shop/mine")["status"]["phase"], "Created");
}

#[test]
fn a_backup_of_nothing_but_what_may_not_be_read_is_refused() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.may("eve", &["get configmaps", "list configmaps"]);
    let only = json!({"storageLocation": "bucket", "includedResources": ["secret"]});
    world.apply(asked_by("eve", nab_with("shop/mine", only)));
    world.settle();
    let refused = world.condition("nab shop/mine", "Accepted");
    assert!(refused.contains("\"eve\" may not get and list secrets"), "{refused}");
    assert!(world.names(Kind::Backup).is_empty());
}

fn hooks() -> Value {
    json!({"hooks": {"resources": [{"name": "dump", "pre": [{"exec": {"command": ["dump"]}}]}]}})
}

#[test]
fn commands_run_for_those_who_may_run_them() {
    let mut world = World::with(&["shop"]);
    world.may("eve", &["get pods", "create pods"]);
    world.apply(asked_by("eve", nab_with("shop/daily", hooks())));
    world.settle();
    let refused = world.condition("nab shop/daily", "Accepted");
    assert!(
        refused.starts_with(
            "False/RequesterNotPermitted: spec.backupSpec.hooks: \"eve\" may not create pods/exec"
        ),
        "{refused}"
    );
    assert!(
        refused.contains("kubectl create role nacre-requester-")
            && refused.contains(" -n shop --verb=create --resource=pods/exec"),
        "{refused}"
    );
    assert!(refused.ends_with(" --user=eve"), "{refused}");
    // It starts by itself once that is permitted.
    world.may("eve", &["create pods/exec"]);
    world.pass(LATER);
    assert!(world.has("backup shop-daily-<1>"));

    let mut world = World::with(&["shop"]);
    world.may("ann", &["create pods/exec"]);
    world.apply(asked_by("ann", nab_with("shop/daily", hooks())));
    world.settle();
    assert!(world.has("backup shop-daily-<1>"));
}

/// C16: a colleague's Secret is named as the credential of a bucket, without the permission to read it
#[test]
fn c16_a_location_takes_the_permission_to_read_its_secret() {
    let mut world = storage::world(&["shop"]);
    world.may("eve", &["get secrets/other"]);
    world.apply(asked_by("eve", bucket("shop/bucket", "mine")));
    world.settle();
    let refused = world.condition("nabsl shop/bucket", "Accepted");
    assert!(refused.contains("\"eve\" may not get secrets/keys in this namespace"), "{refused}");
    assert!(world.names(Kind::NonAdminBackupStorageLocationRequest).is_empty());
    world.may("eve", &["get secrets/keys"]);
    world.pass(LATER);
    assert!(world.has(&format!("bsl {}", world.velero_name("nabsl shop/bucket"))));
    // What Velero has already stays when somebody loses a permission.
    world.may("eve", &[]);
    world.pass(LATER);
    assert!(world.has(&format!("bsl {}", world.velero_name("nabsl shop/bucket"))));
}

/// A location of eve's, who may read the Secret `keys` and not her colleague's.
fn location_of_eve(approval: bool) -> World {
    let mut world = storage::world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = approval);
    world.apply(object(Kind::Secret, "shop/colleague", json!({"data": {"cloud": storage::OTHER_KEYS}})));
    world.may("eve", &["get secrets/keys"]);
    world.settle();
    world
}

fn names_secret(name: &str) -> Value {
    json!({"spec": {"backupStorageLocationSpec": {"credential": {"name": name}}}})
}

/// C16: a colleague's Secret is named when approval has been requested and it is not written down yet for what
#[test]
fn c16_a_secret_that_is_named_before_the_request_is_complete_takes_the_permission_too() {
    for approval in [false, true] {
        let mut world = location_of_eve(approval);
        // nacre's finalizer, the request, and then the status of the request.
        world.dies_after(world.writes() + 2);
        world.apply(asked_by("eve", bucket("shop/bucket", "mine")));
        world.rest();
        let name = world.velero_name("nabsl shop/bucket");
        let request = format!("request {name}");
        assert!(world.is_down() && world.get(&request)["status"].is_null(), "{}", world.whole_trace());
        world.edit("nabsl shop/bucket", names_secret("colleague"));
        world.restart();
        world.settle();
        let refused = world.condition("nabsl shop/bucket", "Accepted");
        assert!(refused.contains("\"eve\" may not get secrets/colleague in this namespace"), "{refused}");
        assert!(world.get(&request)["status"].is_null(), "{}", world.get(&request));
        // Nor what is refused for another reason at first: it would be held to be what was asked for.
        let mut invalid = names_secret("colleague");
        invalid["spec"]["backupStorageLocationSpec"]["default"] = json!(true);
        world.edit("nabsl shop/bucket", invalid);
        world.settle();
        world.edit("nabsl shop/bucket", json!({"spec": {"backupStorageLocationSpec": {"default": null}}}));
        world.pass(LATER);
        assert!(world.get(&request)["status"].is_null(), "{}", world.get(&request));
        assert!(!world.has(&format!("secret {name}")) && !world.has(&format!("bsl {name}")));

        world.edit("nabsl shop/bucket", names_secret("keys"));
        world.pass(LATER);
        let asked = &world.get(&request)["status"]["nonAdminBackupStorageLocation"]["requestedSpec"];
        assert_eq!(asked["credential"]["name"], "keys");
        assert_eq!(world.has(&format!("bsl {name}")), !approval);
    }
}

/// C16
#[test]
fn c16_when_the_request_is_deleted_another_secret_takes_the_permission_again() {
    for meanwhile in ["keys", "colleague"] {
        let mut world = location_of_eve(false);
        world.apply(asked_by("eve", bucket("shop/bucket", "mine")));
        world.settle();
        let name = world.velero_name("nabsl shop/bucket");
        let secret = format!("secret {name}");
        let copy = world.get(&secret)["data"].clone();
        world.may("eve", &[]);
        world.dies_after(world.writes());
        world.delete(&format!("request {name}"));
        world.edit("nabsl shop/bucket", names_secret(meanwhile));
        world.rest();
        world.restart();
        world.pass(LATER);
        if meanwhile == "keys" {
            assert_eq!(world.get(&secret)["data"], copy, "what Velero has already stays");
        } else {
            assert!(!world.has(&secret) && !world.has(&format!("bsl {name}")));
        }
    }
}

/// E1
#[test]
fn e1_contents_are_for_those_who_may_read_every_kind_in_them() {
    let mut world = completed();
    world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
    let nadr = |place: &str, kind: &str| {
        object(
            Kind::NonAdminDownloadRequest,
            place,
            json!({"spec": {"target": {"kind": kind, "name": "daily"}}}),
        )
    };
    world.may("eve", EDIT);
    world.apply(asked_by("eve", nadr("shop/all", "BackupContents")));
    world.apply(asked_by("eve", nadr("shop/log", "BackupLog")));
    world.settle();
    let refused = world.condition("nadr shop/all", "Processed");
    assert!(refused.contains("\"eve\" may not get and list"), "{refused}");
    assert_eq!(world.names(Kind::DownloadRequest).len(), 1, "the log needs no more than the request");
    world.may("ann", &["*"]);
    world.apply(asked_by("ann", nadr("shop/everything", "BackupContents")));
    world.settle();
    assert_eq!(world.names(Kind::DownloadRequest).len(), 2);
    world.stop_recording(); // When a download is looked at again depends on when it was refused.
}

#[test]
fn the_policy_can_refuse_warn_or_look_away() {
    let ask = |change: fn(&mut planner::Policy)| {
        let mut world = completed();
        world.policy(change);
        world.may("eve", EDIT);
        world.apply(asked_by("eve", nar("shop/again", "daily")));
        world.settle();
        world
    };
    let world = ask(|policy| policy.requester.not_permitted = NotPermitted::Refuse);
    let refused = world.condition("nar shop/again", "Accepted");
    assert!(
        refused
            .starts_with("False/RequesterNotPermitted: spec: \"eve\" may not bind and create and escalate"),
        "{refused}"
    );
    assert!(!world.has("restore shop-again-p-<r1>"));

    let world = ask(|policy| policy.requester.mode = RequesterMode::Warn);
    assert!(!excluded(&world, "restore shop-again-p-<r1>").iter().any(|name| name == ROLES));
    assert!(condition(&world, "nar shop/again").starts_with("False/NotEnforced: \"eve\" does not have"));

    let world = ask(|policy| policy.requester.mode = RequesterMode::Ignore);
    assert!(!excluded(&world, "restore shop-again-p-<r1>").iter().any(|name| name == ROLES));
    assert_eq!((condition(&world, "nar shop/again").as_str(), world.reviews()), ("/: ", 0));
}

#[test]
fn a_request_of_which_nobody_recorded_who_asked_is_judged_as_before() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert!(!excluded(&world, "restore shop-again-p-<r1>").iter().any(|name| name == ROLES));
    assert_eq!(world.reviews(), 0);
}

#[test]
fn what_becomes_of_a_request_that_nobody_recorded_is_for_the_policy_to_say() {
    let ask = |unrecorded: RequesterMode, mode: RequesterMode| {
        let mut world = completed();
        world.policy(move |policy| {
            policy.requester.unrecorded = unrecorded;
            policy.requester.mode = mode;
        });
        world.apply(nar("shop/again", "daily"));
        world.settle();
        world
    };
    let mut world = ask(RequesterMode::Enforce, RequesterMode::Enforce);
    let refused = world.condition("nar shop/again", "Accepted");
    assert!(refused.contains("it was not recorded who asked"), "{refused}");
    assert!(!world.has("restore shop-again-p-<r1>"));
    // Whoever asks again is recorded.
    world.may("ann", EDIT);
    world.apply(asked_by("ann", nar("shop/again", "daily")));
    world.settle();
    assert!(world.has("restore shop-again-p-<r1>"));

    for mode in [RequesterMode::Enforce, RequesterMode::Warn] {
        let world = ask(RequesterMode::Warn, mode);
        assert!(world.has("restore shop-again-p-<r1>"));
        let said = "False/NotRecorded: it was not recorded who asked, so no permissions were checked";
        assert_eq!((condition(&world, "nar shop/again").as_str(), world.reviews()), (said, 0));
    }
    // Never stricter than for those who are known.
    let world = ask(RequesterMode::Enforce, RequesterMode::Ignore);
    assert_eq!(condition(&world, "nar shop/again"), "/: ");
    assert!(world.has("restore shop-again-p-<r1>"));
    // Nobody sees what is in the administrators' storage: nothing is needed for that.
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.requester.unrecorded = RequesterMode::Enforce);
    world.apply(nab_with("shop/daily", json!({})));
    world.settle();
    assert!(world.has("backup shop-daily-<1>"));
}

#[test]
fn what_the_administrators_policy_asks_for_needs_no_permission() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.requester.unrecorded = RequesterMode::Enforce);
    let mut run = nab_with("shop/daily", hooks());
    run["metadata"]["annotations"]["nacre.dev/requester"] = json!(r#"{"policy":true}"#);
    world.apply(run);
    world.apply(nab_with("shop/other", hooks()));
    world.settle();
    assert!(world.has("backup shop-daily-<1>"), "nacre wrote that, and nobody else can");
    assert!(world.condition("nab shop/other", "Accepted").contains("it was not recorded who asked"));
}

/// E3
#[test]
fn e3_where_the_record_is_required_data_is_not_deleted_by_nobody() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| {
        policy.backup.delete = DeleteBy::Own;
        policy.requester.unrecorded = RequesterMode::Enforce;
    });
    world.apply(asked_by("ann", nab_with("shop/daily", json!({}))));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
    // Retention is nacre's own, which says so.
    let by = json!({"annotations": {labels::DELETION_REQUESTER: r#"{"policy":true}"#}});
    world.edit("nab shop/daily", json!({ "metadata": by }));
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest).len(), 1);
}

#[test]
fn a_record_that_cannot_be_read_permits_nothing() {
    let mut world = completed();
    let mut request = nar("shop/again", "daily");
    request["metadata"]["annotations"]["nacre.dev/requester"] = json!("{\"user\":\"root");
    world.apply(request);
    world.settle();
    let refused = world.condition("nar shop/again", "Accepted");
    assert!(refused.contains("cannot be read who asked"), "{refused}");
    assert!(!world.has("restore shop-again-p-<r1>"));
}

#[test]
fn a_record_that_is_too_old_has_to_be_renewed() {
    let mut world = World::with(&["shop"]);
    world.may("ann", &["*"]);
    // It waits for a backup that comes after more than ninety days.
    world.tenant_storage("shop/bucket");
    world.apply(asked_by("ann", nab_with("shop/late", json!({"storageLocation": "other"}))));
    world.settle();
    world.pass(Duration::from_hours(24 * 91));
    world.tenant_storage("shop/other");
    world.settle();
    let refused = world.condition("nab shop/late", "Accepted");
    assert!(refused.contains("recorded more than 2160h ago"), "{refused}");
}

#[test]
fn many_requests_of_few_people_are_few_reviews() {
    let mut world = completed();
    world.hand_over_at_once();
    for person in 0..5 {
        let user = format!("user-{person}");
        world.may(&user, EDIT);
        for number in 0..20 {
            world.apply(asked_by(&user, nar(&format!("shop/r-{person}-{number}"), "daily")));
        }
    }
    world.settle();
    let (reviews, restores) = (world.reviews(), world.names(Kind::Restore).len());
    assert_eq!(restores, 100);
    assert!(reviews <= 5 * 16, "{reviews}");
    world.stop_recording(); // A hundred requests are enough without faults.
}

#[test]
fn nothing_is_asked_once_velero_has_it() {
    let mut world = completed();
    world.may("eve", EDIT);
    world.apply(asked_by("eve", nar("shop/again", "daily")));
    world.settle();
    let before = (world.reviews(), world.writes());
    world.pass(Duration::from_hours(1));
    assert_eq!((world.reviews(), world.writes()), before);
}

fn wants_deletion(user: &str) -> Value {
    let record = json!({"user": user}).to_string();
    json!({"spec": {"deleteBackup": true}, "metadata": {"annotations": {labels::DELETION_REQUESTER: record}}})
}

/// E3: somebody else's backup is deleted with its data, by a stolen token that may edit requests
#[test]
fn e3_by_policy_only_whoever_asked_for_a_backup_may_delete_its_data() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.delete = DeleteBy::Own);
    world.apply(asked_by("ann", nab_with("shop/daily", json!({}))));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    // Whoever edits the request first becomes its requester, and gains nothing by it.
    let edited = asked_by("eve", nab_with("shop/daily", json!({"ttl": "2h"})));
    world.apply(edited);
    world.edit("nab shop/daily", wants_deletion("eve"));
    world.settle();
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
    let said = world.condition("nab shop/daily", "SpecApplied");
    assert!(
        said.starts_with("False/RequesterNotPermitted: spec.deleteBackup: the data is for \"ann\""),
        "{said}"
    );
    world.edit("nab shop/daily", wants_deletion("ann"));
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest).len(), 1);
}

/// E3: the request is deleted, the data stays, and the backup is imported again: nobody recorded who asked for that
#[test]
fn e3_a_backup_that_was_imported_again_is_still_for_whoever_asked_for_it() {
    let mut world = storage::world(&["shop"]);
    world.policy(|policy| policy.backup.delete = DeleteBy::Own);
    let mut found = stored("shop-daily", "default", "shop", "daily");
    found["metadata"]["annotations"][labels::REQUESTER] = json!("ann");
    world.apply(found);
    world.settle();
    assert!(world.get("nab shop/daily")["metadata"]["annotations"][labels::REQUESTER].is_null());
    world.edit("nab shop/daily", wants_deletion("eve"));
    world.settle();
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
    world.edit("nab shop/daily", wants_deletion("ann"));
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest).len(), 1);
}

#[test]
fn anybody_who_may_delete_the_request_may_delete_the_data_unless_the_policy_says_otherwise() {
    let mut world = World::with(&["shop"]);
    world.apply(asked_by("ann", nab_with("shop/daily", json!({}))));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    world.edit("nab shop/daily", wants_deletion("eve"));
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest).len(), 1);
}

#[test]
fn a_deletion_has_an_event_although_nobody_recorded_who_asked() {
    let mut world = completed();
    world.trace();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
    let trace = world.trace();
    let event = "event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not \
                 recorded who asked";
    assert!(trace.contains(event), "{trace}");
}

#[test]
fn an_event_says_who_asked_and_what_was_left_out() {
    let mut world = completed();
    world.may("eve", EDIT);
    world.trace();
    world.apply(asked_by("eve", nar("shop/again", "daily")));
    let trace = world.trace();
    assert!(
        trace.contains("Velero was given the restore as shop-again-p-<r1>, asked for by \"eve\""),
        "{trace}"
    );
    assert!(trace.contains("event Warning ResourcesLeftOut: left out, since \"eve\""), "{trace}");
    // Downloads and deletions too, and Velero's objects name them to administrators.
    world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    world.apply(asked_by("eve", object(Kind::NonAdminDownloadRequest, "shop/log", target)));
    let trace = world.trace();
    assert!(
        trace.contains("event Normal DownloadRequested: Velero was asked for the link, asked for by \"eve\""),
        "{trace}"
    );
    world.edit("nab shop/daily", wants_deletion("ann"));
    let trace = world.trace();
    assert!(
        trace.contains("event Normal DeletionRequested: Velero was asked to delete the backup with its data, asked for by \"ann\""),
        "{trace}"
    );
    for (kind, user) in [(Kind::DownloadRequest, "eve"), (Kind::DeleteBackupRequest, "ann")] {
        let name = world.names(kind).pop().unwrap();
        let made = world.get(&format!("{} {name}", kind.name()));
        assert_eq!(made["metadata"]["annotations"]["nacre.dev/requester"], user);
    }
    world.stop_recording(); // When a link is made is Velero's own business.
}

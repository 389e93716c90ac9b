//! The webhook gives the same refusals as the controller.

use api::{Kind, labels};
use planner::admission::{ReviewResult, ReviewedObject, review, wire};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{claim, host_path, nab, nab_with, nar, nar_with, node_agent, object};

const KEYS: &str = "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWEKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjIK";

fn bucket(spec: Value) -> Value {
    let mut all = json!({"provider": "aws", "objectStorage": {"bucket": "mine"}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let rest = json!({"spec": {"backupStorageLocationSpec": all}});
    object(Kind::NonAdminBackupStorageLocation, "shop/daily", rest)
}

fn nadr(kind: &str, of: &str) -> Value {
    let rest = json!({"spec": {"target": {"kind": kind, "name": of}}});
    object(Kind::NonAdminDownloadRequest, "shop/daily", rest)
}

/// The webhook's answer for this object, in place of the old one if there is one.
fn reported(world: &World, object: &Value, old: Option<&Value>) -> ReviewResult {
    let kind = Kind::ALL.iter().find(|kind| object["kind"] == kind.name()).unwrap();
    let text = |field: &str| object["metadata"][field].as_str().unwrap();
    let asked = ReviewedObject { kind: *kind, namespace: text("namespace"), name: text("name"), object, old };
    let mut state = world.state();
    // As the webhook does before it answers.
    if let Some(name) = wire::credential(&asked) {
        state.set_credential(&name, world.credential(&name));
    }
    review(&state, &asked)
}

fn refused(verdict: &ReviewResult) -> &str {
    assert!(verdict.warnings.is_empty(), "{verdict:?}");
    verdict.refusal.as_deref().unwrap_or_else(|| panic!("it is let in"))
}

fn warned(verdict: &ReviewResult) -> &str {
    assert_eq!((verdict.refusal.as_ref(), verdict.warnings.len()), (None, 1), "{verdict:?}");
    &verdict.warnings[0]
}

fn is_fine(verdict: &ReviewResult) -> bool {
    *verdict == ReviewResult::default()
}

/// A cluster where nacre looks after storage, with a backup that is over and one that is not.
fn world() -> World {
    let mut world = World::with(&["shop", "office", "kube-system"]);
    world.mind_storage();
    world.apply(object(Kind::Secret, "shop/keys", json!({"data": {"cloud": KEYS}})));
    for name in ["over", "running"] {
        world.apply(nab(&format!("shop/{name}")));
        world.settle();
        let velero = world.velero_name(&format!("nab shop/{name}"));
        world.velero_starts(&velero);
        if name == "over" {
            world.velero_completes(&velero);
        }
        world.settle();
    }
    world
}

/// What the controller writes about this object once it is stored.
fn written(mut world: World, object: &Value) -> String {
    world.apply(object.clone());
    world.settle();
    let short = match object["kind"].as_str().unwrap() {
        "NonAdminBackup" => "nab",
        "NonAdminRestore" => "nar",
        "NonAdminBackupStorageLocation" => "nabsl",
        _ => "nadr",
    };
    let place = format!(
        "{}/{}",
        object["metadata"]["namespace"].as_str().unwrap(),
        object["metadata"]["name"].as_str().unwrap()
    );
    let stored = world.get(&format!("{short} {place}"));
    let conditions = stored["status"]["conditions"].as_array().unwrap_or_else(|| panic!("{stored}"));
    // Downloads have a condition of its own for each thing in the way, which is true when it is.
    let no = conditions
        .iter()
        .find(|found| if short == "nadr" { found["reason"] == "Error" } else { found["status"] == "False" });
    no.unwrap_or_else(|| panic!("{stored}"))["message"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_refused_for_good_is_refused_in_the_controllers_words() {
    let mut world = world();
    world.policy(|policy| policy.backup.ttl.max = Some("2160h".into()));
    let elsewhere = |mut object: Value, namespace: &str| {
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let hook = json!({"resources": [{"name": "a", "includedNamespaces": ["office"]}]});
    let init = json!({"resources": [{"name": "a", "postHooks": [{"init": {"initContainers": []}}]}]});
    let bad = [
        nab_with("shop/daily", json!({"includedNamespaces": ["office"]})),
        nab_with("shop/daily", json!({"excludedNamespaces": []})),
        nab_with("shop/daily", json!({"includeClusterResources": true})),
        nab_with("shop/daily", json!({"ttl": "a month"})),
        nab_with("shop/daily", json!({"ttl": "9000h"})),
        nab_with("shop/daily", json!({"hooks": hook})),
        nab_with("shop/daily", json!({"storageLocation": 7})),
        elsewhere(nab("shop/daily"), "velero"),
        elsewhere(nab("shop/daily"), "kube-system"),
        nar_with("shop/daily", json!({})),
        nar_with("shop/daily", json!({"backupName": "over", "namespaceMapping": {"shop": "office"}})),
        nar_with("shop/daily", json!({"backupName": "over", "hooks": init})),
        nar_with("shop/daily", json!({"backupName": "over", "restoreStatus": {"includedResources": ["*"]}})),
        elsewhere(nar("shop/daily", "over"), "velero"),
        bucket(json!({"provider": "replicated.com/hostpath"})),
        bucket(json!({"config": {"s3Url": "http://169.254.169.254"}})),
        bucket(json!({"config": {"credentialsFile": "/credentials/cloud"}})),
        bucket(json!({"objectStorage": {"bucket": "mine", "prefix": "../office"}})),
        bucket(json!({"credential": null})),
        bucket(json!({"default": true})),
        elsewhere(bucket(json!({})), "velero"),
        nadr("Everything", "over"),
        elsewhere(nadr("BackupLog", "over"), "velero"),
    ];
    for object in bad {
        let verdict = reported(&world, &object, None);
        assert_eq!(refused(&verdict), written(world.clone(), &object), "{object}");
    }
}

#[test]
fn what_another_object_could_heal_is_a_warning_in_the_controllers_words() {
    let mut world = world();
    world.policy(|policy| policy.backup.max_per_namespace = Some(3));
    let waiting = [
        nab_with("shop/daily", json!({"storageLocation": "later"})),
        nab_with("shop/daily", json!({"resourcePolicy": {"kind": "ConfigMap", "name": "private"}})),
        nar("shop/daily", "later"),
        nar("shop/daily", "running"),
        nadr("BackupLog", "later"),
        nadr("BackupLog", "running"),
        nadr("BackupContents", "over"),
        // The Secret of a location may be further down in the same file.
        bucket(json!({"credential": {"name": "not-yet", "key": "cloud"}})),
    ];
    for object in waiting {
        let verdict = reported(&world, &object, None);
        assert_eq!(warned(&verdict), written(world.clone(), &object), "{object}");
    }
    world.policy(|policy| policy.backup.max_per_namespace = Some(2));
    assert_eq!(
        warned(&reported(&world, &nab("shop/daily"), None)),
        written(world.clone(), &nab("shop/daily"))
    );
    world.policy_cannot_be_read();
    for object in [nab("shop/daily"), nar("shop/daily", "over"), bucket(json!({}))] {
        let verdict = reported(&world, &object, None);
        assert_eq!(warned(&verdict), written(world.clone(), &object), "{object}");
    }
}

/// Whoever reads only why a backup waits would take it for complete once it has run.
#[test]
fn a_backup_that_waits_and_saves_no_volume_is_warned_of_both() {
    let mut world = world();
    world.apply(claim("shop/data"));
    let asked = nab_with("shop/new", json!({"storageLocation": "missing"}));
    let verdict = reported(&world, &asked, None);
    assert_eq!((verdict.refusal.as_ref(), verdict.warnings.len()), (None, 2), "{verdict:?}");
    assert!(verdict.warnings[0].contains("the backup starts when it is ready"), "{verdict:?}");
    assert!(
        verdict.warnings[1].contains("volume data of claim \"data\" will NOT be in this backup"),
        "{verdict:?}"
    );
}

/// What could not be restored is said when the backup is asked for, also if it waits or other claims are not saved at all.
#[test]
fn volumes_that_could_not_be_restored_from_own_storage_are_warned_of() {
    let asked = |location: &str| {
        let spec = json!({"storageLocation": location, "defaultVolumesToFsBackup": true});
        nab_with("shop/daily", spec)
    };
    let says_so = |world: &World, location: &str| {
        let verdict = reported(world, &asked(location), None);
        assert_eq!(verdict.refusal, None, "{verdict:?}");
        let mut warnings = verdict.warnings.iter();
        warnings.any(|warning| warning.contains("pods do not come back from your own storage"))
    };
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.settle();
    assert!(says_so(&world, "bucket"));
    assert!(says_so(&world, "not-there-yet"), "a backup that waits is warned of both");
    world.policy(|policy| policy.restore.from_tenant_storage.pods = planner::policy::TenantPods::Baseline);
    assert!(!says_so(&world, "bucket"));
}

#[test]
fn a_claim_whose_volume_is_a_folder_of_a_node_is_warned_of_as_long_as_it_is_one() {
    let mut world = world();
    world.apply(node_agent(1));
    world.apply(claim("shop/data"));
    let uid = world.get("PersistentVolumeClaim shop/data")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.apply(host_path("folder", &uid));
    let warnings = |world: &World| reported(world, &nab("shop/new"), None).warnings;
    assert_eq!(
        warnings(&world),
        [
            "volume data of claim \"data\" will NOT be in this backup, since its volume is a folder of a node (hostPath), and \
          Velero saves no such volume; use a StorageClass with other volumes"
        ]
    );
    world.delete("PersistentVolume /folder");
    assert_eq!(warnings(&world), [""; 0]);
}

#[test]
fn what_is_fine_is_let_in_without_a_word() {
    let world = world();
    for object in [nab("shop/daily"), nar("shop/daily", "over"), bucket(json!({}))] {
        let verdict = reported(&world, &object, None);
        assert!(is_fine(&verdict), "{verdict:?} {object}");
    }
}

#[test]
fn only_a_change_of_what_velero_is_to_do_is_looked_at() {
    let world = world();
    let bad = nab_with("shop/daily", json!({"includedNamespaces": ["office"], "ttl": "1h"}));
    let mut labelled = bad.clone();
    labelled["metadata"]["labels"] = json!({"app": "web"});
    labelled["metadata"]["finalizers"] = json!([]);
    let mut wanted_gone = bad.clone();
    wanted_gone["spec"]["deleteBackup"] = json!(true);
    // Go clients send what they do not mean.
    let mut resent = bad.clone();
    resent["spec"]["backupSpec"]["csiSnapshotTimeout"] = json!("0s");
    resent["spec"]["backupSpec"]["hooks"] = json!({});
    for edited in [&labelled, &wanted_gone, &resent] {
        assert!(is_fine(&reported(&world, edited, Some(&bad))), "{edited}");
    }
    let mut longer = bad.clone();
    longer["spec"]["backupSpec"]["ttl"] = json!("2h");
    assert!(refused(&reported(&world, &longer, Some(&bad))).contains("includedNamespaces"));
    let mut mended = bad.clone();
    mended["spec"]["backupSpec"] = json!({});
    assert!(is_fine(&reported(&world, &mended, Some(&bad))));

    let is_deleting = json!("2026-01-01T00:00:00Z");
    let updates = [
        (nab("shop/daily"), longer),
        (nar("shop/daily", "over"), nar_with("shop/daily", json!({"scheduleName": "x"}))),
        (bucket(json!({})), bucket(json!({"default": true}))),
        (nadr("BackupLog", "over"), nadr("Everything", "over")),
    ];
    for (old, mut new) in updates {
        assert!(reported(&world, &new, Some(&old)).refusal.is_some(), "{new}");
        new["metadata"]["deletionTimestamp"] = is_deleting.clone();
        assert!(is_fine(&reported(&world, &new, Some(&old))), "{new}");
    }
}

#[test]
fn an_edit_that_comes_too_late_is_said_to_change_nothing() {
    let mut world = world();
    let old = world.get("nab shop/over");
    let mut new = old.clone();
    new["spec"]["backupSpec"]["ttl"] = json!("1h");
    let verdict = reported(&world, &new, Some(&old));
    world.edit("nab shop/over", json!({"spec": {"backupSpec": {"ttl": "1h"}}}));
    world.settle();
    let condition = world.condition("nab shop/over", "SpecApplied");
    assert_eq!(format!("False/EditedAfterCreation: {}", warned(&verdict)), condition);
}

#[test]
fn a_location_that_was_asked_for_is_not_changed_unwarned() {
    let mut world = world();
    world.apply(bucket(json!({})));
    world.settle();
    let old = world.get("nabsl shop/daily");
    let mut new = old.clone();
    new["spec"]["backupStorageLocationSpec"]["objectStorage"]["bucket"] = json!("other");
    let verdict = reported(&world, &new, Some(&old));
    world.apply(bucket(json!({"objectStorage": {"bucket": "other"}})));
    world.settle();
    let condition = world.condition("nabsl shop/daily", "SpecUpdateApproved");
    assert_eq!(format!("False/BslSpecUpdateRejected: {}", warned(&verdict)), condition);
}

#[test]
fn what_was_found_in_storage_was_never_asked_for_and_is_not_checked() {
    let world = world();
    let mut synced = nab_with("shop/daily", json!({"includedNamespaces": ["office"]}));
    synced["metadata"]["labels"] = json!({labels::SYNCED_FROM: "x"});
    assert!(is_fine(&reported(&world, &synced, None)));
}

fn question(kind: &str, operation: &str, object: &Value, old: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "operation": operation, "namespace": "shop", "name": "daily",
        "kind": {"group": "oadp.openshift.io", "version": "v1alpha1", "kind": kind},
        "object": object, "oldObject": old,
    }})
}

fn answer(question: &Value) -> Value {
    wire::read(&serde_json::to_vec(question).unwrap()).unwrap().answer(&world().state())
}

#[test]
fn the_api_server_is_answered_in_its_own_terms() {
    let bad = nab_with("shop/daily", json!({"includeClusterResources": true}));
    let said = answer(&question("NonAdminBackup", "CREATE", &bad, &Value::Null));
    assert_eq!(said["response"]["uid"], "705ab4f5");
    assert_eq!(said["response"]["allowed"], false);
    assert!(said["response"]["status"]["message"].as_str().unwrap().starts_with("spec.backupSpec.include"));
    let late = answer(&question("NonAdminRestore", "CREATE", &nar("shop/daily", "later"), &Value::Null));
    assert_eq!(late["response"]["allowed"], true);
    assert_eq!(late["response"]["warnings"].as_array().unwrap().len(), 1);
    // What is not ours to judge passes.
    for (kind, operation) in [("NonAdminBackup", "DELETE"), ("NonAdminBackup", "CONNECT"), ("Pod", "CREATE")]
    {
        let said = answer(&question(kind, operation, &bad, &Value::Null));
        assert_eq!(said["response"], json!({"uid": "705ab4f5", "allowed": true}), "{kind} {operation}");
    }
    let mut status = question("NonAdminBackup", "UPDATE", &bad, &nab("shop/daily"));
    status["request"]["subResource"] = json!("status");
    assert_eq!(answer(&status)["response"]["allowed"], true);
}

#[test]
fn a_dry_run_shows_the_fields_that_the_administrators_set() {
    let mut world = world();
    world.policy(|policy| policy.backup.enforce.ttl = Some("48h".into()));
    let said = |dry_run: bool, operation: &str| {
        let daily = nab("shop/new");
        let mut asked = question("NonAdminBackup", operation, &daily, &daily);
        asked["request"]["dryRun"] = json!(dry_run);
        let answer = wire::read(asked.to_string().as_bytes()).unwrap().answer(&world.state());
        answer["response"]["warnings"].to_string()
    };
    let warning = "spec.backupSpec.ttl: the administrators set this to 48h";
    assert!(said(true, "CREATE").contains(warning), "{}", said(true, "CREATE"));
    assert!(!said(false, "CREATE").contains(warning), "only whoever looks first wants to know");
    assert!(!said(true, "UPDATE").contains(warning));
}

#[test]
fn what_is_no_question_is_refused_and_what_is_deep_is_not_followed() {
    for bytes in
        [&b""[..], b"null", b"[]", b"{}", b"{\"request\": {}}", b"\xff\xfe", b"{\"request\": {\"uid\": 7}}"]
    {
        assert!(wire::read(bytes).is_err(), "{bytes:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(wire::read(format!("{{\"request\": {{\"object\": {deep}}}}}").as_bytes()).is_err());
}

/// Any JSON, and often with the names of fields that mean something.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        proptest::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "backupSpec",
            "restoreSpec",
            "backupStorageLocationSpec",
            "target",
            "hooks",
            "resources",
            "includedNamespaces",
            "ttl",
            "labels",
            "annotations",
            "name",
            "namespace",
            "uid",
            "kind",
            "objectStorage",
            "config",
            "credential",
            "backupName",
            "deletionTimestamp",
            "conditions",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_arrives_is_answered(object in any_json(), old in any_json(), kind in 0..4usize, update in any::<bool>()) {
        let kind = ["NonAdminBackup", "NonAdminRestore", "NonAdminBackupStorageLocation", "NonAdminDownloadRequest"][kind];
        let operation = if update { "UPDATE" } else { "CREATE" };
        let body = serde_json::to_vec(&question(kind, operation, &object, &old)).unwrap();
        let said = wire::read(&body).unwrap().answer(&World::with(&["shop"]).state());
        prop_assert_eq!(&said["response"]["uid"], "705ab4f5");
    }
}

/// Of older requests without a Velero Backup only those count that may yet get one.
#[test]
fn nobody_waits_for_what_comes_to_nothing() {
    let mut younger = nab("shop/z");
    younger["metadata"]["creationTimestamp"] = json!("2030-01-01T00:00:00Z");
    let warns = |older: Value, leaves: bool| {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.backup.max_per_namespace = Some(1));
        world.apply(older);
        if leaves {
            world.delete("nab shop/a");
        }
        !is_fine(&reported(&world, &younger, None))
    };
    let older = |change: &dyn Fn(&mut Value)| {
        let mut older = nab("shop/a");
        older["metadata"]["finalizers"] = json!(["example.com/kept"]);
        change(&mut older);
        older
    };
    assert!(warns(older(&|_| ()), false));
    assert!(!warns(older(&|_| ()), true), "it is being deleted");
    assert!(!warns(older(&|it| it["spec"]["deleteBackup"] = json!(true)), false));
    assert!(!warns(older(&|it| it["metadata"]["labels"] = json!({labels::SYNCED_FROM: "found"})), false));
}

/// Changing a request whose Velero object existed gives no warnings for a new one.
#[test]
fn what_was_handed_over_once_is_not_warned_about() {
    let mut world = world();
    let over = world.velero_name("nab shop/over");
    world.apply(nar("shop/again", "over"));
    world.settle();
    let restore = world.velero_name("nar shop/again");
    let before = [world.get("nab shop/over"), world.get("nar shop/again")];
    world.delete(&format!("restore {restore}"));
    world.velero_tidies();
    world.velero_expires(&over);
    world.policy(|policy| policy.backup.max_per_namespace = Some(1));
    let changed = |stored: &Value| {
        let mut changed = stored.clone();
        let spec = if stored["kind"] == "NonAdminBackup" { "backupSpec" } else { "restoreSpec" };
        changed["spec"][spec]["itemOperationTimeout"] = json!("1h");
        changed
    };
    // Before the controller has said that it is gone, and after.
    for stored in &before {
        assert!(is_fine(&reported(&world, &changed(stored), Some(stored))), "{stored}");
    }
    world.settle();
    for object in ["nab shop/over", "nar shop/again"] {
        let stored = world.get(object);
        assert_eq!(stored["status"]["phase"], "BackingOff", "{object}");
        assert!(is_fine(&reported(&world, &changed(&stored), Some(&stored))), "{stored}");
    }
}

//! Moves between two Veleros.

use super::copies::REPOSITORIES;
use super::*;

fn side(namespace: &str, objects: &[(Kind, Value)]) -> Side {
    let named = |(kind, object): &(Kind, Value)| {
        ((*kind, object["metadata"]["name"].as_str().unwrap().to_owned()), object.clone())
    };
    Side { namespace: namespace.to_owned(), objects: objects.iter().map(named).collect() }
}

fn backup(name: &str, phase: &str) -> (Kind, Value) {
    let metadata = json!({"name": name, "uid": format!("{name}-uid"), "finalizers": ["x"],
        "labels": {labels::NAB_NACUUID: name},
        "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: "daily", labels::ORIGIN_UID: "u"}});
    (
        Kind::Backup,
        json!({"metadata": metadata, "spec": {"storageLocation": "default"}, "status": {"phase": phase}}),
    )
}

fn location(name: &str, bucket: &str) -> (Kind, Value) {
    let spec = json!({"provider": "aws", "default": true, "objectStorage": {"bucket": bucket},
        "credential": {"name": "cloud", "key": "cloud"}});
    (Kind::BackupStorageLocation, json!({"metadata": {"name": name}, "spec": spec}))
}

fn secret(name: &str, data: &str) -> (Kind, Value) {
    (Kind::Secret, json!({"metadata": {"name": name}, "type": "Opaque", "data": {"k": data}}))
}

fn volume(backup: &str, uid: &str) -> (Kind, Value) {
    let labels = json!({labels::VELERO_BACKUP_NAME: backup, labels::VELERO_BACKUP_UID: uid});
    (
        Kind::PodVolumeBackup,
        json!({"metadata": {"name": format!("{backup}-v"), "labels": labels},
        "spec": {"backupStorageLocation": "default"}, "status": {"phase": "Completed"}}),
    )
}

fn old() -> Side {
    side(
        "velero",
        &[
            backup("a", "Completed"),
            backup("b", "InProgress"),
            volume("a", "a-uid"),
            location("default", "platform"),
            secret("cloud", "1"),
            secret(REPOSITORIES, "2"),
        ],
    )
}

/// Does the steps, as often as there are any.
fn moved(from: &Side, mut to: Side) -> (Side, Relocation) {
    for _ in 0..5 {
        let plan = decide(from, &to);
        if plan.steps.is_empty() {
            return (to, plan);
        }
        for step in plan.steps {
            let mut object = step.body.clone();
            object["metadata"]["uid"] = json!(format!("new-{}", step.name()));
            to.objects.insert((step.kind, step.name().to_owned()), object);
        }
    }
    panic!("it never ends");
}

#[test]
fn backups_move_with_their_location_its_credential_and_their_volumes() {
    let (to, plan) = moved(&old(), side("tenants", &[]));
    assert_eq!(plan.moved, ["a"]);
    let there = to.get(Kind::Backup, "a").unwrap();
    assert_eq!(there["metadata"]["namespace"], "tenants");
    assert!(there["metadata"]["finalizers"].is_null());
    assert_eq!(there["status"]["phase"], "Completed");
    let location = &to.get(Kind::BackupStorageLocation, "default").unwrap()["spec"];
    assert_eq!(location["backupSyncPeriod"], "0s", "administrators' backups are not imported");
    assert!(location["default"].is_null());
    assert_eq!(to.get(Kind::Secret, "cloud").unwrap()["data"]["k"], "1");
    assert_eq!(to.get(Kind::Secret, REPOSITORIES).unwrap()["data"]["k"], "2");
    let volume = to.get(Kind::PodVolumeBackup, "a-v").unwrap();
    assert_eq!(volume["metadata"]["labels"][labels::VELERO_BACKUP_UID], "new-a");
    assert_eq!(volume["metadata"]["ownerReferences"][0]["uid"], "new-a");
    assert_eq!(plan.stays.len(), 1);
    assert!(plan.stays[0].why.contains("phase InProgress"), "{plan:?}");
}

#[test]
fn with_another_password_for_the_repositories_nothing_moves() {
    let plan = decide(&old(), &side("tenants", &[secret(REPOSITORIES, "other")]));
    assert!(plan.steps.is_empty() && plan.refusals[0].contains(REPOSITORIES), "{plan:?}");
    let same = decide(&old(), &side("tenants", &[secret(REPOSITORIES, "2")]));
    assert!(same.refusals.is_empty() && !same.steps.is_empty());
}

#[test]
fn a_location_and_a_credential_of_the_same_name_are_not_mixed_up() {
    let there = side("tenants", &[location("default", "tenants"), secret("cloud", "3")]);
    let (to, plan) = moved(&old(), there);
    assert_eq!(plan.moved, ["a"]);
    assert_eq!(to.get(Kind::Backup, "a").unwrap()["spec"]["storageLocation"], "default-from-velero");
    let location = &to.get(Kind::BackupStorageLocation, "default-from-velero").unwrap()["spec"];
    assert_eq!(location["objectStorage"]["bucket"], "platform");
    assert_eq!(location["credential"]["name"], "cloud-from-velero");
    assert_eq!(to.get(Kind::Secret, "cloud-from-velero").unwrap()["data"]["k"], "1");
    assert_eq!(to.get(Kind::Secret, "cloud").unwrap()["data"]["k"], "3", "what is there stays");
}

/// A tenant's location that was approved, and whose request says for what.
fn tenants() -> Side {
    let (kind, mut own) = location("own", "mine");
    own["metadata"]["labels"] = json!({labels::NABSL_NACUUID: "own"});
    own["spec"]["default"] = Value::Null;
    let request = json!({"metadata": {"name": "own", "uid": "r", "annotations": {labels::ORIGIN_UID: "u"}},
        "spec": {"approvalDecision": "approve"},
        "status": {"phase": "Approved", ASKED: {"requestedSpec": {"provider": "aws"}, "nacuuid": "own"}}});
    let mut from = old();
    from.objects.insert((kind, "own".to_owned()), own);
    from.objects.insert((Kind::NonAdminBackupStorageLocationRequest, "own".to_owned()), request);
    from
}

#[test]
fn an_approval_moves_with_what_it_is_about_and_not_without() {
    let kind = Kind::NonAdminBackupStorageLocationRequest;
    let from = tenants();
    let (mut to, _) = moved(&from, side("tenants", &[]));
    let there = to.get(kind, "own").unwrap().clone();
    assert_eq!(
        (&there["spec"], &there["status"]),
        (&from.get(kind, "own").unwrap()["spec"], &from.get(kind, "own").unwrap()["status"])
    );
    let order: Vec<_> = decide(&from, &side("tenants", &[])).steps.iter().map(|step| step.kind).collect();
    let at = |kind| order.iter().position(|one| *one == kind).unwrap();
    assert!(at(kind) < at(Kind::BackupStorageLocation), "{order:?}");

    // Interrupted between the request and its status: that follows. Another location's request stays as it is.
    let place = (kind, "own".to_owned());
    to.objects.get_mut(&place).unwrap()["status"] = Value::Null;
    let plan = decide(&from, &to);
    assert_eq!(plan.steps.iter().map(|step| (step.kind, step.name())).collect::<Vec<_>>(), [(kind, "own")]);
    assert!(is_written_down(&plan.steps[0].body));
    to.objects.get_mut(&place).unwrap()["metadata"]["annotations"][labels::ORIGIN_UID] = json!("another");
    assert!(decide(&from, &to).steps.is_empty());

    // Nobody knows what was approved.
    let mut from = tenants();
    from.objects.get_mut(&place).unwrap()["status"] = Value::Null;
    let (to, _) = moved(&from, side("tenants", &[]));
    assert_eq!(to.get(kind, "own").unwrap()["spec"]["approvalDecision"], "pending");
}

#[test]
fn neither_velero_imports_from_tenants_storage_after_a_move() {
    let mut from = tenants();
    let plan = decide(&from, &side("tenants", &[]));
    assert_eq!((&plan.left, &plan.still_importing), (&vec!["own".to_owned()], &vec!["own".to_owned()]));
    let (to, _) = moved(&from, side("tenants", &[]));
    assert_eq!(to.get(Kind::BackupStorageLocation, "own").unwrap()["spec"][PERIOD], NEVER);
    let place = (Kind::BackupStorageLocation, "own".to_owned());
    from.objects.get_mut(&place).unwrap()["spec"][PERIOD] = stop_importing()["spec"][PERIOD].clone();
    let (_, plan) = moved(&from, to);
    assert!(plan.still_importing.is_empty() && plan.left == ["own"], "{plan:?}");
    assert!(!plan.left.contains(&"default".to_owned()), "the administrators' own location stays as it is");
}

#[test]
fn what_cannot_be_moved_is_named() {
    let mut from = old();
    from.objects.remove(&(Kind::Secret, "cloud".to_owned()));
    let plan = decide(&from, &side("tenants", &[]));
    assert!(plan.stays.iter().any(|one| one.why.contains("secret/cloud")), "{plan:?}");
    let mut squatter = backup("a", "Completed");
    squatter.1["metadata"]["annotations"][labels::NAB_NAMESPACE] = json!("other");
    let plan = decide(&old(), &side("tenants", &[squatter]));
    assert!(plan.stays.iter().any(|one| one.why.contains("another backup has its name")), "{plan:?}");
    let mut from = old();
    let (kind, forged) = volume("a", "somebody-elses");
    from.objects.insert((kind, "forged".to_owned()), forged);
    let (to, plan) = moved(&from, side("tenants", &[]));
    assert!(plan.stays.iter().any(|one| one.what == "podvolumebackup/forged"), "{plan:?}");
    assert!(to.get(Kind::PodVolumeBackup, "forged").is_none());
}

#[test]
fn backups_of_administrators_stay() {
    let mut from = old();
    let (kind, mut nightly) = backup("nightly", "Completed");
    nightly["metadata"]["labels"] = json!({});
    from.objects.insert((kind, "nightly".to_owned()), nightly);
    let (to, plan) = moved(&from, side("tenants", &[]));
    assert!(to.get(Kind::Backup, "nightly").is_none() && !plan.moved.contains(&"nightly".to_owned()));
}

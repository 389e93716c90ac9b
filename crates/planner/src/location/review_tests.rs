use serde_json::json;

use super::*;

fn spec(change: &Value) -> BackupStorageLocationSpec {
    let mut spec = json!({"provider": "aws", "objectStorage": {"bucket": "backups"}, "config": {"region": "r"},
        "credential": {"name": "keys", "key": "cloud"}});
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

fn request(namespace: &str, location: &str, decision: &str) -> Request {
    let name = format!("{namespace}-{location}-1");
    serde_json::from_value(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocationRequest",
        "metadata": {"name": name, "annotations": {
            "openshift.io/oadp-nabsl-origin-name": location, "openshift.io/oadp-nabsl-origin-namespace": namespace}},
        "spec": {"approvalDecision": decision},
        "status": {"nonAdminBackupStorageLocation": {"requestedSpec": spec(&json!({})), "nacuuid": name,
            "name": location, "namespace": namespace}},
    }))
    .unwrap()
}

#[test]
fn a_name_means_one_request_or_none() {
    let requests = [
        request("shop", "mine", "pending"),
        request("farm", "mine", "pending"),
        request("farm", "barn", "approve"),
        // Somebody has called a location like another's request.
        request("evil", "shop-mine-1", "pending"),
    ];
    let found = |text: &str| match meant(&requests, text) {
        Ok(one) => vec![one.metadata.name.as_deref().unwrap()],
        Err(several) => several.into_iter().map(|one| one.metadata.name.as_deref().unwrap()).collect(),
    };
    assert_eq!(found("shop/mine"), ["shop-mine-1"]);
    assert_eq!(found("barn"), ["farm-barn-1"]);
    assert_eq!(found("farm-mine-1"), ["farm-mine-1"]);
    assert_eq!(found("mine"), ["shop-mine-1", "farm-mine-1"]);
    assert_eq!(found("shop-mine-1"), ["shop-mine-1", "evil-shop-mine-1-1"]);
    assert_eq!(found("shop/barn"), Vec::<&str>::new());
    assert!(meant(&requests, "mine").is_err() && meant(&requests, "shop/mine").is_ok());
}

#[test]
fn a_word_is_written_once_and_only_where_it_means_something() {
    let mut careful = Policy::default();
    careful.storage_locations.require_approval = true;
    let weigh = |decision: &str, word, policy: Option<&Policy>| {
        super::weigh(&request("shop", "mine", decision), word, policy)
    };
    assert_eq!(weigh("pending", Word::Approve, None), Weighed::Write(ApprovalDecision::Approve));
    assert_eq!(weigh("approve", Word::Approve, None), Weighed::Stands);
    assert_eq!(weigh("approve", Word::Reject, None), Weighed::Write(ApprovalDecision::Reject));
    assert_eq!(weigh("reject", Word::Reject, None), Weighed::Stands);
    let taken_back = Weighed::Write(ApprovalDecision::Pending);
    assert_eq!(weigh("approve", Word::Revoke, Some(&careful)), taken_back);
    assert_eq!(weigh("approve", Word::Revoke, None), taken_back, "the policy may not be ours to read");
    assert!(matches!(weigh("pending", Word::Revoke, None), Weighed::Pointless(_)));
    assert!(matches!(weigh("reject", Word::Revoke, None), Weighed::Pointless(_)));
    let open = weigh("approve", Word::Revoke, Some(&Policy::default()));
    assert!(matches!(open, Weighed::Pointless(why) if why.contains("reject it instead")), "{open:?}");
}

#[test]
fn what_the_policy_approved_can_be_confirmed_by_hand() {
    let mut marked = request("shop", "mine", "approve");
    let marks = marked.metadata.annotations.get_or_insert_default();
    marks.insert(labels::APPROVED_BY.to_owned(), labels::APPROVED_BY_POLICY.to_owned());
    assert!(super::approved_by_policy(&marked));
    assert_eq!(super::weigh(&marked, Word::Approve, None), Weighed::Write(ApprovalDecision::Approve));
    marked.spec.approval_decision = Some(ApprovalDecision::Pending);
    assert!(!super::approved_by_policy(&marked), "it is not approved");
    assert!(!super::approved_by_policy(&request("shop", "mine", "approve")));
}

#[test]
fn what_nobody_has_written_down_is_not_approved() {
    let mut blank = request("shop", "mine", "pending");
    blank.status = None;
    assert!(matches!(super::weigh(&blank, Word::Approve, None), Weighed::Pointless(_)));
    assert_eq!(super::weigh(&blank, Word::Reject, None), Weighed::Write(ApprovalDecision::Reject));
    let mut odd = request("shop", "mine", "pending");
    odd.metadata.name = Some("another".to_owned());
    assert!(matches!(super::weigh(&odd, Word::Approve, None), Weighed::Pointless(_)));
}

#[test]
fn differences_are_told_by_field_and_only_where_they_matter() {
    let asked = spec(&json!({"backupSyncPeriod": "1h"}));
    let same = json!({"provider": "velero.io/aws", "accessMode": "", "backupSyncPeriod": "60m",
        "objectStorage": {"bucket": "backups", "prefix": ""}});
    assert_eq!(differences(&asked, &spec(&same)), []);
    let now = spec(
        &json!({"backupSyncPeriod": "1h", "objectStorage": {"bucket": "c", "prefix": "p"}, "config": null,
        "validationFrequency": "5m"}),
    );
    let reported: Vec<_> = differences(&asked, &now)
        .into_iter()
        .map(|found| format!("{}: {} -> {}", found.field, found.asked, found.now))
        .collect();
    let wanted = [
        "config.region: \"r\" -> null",
        "objectStorage.bucket: \"backups\" -> \"c\"",
        "objectStorage.prefix: null -> \"p\"",
        "validationFrequency: null -> \"5m\"",
    ];
    assert_eq!(reported, wanted);
}

#[test]
fn a_reason_is_passed_on_in_short() {
    let mut no = request("shop", "mine", "reject");
    assert_eq!(rejection_reason(&no), None);
    let reason = format!("  too\nlarge{} ", "!".repeat(900));
    no.metadata.annotations.as_mut().unwrap().insert(labels::REJECTION_REASON.to_owned(), reason);
    let reported = rejection_reason(&no).unwrap();
    assert!(reported.starts_with("too large!!") && reported.chars().count() == LONGEST_REASON, "{reported}");
}

#[test]
fn an_obstacle_is_what_the_controller_would_say() {
    let asked = request("shop", "mine", "pending");
    let asked = StorageRequest::from(&asked);
    let policy = Policy::default();
    assert_eq!(obstacle(&asked, &policy, "velero", []), None);
    let velero: BackupStorageLocation = serde_json::from_value(json!({
        "apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": {"name": "default"},
        "spec": spec(&json!({})),
    }))
    .unwrap();
    let taken = obstacle(&asked, &policy, "velero", [&velero]).unwrap();
    assert!(taken.message.contains("is used by another storage location"), "{taken}");
    let mut own = velero;
    own.metadata.name = Some("shop-mine-1".to_owned());
    assert_eq!(obstacle(&asked, &policy, "velero", [&own]), None, "it is not in its own way");
    let mut strict = Policy::default();
    strict.storage_locations.providers = vec!["gcp".to_owned()];
    assert!(obstacle(&asked, &strict, "velero", []).unwrap().field.ends_with("provider"));
    assert!(obstacle(&asked, &policy, "shop", []).unwrap().field.ends_with("namespace"));
}

#[test]
fn an_open_line_is_remarkable() {
    assert!(remarkable(&spec(&json!({}))).is_empty());
    let open =
        spec(&json!({"config": {"s3Url": "http://store.example.com", "insecureSkipTLSVerify": "true"}}));
    assert_eq!(remarkable(&open).len(), 2);
}

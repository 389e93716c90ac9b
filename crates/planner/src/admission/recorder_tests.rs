use api::{Kind, labels};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::Variable;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::recorder::{Asked, Recorder, UserInfo};
use super::{record, requester};
use crate::vap::harness::Ask;

const KEYS: [&str; 2] = ["example.com/\"team", "room"];

/// The same, as nacre keeps them.
fn list() -> Value {
    json!({"data": {"extra": KEYS.join(",")}})
}

fn recorder(extra: &[String]) -> Recorder<'_> {
    Recorder { admin_namespace: "velero", extra }
}

fn keys() -> Vec<String> {
    KEYS.map(str::to_owned).to_vec()
}

/// The policy's own words.
fn variables() -> Vec<Variable> {
    record::requester("velero").spec.unwrap().variables.unwrap()
}

/// What both write for a request, by annotation; nothing where they write nothing.
fn compared(user: &Value, object: &Value, old: Option<&Value>) -> [String; 2] {
    let ask = match old {
        None => Ask::create(object.clone()),
        Some(old) => Ask::update(old.clone(), object.clone()),
    };
    let ask = ask.of("oadp.openshift.io", "nonadminbackups").by_user(user.clone()).given(&list());
    let by_policy = ["written", "deletion_written"].map(|name| ask.variable(&variables(), name));
    let (known, keys): (UserInfo, _) = (serde_json::from_value(user.clone()).unwrap(), keys());
    let asked = Asked { kind: Kind::NonAdminBackup, namespace: "shop", user: &known, object, old };
    let patched = applied(object, &recorder(&keys).patch(&asked));
    let by_webhook = [labels::REQUESTER, labels::DELETION_REQUESTER].map(|name| {
        let (before, after) =
            (&object["metadata"]["annotations"][name], &patched["metadata"]["annotations"][name]);
        if before == after && *before != by_policy[usize::from(name != labels::REQUESTER)] {
            return String::new();
        }
        after.as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(by_policy, by_webhook);
    // What the webhook writes is what the API server lets in, by both bindings.
    let policy = requester::own("velero");
    let written = match old {
        None => Ask::create(patched),
        Some(old) => Ask::update(old.clone(), patched),
    };
    let forged = object["metadata"]["annotations"].as_object().is_some_and(|all| !all.is_empty());
    let written = written.of("oadp.openshift.io", "nonadminbackups").by_user(user.clone());
    assert!(forged || (written.passes(&policy) && written.clone().given(&list()).passes(&policy)));
    by_policy
}

/// A JSON patch of additions, carried out.
fn applied(object: &Value, patch: &[Value]) -> Value {
    let mut object = object.clone();
    for step in patch {
        assert_eq!(step["op"], "add");
        let names: Vec<String> = step["path"].as_str().unwrap()[1..]
            .split('/')
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect();
        let (last, way) = names.split_last().unwrap();
        let place =
            way.iter().fold(&mut object, |place, part| place.get_mut(part).expect("a place to add to"));
        place[last] = step["value"].clone();
    }
    object
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z\",\\\\\\[\\]{}:é\u{1}]{0,12}", Just("\",\"".to_owned()), Just(String::new())]
}

fn user() -> impl Strategy<Value = Value> {
    let many = prop_oneof![
        8 => prop::collection::vec(text(), 0..5),
        // In ASCII: the API server counts characters, and the tests' own CEL takes bytes for the size of a text.
        1 => (1..40_usize, 300..420_usize).prop_map(|(long, many)| {
            (0..many).map(|number| format!("e\"{number}{}", "x".repeat(long))).collect()
        }),
        1 => Just(vec!["g".repeat(12_100)]),
        1 => Just(vec!["g".repeat(11_996), "a".to_owned(), "b".to_owned()]),
    ];
    let extra = prop::collection::btree_map(
        prop_oneof![
            Just(KEYS[0].to_owned()),
            Just(KEYS[1].to_owned()),
            Just("scopes.authorization.openshift.io".to_owned()),
            Just("other".to_owned())
        ],
        prop::collection::vec(text(), 0..3),
        0..4,
    );
    (text(), prop::option::of(text()), prop::option::of(many), prop::option::of(extra)).prop_map(
        |(name, uid, groups, extra)| {
            let mut user = json!({ "username": name });
            let fields = [("uid", json!(uid)), ("groups", json!(groups)), ("extra", json!(extra))];
            for (key, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
                user[key] = value;
            }
            user
        },
    )
}

fn backup() -> impl Strategy<Value = Value> {
    let spec = prop_oneof![
        Just(json!({})),
        Just(json!({"backupSpec": {}})),
        Just(json!({"backupSpec": {"ttl": "1h"}})),
        Just(json!({"backupSpec": {}, "deleteBackup": true})),
        Just(json!({"backupSpec": {"ttl": "1h"}, "deleteBackup": true})),
        Just(json!({"deleteBackup": false})),
    ];
    let annotations = prop_oneof![
        3 => Just(Value::Null),
        1 => Just(json!({})),
        1 => Just(json!({labels::REQUESTER: "{\"user\":\"ann\"}"})),
        1 => Just(json!({labels::REQUESTER: "{\"user\":\"ann\"}", labels::DELETION_REQUESTER: "{\"user\":\"eve\"}"})),
    ];
    (spec, annotations).prop_map(|(spec, annotations)| {
        let mut object = json!({"metadata": {"name": "daily"}, "spec": spec});
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations;
        }
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The policy refuses a record that differs from its own in one byte.
    #[test]
    fn the_webhook_records_what_the_policy_would(user in user(), object in backup(), old in prop::option::of(backup())) {
        compared(&user, &object, old.as_ref());
    }
}

#[test]
fn the_webhook_cuts_groups_off_where_the_policy_does() {
    let of = |groups: Vec<String>| {
        let user = json!({"username": "ann", "groups": groups});
        compared(&user, &json!({"metadata": {"name": "daily"}, "spec": {"backupSpec": {}}}), None)[0].clone()
    };
    for first in 11_990..12_010 {
        let record = of(vec!["g".repeat(first), "b".to_owned(), "c".to_owned()]);
        assert!(record.starts_with(r#"{"user":"ann""#), "{record}");
    }
    assert!(of((0..2000).map(|number| format!("group-{number}-of-many")).collect()).len() < 16 * 1024);
}

#[test]
fn nacre_and_velero_are_not_recorded_and_tenants_of_velero_view_are() {
    let object = json!({"metadata": {"name": "a"}, "spec": {}});
    let patch = |kind: Kind, namespace: &str, user: &str| {
        let user: UserInfo = serde_json::from_value(json!({ "username": user })).unwrap();
        recorder(&[]).patch(&Asked { kind, namespace, user: &user, object: &object, old: None }).len()
    };
    let nacre = "system:serviceaccount:velero:non-admin-controller";
    assert_eq!(patch(Kind::NonAdminBackup, "shop", nacre), 0);
    assert_eq!(patch(Kind::Backup, "velero", "ann"), 0);
    assert_eq!(patch(Kind::ConfigMap, "shop", "ann"), 0);
    assert_eq!(patch(Kind::Backup, "shop", "ann"), 2, "the record and its map");
    assert_eq!(patch(Kind::NonAdminSchedule, "shop", "ann"), 2, "nacre puts no finalizer onto schedules");
    assert_eq!(patch(Kind::NonAdminRestore, "shop", "ann"), 3, "the record, its map and the finalizer");
}

#[test]
fn a_finalizer_is_added_to_those_that_are_there_and_only_once() {
    let patched = |finalizers: Value, old: bool| {
        let object = json!({"metadata": {"finalizers": finalizers}, "spec": {}});
        let user = UserInfo::default();
        let old = old.then_some(&object);
        let asked =
            Asked { kind: Kind::NonAdminBackup, namespace: "shop", user: &user, object: &object, old };
        applied(&object, &recorder(&[]).patch(&asked))["metadata"]["finalizers"].clone()
    };
    let own = labels::NAB_FINALIZER;
    assert_eq!(patched(json!(["other"]), false), json!(["other", own]));
    assert_eq!(patched(json!([own]), false), json!([own]));
    assert_eq!(patched(json!(["other"]), true), json!(["other"]), "later it is for nacre to put on");
}

#[test]
fn managed_fields_that_are_nested_without_end_hide_nobody() {
    let nested = format!("{}1{}", r#"{"f:a":"#.repeat(500), "}".repeat(500));
    let object = format!(
        r#"{{"metadata": {{"name": "a", "managedFields": [{{"fieldsV1": {nested}}}], "annotations": {{"b": "c"}}}}, "spec": {{}}}}"#
    );
    let body = format!(
        r#"{{"request": {{"uid": "1", "operation": "CREATE", "namespace": "shop",
        "kind": {{"group": "oadp.openshift.io", "kind": "NonAdminRestore"}},
        "userInfo": {{"username": "ann"}}, "object": {object}, "oldObject": null}}}}"#
    );
    let question = super::wire::read(body.as_bytes()).unwrap();
    let answer = question.record(&recorder(&[]));
    let patch: ByteString = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    let patch: Vec<Value> = serde_json::from_slice(&patch.0).unwrap();
    assert_eq!(patch.len(), 2, "the record, next to what is there, and the finalizer: {patch:?}");
    assert!(patch[0]["value"].as_str().unwrap().starts_with(r#"{"user":"ann""#));
}

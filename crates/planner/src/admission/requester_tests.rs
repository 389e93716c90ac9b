use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Variable};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{adoptions, deletion, finalizers, record, requester, reserved};
use crate::requester::{Identity, Requester, of};
use crate::vap::harness::Ask;

const NACRE: &str = "system:serviceaccount:velero:non-admin-controller";
const RECORD: &str = "nacre.dev/requester";

fn own() -> ValidatingAdmissionPolicy {
    requester::own("velero")
}

/// The list of extra fields, as nacre keeps it.
fn list(keys: &str) -> Value {
    json!({"metadata": {"name": "nacre-requester"}, "data": {"extra": keys}})
}

fn variables() -> Vec<Variable> {
    record::requester("velero").spec.unwrap().variables.unwrap()
}

fn backup() -> Value {
    json!({ "metadata": { "name": "daily" }, "spec": { "backupSpec": {} } })
}

fn edited(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut edited = object.clone();
    change(&mut edited);
    edited
}

fn about(ask: Ask) -> Ask {
    ask.of("oadp.openshift.io", "nonadminbackups")
}

/// What the API server writes for this request.
fn written(ask: &Ask) -> String {
    ask.variable(&variables(), "written")
}

/// An object with the record of this user.
fn of_user(user: &Value) -> Value {
    let record = written(&about(Ask::create(backup())).by_user(user.clone()));
    edited(&backup(), |object| object["metadata"]["annotations"] = json!({ RECORD: record }))
}

fn named(user: &str) -> Value {
    of_user(&json!({"username": user}))
}

fn read(record: &str) -> Requester {
    let annotations = Some([(RECORD.to_owned(), record.to_owned())].into());
    match of(&ObjectMeta { annotations, ..ObjectMeta::default() }) {
        Identity::Known(requester) => (*requester).clone(),
        other => panic!("{record}: {other:?}"),
    }
}

#[test]
fn a_record_says_who_asked_whatever_they_are_called() {
    let scopes = "scopes.authorization.openshift.io";
    let user = json!({"username": "a\"b\\c,\"]}'", "uid": "u-1", "groups": ["x\",\"y", "system:authenticated", "\\"],
        "extra": {scopes: ["user:full"], "secret": ["s"]}});
    let record = written(&about(Ask::create(backup())).by_user(user));
    assert!(!record.contains("secret"), "of the extra fields only the scopes are recorded: {record}");
    let read = read(&record);
    assert_eq!(read.user, "a\"b\\c,\"]}'");
    assert_eq!(read.uid, "u-1");
    assert_eq!(read.groups, ["x\",\"y", "system:authenticated", "\\"]);
    assert_eq!(read.scopes, ["user:full"]);
}

#[test]
fn of_the_extra_fields_those_are_recorded_that_the_policy_lists() {
    let user =
        json!({"username": "ann", "extra": {"example.com/team": ["a\"b", "c"], "none": [], "secret": ["s"]}});
    let ask = about(Ask::create(backup())).by_user(user);
    let found = read(&written(&ask.clone().given(&list("absent,example.com/team,none"))));
    let expected = ["a\"b".to_owned(), "c".to_owned()];
    assert_eq!(found.extra, [("example.com/team".to_owned(), expected.to_vec())].into());
    for nothing in [list(""), json!({"metadata": {}}), json!({"data": {"other": "secret"}}), Value::Null] {
        assert!(read(&written(&ask.clone().given(&nothing))).extra.is_empty(), "{nothing}");
    }
}

/// The record of somebody with these extra fields, of which these are listed.
fn recorded(extra: &Value, keys: &str) -> String {
    let user = json!({"username": "ann", "extra": extra});
    written(&about(Ask::create(backup())).by_user(user).given(&list(keys)))
}

/// By which bindings a new object with this record passes: the one that knows this list, and the one that knows none.
fn passes(extra: &Value, keys: &str, record: &str) -> [bool; 2] {
    let object = edited(&backup(), |object| object["metadata"]["annotations"] = json!({ RECORD: record }));
    let ask = about(Ask::create(object)).by_user(json!({"username": "ann", "extra": extra}));
    [list(keys), Value::Null].map(|list| ask.clone().given(&list).passes(&own()))
}

#[test]
fn who_knows_the_list_lets_no_extra_field_be_forged_or_dropped() {
    let extra = json!({"team": ["a", "b"], "cost": ["\"],"], "odd": ["\"]}}"], "secret": ["s"]});
    let keys = "cost,odd,team";
    let right = recorded(&extra, keys);
    assert_eq!(passes(&extra, keys, &right), [true, true], "{right}");
    // For another list they are true, and not what is asked for.
    for other in ["", "cost", "odd,team", "team,odd,cost", "cost,odd,secret,team"] {
        let record = recorded(&extra, other);
        assert_eq!(passes(&extra, keys, &record), [false, true], "{record}");
    }
    assert_eq!(passes(&extra, keys, ""), [true, true], "where nobody writes one, there is none");
}

#[test]
fn who_knows_no_list_lets_nothing_be_forged_either() {
    let extra = json!({"team": ["a", "b"], "cost": ["1"]});
    let base = recorded(&extra, "");
    let base = base.strip_suffix('}').unwrap();
    for forged in [
        r#","extra":{"team":["c"]}}"#,
        r#","extra":{"team":["a"]}}"#,
        r#","extra":{"team":["a","b","c"]}}"#,
        r#","extra":{"team":["a","b"],"role":["root"]}}"#,
        r#","extra":{"role":["root"],"team":["a","b"]}}"#,
        r#","extra":{"role":["a","b"]}}"#,
        r#","extra":{"team":["a","b"]},"user":"root"}"#,
        r#","extra":{"team":["a","b"]},"extra":{"team":["c"]}}"#,
        r#","extra":{"team":["a","b"]}},"extra":{"team":["c"]}}"#,
        r#","extra":{"]}}"#,
        r#","extra":{}}"#,
        r#","extra":{""]}}"#,
        "",
        "}}",
    ] {
        let forged = format!("{base}{forged}");
        assert_eq!(passes(&extra, "team", &forged), [false, false], "{forged}");
    }
    let another = recorded(&extra, "team").replace("ann", "eve");
    assert_eq!(passes(&extra, "team", &another), [false, false], "{another}");
    // A field twice says the same twice, but no longer than a record may be.
    let repeated = |times: usize| {
        let fields = vec![r#""team":["a","b"]"#; times].join(",");
        format!(r#"{base},"extra":{{{fields}}}}}"#)
    };
    assert_eq!(passes(&extra, "team", &repeated(2)), [false, true]);
    assert_eq!(passes(&extra, "team", &repeated(1200)), [false, false]);
    // Only somebody whose own record could be too long is nobody.
    let nobody = r#"{"user":""}"#;
    assert_eq!(passes(&extra, "team", nobody), [false, false]);
    let long = json!({"team": ["a", "b"], "long": ["x".repeat(17_000)]});
    assert_eq!(passes(&long, "team", nobody), [false, true]);
    assert_eq!(passes(&long, "long", nobody), [true, true]);
}

#[test]
fn in_whatever_order_both_bindings_write_the_list_counts() {
    let extra = json!({"team": ["a"], "long": ["x".repeat(17_000)]});
    let user = json!({"username": "ann", "extra": extra});
    for keys in ["", "team", "long"] {
        let right = recorded(&extra, keys);
        for (lists, forged) in [
            ([list(keys), Value::Null], ""),
            ([Value::Null, list(keys)], ""),
            ([list(keys), Value::Null], "x"),
        ] {
            let mut object = backup();
            object["metadata"]["annotations"] = json!({ RECORD: forged });
            for list in &lists {
                let text = written(&about(Ask::create(object.clone())).by_user(user.clone()).given(list));
                if !text.is_empty() {
                    object["metadata"]["annotations"][RECORD] = json!(text);
                }
            }
            assert_eq!(object["metadata"]["annotations"][RECORD], json!(right), "{keys}");
        }
    }
}

#[test]
fn a_record_has_at_most_16_kib_and_beyond_that_somebody_is_nobody() {
    let scopes: Vec<String> = (0..2000).map(|number| format!("scope-{number}-of-many")).collect();
    let extra = json!({"scopes.authorization.openshift.io": scopes});
    let ask = about(Ask::create(backup())).by_user(json!({"username": "ann", "extra": extra}));
    let annotations = Some([(RECORD.to_owned(), written(&ask))].into());
    // Cutting scopes off could raise permissions, which cutting groups off cannot.
    assert_eq!(of(&ObjectMeta { annotations, ..ObjectMeta::default() }), Identity::Unreadable);
}

#[test]
fn too_many_groups_are_cut_off_between_two_of_them() {
    let groups: Vec<String> = (0..2000).map(|number| format!("group-\"{number}\"-of-many")).collect();
    let record = written(&about(Ask::create(backup())).by_user(json!({"username": "ann", "groups": groups})));
    assert!(record.len() < 16 * 1024, "{}", record.len());
    let read = read(&record).groups;
    assert!(read.len() > 100 && groups.starts_with(&read), "{}", read.len());
}

#[test]
fn what_cannot_be_read_is_nobody() {
    let record = written(&about(Ask::create(backup())).by_user(json!({"username": "a\u{1}b"})));
    let annotations = Some([(RECORD.to_owned(), record)].into());
    assert_eq!(of(&ObjectMeta { annotations, ..ObjectMeta::default() }), Identity::Unreadable);
}

#[test]
fn on_creation_only_the_own_record_passes() {
    let policy = own();
    assert!(about(Ask::create(named("ann"))).passes(&policy));
    assert!(about(Ask::create(backup())).passes(&policy), "where nobody writes one, there is none");
    assert!(!about(Ask::create(named("ann"))).by("eve").passes(&policy));
    assert!(!about(Ask::create(of_user(&json!({"username": "ann", "groups": ["admins"]})))).passes(&policy));
    assert!(about(Ask::create(named("ann"))).by(NACRE).passes(&policy), "nacre asks for others");
}

#[test]
fn later_it_stays_unless_what_is_asked_for_changes() {
    let policy = own();
    let old = named("ann");
    let labelled = edited(&old, |object| object["metadata"]["labels"] = json!({"app": "shop"}));
    assert!(about(Ask::update(old.clone(), labelled)).by("eve").passes(&policy));
    for forged in [backup(), named("eve"), named("root")] {
        assert!(!about(Ask::update(old.clone(), forged.clone())).by("eve").passes(&policy), "{forged}");
        assert!(!about(Ask::update(old.clone(), forged.clone())).by("root").passes(&policy), "{forged}");
    }
    let changed =
        |user: &str| edited(&named(user), |object| object["spec"]["backupSpec"]["ttl"] = json!("2h"));
    assert!(about(Ask::update(old.clone(), changed("eve"))).by("eve").passes(&policy));
    assert!(!about(Ask::update(old.clone(), changed("ann"))).by("eve").passes(&policy), "acts as another");
    assert!(!about(Ask::update(backup(), named("ann"))).passes(&policy), "an old object gets none by hand");
    let unrecorded = edited(&backup(), |object| object["spec"]["backupSpec"]["ttl"] = json!("2h"));
    assert!(about(Ask::update(backup(), unrecorded)).passes(&policy));
}

#[test]
fn whoever_deletes_the_data_is_recorded_apart() {
    let (policy, old) = (own(), named("ann"));
    let deleting = edited(&old, |object| object["spec"]["deleteBackup"] = json!(true));
    let ask = about(Ask::update(old.clone(), deleting.clone())).by("eve");
    assert_eq!(ask.variable(&variables(), "written"), "", "the backup stays ann's");
    let record = ask.variable(&variables(), "deletion_written");
    assert_eq!(read(&record).user, "eve");
    let with = |record: &str| {
        edited(&deleting, |object| {
            object["metadata"]["annotations"]["nacre.dev/deletion-requester"] = json!(record);
        })
    };
    assert!(about(Ask::update(old.clone(), with(&record))).by("eve").passes(&policy));
    assert!(!about(Ask::update(old, with(&record))).by("root").passes(&policy));
    assert!(!about(Ask::update(with(&record), deleting)).by("eve").passes(&policy), "it stays");
}

#[test]
fn whoever_replaces_an_object_keeps_its_record() {
    let ask = about(Ask::update(named("ann"), backup())).by("eve");
    assert_eq!(read(&written(&ask)).user, "ann");
    let changed = edited(&backup(), |object| object["spec"]["backupSpec"]["ttl"] = json!("2h"));
    assert_eq!(read(&written(&about(Ask::update(named("ann"), changed)).by("eve"))).user, "eve");
    let status = about(Ask::update(named("ann"), named("ann"))).by("eve");
    assert_eq!(written(&status), "", "nothing is written where nothing changes");
}

#[test]
fn the_record_is_no_reserved_mark_but_everything_else_is() {
    let policy = reserved::labels_and_annotations();
    assert!(about(Ask::create(named("ann"))).passes(&policy));
    let other =
        edited(&backup(), |object| object["metadata"]["annotations"] = json!({"nacre.dev/requesters": "x"}));
    assert!(!about(Ask::create(other)).passes(&policy));
    let label = edited(&backup(), |object| object["metadata"]["labels"] = json!({ RECORD: "x" }));
    assert!(!about(Ask::create(label)).passes(&policy));
}

#[test]
fn deleting_data_takes_the_permission_to_delete_the_request() {
    let policy = deletion::data("velero");
    let deleting = edited(&backup(), |object| object["spec"]["deleteBackup"] = json!(true));
    let ask = about(Ask::update(backup(), deleting.clone()));
    assert!(!ask.passes(&policy));
    assert!(ask.clone().holding(deletion::MAY_DELETE).passes(&policy));
    assert!(ask.by(NACRE).passes(&policy));
    let label = edited(&deleting, |object| object["metadata"]["labels"] = json!({"app": "shop"}));
    assert!(about(Ask::update(deleting.clone(), label)).passes(&policy), "it was set before");
    assert!(about(Ask::update(deleting, backup())).passes(&policy), "anybody may change their mind");
}

#[test]
fn each_kind_gets_its_own_finalizer() {
    let variables = finalizers::finalizers().spec.unwrap().variables.unwrap();
    let own = |plural: &'static str| {
        Ask::create(backup()).of("oadp.openshift.io", plural).variable(&variables, "own")
    };
    assert_eq!(own("nonadminbackups"), "nonadminbackup.oadp.openshift.io/finalizer");
    assert_eq!(own("nonadminrestores"), "nonadminrestore.oadp.openshift.io/finalizer");
    assert_eq!(
        own("nonadminbackupstoragelocations"),
        "nonadminbackupstoragelocation.oadp.openshift.io/finalizer"
    );
}

/// Without replicas nobody removes it: `nacre operator` scales down before it removes finalizers.
#[test]
fn a_finalizer_is_put_on_only_while_the_deployment_has_replicas() {
    let conditions = finalizers::finalizers().spec.unwrap().match_conditions.unwrap();
    let applies = |replicas: i64| {
        Ask::create(backup()).given(&json!({"spec": {"replicas": replicas}})).meets(&conditions)
    };
    assert!(applies(1) && applies(2));
    assert!(!applies(0));
}

#[test]
fn whoever_adopts_backups_writes_no_other_name_than_their_own() {
    let map = |data: Value| json!({"metadata": {"name": "nacre-adoptions"}, "data": data});
    let by = |ask: Ask, user: &str| {
        ask.of("", "configmaps").inside("velero", "v").by(user).passes(&adoptions::names("velero"))
    };
    let roots = map(json!({"shop": "1", "shop.requester": "root"}));
    for (user, data, passes) in [
        ("root", json!({"shop": "1", "shop.requester": "root"}), true),
        ("root", json!({"shop": "1"}), true),
        ("eve", json!({"shop": "1", "shop.requester": "root"}), false),
        ("eve", json!({"farm": "1", "farm.requester": "eve", "shop": "1", "shop.requester": "root"}), false),
    ] {
        assert_eq!(by(Ask::create(map(data.clone())), user), passes, "{user}: {data}");
    }
    for (user, data, passes) in [
        // Others' lines stay as they are, and may go.
        ("eve", json!({"farm": "1", "farm.requester": "eve", "shop": "1", "shop.requester": "root"}), true),
        ("eve", json!({}), true),
        ("eve", json!({"shop": "1"}), true),
        ("eve", json!({"shop.requester": "root"}), true),
        ("eve", json!({"shop": "1", "shop.requester": "eve"}), true),
        ("eve", json!({"shop": "1", "shop.requester": "ada"}), false),
        ("eve", json!({"shop": "2", "shop.requester": "root"}), false),
        ("root", json!({"shop": "2", "shop.requester": "root"}), true),
    ] {
        assert_eq!(by(Ask::update(roots.clone(), map(data.clone())), user), passes, "{user}: {data}");
    }
    // A name without an adoption means nothing, and does not come to mean something.
    let early = map(json!({"shop.requester": "root"}));
    assert!(by(Ask::create(early.clone()), "eve"));
    let late = map(json!({"shop": "1", "shop.requester": "root"}));
    assert!(!by(Ask::update(early, late), "eve"));
    let other = json!({"metadata": {"name": "other"}, "data": {"shop": "1", "shop.requester": "root"}});
    assert!(by(Ask::create(other), "eve"), "it is about one ConfigMap");
}

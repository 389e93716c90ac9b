//! What an installation is made with when somebody installs again.

use api::Kind;
use serde_json::{Map, Value, json};

use super::aggregate::{EDIT, VIEW};
use super::tests::{find, installed, installed_with};
use super::{CONTROLLER, Found, Observed, RECORD, Settings, UserRole, VELERO_VIEW, decide, place, settle};

fn said(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// The settings that come of saying this, and what is remarked.
fn settled(say: &Value, found: &[Found]) -> (Settings, Vec<String>) {
    let values = settle(&said(say), found, "velero").unwrap();
    (values.settings, values.remarks)
}

fn refused(say: &Value, found: &[Found]) -> String {
    settle(&said(say), found, "velero").unwrap_err().join("\n")
}

fn without_record(found: &mut Vec<Found>) {
    found.retain(|one| one.name() != RECORD);
}

/// Nothing that is the default.
fn unusual() -> Settings {
    Settings {
        namespace: "velero".to_owned(),
        image: "registry.example/nacre:mine".to_owned(),
        image_pull_secrets: vec![json!({"name": "pull"})],
        replicas: 3,
        log_level: 6,
        log_format: "text".to_owned(),
        webhook: false,
        console: true,
        console_url: "https://console.example.com".to_owned(),
        console_ca: "bucket-ca".to_owned(),
        velero_view: true,
        fence: true,
        aggregate_to: vec![UserRole::Admin],
        resources: serde_json::from_value(json!({"requests": {}, "limits": {"memory": "1Gi"}})).unwrap(),
        node_selector: [("disk".to_owned(), "fast".to_owned())].into(),
        tolerations: vec![json!({"key": "infra", "operator": "Exists"})],
    }
}

#[test]
fn installing_again_without_a_word_changes_nothing() {
    for settings in [Settings::default(), unusual()] {
        let mut found = installed_with(&settings);
        let (again, remarks) = settled(&json!({}), &found);
        assert_eq!((&again, remarks), (&settings, Vec::new()));
        let plan = decide(&Observed { settings: &again, found: &found, unserved: &[], velero: None }).plan;
        assert!(plan.actions.is_empty(), "{plan:?}");
        // An installation of before there was a record is read as it is, and recorded.
        without_record(&mut found);
        let (again, remarks) = settled(&json!({}), &found);
        assert_eq!((&again, remarks), (&settings, Vec::new()));
        assert_eq!(
            decide(&Observed { settings: &again, found: &found, unserved: &[], velero: None })
                .plan
                .actions
                .len(),
            1
        );
    }
}

#[test]
fn what_is_said_changes_and_nothing_else() {
    let (settings, _) = settled(&json!({"replicas": 1, "veleroView": false}), &installed_with(&unusual()));
    assert_eq!(settings, Settings { replicas: 1, velero_view: false, ..unusual() });
}

#[test]
fn the_first_installation_needs_an_image() {
    let why = refused(&json!({}), &[]);
    assert!(why.contains("--image") && why.contains("not installed in velero yet"), "{why}");
    assert_eq!(settled(&json!({"image": "a:1"}), &[]).0.image, "a:1");
    // What stands in the way is said first: no image would help.
    let elsewhere = settle(&said(&json!({})), &installed(), "backup").unwrap_err().join("\n");
    assert!(elsewhere.contains("installed in namespace velero already"), "{elsewhere}");
}

#[test]
fn a_change_by_hand_is_kept_and_named() {
    let mut found = installed_with(&unusual());
    let deployment = find(&mut found, Kind::Deployment, CONTROLLER);
    deployment.body["spec"]["template"]["spec"]["containers"][0]["image"] =
        "registry.example/nacre:next".into();
    let (settings, remarks) = settled(&json!({}), &found);
    assert_eq!(settings.image, "registry.example/nacre:next");
    assert_eq!(
        remarks,
        [
            "image is registry.example/nacre:next on the Deployment and was registry.example/nacre:mine at the last install: it stays as it is"
        ]
    );
    // Whoever says an image knows.
    let (settings, remarks) = settled(&json!({"image": "b:2"}), &found);
    assert_eq!((settings.image.as_str(), remarks.len()), ("b:2", 0));
}

#[test]
fn what_is_missing_comes_back_as_it_was() {
    let mut found = installed_with(&unusual());
    found.retain(|one| one.kind != Kind::Deployment && one.name() != VELERO_VIEW && one.name() != VIEW);
    find(&mut found, Kind::ClusterRole, EDIT).body["metadata"]["labels"] =
        json!({"app.kubernetes.io/part-of": "nacre"});
    assert_eq!(settled(&json!({}), &found).0, unusual());
}

#[test]
fn roles_that_were_applied_by_hand_stay() {
    let mut found = installed();
    let view = installed_with(&unusual()).into_iter().find(|one| one.name() == VELERO_VIEW).unwrap();
    found.push(view);
    assert!(settled(&json!({}), &found).0.velero_view);
    // Somebody took a label off before there was a record.
    without_record(&mut found);
    let edit = find(&mut found, Kind::ClusterRole, EDIT);
    edit.body["metadata"]["labels"][UserRole::Edit.label()] = Value::Null;
    assert_eq!(settled(&json!({}), &found).0.aggregate_to, [UserRole::Admin, UserRole::View]);
}

#[test]
fn another_version_needs_its_image() {
    let mut found = installed();
    find(&mut found, Kind::Deployment, CONTROLLER).body["metadata"]["labels"]["app.kubernetes.io/version"] =
        "0.0.1".into();
    let why = refused(&json!({}), &found);
    assert!(why.contains("nacre 0.0.1 is installed") && why.contains("--image"), "{why}");
    assert_eq!(settled(&json!({"image": "b:2"}), &found).0.image, "b:2");
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let mut found = installed();
    find(&mut found, Kind::ConfigMap, RECORD).body["data"]["aggregateTo"] = "[\"boss\"]".into();
    let why = refused(&json!({}), &found);
    assert!(why.contains("data.aggregateTo") && why.contains("[\"admin\",\"edit\",\"view\"]"), "{why}");
}

#[test]
fn it_is_installed_where_it_is() {
    assert_eq!(place(None, &[]), "velero");
    let there = installed_with(&Settings { namespace: "backup".to_owned(), ..Settings::default() });
    assert_eq!(place(None, &there), "backup");
    assert_eq!(place(Some("velero"), &there), "velero");
}

#[test]
fn roles_are_part_of_the_roles_that_were_named_and_no_others() {
    let only_admin =
        Settings { aggregate_to: vec![UserRole::Admin], velero_view: true, ..Settings::default() };
    let roles = super::objects(&only_admin);
    let mut labels: Vec<String> = roles
        .iter()
        .filter(|one| one.kind == Kind::ClusterRole)
        .flat_map(|role| {
            let labels = role.body["metadata"]["labels"].as_object().unwrap();
            let those = labels.iter().filter(|(key, _)| key.contains("aggregate-to"));
            those.map(|(key, value)| format!("{} {key}={value}", role.name())).collect::<Vec<_>>()
        })
        .collect();
    labels.sort();
    let prefix = "rbac.authorization.k8s.io/aggregate-to";
    assert_eq!(
        labels,
        [
            format!("nacre:edit {prefix}-admin=\"true\""),
            format!("nacre:edit {prefix}-edit=\"false\""),
            format!("nacre:velero-view:edit {prefix}-admin=\"true\""),
            format!("nacre:velero-view:edit {prefix}-edit=\"false\""),
            format!("nacre:velero-view:view {prefix}-view=\"false\""),
            format!("nacre:view {prefix}-view=\"false\""),
        ]
    );
}

#[test]
fn an_older_installation_that_lists_extra_fields_is_told_where_they_are_listed_now() {
    let mut found = installed_with(&Settings::default());
    for policy in found.iter_mut().filter(|one| one.name() == "nacre-requester") {
        for variable in policy.body["spec"]["variables"].as_array_mut().into_iter().flatten() {
            if variable["name"] == "extra_keys" {
                variable["expression"] = json!(r#"["example.com/team","b"]"#);
            }
        }
    }
    assert_eq!(
        settled(&json!({}), &found).1,
        [
            "extra fields of users (example.com/team, b) are no longer listed here: they are recorded if the policy has \
          requester: {extra: [example.com/team, b]}"
        ]
    );
}

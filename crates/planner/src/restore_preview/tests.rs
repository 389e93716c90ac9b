use std::collections::{BTreeMap, BTreeSet};

use api::velero::RestoreSpec;
use serde_json::{Value, json};

use super::{Contents, Existing, Item, Observed, Preview, SavedClaim, VolumeEffect, preview, read_list};
use crate::served::Served;
use crate::{Policy, fence};

fn served() -> Vec<Served> {
    let one = |group: &str, plural: &str, kind: &str, namespaced: bool| Served {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        listable: true,
        preferred: true,
        ..Served::default()
    };
    vec![
        one("", "configmaps", "ConfigMap", true),
        one("", "secrets", "Secret", true),
        one("", "serviceaccounts", "ServiceAccount", true),
        one("", "pods", "Pod", true),
        one("", "events", "Event", true),
        one("", "resourcequotas", "ResourceQuota", true),
        one("", "namespaces", "Namespace", false),
        one("", "persistentvolumes", "PersistentVolume", false),
        one("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
        one("apps", "deployments", "Deployment", true),
        one("oadp.openshift.io", "nonadminbackups", "NonAdminBackup", true),
    ]
}

/// A namespace and a backup of it.
struct World {
    items: Vec<Item>,
    existing: BTreeMap<String, Existing>,
    contents: Option<Contents>,
    requested: RestoreSpec,
    spec: RestoreSpec,
    from_tenant_storage: bool,
    removed_first: BTreeSet<(String, String)>,
    not_permitted: Vec<String>,
    saved: BTreeMap<String, SavedClaim>,
}

fn world(list: Value) -> World {
    let list: BTreeMap<String, Vec<String>> = serde_json::from_value(list).unwrap();
    let mut world = World {
        items: read_list(&list),
        existing: served().iter().map(|one| (one.name(), Existing::Listed(BTreeMap::new()))).collect(),
        contents: None,
        requested: RestoreSpec::default(),
        spec: RestoreSpec::default(),
        from_tenant_storage: false,
        removed_first: BTreeSet::new(),
        not_permitted: Vec::new(),
        saved: BTreeMap::new(),
    };
    world.ask(json!({}));
    world
}

impl World {
    fn ask(&mut self, spec: Value) {
        self.requested = serde_json::from_value(spec).unwrap();
        self.spec = self.requested.clone();
        // As the generated restore has it.
        let guard_rails = Policy::default().restore.excluded_from_platform_storage;
        crate::filters::leave_out(
            &mut self.spec.excluded_resources,
            fence::out_of_restores().into_iter().chain(guard_rails),
        );
    }

    fn exists(&mut self, resource: &str, name: &str, object: Option<Value>) {
        if let Some(Existing::Listed(found)) = self.existing.get_mut(resource) {
            found.insert(name.to_owned(), object);
        }
    }

    fn holds(&mut self, resource: &str, name: &str, object: Value) {
        self.contents.get_or_insert_default().insert((resource.to_owned(), name.to_owned()), object);
    }

    fn preview(&self) -> Preview {
        preview(&Observed {
            namespace: "shop",
            requested: &self.requested,
            spec: &self.spec,
            policy: &Policy::default(),
            not_permitted: &self.not_permitted,
            from_tenant_storage: self.from_tenant_storage,
            items: &self.items,
            served: &served(),
            existing: &self.existing,
            contents: self.contents.as_ref(),
            removed_first: &self.removed_first,
            saved: &self.saved,
        })
    }

    fn lines(&self) -> String {
        let preview = self.preview();
        let lines = preview.objects.iter().map(|object| serde_json::to_string(object).unwrap());
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn each_object_has_an_effect_and_each_rule_its_name() {
    let mut world = world(json!({
        "v1/ConfigMap": ["shop/prices", "shop/new", "shop/kube-root-ca.crt"],
        "v1/Event": ["shop/x"], "v1/Namespace": ["shop"], "v1/ResourceQuota": ["shop/limit"],
        "oadp.openshift.io/v1/NonAdminBackup": ["shop/a"], "example.com/v1/Gadget": ["shop/g"],
        "v1/PersistentVolume": ["pv"], "apps/v1/Deployment": ["shop/web"], "v1/Pod": ["shop/web-1"],
    }));
    world.exists("configmaps", "prices", None);
    world.exists("configmaps", "kube-root-ca.crt", None);
    world.existing.insert(
        "deployments.apps".to_owned(),
        Existing::NotAllowed("you may not list deployments.apps".to_owned()),
    );
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"Gadget","name":"g","effect":"leftOut","by":"the cluster does not serve this kind"}
    {"resource":"configmaps","name":"kube-root-ca.crt","effect":"same"}
    {"resource":"configmaps","name":"new","effect":"created"}
    {"resource":"configmaps","name":"prices","effect":"kept"}
    {"resource":"deployments.apps","name":"web","effect":"unknown","why":"you may not list deployments.apps"}
    {"resource":"events","name":"x","effect":"leftOut","by":"Velero: it restores no objects of this kind"}
    {"resource":"namespaces","name":"shop","effect":"leftOut","by":"nacre never restores it"}
    {"resource":"nonadminbackups.oadp.openshift.io","name":"a","effect":"leftOut","by":"nacre never restores it"}
    {"resource":"persistentvolumes","name":"pv","effect":"withItsClaim"}
    {"resource":"pods","name":"web-1","effect":"createdUnlessCompleted"}
    {"resource":"resourcequotas","name":"limit","effect":"leftOut","by":"the administrators' policy, restore.fromPlatformStorage"}
    "#);
    assert!(world.preview().something_stays_away());
}

#[test]
fn the_requests_own_filters_are_named_and_no_surprise() {
    let mut world = world(json!({
        "v1/ConfigMap": ["shop/a"], "v1/Secret": ["shop/b"], "v1/ResourceQuota": ["shop/limit"],
    }));
    world.ask(json!({"includedResources": ["secrets"]}));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"a","effect":"leftOut","by":"the request, includedResources"}
    {"resource":"resourcequotas","name":"limit","effect":"leftOut","by":"the request, includedResources"}
    {"resource":"secrets","name":"b","effect":"created"}
    "#);
    assert!(!world.preview().something_stays_away());
    world.items.retain(|item| item.kind != "ResourceQuota");
    world.ask(json!({"excludedResources": ["secrets"]}));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"a","effect":"created"}
    {"resource":"secrets","name":"b","effect":"leftOut","by":"the request, excludedResources"}
    "#);
    world.ask(json!({"labelSelector": {"matchLabels": {"app": "web"}}}));
    assert!(world.lines().contains("its labels are not known"));
    world.holds("configmaps", "a", json!({"metadata": {"labels": {"app": "web"}}}));
    world.holds("secrets", "b", json!({"metadata": {"labels": {"app": "other"}}}));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"a","effect":"created"}
    {"resource":"secrets","name":"b","effect":"leftOut","by":"the request, labelSelector"}
    "#);
}

#[test]
fn what_the_caller_may_not_create_is_left_out_and_what_is_removed_first_is_replaced() {
    let mut world = world(json!({"v1/ConfigMap": ["shop/kept", "shop/old"], "v1/Secret": ["shop/key"]}));
    world.not_permitted = vec!["secrets".to_owned()];
    world.exists("configmaps", "kept", None);
    world.exists("configmaps", "old", None);
    world.removed_first.insert(("configmaps".to_owned(), "old".to_owned()));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"kept","effect":"kept"}
    {"resource":"configmaps","name":"old","effect":"replaced"}
    {"resource":"secrets","name":"key","effect":"leftOut","by":"you do not have the permission to create it"}
    "#);
    assert!(world.preview().something_stays_away());
}

#[test]
fn from_tenant_storage_only_what_is_allowed_comes_back() {
    let mut world = world(json!({"v1/ConfigMap": ["shop/a"], "v1/Pod": ["shop/p"]}));
    world.from_tenant_storage = true;
    world.spec.included_resources = Some(vec!["configmaps".to_owned()]);
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"a","effect":"created"}
    {"resource":"pods","name":"p","effect":"leftOut","by":"the administrators' policy, restore.fromTenantStorage"}
    "#);
}

#[test]
fn a16_a_token_is_shown_as_left_out_where_the_api_server_refuses_it() {
    let mut world = world(json!({"v1/Secret": ["shop/token"]}));
    world.holds("secrets", "token", json!({"type": "kubernetes.io/service-account-token"}));
    assert!(world.lines().contains("created"), "{}", world.lines());
    world.from_tenant_storage = true;
    assert!(world.lines().contains("nacre never restores it"), "{}", world.lines());
}

#[test]
fn differences_are_named_field_by_field_and_secrets_stay_secret() {
    let mut world = world(json!({
        "v1/ConfigMap": ["shop/prices", "shop/same"], "v1/Secret": ["shop/key"], "v1/ServiceAccount": ["shop/robot"],
    }));
    let meta =
        |uid: &str| json!({"uid": uid, "resourceVersion": uid, "labels": {"velero.io/restore-name": uid}});
    world.holds("configmaps", "prices", json!({"metadata": meta("1"), "data": {"tea": "3", "milk": "1"}}));
    world.exists("configmaps", "prices", Some(json!({"metadata": meta("2"), "data": {"tea": "4"}})));
    world.holds("configmaps", "same", json!({"metadata": meta("1"), "data": {}, "status": {"a": 1}}));
    world.exists("configmaps", "same", Some(json!({"metadata": meta("2")})));
    world.holds("secrets", "key", json!({"metadata": meta("1"), "data": {"password": "aGVsbG8="}}));
    world.exists("secrets", "key", Some(json!({"metadata": meta("2"), "data": {"password": "d29ybGQ="}})));
    world.holds(
        "serviceaccounts",
        "robot",
        json!({"metadata": {"annotations": {"a": "b"}}, "imagePullSecrets": [{"name": "pull"}]}),
    );
    world.exists("serviceaccounts", "robot", Some(json!({"metadata": {"annotations": {"a": "c"}}})));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"configmaps","name":"prices","effect":"kept","differences":[{"field":"data.milk","backup":"1"},{"field":"data.tea","now":"4","backup":"3"}]}
    {"resource":"configmaps","name":"same","effect":"same"}
    {"resource":"secrets","name":"key","effect":"kept","differences":[{"field":"data.password"}]}
    {"resource":"serviceaccounts","name":"robot","effect":"updated","differences":[{"field":"imagePullSecrets","backup":{"name":"pull"}}]}
    "#);
    world.ask(json!({"existingResourcePolicy": "update"}));
    assert!(world.lines().contains(r#""name":"prices","effect":"updated""#));
    assert!(!world.preview().something_stays_away());
}

#[test]
fn what_had_completed_does_not_come_back() {
    let mut world = world(json!({"v1/Pod": ["shop/done", "shop/web"]}));
    world.holds("pods", "done", json!({"status": {"phase": "Succeeded"}}));
    world.holds("pods", "web", json!({"status": {"phase": "Running"}}));
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"pods","name":"done","effect":"leftOut","by":"Velero: it had completed"}
    {"resource":"pods","name":"web","effect":"created"}
    "#);
}

#[test]
fn the_data_of_a_claim_comes_back_only_with_the_claim() {
    let mut world =
        world(json!({"v1/PersistentVolumeClaim": ["shop/data", "shop/cache"], "v1/Pod": ["shop/web"]}));
    world.saved.insert("data".to_owned(), SavedClaim::Saved(Some(8)));
    world.saved.insert("cache".to_owned(), SavedClaim::NotSaved("not opted in".to_owned()));
    let effects = |world: &World| {
        let volumes = world.preview().volumes;
        volumes.into_iter().map(|volume| (volume.claim, volume.effect)).collect::<BTreeMap<_, _>>()
    };
    let found = effects(&world);
    assert_eq!((found["data"], found["cache"]), (VolumeEffect::Restored, VolumeEffect::Empty));
    world.exists("persistentvolumeclaims", "data", None);
    assert_eq!(effects(&world)["data"], VolumeEffect::Kept);
    // Velero writes into the claims of every pod that it creates.
    world.holds(
        "pods",
        "web",
        json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}}),
    );
    assert_eq!(effects(&world)["data"], VolumeEffect::WrittenOver);
    world.exists("pods", "web", None);
    assert_eq!(effects(&world)["data"], VolumeEffect::Kept);
    world.removed_first.insert(("persistentvolumeclaims".to_owned(), "data".to_owned()));
    assert_eq!(effects(&world)["data"], VolumeEffect::Restored);
    world.saved.remove("data");
    assert_eq!(effects(&world)["data"], VolumeEffect::Unknown);
}

#[test]
fn a_pod_brings_its_claims_whatever_their_labels() {
    let mut world =
        world(json!({"v1/PersistentVolumeClaim": ["shop/data", "shop/other"], "v1/Pod": ["shop/web"]}));
    world.ask(json!({"labelSelector": {"matchLabels": {"app": "web"}}}));
    world.holds("persistentvolumeclaims", "data", json!({"metadata": {}}));
    world.holds("persistentvolumeclaims", "other", json!({"metadata": {}}));
    let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}});
    world.holds("pods", "web", pod);
    insta::assert_snapshot!(world.lines(), @r#"
    {"resource":"persistentvolumeclaims","name":"data","effect":"created"}
    {"resource":"persistentvolumeclaims","name":"other","effect":"leftOut","by":"the request, labelSelector"}
    {"resource":"pods","name":"web","effect":"created"}
    "#);
}

use serde_json::{Value, json};

use super::{
    fence, hooks, namespaces,
    namespaces::MAY_LABEL,
    objects, requests,
    requests::MAY_DECIDE,
    reserved,
    reserved::{MAY_QUEUE, MAY_WRITE_STATUS},
    sizes,
    velero::{MAY_MAKE, objects as velero_objects},
};
use crate::vap::harness::Ask;

const VELERO: &str = "system:serviceaccount:velero:velero";
const NACRE: &str = "system:serviceaccount:velero:non-admin-controller";

/// Every key nacre writes anywhere: those of the Go controller, and its own.
const RESERVED: [&str; 16] = [
    "openshift.io/oadp",
    "openshift.io/oadp-nab-origin-nacuuid",
    "openshift.io/oadp-nar-origin-nacuuid",
    "openshift.io/oadp-nabsl-origin-nacuuid",
    "openshift.io/oadp-nadr-origin-nacuuid",
    "openshift.io/oadp-nab-synced-from-nacuuid",
    "openshift.io/oadp-nab-origin-name",
    "openshift.io/oadp-nab-origin-namespace",
    "openshift.io/oadp-nar-origin-name",
    "openshift.io/oadp-nar-origin-namespace",
    "openshift.io/oadp-nabsl-origin-name",
    "openshift.io/oadp-nabsl-origin-namespace",
    "openshift.io/oadp-nadr-origin-namespace",
    "nacre.dev/origin-uid",
    "nacre.dev/origin-namespace-uid",
    "nacre.dev/anything",
];

fn plain() -> Value {
    json!({ "metadata": { "name": "daily" }, "spec": { "backupSpec": {} } })
}

/// What a forger changes of an object.
type Change = fn(&mut Value);

fn edited(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut edited = object.clone();
    change(&mut edited);
    edited
}

/// D1
/// D2
/// D4
#[test]
fn d1_d2_d4_reserved_marks_are_neither_added_nor_changed_nor_removed_by_tenants() {
    let policy = reserved::labels_and_annotations();
    for map in ["labels", "annotations"] {
        let demand = format!("{map} that begin with");
        for key in RESERVED {
            let marked = edited(&plain(), |object| object["metadata"][map] = json!({ key: "x" }));
            let other = edited(&plain(), |object| object["metadata"][map] = json!({ key: "y" }));
            for ask in [
                Ask::create(marked.clone()),
                Ask::update(plain(), marked.clone()),
                Ask::update(marked.clone(), other),
                Ask::update(marked.clone(), plain()),
            ] {
                assert!(ask.is_refused_only_by(&policy, &[&demand]), "{ask:?}");
                assert!(ask.holding(MAY_WRITE_STATUS).passes(&policy), "{map} {key}");
            }
        }
    }
}

#[test]
fn an_untouched_mark_never_stands_in_the_way() {
    let policy = reserved::labels_and_annotations();
    let marked = edited(&plain(), |object| {
        object["metadata"]["labels"] = json!({ RESERVED[5]: "x", "app": "shop" });
        object["metadata"]["annotations"] = json!({ "nacre.dev/origin-uid": "u" });
    });
    let changes: [fn(&mut Value); 5] = [
        |object| object["spec"]["deleteBackup"] = json!(true),
        |object| object["metadata"]["labels"]["app"] = json!("other"),
        |object| drop(object["metadata"]["labels"].as_object_mut().unwrap().remove("app")),
        |object| object["metadata"]["annotations"]["note"] = json!("mine"),
        |object| object["metadata"]["finalizers"] = json!([]),
    ];
    for change in changes {
        let ask = Ask::update(marked.clone(), edited(&marked, change));
        assert!(ask.passes(&policy), "{ask:?}");
    }
}

#[test]
fn others_may_say_that_they_manage_an_object_and_nobody_that_nacre_does() {
    let policy = reserved::labels_and_annotations();
    let managed = |by: &str| {
        edited(&plain(), |object| {
            object["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": by });
        })
    };
    assert!(Ask::create(managed("Helm")).passes(&policy));
    assert!(Ask::update(managed("Helm"), managed("argocd")).passes(&policy));
    assert!(!Ask::create(managed("oadp-nac-controller")).passes(&policy));
    assert!(!Ask::update(managed("Helm"), managed("oadp-nac-controller")).passes(&policy));
}

#[test]
fn the_order_of_the_queue_is_changed_by_who_may_do_so_everywhere() {
    let policy = reserved::labels_and_annotations();
    let queued = |value: &str| {
        edited(&plain(), |object| object["metadata"]["annotations"] = json!({ "nacre.dev/queue": value }))
    };
    for ask in [
        Ask::create(queued("front")),
        Ask::update(plain(), queued("front")),
        Ask::update(plain(), queued("hold")),
        Ask::update(queued("hold"), queued("front")),
        Ask::update(queued("hold"), plain()),
    ] {
        assert!(!ask.passes(&policy), "{ask:?}");
        assert!(ask.clone().holding(MAY_QUEUE).passes(&policy), "{ask:?}");
        assert!(ask.clone().holding(MAY_WRITE_STATUS).passes(&policy), "{ask:?}");
    }
    // Whoever holds the verb writes nothing else of nacre's, and no other value.
    let other = edited(&plain(), |object| object["metadata"]["annotations"] = json!({ RESERVED[14]: "x" }));
    assert!(!Ask::update(plain(), other).holding(MAY_QUEUE).passes(&policy));
    assert!(!Ask::update(plain(), queued("first")).holding(MAY_QUEUE).passes(&policy));
    // A tenant edits what is held.
    let held = edited(&queued("hold"), |object| object["spec"]["deleteBackup"] = json!(true));
    assert!(Ask::update(queued("hold"), held).passes(&policy));
}

#[test]
fn a_status_is_written_by_who_may_write_all_of_them() {
    let policy = reserved::statuses();
    let created = edited(&plain(), |object| object["status"] = json!({ "phase": "Created" }));
    assert!(!Ask::update(plain(), created.clone()).passes(&policy));
    assert!(!Ask::update(created.clone(), plain()).passes(&policy));
    assert!(Ask::update(created.clone(), created.clone()).passes(&policy));
    assert!(Ask::update(plain(), created).holding(MAY_WRITE_STATUS).passes(&policy));
}

#[test]
fn what_administrators_decide_is_theirs() {
    let policy = requests::requests("velero");
    let pending = json!({ "metadata": { "name": "r" }, "spec": { "approvalDecision": "pending" } });
    let approved = edited(&pending, |object| object["spec"]["approvalDecision"] = json!("approve"));
    let released = edited(&approved, |object| object["metadata"]["finalizers"] = json!([]));
    for ask in
        [Ask::create(pending.clone()), Ask::update(pending, approved.clone()), Ask::delete(approved.clone())]
    {
        assert!(!ask.passes(&policy), "{ask:?}");
        assert!(ask.clone().holding(MAY_DECIDE).passes(&policy));
        assert!(ask.clone().by(NACRE).passes(&policy));
        let namesake = ask.by("system:serviceaccount:shop:non-admin-controller");
        assert!(!namesake.passes(&policy), "{namesake:?}");
    }
    assert!(Ask::update(approved, released).passes(&policy));
}

#[test]
fn beside_velero_only_velero_nacre_and_administrators_make_its_objects() {
    let policy = velero_objects("velero");
    let backup =
        json!({ "metadata": { "name": "b" }, "spec": { "ttl": "1h" }, "status": { "phase": "New" } });
    let changes: [fn(&mut Value); 4] = [
        |object| object["metadata"]["labels"] = json!({ "a": "b" }),
        |object| {
            object["metadata"]["annotations"] = json!({ "openshift.io/oadp-nab-origin-namespace": "shop" });
        },
        |object| object["spec"]["ttl"] = json!("2h"),
        |object| object["status"]["phase"] = json!("Completed"),
    ];
    let updates = changes.map(|change| Ask::update(backup.clone(), edited(&backup, change)));
    for ask in updates.into_iter().chain([Ask::create(backup.clone())]) {
        assert!(!ask.passes(&policy), "{ask:?}");
        assert!(ask.clone().by(VELERO).passes(&policy) && ask.clone().by(NACRE).passes(&policy));
        assert!(!ask.clone().by("system:serviceaccount:velero2:velero").passes(&policy));
        assert!(ask.holding(MAY_MAKE).passes(&policy));
    }
    let released = edited(&backup, |object| object["metadata"]["finalizers"] = json!([]));
    assert!(Ask::update(backup, released).passes(&policy), "cleaners take finalizers off");
}

fn location(owner: Option<&str>) -> Value {
    let mut location = json!({ "metadata": { "name": "evil-bucket" } });
    if let Some(owner) = owner {
        location["metadata"]["annotations"] = json!({ "openshift.io/oadp-nabsl-origin-namespace": owner });
    }
    location
}

fn backup(spec: &Value) -> Value {
    let mut backup = json!({ "metadata": { "name": "b" }, "spec": spec });
    backup["spec"]["storageLocation"] = json!("evil-bucket");
    backup
}

/// Of a backup in a tenant's storage: what it may cover, and that it is not run if it was found there.
const COVERS: &str = "covers that tenant's namespace and no other";
const WITHOUT_CLUSTER: &str = "covers no cluster-scoped resources";
const NEVER_RUN: &str = "is never run";

#[test]
fn a1_a_backup_in_a_tenants_storage_covers_that_tenant_whoever_asks() {
    let policy = fence::backups("velero");
    let own = backup(&json!({ "includedNamespaces": ["evil"] }));
    let wide = [
        (COVERS, json!({})),
        (COVERS, json!({ "includedNamespaces": null })),
        (COVERS, json!({ "includedNamespaces": [] })),
        (COVERS, json!({ "includedNamespaces": ["*"] })),
        (COVERS, json!({ "includedNamespaces": ["shop"] })),
        (COVERS, json!({ "includedNamespaces": ["evil", "shop"] })),
        (COVERS, json!({ "includedNamespaces": ["ev*"] })),
        (WITHOUT_CLUSTER, json!({ "includedNamespaces": ["evil"], "includeClusterResources": true })),
        (
            WITHOUT_CLUSTER,
            json!({ "includedNamespaces": ["evil"], "includedClusterScopedResources": ["secrets"] }),
        ),
    ];
    for (demand, spec) in wide {
        let wide = backup(&spec);
        let elsewhere = edited(&wide, |object| object["spec"]["storageLocation"] = json!("default"));
        let done = edited(&wide, |object| object["status"] = json!({ "phase": "Completed" }));
        for (object, user) in [(&wide, "root"), (&done, VELERO), (&wide, NACRE)] {
            let ask = Ask::create(object.clone()).by(user).holding(MAY_MAKE).given(&location(Some("evil")));
            assert!(!ask.passes(&policy), "{ask:?}");
        }
        let ask = Ask::update(own.clone(), wide.clone()).given(&location(Some("evil")));
        assert!(ask.is_refused_only_by(&policy, &[demand]), "{ask:?}");
        let moved = Ask::update(elsewhere.clone(), wide.clone()).given(&location(Some("evil")));
        assert!(!moved.passes(&policy), "{moved:?}");
        assert!(Ask::create(elsewhere).given(&location(Some("evil"))).passes(&policy));
        // Progress of one that is there already is written whatever it covers.
        assert!(Ask::update(wide, done).by(VELERO).given(&location(Some("evil"))).passes(&policy));
    }
    let explicit = backup(&json!({ "includedNamespaces": ["evil"], "includeClusterResources": false }));
    for fine in [own.clone(), explicit] {
        assert!(Ask::create(fine.clone()).by(NACRE).given(&location(Some("evil"))).passes(&policy));
        assert!(!Ask::create(fine).by(NACRE).given(&location(None)).passes(&policy), "nobody's storage");
    }
}

/// planted: three demands on imported backups are left out
#[test]
fn a1_a_backup_that_velero_found_in_a_tenants_storage_is_over() {
    let policy = fence::backups("velero");
    let found = |phase: Value| {
        let mut found = imported();
        found["status"] = json!({ "phase": phase });
        Ask::create(found).given(&location(Some("evil")))
    };
    for phase in ["Completed", "PartiallyFailed", "Failed"] {
        assert!(found(json!(phase)).by(VELERO).passes(&policy));
    }
    let never = ["New", "", "Queued", "ReadyToStart", "InProgress", "FailedValidation"];
    for phase in never.map(Value::from).into_iter().chain([Value::Null]) {
        assert!(found(phase.clone()).by(VELERO).is_refused_only_by(&policy, &[NEVER_RUN]), "{phase}");
        assert!(found(phase.clone()).by(NACRE).passes(&policy), "{phase}");
        assert!(found(phase).by("root").passes(&policy));
    }
    // The planted weakness: with these three switched off, and no fewer, a backup of the whole cluster would run.
    let greedy = edited(&imported(), |object| {
        object["spec"]["includedNamespaces"] = json!(["*"]);
        object["spec"]["includeClusterResources"] = json!(true);
        object["status"] = json!({ "phase": "New" });
    });
    let ask = Ask::create(greedy).by(VELERO).given(&location(Some("evil")));
    for demand in [COVERS, WITHOUT_CLUSTER, NEVER_RUN] {
        assert!(!ask.is_refused_only_by(&policy, &[demand]), "{demand}");
    }
    assert!(ask.is_refused_only_by(&policy, &[COVERS, WITHOUT_CLUSTER, NEVER_RUN]));
}

/// What nacre once made for a tenant, as Velero finds it in the bucket.
fn imported() -> Value {
    let name = "evil-daily-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
    let mut found = backup(&json!({ "includedNamespaces": ["evil"] }));
    found["metadata"]["name"] = json!(name);
    found["metadata"]["labels"] = json!({
        "openshift.io/oadp": "True", "app.kubernetes.io/managed-by": "oadp-nac-controller",
        "openshift.io/oadp-nab-origin-nacuuid": name, "velero.io/storage-location": "evil-bucket",
    });
    found["status"] = json!({ "phase": "Completed" });
    found
}

#[test]
fn h2_a6_a_backup_that_velero_found_in_a_tenants_storage_has_only_what_nacre_gave_it() {
    let policy = fence::backups("velero");
    let (labels, bare) = ("has no labels but those", "has neither finalizers nor owners");
    let named = "has a name that nacre gave it";
    let hostile: [(&str, Change); 8] = [
        (labels, |object| object["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly")),
        (labels, |object| object["metadata"]["labels"]["team"] = json!("a")),
        (bare, |object| object["metadata"]["finalizers"] = json!(["x.example/y"])),
        (bare, |object| {
            object["metadata"]["ownerReferences"] = json!([{ "kind": "Schedule", "name": "nightly" }]);
        }),
        (named, |object| {
            let labels = object["metadata"]["labels"].as_object_mut().unwrap();
            labels.remove("openshift.io/oadp-nab-origin-nacuuid");
        }),
        (named, |object| {
            object["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] = json!("shop-daily");
        }),
        (named, |object| object["metadata"]["name"] = json!("nightly-20300101")),
        (named, |object| {
            let name = "shop-daily-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
            object["metadata"]["name"] = json!(name);
            object["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] = json!(name);
        }),
    ];
    for (demand, change) in hostile {
        let ask = Ask::create(edited(&imported(), change)).given(&location(Some("evil")));
        assert!(ask.clone().by(VELERO).is_refused_only_by(&policy, &[demand]), "{ask:?}");
        assert!(ask.by("root").passes(&policy), "it was not found");
    }
    assert!(Ask::create(imported()).by(VELERO).given(&location(Some("evil"))).passes(&policy));
}

/// A2
/// A4
/// H8
/// planted: one demand on volumes in tenants' storage is left out
#[test]
fn a2_a4_h8_volumes_that_go_into_a_tenants_storage_are_that_tenants() {
    let policy = fence::volumes("velero");
    let volume = |spec: Value| {
        let labels = json!({ "velero.io/backup-uid": "u" });
        let mut volume = json!({ "metadata": { "name": "v", "labels": labels }, "spec": spec });
        volume["spec"]["backupStorageLocation"] = json!("evil-bucket");
        volume
    };
    for fine in [
        json!({ "pod": { "namespace": "evil", "name": "p" } }),
        json!({ "sourceNamespace": "evil", "sourcePVC": "data" }),
    ] {
        assert!(Ask::create(volume(fine.clone())).by(VELERO).given(&location(Some("evil"))).passes(&policy));
        let by_name = edited(&volume(fine), |object| {
            object["metadata"]["labels"] = json!({ "velero.io/backup-name": "somebody-elses" });
        });
        let by_name = Ask::create(by_name).by(VELERO).given(&location(Some("evil")));
        assert!(by_name.is_refused_only_by(&policy, &["says by uid which backup"]), "H8");
    }
    for hostile in [
        json!({ "pod": { "namespace": "shop", "name": "p" } }),
        json!({ "pod": { "name": "p" } }),
        json!({ "sourceNamespace": "shop" }),
        json!({ "pod": { "namespace": "evil" }, "sourceNamespace": "shop" }),
        json!({}),
    ] {
        let ask = Ask::create(volume(hostile.clone())).by(VELERO).given(&location(Some("evil")));
        assert!(
            ask.is_refused_only_by(&policy, &["comes from volumes in that tenant's namespace"]),
            "{ask:?}"
        );
        let fine = volume(json!({ "pod": { "namespace": "evil" } }));
        assert!(!Ask::update(fine, volume(hostile.clone())).given(&location(Some("evil"))).passes(&policy));
        let elsewhere = edited(&volume(hostile), |object| {
            object["spec"]["backupStorageLocation"] = json!("default");
        });
        assert!(Ask::create(elsewhere).by(VELERO).given(&location(Some("evil"))).passes(&policy));
    }
}

#[test]
fn labels_of_namespaces_that_policies_may_select_by_are_the_administrators() {
    let policy = namespaces::labels();
    let gold = json!({ "metadata": { "name": "shop", "labels": { "nacre.dev/tier": "gold" } } });
    let bare = json!({ "metadata": { "name": "shop" } });
    for ask in [
        Ask::create(gold.clone()),
        Ask::update(bare.clone(), gold.clone()),
        Ask::update(gold.clone(), bare.clone()),
    ] {
        assert!(!ask.passes(&policy), "{ask:?}");
        assert!(ask.holding(MAY_LABEL).passes(&policy));
    }
    let named = edited(&gold, |object| object["metadata"]["labels"]["team"] = json!("a"));
    assert!(Ask::update(gold, named).passes(&policy));
    let is_deleting = edited(&bare, |object| object["spec"] = json!({ "finalizers": [] }));
    assert!(Ask::update(bare, is_deleting).passes(&policy));
}

#[test]
fn every_policy_denies_is_bound_and_fails_closed_unless_it_would_stop_the_cluster() {
    let objects = objects("velero");
    let named = |kind: &str| -> Vec<&str> {
        objects.iter().filter(|object| object.body["kind"] == kind).map(crate::Object::name).collect()
    };
    // The last binding of each is a second one.
    let again = ["nacre-requester-extra"];
    assert_eq!(
        [&named("ValidatingAdmissionPolicy"), &again[..]].concat(),
        named("ValidatingAdmissionPolicyBinding")
    );
    assert_eq!(
        [&named("MutatingAdmissionPolicy"), &again[..]].concat(),
        named("MutatingAdmissionPolicyBinding")
    );
    for object in &objects {
        match object.body["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => {
                // Every new namespace, or changed service account, in the cluster meets these, also where Velero is not
                // installed yet.
                let open = ["nacre-restored-namespaces", "nacre-restored-accounts", "nacre-restored-volumes"]
                    .contains(&object.name());
                assert_eq!(object.body["spec"]["failurePolicy"], if open { "Ignore" } else { "Fail" });
            }
            "ValidatingAdmissionPolicyBinding" => {
                assert_eq!(object.body["spec"]["validationActions"], json!(["Deny"]));
            }
            "ValidatingWebhookConfiguration" => {
                assert_eq!(object.body["webhooks"][0]["failurePolicy"], "Ignore");
            }
            "MutatingAdmissionPolicy" => assert_eq!(object.body["spec"]["failurePolicy"], "Fail"),
            other => assert!(["Service", "MutatingAdmissionPolicyBinding"].contains(&other), "{other}"),
        }
    }
    let deletes: Vec<_> = super::policies("velero")
        .into_iter()
        .filter(|policy| serde_json::to_string(policy).unwrap().contains("DELETE"))
        .map(|policy| policy.metadata.name.unwrap())
        .collect();
    assert_eq!(deletes, ["nacre-location-requests"], "nothing else stands in the way of a deletion");
}

/// Velero takes them instead of what the Backup says, and a hook that hangs stops everybody.
#[test]
fn f2_h7_a_pod_with_a_hook_that_may_take_longer_than_an_hour_is_refused() {
    let policy = hooks::timeouts();
    let pod = |key: &str, value: &str| json!({"metadata": {"name": "db", "annotations": {key: value}}});
    let key = "post.hook.backup.velero.io/timeout";
    for fine in ["1s", "999s", "3600s", "30m", "60m", "1h", "1h0m0s", "59m59s", "250ms", "0s"] {
        assert!(Ask::create(pod(key, fine)).passes(&policy), "{fine}");
    }
    for long in
        ["3601s", "61m", "2h", "999h", "1h1m", "-1s", "9999999999h", "1.5h", "60m1s", "soon", "1m999999s"]
    {
        for key in [
            key,
            "pre.hook.backup.velero.io/timeout",
            "hook.backup.velero.io/timeout",
            "post.hook.restore.velero.io/exec-timeout",
            "post.hook.restore.velero.io/wait-timeout",
        ] {
            assert!(!Ask::create(pod(key, long)).passes(&policy), "{key}: {long}");
        }
    }
    assert!(Ask::create(json!({"metadata": {"name": "db"}})).passes(&policy));
    assert!(Ask::create(pod("other", "999h")).passes(&policy));
    // What was there before can still be changed in other ways, but not made longer.
    let mut scaled = pod(key, "2h");
    scaled["metadata"]["labels"] = json!({"app": "db"});
    assert!(Ask::update(pod(key, "2h"), scaled).passes(&policy));
    assert!(!Ask::update(pod(key, "2h"), pod(key, "3h")).passes(&policy));
}

/// B8: a spec, labels or finalizers of a megabyte
/// planted: one demand on sizes is left out
#[test]
fn b8_no_part_of_a_request_is_without_a_limit() {
    let spec = |field: &str, spec: Value| json!({"metadata": {"name": "a"}, "spec": {field: spec}});
    let many = |number: usize| vec!["configmaps"; number];
    let hook = |words: &[&str]| json!([{"name": "h", "pre": [{"exec": {"command": words}}]}]);
    let long = "x".repeat(5000);
    let labels: serde_json::Map<_, _> = (0..65).map(|number| (format!("l{number}"), json!("x"))).collect();
    // Each with what alone refuses it: with that demand switched off, it would be stored.
    let backups = [
        ("lists of namespaces", json!({"includedResources": many(200), "excludedResources": many(57)})),
        ("lists of namespaces", json!({"includedResources": [long]})),
        ("orderedResources", json!({"orderedResources": {"pods": long}})),
        ("label selectors", json!({"orLabelSelectors": vec![json!({}); 33]})),
        ("label selectors", json!({"labelSelector": {"matchLabels": labels.clone()}})),
        ("hooks.resources", json!({"hooks": {"resources": vec![json!({"name": "h"}); 33]}})),
        ("arguments have at most", json!({"hooks": {"resources": hook(&[&long])}})),
    ];
    for (demand, backup) in backups {
        let large = spec("backupSpec", backup.clone());
        assert!(Ask::create(large.clone()).is_refused_only_by(&sizes::backups(), &[demand]), "{backup}");
        assert!(!Ask::update(spec("backupSpec", json!({})), large.clone()).passes(&sizes::backups()));
        assert!(
            Ask::update(large.clone(), large).passes(&sizes::backups()),
            "what is stored can be edited and deleted"
        );
    }
    let fine = json!({"includedResources": many(200), "orderedResources": {"pods": "shop/a,shop/b"},
        "hooks": {"resources": hook(&["/bin/sh", "-c", "true"])}, "labelSelector": {"matchLabels": {"app": "shop"}}});
    assert!(Ask::create(spec("backupSpec", fine)).passes(&sizes::backups()));
    let bare = json!({"metadata": {"name": "a"}});
    assert!(Ask::create(bare.clone()).passes(&sizes::backups()), "no spec at all");
    assert!(Ask::update(bare.clone(), bare).passes(&sizes::backups()));

    let init =
        json!({"hooks": {"resources": [{"name": "h", "postHooks": [{"init": {"initContainers": [long]}}]}]}});
    for (demand, restore) in [
        ("init containers", init),
        ("namespaceMapping", json!({"namespaceMapping": {"a": long}})),
        ("lists of namespaces", json!({"includedResources": many(257)})),
    ] {
        let ask = Ask::create(spec("restoreSpec", restore.clone()));
        assert!(ask.is_refused_only_by(&sizes::restores(), &[demand]), "{restore}");
    }
    let exec =
        json!({"hooks": {"resources": [{"name": "h", "postHooks": [{"exec": {"command": ["true"]}}]}]}});
    assert!(Ask::create(spec("restoreSpec", exec)).passes(&sizes::restores()));

    let large = json!({"objectStorage": {"bucket": "b", "caCert": "x".repeat(50_000)}});
    let large = Ask::create(spec("backupStorageLocationSpec", large));
    assert!(large.is_refused_only_by(&sizes::locations(), &["caCert"]));
    let fine = json!({"objectStorage": {"bucket": "b", "caCert": "eA=="}, "config": {"region": "x"}});
    assert!(Ask::create(spec("backupStorageLocationSpec", fine)).passes(&sizes::locations()));

    let labelled = edited(&plain(), |object| object["metadata"]["labels"] = json!(labels));
    let held = edited(&plain(), |object| object["metadata"]["finalizers"] = json!(vec!["x.example/y"; 65]));
    for (demand, large) in [("metadata.labels", labelled), ("metadata.finalizers", held)] {
        assert!(Ask::create(large.clone()).is_refused_only_by(&sizes::metadata(), &[demand]));
        assert!(!Ask::update(plain(), large.clone()).passes(&sizes::metadata()));
        let changed = edited(&large, |object| object["spec"]["deleteBackup"] = json!(true));
        assert!(Ask::update(large, changed).passes(&sizes::metadata()), "what is stored can be deleted");
    }
}

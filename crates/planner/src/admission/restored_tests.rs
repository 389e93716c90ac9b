//! What the fence lets a tenant's restore bring back, policy by policy.

use api::{RestoredFrom, restore_name};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use super::{baseline, restored, restores, snapshots, sources};
use crate::fence;
use crate::restore::NEVER_FROM_TENANTS;
use crate::vap::{Draft, harness::Ask};

const VELERO: &str = "system:serviceaccount:velero:velero";
const NACRE: &str = "system:serviceaccount:velero:non-admin-controller";
const SHOP: &str = "1c2b3a4d-5e6f-4d8e-9f4e-0b8d1a523c0f";
const OTHER: &str = "1c2b3a4d-5e60-4d8e-9f4e-0b8d1a523c0f";
const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

fn named(from: RestoredFrom) -> String {
    restore_name(from, ("shop", SHOP), ("back", UID))
}

/// An object as Velero restores it.
fn restored(from: RestoredFrom, rest: &Value) -> Value {
    let mut object = rest.clone();
    object["metadata"]["name"] = json!("x");
    object["metadata"]["labels"]["velero.io/restore-name"] = json!(named(from));
    object
}

fn passes(
    policy: &ValidatingAdmissionPolicy,
    from: RestoredFrom,
    object: &Value,
    kind: (&'static str, &'static str),
) -> bool {
    Ask::create(restored(from, object)).by(VELERO).of(kind.0, kind.1).inside("shop", SHOP).passes(policy)
}

#[test]
fn a_tenants_restore_stays_in_the_very_namespace_it_was_asked_for_in() {
    let policy = restored::objects("velero");
    for from in RestoredFrom::ALL {
        let map = || Ask::create(restored(from, &json!({}))).by(VELERO).of("", "configmaps");
        assert!(map().inside("shop", SHOP).passes(&policy));
        for (name, uid) in [("other", OTHER), ("shop", OTHER), ("velero", UID)] {
            let ask = map().inside(name, uid);
            assert!(!ask.passes(&policy), "{ask:?}");
            assert!(ask.clone().by("ann").passes(&policy), "what others do is not this policy's business");
        }
        let update =
            Ask::update(json!({"metadata": {}}), restored(from, &json!({}))).by(VELERO).of("", "secrets");
        assert!(update.clone().inside("shop", SHOP).passes(&policy));
        assert!(!update.inside("other", OTHER).passes(&policy));
    }
}

/// A data mover restores into a claim of its own, which it gives the labels of the tenant's.
#[test]
fn a_data_movers_own_claim_is_made_in_veleros_namespace_and_no_other() {
    let policy = restored::objects("velero");
    let owner = |kind: &str, name: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "velero.io/v2alpha1", "kind": kind, "name": name}]},
            "spec": {"storageClassName": "fast"}})
    };
    let ask = |object: &Value, plural: &'static str, namespace: &'static str| {
        Ask::create(restored(RestoredFrom::TenantStorage, object))
            .by(VELERO)
            .of("", plural)
            .inside(namespace, UID)
            .passes(&policy)
    };
    let own = owner("DataDownload", "x");
    assert!(ask(&own, "persistentvolumeclaims", "velero"));
    assert!(!ask(&own, "persistentvolumeclaims", "other"));
    assert!(!ask(&own, "secrets", "velero"));
    for other in [owner("DataDownload", "y"), owner("Restore", "x"), json!({"spec": {}})] {
        assert!(!ask(&other, "persistentvolumeclaims", "velero"), "{other}");
    }
    for source in ["dataSource", "dataSourceRef"] {
        let mut with = own.clone();
        with["spec"][source] = json!({"kind": "PersistentVolumeClaim", "name": "z"});
        assert!(!ask(&with, "persistentvolumeclaims", "velero"), "{source}");
    }
}

#[test]
fn a_request_that_changes_nothing_is_not_looked_at_twice_and_any_change_is() {
    let policy = restored::objects("velero");
    let map = restored(
        RestoredFrom::TenantStorage,
        &json!({"kind": "ConfigMap", "data": {"a": "b"}, "immutable": true}),
    );
    let managed = |map: &Value| {
        let mut map = map.clone();
        map["metadata"]["managedFields"] = json!([{"manager": "velero"}]);
        map
    };
    let update = |new: Value| {
        Ask::update(map.clone(), managed(&new)).by(VELERO).of("", "configmaps").inside("other", OTHER)
    };
    assert!(update(map.clone()).passes(&policy));
    let mut without = map.clone();
    without.as_object_mut().unwrap().remove("immutable");
    let changed = |path: &str, value: Value| {
        let mut map = map.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        map.pointer_mut(parent).unwrap()[key] = value;
        map
    };
    for new in [
        without,
        changed("/data/a", json!("c")),
        changed("/binaryData", json!({})),
        changed("/metadata/labels/x", json!("y")),
        changed("/metadata/annotations", json!({"x": "y"})),
        changed("/metadata/finalizers", json!(["x"])),
        changed("/metadata/ownerReferences", json!([{"kind": "Pod"}])),
    ] {
        assert!(!update(new.clone()).passes(&policy), "{new}");
    }
}

#[test]
fn administrators_restores_are_not_looked_at() {
    for policy in [restored::objects("velero"), sources::sources("velero"), baseline::pods("velero")] {
        for name in ["nightly", "nightly-20260101", &format!("restore-{UID}"), &format!("shop-back-{UID}")] {
            let object = json!({"metadata": {"name": "x", "labels": {"velero.io/restore-name": name}},
                "spec": {"hostNetwork": true, "source": {"pvc": {"namespace": "v"}}}});
            for (group, plural) in [
                ("", "pods"),
                ("rbac.authorization.k8s.io", "clusterroles"),
                ("cdi.kubevirt.io", "datavolumes"),
            ] {
                assert!(
                    Ask::create(object.clone()).by(VELERO).of(group, plural).inside("", "").passes(&policy),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn without_a_namespace_only_volumes_come_back_and_only_from_the_administrators_storage() {
    let policy = restored::objects("velero");
    let passes = |from, group, plural| {
        Ask::create(restored(from, &json!({}))).by(VELERO).of(group, plural).inside("", "").passes(&policy)
    };
    for (group, plural) in [("", "persistentvolumes"), ("snapshot.storage.k8s.io", "volumesnapshotcontents")]
    {
        assert!(passes(RestoredFrom::PlatformStorage, group, plural));
        assert!(!passes(RestoredFrom::TenantStorage, group, plural), "{plural}");
    }
    for (group, plural) in [
        ("", "namespaces"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("apiregistration.k8s.io", "apiservices"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("storage.k8s.io", "storageclasses"),
        ("example.com", "persistentvolumes"),
        ("groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents"),
    ] {
        for from in RestoredFrom::ALL {
            assert!(!passes(from, group, plural), "{plural}");
        }
    }
}

#[test]
fn what_may_not_come_back_is_refused_by_its_real_group() {
    let policy = restored::objects("velero");
    for (kind, platform, tenants) in [
        (("", "secrets"), true, true),
        (("apps", "deployments"), true, true),
        (("rbac.authorization.k8s.io", "rolebindings"), true, false),
        (("", "resourcequotas"), true, false),
        (("networking.k8s.io", "networkpolicies"), true, false),
        (("cilium.io", "networkpolicies"), true, false),
        (("networking.k8s.io", "ingresses"), true, true),
        (("snapshot.storage.k8s.io", "volumesnapshots"), true, false),
        (("oadp.openshift.io", "nonadminbackups"), false, false),
        (("velero.io", "backups"), false, false),
        (("kubevirt.io", "virtualmachineinstancemigrations"), false, false),
        (("kubevirt.io", "virtualmachines"), true, true),
    ] {
        assert_eq!(passes(&policy, RestoredFrom::PlatformStorage, &json!({}), kind), platform, "{kind:?}");
        assert_eq!(passes(&policy, RestoredFrom::TenantStorage, &json!({}), kind), tenants, "{kind:?}");
    }
}

/// Velero's patterns as one regular expression: a star ends at a dot, two do not.
fn pattern(resources: &[String]) -> String {
    let one = |resource: &String| {
        resource.replace('.', "[.]").replace("**", "\0").replace('*', "[^.]*").replace('\0', ".*")
    };
    format!("^({})$", resources.iter().map(one).collect::<Vec<_>>().join("|"))
}

#[test]
fn the_lists_of_the_fence_mean_what_veleros_patterns_mean() {
    let never = NEVER_FROM_TENANTS.map(str::to_owned).to_vec();
    for patterns in [fence::out_of_restores(), never] {
        let over = |demand: String| {
            let all: [(&str, &[&str]); 1] = [("*", &["*"])];
            Draft::over("x", &["CREATE"], &all).with("resource", restored::RESOURCE).demand(demand, "").done()
        };
        let by_lists = over(restored::among(&patterns));
        let by_pattern = over(format!("variables.resource.matches('{}')", pattern(&patterns)));
        let parts = patterns.iter().map(|one| one.split_once('.').unwrap_or((one, "")));
        let (mut plurals, mut groups): (Vec<_>, Vec<_>) = parts.unzip();
        plurals.extend([
            "configmaps",
            "pods",
            "virtualmachineclusterpreferences",
            "virtualmachines",
            "bindings",
        ]);
        groups.extend(["apps", "example.com", "x.velero.io", "io", "k8s.io", "instancetype.kubevirt.io"]);
        let mut found = 0;
        for plural in plurals.iter().filter(|plural| !plural.contains('*')) {
            for group in groups.iter().filter(|group| !group.contains('*')) {
                let ask = Ask::create(json!({})).of(group.to_string().leak(), plural.to_string().leak());
                assert_eq!(ask.passes(&by_lists), ask.passes(&by_pattern), "{plural}.{group}");
                found += usize::from(ask.passes(&by_lists));
            }
        }
        assert!(found > patterns.len(), "only {found} are found");
    }
}

#[test]
fn a16_tokens_do_not_come_back_from_storage_that_a_tenant_can_write_to() {
    let policy = restored::objects("velero");
    let secret = |kind: Value, from| passes(&policy, from, &json!({"type": kind}), ("", "secrets"));
    for token in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"] {
        let forged = restored(RestoredFrom::TenantStorage, &json!({"type": token}));
        let forged = Ask::create(forged).by(VELERO).of("", "secrets").inside("shop", SHOP);
        assert!(forged.is_refused_only_by(&policy, &["Kubernetes' own credentials"]), "{token}");
        assert!(
            secret(json!(token), RestoredFrom::PlatformStorage),
            "Velero saved it and can empty it: {token}"
        );
        let other = json!({"type": token});
        assert!(passes(&policy, RestoredFrom::TenantStorage, &other, ("example.com", "secrets")));
    }
    for fine in [json!("Opaque"), json!("kubernetes.io/tls"), json!(null)] {
        assert!(secret(fine, RestoredFrom::TenantStorage));
    }
}

#[test]
fn in_veleros_namespace_only_velero_itself_makes_its_volume_operations() {
    let policy = restored::objects("velero");
    for from in RestoredFrom::ALL {
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "Restore", "name": named(from)}]}});
        let in_velero = |object: &Value, plural| {
            Ask::create(restored(from, object))
                .by(VELERO)
                .of("velero.io", plural)
                .inside("velero", UID)
                .passes(&policy)
        };
        for plural in ["podvolumerestores", "datadownloads"] {
            assert!(in_velero(&owned, plural));
            assert!(
                !in_velero(&json!({}), plural),
                "Velero drops owners of what it restores, so this one was in a backup"
            );
        }
        assert!(!in_velero(&owned, "backups"));
    }
}

/// Sources in every field that has one, with the kind they are in.
fn with_source(namespace: &str) -> Vec<((&'static str, &'static str), Value)> {
    let disk = json!({"pvc": {"namespace": namespace, "name": "d"}});
    let cdi = "cdi.kubevirt.io";
    let template = json!([{"spec": {"source": disk}}]);
    let mut all = vec![
        ((cdi, "datavolumes"), json!({"spec": {"source": disk}})),
        ((cdi, "datavolumes"), json!({"spec": {"source": {"snapshot": {"namespace": namespace}}}})),
        ((cdi, "datasources"), json!({"spec": {"source": disk}})),
        ((cdi, "datasources"), json!({"spec": {"source": {"dataSource": {"namespace": namespace}}}})),
        ((cdi, "dataimportcrons"), json!({"spec": {"template": {"spec": {"source": disk}}}})),
        (("kubevirt.io", "virtualmachines"), json!({"spec": {"dataVolumeTemplates": template}})),
        (
            ("kubevirt.io", "virtualmachines"),
            json!({"spec": {"dataVolumeTemplates": [{"spec": {"sourceRef": {"namespace": namespace}}}]}}),
        ),
        (
            ("pool.kubevirt.io", "virtualmachinepools"),
            json!({"spec": {"virtualMachineTemplate": {"spec": {"dataVolumeTemplates": template}}}}),
        ),
    ];
    if namespace != "shop" {
        all.push(((cdi, "datavolumes"), json!({"spec": {"sourceRef": {"namespace": namespace}}})));
    }
    all
}

#[test]
fn h1_a_disk_in_another_namespace_is_a_source_only_if_the_namespace_could_have_it_anyway() {
    let policy = sources::sources("velero");
    for from in RestoredFrom::ALL {
        for ((group, plural), object) in with_source("victim") {
            let ask = Ask::create(restored(from, &object)).by(VELERO).of(group, plural).inside("shop", SHOP);
            assert!(ask.is_refused_only_by(&policy, &["takes no disk from another namespace"]), "{ask:?}");
            assert!(ask.holding(sources::MAY_CLONE).passes(&policy));
        }
        for (kind, object) in with_source("shop") {
            assert!(passes(&policy, from, &object, kind), "{object}");
        }
        let by_reference = json!({"spec": {"sourceRef": {"kind": "DataSource", "name": "own"}}});
        assert!(
            !passes(&policy, from, &by_reference, ("cdi.kubevirt.io", "datavolumes")),
            "it may be re-pointed"
        );
        for namespace in ["victim", "shop"] {
            let reference = json!({"dataSourceRef": {"namespace": namespace}});
            for (kind, object) in [
                (("", "persistentvolumeclaims"), json!({"spec": reference})),
                (("apps", "statefulsets"), json!({"spec": {"volumeClaimTemplates": [{"spec": reference}]}})),
                (("cdi.kubevirt.io", "datavolumes"), json!({"spec": {"storage": reference}})),
            ] {
                assert_eq!(passes(&policy, from, &object, kind), namespace == "shop", "{object}");
            }
        }
        for (kind, object) in [
            (("", "persistentvolumeclaims"), json!({"spec": {"dataSourceRef": null}})),
            (("cdi.kubevirt.io", "datavolumes"), json!({"spec": {"source": {"blank": {}}}})),
            (("kubevirt.io", "virtualmachines"), json!({"spec": {"template": {"spec": {"domain": {}}}}})),
        ] {
            assert!(passes(&policy, from, &object, kind), "{object}");
        }
    }
}

#[test]
fn h1_a_claim_inside_a_pod_takes_no_data_from_another_namespace_either() {
    let policy = sources::sources("velero");
    for from in RestoredFrom::ALL {
        for namespace in ["victim", "shop"] {
            let claim = json!({"spec": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "d", "namespace": namespace}}});
            let spec = json!({"volumes": [{"emptyDir": {}}, {"ephemeral": {"volumeClaimTemplate": claim}}]});
            for (kind, object) in everywhere(&spec) {
                assert_eq!(passes(&policy, from, &object, kind), namespace == "shop", "{object}");
            }
        }
        // KubeVirt has volumes of that name too.
        let machine = json!({"spec": {"template": {"spec": {"volumes": [{"ephemeral": {"persistentVolumeClaim": {}}}]}}}});
        assert!(passes(&policy, from, &machine, ("kubevirt.io", "virtualmachines")));
    }
}

#[test]
fn h1_a_snapshot_names_no_content_but_what_velero_restored_with_it() {
    let policy = sources::sources("velero");
    let digest = "ab".repeat(32);
    for from in RestoredFrom::ALL {
        let snapshot = |name: &str, source: Value| {
            let mut object = restored(from, &json!({"spec": {"source": source}}));
            object["metadata"]["name"] = json!(name);
            let ask =
                |group, plural| Ask::create(object.clone()).by(VELERO).of(group, plural).inside("shop", SHOP);
            let snapshots = ask("snapshot.storage.k8s.io", "volumesnapshots").passes(&policy);
            assert_eq!(
                snapshots,
                ask("groupsnapshot.storage.k8s.io", "volumegroupsnapshots").passes(&policy)
            );
            snapshots
        };
        let content = |name: &str| json!({"volumeSnapshotContentName": name});
        assert!(!snapshot("nightly", content("loot")));
        assert!(!snapshot("loot", content("loot")), "only Velero's own names are digests");
        assert!(!snapshot("nightly", content(&digest)));
        assert!(!snapshot("nightly", json!({"volumeGroupSnapshotContentName": "loot"})));
        assert!(snapshot(&digest, content(&digest)), "as Velero restores it with its content");
        assert!(snapshot("velero-data-x7k2p", content("velero-data-x7k2p-bc45d")), "as it did before 1.18");
        let long = "velero-a-claim-with-a-name-as-long-as-the-names-of-claims-may-be-x7k2p";
        assert!(snapshot(long, content(&format!("{}bc45d", &long[..58]))));
        let dynamic = "snapcontent-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
        for name in
            ["snapcontent", "snapcontent-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d", &dynamic[..dynamic.len() - 6]]
        {
            assert!(!snapshot(name, content(dynamic)), "{name}");
        }
        assert!(snapshot("nightly", json!({"persistentVolumeClaimName": "data"})));
    }
}

/// Pod specs that the level baseline refuses, each for one reason.
fn hostile() -> Vec<Value> {
    let container = |rest: Value| json!({"containers": [{"name": "fine"}, rest]});
    let context = |rest: Value| container(json!({"securityContext": rest}));
    vec![
        json!({"hostNetwork": true}),
        json!({"hostPID": true}),
        json!({"hostIPC": true}),
        json!({"volumes": [{"emptyDir": {}}, {"hostPath": {"path": "/"}}]}),
        context(json!({"privileged": true})),
        json!({"initContainers": [{"securityContext": {"privileged": true}}]}),
        json!({"ephemeralContainers": [{"securityContext": {"privileged": true}}]}),
        context(json!({"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}})),
        context(json!({"capabilities": {"add": ["ALL"]}})),
        context(json!({"procMount": "Unmasked"})),
        context(json!({"seccompProfile": {"type": "Unconfined"}})),
        json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
        json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
        json!({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}),
        json!({"securityContext": {"seLinuxOptions": {"user": "system_u"}}}),
        context(json!({"seLinuxOptions": {"role": "r"}})),
        json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
        json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
        container(json!({"ports": [{"containerPort": 80, "hostPort": 80}]})),
        container(json!({"livenessProbe": {"httpGet": {"host": "169.254.169.254"}}})),
        container(json!({"lifecycle": {"preStop": {"tcpSocket": {"host": "10.0.0.1"}}}})),
    ]
}

/// The same pod as itself and inside everything that makes pods.
fn everywhere(spec: &Value) -> Vec<((&'static str, &'static str), Value)> {
    let template = json!({"metadata": {}, "spec": spec});
    let controller = json!({"spec": {"template": template}});
    let mut all = vec![
        (("", "pods"), json!({"spec": spec})),
        (("", "podtemplates"), json!({"template": template})),
        (("batch", "cronjobs"), json!({"spec": {"jobTemplate": {"spec": {"template": template}}}})),
    ];
    let controllers = [
        ("", "replicationcontrollers"),
        ("apps", "deployments"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("apps", "replicasets"),
        ("batch", "jobs"),
    ];
    all.extend(controllers.map(|kind| (kind, controller.clone())));
    all
}

#[test]
fn a15_pods_and_what_makes_them_come_back_from_tenant_storage_at_baseline() {
    let policy = baseline::pods("velero");
    for spec in hostile() {
        // The planted weakness: with the one demand that it is refused for switched off, the pod would come back.
        let pod = restored(RestoredFrom::TenantStorage, &json!({"spec": spec}));
        let pod = Ask::create(pod).by(VELERO).of("", "pods").inside("shop", SHOP);
        assert_eq!(pod.unmet(&policy).len(), 1, "{spec}");
        for (kind, object) in everywhere(&spec) {
            assert!(!passes(&policy, RestoredFrom::TenantStorage, &object, kind), "{object}");
            assert!(
                passes(&policy, RestoredFrom::PlatformStorage, &object, kind),
                "the namespace's own level holds"
            );
        }
    }
    let unconfined = json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/x": "unconfined"}}, "spec": {}});
    assert!(!passes(&policy, RestoredFrom::TenantStorage, &unconfined, ("", "pods")));
    for fine in [
        json!({}),
        json!({"containers": [{"name": "x", "image": "y"}]}),
        json!({"hostNetwork": false, "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
            "initContainers": [{"name": "i", "securityContext": {"privileged": false}}],
            "containers": [{"name": "x", "ports": [{"containerPort": 80}],
                "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "procMount": "Default",
                    "seLinuxOptions": {"type": "container_t", "level": "s0"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}}}]}),
    ] {
        for (kind, object) in everywhere(&fine) {
            assert!(passes(&policy, RestoredFrom::TenantStorage, &object, kind), "{object}");
        }
    }
}

#[test]
fn the_shape_of_a_name_that_the_fence_goes_by_is_nacres_and_nacre_gives_no_other() {
    let policy = restores::names("velero");
    let restore = |name: &str| Ask::create(json!({"metadata": {"name": name}}));
    for from in RestoredFrom::ALL {
        assert!(restore(&named(from)).by(NACRE).passes(&policy));
        assert!(!restore(&named(from)).by("root").passes(&policy));
    }
    for name in ["nightly", &format!("nightly-{UID}")] {
        assert!(restore(name).by("root").passes(&policy));
        assert!(!restore(name).by(NACRE).passes(&policy));
    }
}

#[test]
fn h3_velero_creates_no_namespace_while_it_works_on_a_tenants_restore() {
    let policy = restores::namespaces("velero");
    let create = |phase: Value| {
        Ask::create(json!({"metadata": {"name": "new"}})).given(&json!({"status": {"phase": phase}}))
    };
    assert!(!create(json!("InProgress")).by(VELERO).passes(&policy));
    assert!(create(json!("InProgress")).by("root").passes(&policy));
    for phase in [json!(null), json!("New"), json!("Completed"), json!("Finalizing")] {
        assert!(create(phase).by(VELERO).passes(&policy));
    }
}

#[test]
fn x3_a_tenants_restore_changes_no_service_account_elsewhere() {
    let policy = restores::accounts("velero");
    let account = json!({"metadata": {"name": "default"}});
    let name = named(RestoredFrom::TenantStorage);
    let ask = |phase: &str, namespace: &'static str, uid: &'static str| {
        let restore = json!({"metadata": {"name": name}, "status": {"phase": phase}});
        let ask = Ask::update(account.clone(), account.clone()).of("", "serviceaccounts").given(&restore);
        ask.inside(namespace, uid).by(VELERO)
    };
    assert!(!ask("InProgress", "kube-system", OTHER).passes(&policy));
    assert!(ask("InProgress", "shop", SHOP).passes(&policy));
    assert!(ask("Completed", "kube-system", OTHER).passes(&policy));
    assert!(
        ask("InProgress", "kube-system", OTHER).by("root").passes(&policy),
        "of others nothing is demanded"
    );
}

#[test]
fn h4_a_backup_in_a_tenants_storage_has_no_say_about_snapshots() {
    let policy = snapshots::contents("velero");
    let content = json!({"metadata": {"name": "vsc", "labels": {"velero.io/backup-name": "b"}}});
    let ask = |name: &str, location: &str| {
        let backup = json!({"metadata": {"name": name}, "spec": {"storageLocation": location}});
        Ask::create(content.clone()).by(VELERO).given(&backup)
    };
    let tenants = format!("shop-own-{UID}");
    assert!(!ask("b", &tenants).passes(&policy));
    assert!(ask("b", "default").passes(&policy), "a genuine snapshot of platform storage goes");
    assert!(ask("other", &tenants).passes(&policy));
    assert!(ask("b", &tenants).by("system:serviceaccount:kube-system:snapshot-controller").passes(&policy));
    // In a label Velero cuts a long name, and puts a hash behind it.
    let long = "a-backup-of-an-administrator-in-a-tenants-storage-with-a-name-that-fits-no-label";
    let cut = json!({"metadata": {"name": "vsc", "labels": {"velero.io/backup-name": format!("{}0a1b2c", &long[..57])}}});
    let backup = |location: &str| json!({"metadata": {"name": long}, "spec": {"storageLocation": location}});
    assert!(!Ask::create(cut.clone()).by(VELERO).given(&backup(&tenants)).passes(&policy));
    assert!(Ask::create(cut).by(VELERO).given(&backup("default")).passes(&policy));
}

/// X5: own bucket: files that say which claims came back and how their volumes were, so that Velero changes the labels and the
/// reclaim policy of another tenant's volume
#[test]
fn x5_while_velero_finishes_a_tenants_restore_others_volumes_stay_as_they_are() {
    let policy = restores::volumes("velero");
    let volume = |claim: &str, created: &str, labels: Value, keeps: &str| {
        json!({"metadata": {"name": "pv", "creationTimestamp": created, "labels": labels},
            "spec": {"claimRef": {"namespace": claim, "name": "disk"}, "persistentVolumeReclaimPolicy": keeps}})
    };
    let restore = |from, phase: &str| {
        json!({"metadata": {"name": named(from), "annotations": {"openshift.io/oadp-nar-origin-namespace": "shop"}},
            "status": {"phase": phase, "startTimestamp": "2026-11-17T12:00:00Z"}})
    };
    let finishing = restore(RestoredFrom::TenantStorage, "Finalizing");
    let (old, new) = ("2026-11-17T11:00:00Z", "2026-11-17T12:00:01Z");
    let change = |claim: &str, created: &str, before: Value, (labels, keeps): (Value, &str)| {
        let (before, after) =
            (volume(claim, created, before, "Retain"), volume(claim, created, labels, keeps));
        Ask::update(before, after).of("", "persistentvolumes").inside("", "").by(VELERO)
    };
    let deletes = || (json!({}), "Delete");
    let zone = || (json!({"topology.kubernetes.io/zone": "mars"}), "Retain");
    for attack in [deletes(), zone()] {
        let theft = change("victim", old, json!({}), attack.clone());
        for phase in ["Finalizing", "FinalizingPartiallyFailed"] {
            assert!(!theft.clone().given(&restore(RestoredFrom::TenantStorage, phase)).passes(&policy));
        }
        for (from, phase) in [
            (RestoredFrom::PlatformStorage, "Finalizing"),
            (RestoredFrom::TenantStorage, "InProgress"),
            (RestoredFrom::TenantStorage, "Completed"),
        ] {
            assert!(theft.clone().given(&restore(from, phase)).passes(&policy), "{phase}");
        }
        assert!(theft.given(&finishing).by("system:serviceaccount:kube-system:pv").passes(&policy));
        for (claim, created) in [("shop", old), ("velero", old), ("victim", new)] {
            assert!(
                change(claim, created, json!({}), attack.clone()).given(&finishing).passes(&policy),
                "{claim}"
            );
        }
    }
    // What a data mover does last, for somebody else.
    let moved = json!({"velero.io/dynamic-pv-restore": "victim.disk.x7k2p"});
    assert!(change("victim", old, moved.clone(), (moved, "Delete")).given(&finishing).passes(&policy));
    assert!(change("victim", old, json!({}), (json!({}), "Retain")).given(&finishing).passes(&policy));
}

#[test]
fn a_restore_that_ended_long_ago_is_a_parameter_of_no_policy() {
    let bindings = super::objects("velero")
        .into_iter()
        .filter(|object| object.body["kind"] == "ValidatingAdmissionPolicyBinding");
    let over_restores = bindings.filter_map(|binding| {
        let selected = binding.body["spec"]["paramRef"]["selector"].to_string();
        selected.contains("oadp-nar-origin-nacuuid").then_some(selected)
    });
    let over_restores: Vec<_> = over_restores.collect();
    assert_eq!(over_restores.len(), 3, "namespaces, accounts and volumes");
    for selected in over_restores {
        assert!(selected.contains(r#"{"key":"nacre.dev/ended","operator":"DoesNotExist"}"#), "{selected}");
    }
}

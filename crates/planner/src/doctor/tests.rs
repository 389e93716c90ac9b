//! A healthy cluster, and what is said about each thing that can be wrong with it.

use std::sync::{Arc, LazyLock};

use api::{Kind, labels};
use k8s_openapi::ByteString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::admission::objects;
use crate::policy::KEY;

pub(super) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn deployment(name: &str, namespace: &str, image: &str, args: &[&str]) -> Deployment {
    let args = [args, &["--disable-informer-cache"]].concat();
    read(json!({
        "metadata": {"name": name, "namespace": namespace, "labels": {}},
        "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [
            {"name": name, "image": image, "command": ["/velero"], "args": args,
             "resources": {"limits": {"memory": "1Gi", "ephemeral-storage": "10Gi"}}},
        ]}}},
        "status": {"availableReplicas": 2},
    }))
}

fn location(name: &str, phase: &str, default: bool, tenant: Option<&str>) -> BackupStorageLocation {
    let (labels, annotations) = match tenant {
        Some(tenant) => (
            json!({labels::NABSL_NACUUID: "uid"}),
            json!({labels::NABSL_NAMESPACE: tenant, labels::NABSL_NAME: "mine"}),
        ),
        None => (json!({}), json!({})),
    };
    read(json!({
        "apiVersion": "velero.io/v1", "kind": "BackupStorageLocation",
        "metadata": {"name": name, "namespace": "velero", "labels": labels, "annotations": annotations},
        "spec": {"provider": "aws", "default": default, "objectStorage": {"bucket": "b"}},
        "status": {"phase": phase, "message": "no such bucket", "lastValidationTime": "2026-11-15T12:00:00Z"},
    }))
}

pub(super) fn policy(text: &str) -> Readings {
    let map = ConfigMap { data: Some([(KEY.to_owned(), text.to_owned())].into()), ..ConfigMap::default() };
    Readings { config_map: Reading::Found(Arc::new(map)), applications: Reading::Absent }
}

/// The roles of Kubernetes' that tenants have, and these.
pub(super) fn roles(more: &[Value]) -> Rbac {
    let group = Kind::NonAdminBackup.group();
    let label = |name: &str| format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    let role = |name: &str, part_of: &str, verbs: &[&str]| {
        json!({"metadata": {"name": name, "labels": {label(part_of): "true"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label(name): "true"}}]},
            "rules": [{"apiGroups": [group], "resources": ["nonadminbackups"], "verbs": verbs}]})
    };
    let mut all = vec![
        role("admin", "", &["create", "list"]),
        role("edit", "admin", &["create", "list"]),
        role("view", "edit", &["list"]),
    ];
    all.extend(more.iter().cloned());
    Rbac { cluster_roles: all.into_iter().map(read).collect(), ..Rbac::default() }
}

/// Everything that is installed, as it should be. It is made once: schemas are long.
static INSTALLED: LazyLock<Vec<(Object, Reading<Object>)>> = LazyLock::new(|| {
    let as_it_should_be = |wanted: Object| {
        let mut found = wanted.clone();
        if found.kind == Kind::CustomResourceDefinition {
            found.body["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        }
        (wanted, Reading::Found(found))
    };
    wanted("velero").into_iter().map(as_it_should_be).collect()
});

pub(super) fn healthy() -> Observed {
    let configuration =
        objects("velero").into_iter().find(|one| one.kind == Kind::ValidatingWebhookConfiguration);
    let mut configuration: ValidatingWebhookConfiguration = read(configuration.unwrap().body);
    for webhook in configuration.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = Some(ByteString(b"authority".to_vec()));
    }
    let mut own = deployment("non-admin-controller", "velero", "registry.example/nacre:1", &[]);
    own.metadata.labels = Some([(labels::PART_OF.to_owned(), labels::PART_OF_VALUE.to_owned())].into());
    Observed {
        namespace: "velero".to_owned(),
        now: "2026-11-15T12:00:20Z".parse().unwrap(),
        velero: Reading::Found(deployment("velero", "velero", "velero/velero:v1.18.3", &["server"])),
        locations: Reading::Found(vec![
            location("default", "Available", true, None),
            location("one", "Available", false, Some("shop")),
        ]),
        snapshot_locations: Reading::Found(Vec::new()),
        network_policies: Reading::Found(vec![read(json!({
            "metadata": {"name": "out"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}))]),
        controllers: Reading::Found(vec![own]),
        lease: Reading::Found(read(json!({"spec": {"holderIdentity": "velero/non-admin-controller-1_a",
            "leaseDurationSeconds": 10, "renewTime": "2026-11-15T12:00:18.000000Z"}}))),
        lease_in_secret: Reading::Absent,
        installed: INSTALLED.clone(),
        record: Reading::Absent,
        webhook: Reading::Found(configuration),
        recorder: Reading::Absent,
        requester_extra: Reading::Absent,
        certificate: Reading::Found(Certificate { bundle: b"authority".to_vec(), validity: Validity::Valid }),
        policy: policy("storageLocations: {requireApproval: true}"),
        last_policy: LastPolicy::default(),
        rbac: Reading::Found(roles(&[])),
        unserved: Vec::new(),
        kubevirt: Reading::Found(()),
    }
}

/// Every finding. Whoever pastes a fix that begins with a command runs nothing but that command.
pub(super) fn examine(seen: &Observed) -> Vec<Finding> {
    let findings = super::examine(seen);
    let fixes = findings.iter().filter_map(|finding| finding.fix.as_deref());
    for fix in fixes.filter(|fix| fix.starts_with("kubectl ") || fix.starts_with("helm ")) {
        let is_prose = |word: &str| {
            word.ends_with([',', ';', ':', '.', ')'])
                || word.starts_with('(')
                || ["and", "or", "puts", "says", "then", "to"].contains(&word)
        };
        let prose: Vec<&str> = fix.split_whitespace().filter(|word| is_prose(word)).collect();
        assert!(prose.is_empty(), "{prose:?} in {fix}");
    }
    findings
}

/// What is said of a healthy cluster too.
static KNOWN: LazyLock<Vec<Finding>> = LazyLock::new(|| examine(&healthy()));

/// Every finding, or those that a healthy cluster does not have.
fn reported(seen: &Observed, all: bool) -> String {
    let wrong = |finding: &Finding| finding.verdict != CheckStatus::Ok && !KNOWN.contains(finding);
    let lines = examine(seen).into_iter().filter(|finding| all || wrong(finding)).map(|finding| {
        // Every warning and problem says what to do about it.
        assert_eq!(finding.fix.is_some(), finding.verdict >= CheckStatus::Warning, "{finding:?}");
        let fix = finding.fix.map_or_else(String::new, |fix| format!("\n  -> {fix}"));
        format!("{:?} {:?}: {}{fix}", finding.area, finding.verdict, finding.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What is said once this is changed.
fn sick(change: impl FnOnce(&mut Observed)) -> String {
    let mut seen = healthy();
    change(&mut seen);
    reported(&seen, false)
}

#[test]
fn several_backups_at_a_time_with_one_credential_file_are_named() {
    let busy = |workers: &str, has_credential: bool| {
        let flag = format!("--concurrent-backups={workers}");
        sick(|seen| {
            let Reading::Found(velero) = &mut seen.velero else { unreachable!() };
            let spec = velero.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
            spec.containers[0].args.get_or_insert_default().push(flag);
            let Reading::Found(locations) = &mut seen.locations else { unreachable!() };
            let credential = json!({"name": "cloud-credentials", "key": "cloud"});
            locations[0].spec.credential = has_credential.then(|| read(credential));
        })
    };
    let named = busy("3", true);
    assert!(named.contains("Velero works on 3 backups at a time, and location "), "{named}");
    assert!(named.contains("--type=merge -p '{\"spec\":{\"credential\":null}}'"), "{named}");
    assert_eq!((busy("1", true), busy("3", false)), (String::new(), String::new()));
}

#[test]
fn x4_a_velero_that_may_wait_for_ever_is_named_where_tenants_bring_storage() {
    let with_cache = |seen: &mut Observed| {
        let Reading::Found(velero) = &mut seen.velero else { unreachable!() };
        let spec = velero.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
        spec.containers[0].args = Some(vec!["server".to_owned()]);
    };
    let warning = sick(with_cache);
    assert!(warning.contains("Velero runs without --disable-informer-cache"), "{warning}");
    let nobodys = sick(|seen| {
        with_cache(seen);
        seen.locations = Reading::Found(vec![location("default", "Available", true, None)]);
    });
    assert!(!nobodys.contains("informer-cache"), "{nobodys}");
}

#[test]
fn a_velero_without_limits_is_named_where_tenants_bring_storage() {
    let without = |seen: &mut Observed| {
        let Reading::Found(velero) = &mut seen.velero else { unreachable!() };
        let spec = velero.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
        spec.containers[0].resources = None;
    };
    insta::assert_snapshot!(sick(without), @r"
    Velero Warning: Velero's pod has no limit of memory and of ephemeral-storage: a huge backup in a tenant's storage would take as much of its node as it can
      -> kubectl set resources deployment velero -n velero --limits=memory=1Gi,ephemeral-storage=10Gi
    ");
    let nobodys = sick(|seen| {
        without(seen);
        seen.locations = Reading::Found(vec![location("default", "Available", true, None)]);
    });
    assert_eq!(nobodys, "");
}

#[test]
fn a_velero_for_tenants_alone_is_not_cluster_admin() {
    let with_subject = |name: &str, subject: Value| {
        let mut seen = healthy();
        let Reading::Found(controllers) = &mut seen.controllers else { unreachable!() };
        let container =
            &mut controllers[0].spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers[0];
        container.env = Some(vec![read(json!({"name": "FENCE", "value": "true"}))]);
        let Reading::Found(rbac) = &mut seen.rbac else { unreachable!() };
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        rbac.cluster_roles.push(read(json!({"metadata": {"name": "cluster-admin"}, "rules": rules})));
        rbac.cluster_role_bindings.push(read(json!({
            "metadata": {"name": name}, "roleRef": {"apiGroup": "", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject]})));
        reported(&seen, true)
    };
    let with_binding = |name: &str, subject: &str| {
        with_subject(name, json!({"kind": "ServiceAccount", "name": subject, "namespace": "velero"}))
    };
    let held = with_binding("other", "other");
    assert!(held.contains("Admission Ok: Velero is for tenants alone (dedicated mode)"), "{held}");
    let reads = "whoever owns the storage of a backup can read all Secrets that Velero can read, of ";
    assert!(held.contains(&format!("{reads}all tenants' namespaces (dedicated mode)\n")), "{held}");
    let wide = with_binding("velero", "velero");
    assert!(wide.contains("clusterrolebinding/velero still gives it the role cluster-admin"), "{wide}");
    assert!(wide.contains(&format!("{reads}the whole cluster")), "{wide}");
    for group in ["system:serviceaccounts:velero", "system:serviceaccounts", "system:authenticated"] {
        let wide = with_subject("all", json!({"kind": "Group", "name": group}));
        assert!(
            wide.contains("clusterrolebinding/all still gives it the role cluster-admin"),
            "{group}: {wide}"
        );
    }
}

#[test]
fn where_nobody_brings_storage_nobody_reads_with_it() {
    let mode = |mode: &str| {
        let mut seen = healthy();
        seen.policy = policy(&format!("storageLocations: {{{mode}}}"));
        reported(&seen, true)
    };
    assert!(mode("mode: platform").contains("Policy Ok: nothing risky is switched on for everybody"));
    assert!(mode("mode: own").contains("Policy Problem: approval is off"));
    assert!(mode("mode: own, requireApproval: true").contains("Policy Warning: tenants may bring storage"));
}

#[test]
fn a_healthy_cluster_has_no_problem_and_one_warning() {
    insta::assert_snapshot!(reported(&healthy(), true), @r#"
    Velero Ok: Deployment velero in velero: 2 of 2 pods available
    Velero Ok: Velero v1.18.3
    Velero Ok: nothing that tenants need of Velero is switched off
    Storage Ok: the default location "default" is Available
    Storage Ok: 1 location of tenants Available
    Storage Ok: Velero has no VolumeSnapshotLocation, so no tenant's bucket has a say about native snapshots
    Storage Ok: NetworkPolicy out limits whom pods in velero can talk to
    Nacre Ok: Deployment non-admin-controller in velero: 2 of 2 pods available
    Nacre Ok: velero/non-admin-controller-1_a is leader, as its lease shows
    Nacre Ok: all 6 CRDs are there and current
    Admission Ok: all 47 admission policies are there and current
    Admission Ok: all 9 mutating admission policies are there and current
    Admission Ok: administrators and tenants share one Velero (shared mode), and the API server holds what it creates for tenants to their namespaces; it cannot hold webhook configurations and admission policies, which filters leave out. A Velero for tenants alone would not be cluster-admin: kubectl nacre install --velero-namespace velero-tenants --fence
    Admission Ok: the API server asks nacre about requests, and its certificate fits
    Rights Ok: all 10 roles and bindings are there and current
    Rights Ok: owners of namespaces may ask, viewers may look, and neither may decide or write statuses
    Rights Ok: nobody has Secrets of velero, where tenants' keys are, by a role there
    Rights Ok: nobody but administrators can live-migrate machines of every namespace
    Policy Ok: set by ConfigMap nacre-policy
    Policy Warning: tenants may bring storage that is approved: whoever owns the storage of a backup can read all Secrets that Velero can read, of the whole cluster (shared mode)
      -> approve storage only for those who may read that, or set storageLocations.mode: platform; in dedicated mode only those of tenants' namespaces could be read: kubectl nacre install --velero-namespace velero-tenants --fence
    "#);
}

#[test]
fn velero_is_there_runs_and_does_what_tenants_need() {
    insta::assert_snapshot!(sick(|seen| seen.velero = Reading::Absent), @r"
    Velero Problem: there is no Deployment velero in namespace velero
      -> say where Velero is with --velero-namespace, or install it there (velero install)
    ");
    let with = |image: &str, args: &[&str]| {
        sick(|seen| seen.velero = Reading::Found(deployment("velero", "velero", image, args)))
    };
    insta::assert_snapshot!(with("velero/velero:v1.17.1", &[]), @r"
    Velero Warning: Velero v1.17.1 is older than v1.18.3: it does not look for backups in tenants' storage
      -> upgrade Velero to v1.18.3 or later
    ");
    insta::assert_snapshot!(with("velero/velero:v1.19.0", &[]), @"Velero Note: Velero v1.19.0 is newer than what nacre was tested with, which is v1.18");
    insta::assert_snapshot!(with("registry.example:5000/velero@sha256:0", &[]), @r#"Velero Note: Velero's version cannot be derived from its image "registry.example:5000/velero@sha256:0"; nacre asks Velero itself before it lets it import"#);
    insta::assert_snapshot!(with("velero/velero:v1.18.3", &["--restore-only", "--disable-controllers=gc,restore"]), @r"
    Velero Problem: Velero only restores (--restore-only): every backup waits for ever
      -> take --restore-only out: kubectl edit deployment velero -n velero
    Velero Problem: Velero's controllers restore are switched off: restores wait for ever
      -> take restore out of --disable-controllers: kubectl edit deployment velero -n velero
    Velero Warning: Velero's controller gc is switched off: no backup is removed when its time is over
      -> take gc out of --disable-controllers: kubectl edit deployment velero -n velero
    ");
    let stopped = |now: &str| {
        sick(|seen| {
            let Reading::Found(velero) = &mut seen.velero else { return };
            velero.status = None;
            seen.now = now.parse().unwrap();
            seen.lease = healthy_lease(now);
        })
    };
    assert_eq!(stopped("2026-11-15T12:04:00Z"), "", "it looked at its storage lately");
    insta::assert_snapshot!(stopped("2026-11-15T13:00:00Z"), @r"
    Velero Problem: Velero does not run: 0 of 2 pods available in velero
      -> kubectl describe pods -n velero -l component=velero
    ");
}

pub(super) fn healthy_lease(now: &str) -> Reading<Lease> {
    Reading::Found(read(json!({"spec": {"holderIdentity": "velero/non-admin-controller-1_a",
        "leaseDurationSeconds": 10, "renewTime": now}})))
}

#[test]
fn importing_with_an_old_velero_is_a_problem_only_if_it_is_asked_for() {
    let old = |seen: &mut Observed| {
        seen.velero = Reading::Found(deployment("velero", "velero", "velero/velero:v1.18.2", &[]));
        seen.policy = policy("storageLocations: {requireApproval: true, import: on}");
    };
    insta::assert_snapshot!(sick(old), @r"
    Velero Problem: Velero v1.18.2 takes up work it finds described in a tenant's bucket, and storageLocations.import is on
      -> set storageLocations.import: auto in the policy, or upgrade Velero to v1.18.3 or later
    ");
}

#[test]
fn storage_is_there_and_can_be_written_to() {
    let with =
        |locations: Vec<BackupStorageLocation>| sick(|seen| seen.locations = Reading::Found(locations));
    insta::assert_snapshot!(with(vec![location("a", "Available", false, None)]), @r"
    Storage Problem: there is no default location: backups that name none fail
      -> velero backup-location set a --default -n velero
    ");
    insta::assert_snapshot!(with(vec![location("a", "Unavailable", true, None)]), @r#"
    Storage Problem: the default location "a" is Unavailable: no such bucket
      -> kubectl describe backupstoragelocation a -n velero
    "#);
    let mut read_only = location("a", "Available", true, None);
    read_only.spec.access_mode = Some("ReadOnly".to_owned());
    insta::assert_snapshot!(with(vec![read_only, location("b", "Unavailable", false, Some("shop"))]), @r#"
    Storage Problem: the default location "a" is ReadOnly: every backup into it fails
      -> set spec.accessMode of backupstoragelocation a to ReadWrite
    Storage Warning: Velero does not reach 1 location of tenants, mostly for the tenant's bucket or key: shop/mine
      -> kubectl nacre location describe NAME -n NAMESPACE
    "#);
    insta::assert_snapshot!(sick(|seen| seen.snapshot_locations = Reading::Found(vec!["ebs".to_owned()])), @r"
    Storage Problem: tenants cannot bring storage while Velero has VolumeSnapshotLocations, which CSI snapshots do not need: ebs. Where they are needed, accept the risk with storageLocations.nativeSnapshots: accept, or set storageLocations.mode: platform
      -> kubectl delete volumesnapshotlocations ebs -n velero
    ");
    insta::assert_snapshot!(sick(|seen| seen.network_policies = Reading::Found(Vec::new())), @"Storage Note: tenants may name endpoints, and what a name resolves to is not checked: a NetworkPolicy for egress in velero would keep Velero from addresses inside the cluster; kubectl nacre install --egress -n velero applies one");
}

#[test]
fn one_controller_acts_and_it_is_nacre() {
    insta::assert_snapshot!(sick(|seen| seen.lease = Reading::Absent), @r"
    Nacre Problem: nobody holds the lease nacre in kube-system: nacre does not run
      -> kubectl logs -n velero deployment/non-admin-controller
    Admission Warning: the webhook is set up, but nacre does not run: a bad request is stored first and refused by its condition
      -> start nacre; see above
    ");
    insta::assert_snapshot!(sick(|seen| seen.lease = healthy_lease("2026-11-15T11:00:00Z")), @r"
    Nacre Problem: velero/non-admin-controller-1_a holds the lease and was last heard of 3620 s ago: no process is leader
      -> kubectl logs -n velero deployment/non-admin-controller
    Admission Warning: the webhook is set up, but nacre does not run: a bad request is stored first and refused by its condition
      -> start nacre; see above
    ");
    insta::assert_snapshot!(sick(|seen| seen.controllers = Reading::Found(Vec::new())), @"Nacre Note: there is no Deployment non-admin-controller of nacre in velero; velero/non-admin-controller-1_a runs elsewhere");
    insta::assert_snapshot!(sick(|seen| {
        let Reading::Found(controllers) = &mut seen.controllers else { return };
        controllers.push(deployment("non-admin-controller", "openshift-adp", "quay.io/konveyor/oadp-non-admin:latest", &[]));
    }), @r"
    Nacre Problem: another non-admin controller runs in openshift-adp (quay.io/konveyor/oadp-non-admin:latest): both would act on the same requests
      -> kubectl scale deployment non-admin-controller -n openshift-adp --replicas=0
    ");
    insta::assert_snapshot!(sick(|seen| {
        let Reading::Found(controllers) = &mut seen.controllers else { return };
        controllers[0].status = None;
        seen.lease = Reading::Forbidden;
    }), @r"
    Nacre Problem: Deployment non-admin-controller in velero: none of 2 pods is available
      -> kubectl describe pods -n velero -l control-plane=non-admin-controller
    Nacre NotChecked: which process is leader: you may not get lease nacre in namespace kube-system
    ");
    insta::assert_snapshot!(sick(|seen| {
        let Reading::Found(controllers) = &mut seen.controllers else { return };
        controllers[0].status = None;
        controllers[0].metadata.namespace = Some("elsewhere".to_owned());
    }), @r"
    Nacre Problem: there is no Deployment non-admin-controller of nacre in velero, but one in elsewhere, and there is one per cluster
      -> look there: kubectl nacre doctor -n elsewhere
    ");
}

#[test]
fn what_is_missing_or_changed_is_named() {
    let all_but = |kept: fn(&Object) -> bool, found: fn(&Object) -> Reading<Object>| {
        sick(|seen| {
            for (wanted, reading) in seen.installed.iter_mut().filter(|(wanted, _)| !kept(wanted)) {
                *reading = found(wanted);
            }
        })
    };
    let policies = |object: &Object| object.kind != Kind::ValidatingAdmissionPolicy;
    insta::assert_snapshot!(all_but(policies, |_| Reading::Absent), @r"
    Admission Problem: admission policies are missing, so what must hold even while nacre is down does not, and any tenant can move to the front by the annotation nacre.dev/queue: nacre-reserved-marks, nacre-statuses, nacre-location-requests, nacre-velero-objects, nacre-tenant-backups and 18 more
      -> kubectl nacre install -n velero
    Admission Problem: administrators and tenants share one Velero (shared mode), and the API server does not hold what it creates for tenants to their namespaces
      -> kubectl nacre install -n velero
    Policy Warning: volumes that tenants save file by file in their own storage cannot be restored: the admission policies around restores are not installed, so pods do not come back
      -> kubectl nacre install -n velero
    ");
    let risky = |seen: &mut Observed| {
        seen.policy = policy("restore: {fromTenantStorage: {pods: baseline}}");
        for (wanted, reading) in &mut seen.installed {
            if wanted.name() == "nacre-restored-pods" {
                *reading = Reading::Absent;
            }
        }
    };
    insta::assert_snapshot!(sick(risky), @r"
    Admission Problem: admission policies are missing, so what must hold even while nacre is down does not: nacre-restored-pods, nacre-restored-pods's binding
      -> kubectl nacre install -n velero
    Admission Problem: administrators and tenants share one Velero (shared mode), and the API server does not hold what it creates for tenants to their namespaces
      -> kubectl nacre install -n velero
    Policy Problem: approval is off, so every owner of a namespace can bring storage: whoever owns the storage of a backup can read all Secrets that Velero can read, of the whole cluster (shared mode)
      -> set storageLocations.requireApproval: true, and approve storage only for those who may read that; or set storageLocations.mode: platform; in dedicated mode only those of tenants' namespaces could be read: kubectl nacre install --velero-namespace velero-tenants --fence
    Policy Problem: restore.fromTenantStorage.pods is baseline, but the admission policies that hold pods to it are not installed
      -> kubectl nacre install -n velero
    ");
    let roles = |object: &Object| object.name() != "nacre:edit";
    insta::assert_snapshot!(all_but(roles, |wanted| {
        let mut found = wanted.clone();
        found.body["rules"][0]["verbs"] = json!(["*"]);
        Reading::Found(found)
    }), @r"
    Rights Warning: roles and bindings differ from what this version installs: clusterrole/nacre:edit
      -> kubectl nacre install -n velero
    ");
    let definitions = |object: &Object| !object.name().starts_with("nonadminbackups.");
    insta::assert_snapshot!(all_but(definitions, |wanted| {
        let mut found = wanted.clone();
        found.body["metadata"]["labels"] = json!({});
        found.body["spec"]["versions"][0]["schema"] = json!({});
        found.body["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        Reading::Found(found)
    }), @r"
    Nacre Warning: CRDs of somebody else lack something nacre uses (nonadminbackups): requests cannot set spec; statuses leave out status. A newer version of whoever made them may have it
      -> kubectl nacre render --only request-crds -n velero | kubectl apply --server-side --force-conflicts -f -
    ");
    insta::assert_snapshot!(all_but(|_| false, |_| Reading::Forbidden), @r"
    Nacre NotChecked: CRDs (nonadminbackups, nonadminrestores, nonadminbackupstoragelocations, nonadminbackupstoragelocationrequests, nonadmindownloadrequests and 1 more): you may not get customresourcedefinitions
    Admission NotChecked: admission policies (nacre-reserved-marks, nacre-statuses, nacre-location-requests, nacre-velero-objects, nacre-tenant-backups and 42 more): you may not get validatingadmissionpolicies, validatingadmissionpolicybindings
    Admission NotChecked: mutating admission policies (nacre-requester, nacre-finalizers, nacre-imported-backups, nacre-imported-volumes, nacre-requester's binding and 4 more): you may not get mutatingadmissionpolicies, mutatingadmissionpolicybindings
    Rights NotChecked: roles and bindings (serviceaccount/non-admin-controller in velero, clusterrole/nacre, clusterrolebinding/nacre, role/nacre in velero, rolebinding/nacre in velero and 5 more): you may not get serviceaccounts, clusterroles, clusterrolebindings, roles, rolebindings
    ");
}

#[test]
fn who_asks_is_recorded_by_the_api_server_or_by_the_webhook() {
    let before_1_36 = |recorder: Reading<Object>, policies: &str| {
        sick(|seen| {
            seen.recorder = recorder;
            seen.policy = policy(policies);
            for (wanted, found) in &mut seen.installed {
                if wanted.kind.name().starts_with("MutatingAdmissionPolicy") {
                    *found = Reading::Absent;
                }
            }
        })
    };
    let recorder = |bundle: &[u8]| {
        let mut found = crate::admission::webhook::recorder("velero");
        found.body["webhooks"][0]["clientConfig"]["caBundle"] = json!(ByteString(bundle.to_vec()));
        found
    };
    let strict = "requester: {unrecorded: enforce}\nstorageLocations: {requireApproval: true}";
    insta::assert_snapshot!(before_1_36(Reading::Absent, strict), @r"
    Admission Warning: mutating admission policies are missing, so nobody records who asks, and requests are judged by their namespace alone (Kubernetes 1.36 and later have such policies; before, nacre's webhook does it): nacre-requester, nacre-finalizers, nacre-imported-backups, nacre-imported-volumes, nacre-requester's binding and 4 more
      -> kubectl nacre install -n velero
    ");
    insta::assert_snapshot!(before_1_36(Reading::Found(recorder(b"authority")), strict), @"Admission Note: nacre's webhook records who asks, while nacre runs (Kubernetes 1.36 and later do it by themselves)");
    insta::assert_snapshot!(before_1_36(Reading::Found(recorder(b"another")), strict), @r"
    Admission Problem: MutatingWebhookConfiguration nacre-requester has no caBundle that fits: the API server does not call nacre, and nobody records who asks
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
    let mut changed = recorder(b"authority");
    changed.body["webhooks"][0]["rules"] = json!([]);
    insta::assert_snapshot!(before_1_36(Reading::Found(changed), strict), @r"
    Admission Warning: MutatingWebhookConfiguration nacre-requester differs from what this version installs
      -> kubectl nacre install -n velero
    ");
    insta::assert_snapshot!(before_1_36(Reading::Found(recorder(b"authority")), "storageLocations: {requireApproval: true}"), @r"
    Admission Note: nacre's webhook records who asks, while nacre runs (Kubernetes 1.36 and later do it by themselves)
    Policy Warning: who asks is not recorded while nacre is down, and permissions of such requests are not enforced
      -> set requester.unrecorded: enforce; such requests then have to be made again
    ");
}

#[test]
fn the_extra_fields_of_users_that_are_recorded_are_those_of_the_policy() {
    let found = |wanted: &str, listed: Reading<&str>| {
        sick(|seen| {
            seen.policy = policy(&format!(
                "{{storageLocations: {{requireApproval: true}}, requester: {{extra: [{wanted}]}}}}"
            ));
            seen.requester_extra = match listed {
                Reading::Found(listed) => Reading::Found(read(json!({"data": {"extra": listed}}))),
                Reading::Absent => Reading::Absent,
                Reading::Forbidden => Reading::Forbidden,
                Reading::Unreadable(why) => Reading::Unreadable(why),
            };
        })
    };
    insta::assert_snapshot!(found("example.com/team, b", Reading::Found("b,example.com/team")), @"Admission Note: of extra fields of users b, example.com/team are recorded: everybody who may read a request can read them");
    insta::assert_snapshot!(found("example.com/team", Reading::Found("b")), @r"
    Admission Problem: ConfigMap nacre-requester differs: of extra fields of users b are recorded, and the policy's requester.extra lists example.com/team
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
    insta::assert_snapshot!(found("example.com/team", Reading::Absent), @r"
    Admission Problem: ConfigMap nacre-requester is missing: of extra fields of users none are recorded, and the policy's requester.extra lists example.com/team
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
    insta::assert_snapshot!(found("", Reading::Found("b")), @r"
    Admission Problem: ConfigMap nacre-requester differs: of extra fields of users b are recorded, and the policy's requester.extra lists none
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
    insta::assert_snapshot!(found("", Reading::Forbidden), @"Admission NotChecked: ConfigMap nacre-requester: you may not get configmaps in velero");
    assert_eq!(
        found("", Reading::Absent),
        found("", Reading::Found("")),
        "nothing to record, nothing to say"
    );
}

#[test]
fn the_api_server_can_ask_nacre() {
    insta::assert_snapshot!(sick(|seen| seen.webhook = Reading::Absent), @r"
    Admission Warning: there is no ValidatingWebhookConfiguration nacre: a bad request is stored first and refused by its condition
      -> kubectl nacre install -n velero
    ");
    let certificate = |bundle: &[u8], validity| {
        sick(|seen| seen.certificate = Reading::Found(Certificate { bundle: bundle.to_vec(), validity }))
    };
    insta::assert_snapshot!(certificate(b"another", Validity::Valid), @r"
    Admission Problem: the webhook's caBundle is not the authority of nacre's certificate: the API server refuses to ask
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
    insta::assert_snapshot!(certificate(b"authority", Validity::Invalid), @r"
    Admission Problem: the webhook's certificate is out of date or for other names: the API server refuses to ask; without its Secret nacre makes another at once
      -> kubectl delete secret nacre-webhook -n velero
    ");
    insta::assert_snapshot!(sick(|seen| {
        let Reading::Found(configuration) = &mut seen.webhook else { return };
        for webhook in configuration.webhooks.iter_mut().flatten() {
            webhook.failure_policy = Some("Fail".to_owned());
            webhook.client_config.ca_bundle = None;
        }
    }), @r"
    Admission Warning: ValidatingWebhookConfiguration nacre has failurePolicy Fail: nobody can make a request while nacre is down
      -> set webhooks[0].failurePolicy to Ignore; the controllers check everything again
    Admission Problem: ValidatingWebhookConfiguration nacre has no caBundle: the API server cannot verify nacre, and does not call it
      -> nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have
    ");
}

#[test]
fn nobody_has_more_than_they_should() {
    let wide = json!({"metadata": {"name": "generous", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
        "rules": [{"apiGroups": ["oadp.openshift.io"], "resources": ["*"], "verbs": ["*"]}]});
    insta::assert_snapshot!(sick(|seen| seen.rbac = Reading::Found(roles(&[wide]))), @r"
    Rights Problem: clusterrole generous lets owners of namespaces create dataprotectionapplications, create nonadminbackupstoragelocationrequests, delete nonadminbackupstoragelocationrequests, patch dataprotectionapplications, patch nonadminbackups/status and 12 more
      -> take these out: kubectl edit clusterrole generous
    ");
    let links = json!({"metadata": {"name": "readers", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["oadp.openshift.io"], "resources": ["nonadmindownloadrequests"], "verbs": ["get", "list"]}]});
    insta::assert_snapshot!(sick(|seen| seen.rbac = Reading::Found(roles(&[links]))), @r"
    Rights Problem: clusterrole readers lets owners of namespaces get nonadmindownloadrequests, list nonadmindownloadrequests
      -> take these out: kubectl edit clusterrole readers
    ");
    insta::assert_snapshot!(sick(|seen| seen.rbac = Reading::Found(Rbac::default())), @r"
    Rights Problem: the roles admin, edit, view give nothing on nacre's kinds: owners of namespaces cannot ask; to leave roles out on purpose there is kubectl nacre install --aggregate-to
      -> kubectl nacre install -n velero
    ");
    insta::assert_snapshot!(sick(|seen| {
        let mut rbac = roles(&[
            json!({"metadata": {"name": "cluster-admin"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
            json!({"metadata": {"name": "movers"}, "rules": [{"apiGroups": ["kubevirt.io"],
                "resources": ["virtualmachineinstancemigrations"], "verbs": ["create"]}]}),
        ]);
        let bound = |name: &str, role: &str, subject: Value| {
            json!({"metadata": {"name": name, "namespace": "velero"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole", "name": role}, "subjects": [subject]})
        };
        let user = |name: &str| json!({"kind": "User", "name": name});
        let account = |name: &str| json!({"kind": "ServiceAccount", "namespace": "velero", "name": name});
        rbac.cluster_role_bindings = vec![
            read(bound("root", "cluster-admin", user("root"))),
            read(bound("movers", "movers", user("ann"))),
            read(bound("lazy", "cluster-admin", account("non-admin-controller"))),
        ];
        rbac.role_bindings =
            vec![read(bound("helpers", "cluster-admin", user("bob"))), read(bound("own", "cluster-admin", account("velero")))];
        seen.rbac = Reading::Found(rbac);
    }), @r"
    Rights Warning: these can read every tenant's storage keys in velero, where a role that leaves Secrets out would do: user bob (rolebinding/helpers)
      -> kubectl delete rolebinding/helpers -n velero
    Rights Warning: nacre itself is cluster-admin, which it never needs: lazy
      -> kubectl delete clusterrolebinding lazy
    Rights Warning: user ann can live-migrate machines of everybody (clusterrolebinding/movers)
      -> take that away (kubectl nacre migration revoke --user ann --cluster, or delete clusterrolebinding/movers), and grant it where it is needed: kubectl nacre migration grant --user ann -n NAMESPACE
    ");
}

#[test]
fn the_policy_makes_sense_and_nothing_in_it_is_risky() {
    let with = |text: &str| sick(|seen| seen.policy = policy(text));
    insta::assert_snapshot!(with("backup:\n  tll: {max: 48h}\n"), @r"
    Policy Problem: ConfigMap: 2:3: backup.tll: there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete
      -> correct the key policy.yaml: kubectl edit configmap nacre-policy -n velero
    Policy Problem: there is no valid policy: if nacre restarts, new requests wait
      -> fix what is listed above; kubectl nacre policy check -f FILE checks it beforehand
    ");
    insta::assert_snapshot!(with("{sync: {adoption: name}, views: {velero: all}, backup: {hooks: forbid}}"), @r"
    Policy Warning: backups of a deleted namespace go to whoever makes one of its name
      -> set sync.adoption: approval once you have recovered
    Policy Warning: Velero's objects are copied into every namespace that may ask for backups
      -> set views.velero: labelled, and label the namespaces that want it with nacre.dev/velero-view=true
    Policy Warning: hooks are forbidden in requests, but Velero also runs those in annotations of pods, which nacre does not see
      -> keep pods from carrying pre.hook.backup.velero.io/* and post.hook.*.velero.io/* by an admission policy of yours
    Policy Problem: approval is off, so every owner of a namespace can bring storage: whoever owns the storage of a backup can read all Secrets that Velero can read, of the whole cluster (shared mode)
      -> set storageLocations.requireApproval: true, and approve storage only for those who may read that; or set storageLocations.mode: platform; in dedicated mode only those of tenants' namespaces could be read: kubectl nacre install --velero-namespace velero-tenants --fence
    Policy Problem: views.velero is all, but the permissions for it are not installed: nothing is copied. Without them, remove views.velero from the policy
      -> kubectl nacre install --velero-view -n velero
    ");
    insta::assert_snapshot!(
        with("{storageLocations: {requireApproval: true}, overrides: [{selector: {matchLabels: {nacre.dev/a: b}}, storageLocations: {requireApproval: false}}]}"),
        @"Policy Note: for the namespaces of overrides[0], approval is off, so every owner of a namespace can bring storage: whoever owns the storage of a backup can read all Secrets that Velero can read, of the whole cluster (shared mode)"
    );
}

#[test]
fn a_policy_that_vanished_is_a_problem_while_it_is_in_force_and_after() {
    let gone_for = |minutes: i64| {
        sick(|seen| {
            let gone = || Readings { config_map: Reading::Absent, applications: Reading::Absent };
            let began = in_force(None, &LastPolicy::default(), &seen.policy, seen.now);
            let since = seen.now - jiff::SignedDuration::from_mins(minutes);
            seen.last_policy = in_force(None, &began.last, &gone(), since).last;
            seen.policy = gone();
        })
    };
    insta::assert_snapshot!(gone_for(9), @r"
    Policy Problem: ConfigMap nacre-policy vanished at 2026-11-15T11:51:20Z; its policy stays in force until 2026-11-15T12:01:20Z
      -> create it again; to allow more, write so into the policy, for example storageLocations.requireApproval: false
    ");
    insta::assert_snapshot!(gone_for(10), @r"
    Policy Problem: approval is off, so every owner of a namespace can bring storage: whoever owns the storage of a backup can read all Secrets that Velero can read, of the whole cluster (shared mode)
      -> set storageLocations.requireApproval: true, and approve storage only for those who may read that; or set storageLocations.mode: platform; in dedicated mode only those of tenants' namespaces could be read: kubectl nacre install --velero-namespace velero-tenants --fence
    ");
}

#[test]
fn what_may_not_be_read_is_said_not_to_be_checked() {
    insta::assert_snapshot!(sick(|seen| {
        seen.velero = Reading::Forbidden;
        seen.locations = Reading::Forbidden;
        seen.controllers = Reading::Forbidden;
        seen.lease = Reading::Forbidden;
        seen.webhook = Reading::Forbidden;
        seen.policy = Readings { config_map: Reading::Forbidden, applications: Reading::Forbidden };
        seen.rbac = Reading::Forbidden;
    }), @r"
    Velero NotChecked: Deployment velero: you may not get deployments in namespace velero
    Storage NotChecked: storage locations: you may not list backupstoragelocations in namespace velero
    Nacre NotChecked: the program: you may not list deployments in all namespaces
    Nacre NotChecked: which process is leader: you may not get lease nacre in namespace kube-system
    Admission NotChecked: ValidatingWebhookConfiguration nacre: you may not get validatingwebhookconfiguration nacre
    Rights NotChecked: who has which permissions: you may not list roles and rolebindings of the whole cluster
    Policy NotChecked: ConfigMap nacre-policy: you may not get configmaps in namespace velero
    Policy NotChecked: DataProtectionApplications: you may not list dataprotectionapplications in namespace velero
    ");
}

/// The record of an installation with these values.
fn recorded(data: &Value) -> Reading<Object> {
    let body = json!({"metadata": {"name": "nacre-install-values", "namespace": "velero"}, "data": data});
    Reading::Found(Object { kind: Kind::ConfigMap, body })
}

#[test]
fn what_was_installed_on_purpose_is_no_problem() {
    insta::assert_snapshot!(sick(|seen| {
        seen.record = recorded(&json!({"webhook": "false", "aggregateTo": "[\"admin\"]"}));
        seen.webhook = Reading::Absent;
        let mut rbac = roles(&[]);
        rbac.cluster_roles.retain(|role| role.metadata.name.as_deref() == Some("admin"));
        seen.rbac = Reading::Found(rbac);
    }), @r"
    Admission Note: the webhook is off (webhook: false): a bad request is stored first and refused by its condition
    Rights Note: aggregateTo is [admin]: everybody else needs a RoleBinding to nacre:edit or nacre:view
    ");
    insta::assert_snapshot!(sick(|seen| seen.record = recorded(&json!({"aggregateTo": "[\"admin\"]"}))), @r"
    Rights Warning: aggregateTo leaves out edit, view, which can use nacre's kinds all the same
      -> remove the aggregate-to label of the other role that brings it; to find it: kubectl get clusterroles -o yaml
    ");
    // Without a record, as with Helm, the labels of nacre's roles say it.
    insta::assert_snapshot!(sick(|seen| {
        let label = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
        let labels = json!({labels::PART_OF: labels::PART_OF_VALUE, label("admin"): "true", label("edit"): "false"});
        let mut rbac = roles(&[json!({"metadata": {"name": "nacre:edit", "labels": labels}})]);
        rbac.cluster_roles.retain(|role| role.metadata.name.as_deref() != Some("edit"));
        seen.rbac = Reading::Found(rbac);
    }), @"Rights Note: aggregateTo is [admin, view]: everybody else needs a RoleBinding to nacre:edit or nacre:view");
    insta::assert_snapshot!(sick(|seen| seen.record = recorded(&json!({"replicas": "two"}))), @r#"
    Rights Warning: configmap/nacre-install-values in velero: data.replicas is "two", which is not a value for it; one is 2. Correct it, or delete the ConfigMap: the values are then taken from what is installed
      -> kubectl edit configmap nacre-install-values -n velero
    "#);
}

/// The command that is advised where roles are missing.
fn advised(change: impl FnOnce(&mut Observed)) -> String {
    let mut seen = healthy();
    for (_, found) in seen.installed.iter_mut().filter(|(wanted, _)| wanted.kind == Kind::ClusterRole) {
        *found = Reading::Absent;
    }
    change(&mut seen);
    let findings = examine(&seen);
    let missing = findings.into_iter().find(|one| one.message.starts_with("roles and bindings are missing"));
    missing.and_then(|one| one.fix).unwrap()
}

#[test]
fn the_advice_changes_nothing_but_what_is_broken() {
    let own = |seen: &mut Observed, change: &dyn Fn(&mut Deployment)| {
        if let Reading::Found(controllers) = &mut seen.controllers {
            controllers.iter_mut().for_each(change);
        }
    };
    assert_eq!(advised(|_| {}), "kubectl nacre install -n velero");
    assert_eq!(
        advised(|seen| seen.controllers = Reading::Found(Vec::new())),
        "kubectl nacre install --image IMAGE -n velero"
    );
    assert_eq!(
        advised(|seen| {
            seen.controllers = Reading::Found(Vec::new());
            seen.record = recorded(&json!({"image": "registry.example/nacre:1"}));
        }),
        "kubectl nacre install -n velero"
    );
    let helm = |one: &mut Deployment| {
        one.metadata.annotations = Some([("meta.helm.sh/release-name".to_owned(), "mine".to_owned())].into());
    };
    assert_eq!(
        advised(|seen| own(seen, &helm)),
        "helm upgrade mine deploy/chart -n velero --reset-then-reuse-values"
    );
    let older = |one: &mut Deployment| {
        one.metadata
            .labels
            .get_or_insert_default()
            .insert("app.kubernetes.io/version".to_owned(), "0.0.1".to_owned());
    };
    assert_eq!(advised(|seen| own(seen, &older)), "kubectl nacre install --image IMAGE -n velero");
}

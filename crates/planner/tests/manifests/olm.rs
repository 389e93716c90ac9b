//! The bundle in `deploy/olm`, by which the Operator Lifecycle Manager installs nacre from a catalog: the same objects as
//! every other installation, in the form that OLM reads. The admission policies are not in it, since OLM applies none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use api::Kind;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use planner::Object;
use planner::install::{CONTROLLER, Part, SERVICE_ACCOUNT, Settings};
use serde_json::{Value, json};

use super::WRITE;
use super::olm_format::problems;

pub(crate) const PACKAGE: &str = "nacre";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CHANNEL: &str = "alpha";
/// What catalogs show. Without one, OLM's library does not accept the bundle for OperatorHub.
const ICON: &str = include_str!("../../../../docs/icon.svg");
/// OLM gives it another: it installs everything into the namespace of the subscription.
const NAMESPACE: &str = "__namespace__";
/// Files of the bundle, by their path in it.
pub(crate) type Bundle = BTreeMap<String, String>;

fn bundle() -> Bundle {
    let settings = Settings { namespace: NAMESPACE.to_owned(), ..Settings::default() };
    let controller = Part::Controller.objects(&settings, SERVICE_ACCOUNT);
    let mut files = Bundle::new();
    let mut add = |name: String, body: &Value| {
        let mut body = body.clone();
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        let text = serde_saphyr::to_string(&body).unwrap();
        assert!(!text.contains(NAMESPACE), "{name} is for one namespace:\n{text}");
        files.insert(format!("manifests/{name}.yaml"), text);
    };
    for definition in own_kinds() {
        add(definition.name().to_owned(), &definition.body);
    }
    let others = [Kind::Service, Kind::PodDisruptionBudget];
    for object in &controller {
        let is_users = object.kind == Kind::ClusterRole && object.name() != "nacre";
        if is_users || others.contains(&object.kind) {
            let name = object.name().replace(':', "-");
            add(format!("{name}.{}", object.kind.name().to_lowercase()), &object.body);
        }
    }
    add(format!("{PACKAGE}.clusterserviceversion"), &service_version(&controller, &settings));
    let annotations = annotations();
    let text = serde_saphyr::to_string(&json!({ "annotations": annotations })).unwrap();
    files.insert("metadata/annotations.yaml".to_owned(), text);
    let labels: Vec<String> = annotations.iter().map(|(key, value)| format!("LABEL {key}={value}")).collect();
    let labels = labels.join("\n");
    let copied = "COPY manifests /manifests/\nCOPY metadata /metadata/\n";
    files.insert(
        "bundle.Dockerfile".to_owned(),
        format!("# The bundle as an image, which holds nothing but these files. Made by `make gen`.\nFROM scratch\n{labels}\n{copied}"),
    );
    files
}

/// nacre's kinds. A DataProtectionApplication is OADP's.
fn own_kinds() -> Vec<Object> {
    let mut kinds = planner::install::definitions();
    kinds.retain(|object| !object.name().starts_with(Kind::DataProtectionApplication.plural()));
    kinds
}

pub(crate) fn annotations() -> BTreeMap<String, String> {
    let key = |name: &str| format!("operators.operatorframework.io.bundle.{name}");
    let all = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", PACKAGE),
        ("channels.v1", CHANNEL),
        ("channel.default.v1", CHANNEL),
    ];
    all.into_iter().map(|(name, value)| (key(name), value.to_owned())).collect()
}

fn service_version(controller: &[Object], settings: &Settings) -> Value {
    let rules = |kind: Kind, namespace: &str| -> Vec<Value> {
        let role = controller.iter().find(|object| {
            object.kind == kind && object.name() == "nacre" && object.namespace() == namespace
        });
        role.unwrap().body["rules"].as_array().unwrap().clone()
    };
    // OLM gives permissions in its own namespace or everywhere, and the lease is in kube-system.
    let everywhere = [rules(Kind::ClusterRole, ""), rules(Kind::Role, "kube-system")].concat();
    let given = |rules: Vec<Value>| json!([{"serviceAccountName": SERVICE_ACCOUNT, "rules": rules}]);
    let deployment = controller.iter().find(|object| object.kind == Kind::Deployment).unwrap();
    let mut spec = deployment.body["spec"].clone();
    for variable in spec["template"]["spec"]["containers"][0]["env"].as_array_mut().unwrap() {
        if variable["name"] == "WATCH_NAMESPACE" {
            *variable = json!({"name": "WATCH_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}});
        }
    }
    let owned: Vec<Value> = own_kinds().iter().map(owned).collect();
    let mode = |name: &str, supported: bool| json!({"type": name, "supported": supported});
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{PACKAGE}.v{VERSION}"),
            "annotations": {
                "alm-examples": serde_json::to_string_pretty(&examples()).unwrap(),
                "capabilities": "Deep Insights",
                "categories": "Storage,Security",
                "containerImage": settings.image,
                "description": "Backup and restore for namespace owners, by way of Velero",
                "operatorframework.io/suggested-namespace": "velero",
                "support": "nacre",
            },
        },
        "spec": {
            "displayName": "nacre",
            "description": DESCRIPTION,
            "version": VERSION,
            "minKubeVersion": "1.30.0",
            "maturity": "alpha",
            "keywords": ["backup", "restore", "velero", "multi-tenancy"],
            "maintainers": [{"name": "nacre", "email": "maintainers@nacre.dev"}],
            "provider": {"name": "nacre", "url": "https://nacre.dev"},
            "links": [{"name": "nacre", "url": "https://nacre.dev"}],
            "icon": [{"mediatype": "image/svg+xml", "base64data": STANDARD.encode(ICON)}],
            // Requests are in all namespaces. Only so does OLM not aggregate roles of its own, which would let viewers read
            // download links.
            "installModes": [
                mode("OwnNamespace", true), mode("SingleNamespace", false), mode("MultiNamespace", false),
                mode("AllNamespaces", false),
            ],
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "permissions": given(rules(Kind::Role, NAMESPACE)),
                    "clusterPermissions": given(everywhere),
                    "deployments": [{"name": CONTROLLER, "label": {"control-plane": CONTROLLER}, "spec": spec}],
                },
            },
            "relatedImages": [{"name": "nacre", "image": settings.image}],
        },
    })
}

const DESCRIPTION: &str = "nacre lets the owner of a namespace back it up and restore it with Velero, without being a cluster administrator.\n\n\
    Install it into Velero's namespace, with an OperatorGroup for that namespace. Then apply the admission policies and the record of who asks, which no \
    bundle can hold (from Kubernetes 1.36 on `requester` instead of `requester-webhook`):\n\n    kubectl nacre render --only admission,requester-webhook -n velero | kubectl apply --server-side -f -\n\n\
    Do not install it on OADP, which ships the same kinds: set `unsupportedOverrides.nonAdminControllerImageFqin` there.\n";

fn owned(definition: &Object) -> Value {
    let spec = &definition.body["spec"];
    let schema = &spec["versions"][0]["schema"]["openAPIV3Schema"];
    let kind = spec["names"]["kind"].as_str().unwrap();
    let said = schema["description"].as_str().filter(|text| !text.starts_with("Auto-generated"));
    json!({
        "name": definition.name(), "kind": kind, "version": spec["versions"][0]["name"], "displayName": kind,
        "description": said.map_or_else(|| format!("{kind}, as `kubectl explain` describes it"), str::to_owned),
    })
}

/// One of each kind, as a person would write it.
fn examples() -> Vec<Value> {
    let of = |kind: Kind, spec: Value| json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {"name": "example", "namespace": "shop"}, "spec": spec});
    let location = json!({"provider": "aws", "objectStorage": {"bucket": "shop-backups"}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    vec![
        of(Kind::NonAdminBackup, json!({"backupSpec": {"ttl": "720h"}})),
        of(Kind::NonAdminRestore, json!({"restoreSpec": {"backupName": "example"}})),
        of(Kind::NonAdminSchedule, json!({"schedule": "0 2 * * *", "template": {"backupSpec": {}}})),
        of(Kind::NonAdminBackupStorageLocation, json!({"backupStorageLocationSpec": location})),
        of(Kind::NonAdminBackupStorageLocationRequest, json!({"approvalDecision": "approve"})),
        of(Kind::NonAdminDownloadRequest, json!({"target": {"kind": "BackupLog", "name": "example"}})),
    ]
}

#[test]
fn the_bundle_is_current_and_in_the_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/olm");
    let wanted = bundle();
    assert_eq!(problems(&wanted), [""; 0]);
    if std::env::var_os(WRITE).is_some() {
        let _ = fs::remove_dir_all(&folder);
        for (path, text) in &wanted {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    for (path, text) in &wanted {
        let found = fs::read_to_string(folder.join(path)).unwrap_or_default();
        assert!(found == *text, "deploy/olm/{path} is stale: run `make gen`");
    }
    let shipped = super::chart::all_files(&folder);
    assert_eq!(shipped.len(), wanted.len(), "deploy/olm has a file nobody generates: {shipped:?}");
}

#[test]
fn examples_are_requests_that_nacre_reads() {
    for example in examples() {
        let kind = example["kind"].as_str().unwrap().to_owned();
        let read = match kind.as_str() {
            "NonAdminBackup" => serde_json::from_value::<api::NonAdminBackup>(example).map(|_| ()),
            "NonAdminRestore" => serde_json::from_value::<api::NonAdminRestore>(example).map(|_| ()),
            "NonAdminSchedule" => serde_json::from_value::<api::NonAdminSchedule>(example).map(|_| ()),
            "NonAdminBackupStorageLocation" => {
                serde_json::from_value::<api::NonAdminBackupStorageLocation>(example).map(|_| ())
            }
            "NonAdminBackupStorageLocationRequest" => {
                serde_json::from_value::<api::NonAdminBackupStorageLocationRequest>(example).map(|_| ())
            }
            _ => serde_json::from_value::<api::NonAdminDownloadRequest>(example).map(|_| ()),
        };
        assert!(read.is_ok(), "{kind}: {read:?}");
    }
}

/// Each of these would be refused by OLM.
#[test]
fn a_bundle_that_olm_would_refuse_is_found() {
    let csv = format!("manifests/{PACKAGE}.clusterserviceversion.yaml");
    let refused = |change: &dyn Fn(&mut Bundle)| {
        let mut changed = bundle();
        change(&mut changed);
        problems(&changed)
    };
    let edited = |from: &str, to: &str| {
        refused(&|bundle| {
            let text = bundle.get_mut(&csv).unwrap();
            assert!(text.contains(from), "{from}");
            *text = text.replace(from, to);
        })
    };
    assert!(!refused(&|bundle| drop(bundle.remove(&csv))).is_empty());
    assert!(!refused(&|bundle| drop(bundle.remove("metadata/annotations.yaml"))).is_empty());
    assert!(
        !refused(&|bundle| drop(bundle.remove("manifests/nonadminbackups.oadp.openshift.io.yaml")))
            .is_empty()
    );
    let policy =
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\n";
    assert!(
        !refused(&|bundle| drop(bundle.insert("manifests/a.yaml".to_owned(), policy.to_owned()))).is_empty()
    );
    assert!(!edited("strategy: deployment", "strategy: job").is_empty());
    assert!(!edited(&format!("nacre.v{VERSION}"), "nacre").is_empty());
    assert!(!edited("MultiNamespace", "SomeNamespaces").is_empty());
}

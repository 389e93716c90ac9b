//! The webhook: who is asked before a request is stored, and where it is found.

use api::Kind;
use serde_json::{Value, json};

use super::requester::VELERO_VIEW;
use crate::Object;
use crate::install::{SERVICE_ACCOUNT, TENANT_KINDS};
use crate::vap::cel::at;

/// The configuration, which comes from the installation; nacre only keeps its `caBundle` current.
pub const CONFIGURATION: &str = "nacre";
/// The configuration by which nacre records who asks, where the API server cannot do that by itself.
pub const RECORDER: &str = "nacre-requester";
/// Where the API server finds nacre.
pub const SERVICE: &str = "nacre-webhook";
/// The port nacre listens on by default.
pub const PORT: u16 = 9443;
/// The path nacre answers at.
pub const PATH: &str = "/review";
/// The path nacre records at.
pub const RECORDER_PATH: &str = "/record";

/// How long the API server waits. nacre answers from memory; whoever waits longer than this is better off without.
const SECONDS: u8 = 3;

/// What nacre may do to a configuration: look at it, and say by which certificate it is known.
pub(crate) fn rule(kind: Kind, name: &str) -> Value {
    json!({
        "apiGroups": [kind.group()], "resources": [kind.plural()], "resourceNames": [name],
        "verbs": ["get", "patch"],
    })
}

/// The Service and the configuration.
pub(super) fn objects(namespace: &str) -> [Object; 2] {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": namespace},
        "spec": {
            "selector": {"control-plane": SERVICE_ACCOUNT},
            "ports": [{"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": PORT}],
        },
    });
    let resources: Vec<_> = TENANT_KINDS.iter().map(|kind| kind.plural()).collect();
    let nacre = format!("system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [{
            "name": "requests.nacre.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": PATH, "port": 443}},
            // The controller checks again: nobody is locked out because nacre is down, and nothing gets by it.
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "rules": [{
                "apiGroups": [Kind::NonAdminBackup.group()], "apiVersions": [Kind::NonAdminBackup.version()],
                "operations": ["CREATE", "UPDATE"], "resources": resources, "scope": "Namespaced",
            }],
            "matchConditions": [
                {"name": "not-nacre", "expression": format!("request.userInfo.username != '{nacre}'")},
                {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
                {"name": "new-or-changed", "expression": "oldObject == null || !has(oldObject.spec) || !has(object.spec) || object.spec != oldObject.spec"},
            ],
            "sideEffects": "None",
            "timeoutSeconds": SECONDS,
        }],
    });
    [
        Object { kind: Kind::Service, body: service },
        Object { kind: Kind::ValidatingWebhookConfiguration, body: configuration },
    ]
}

/// The configuration for recording. While nacre is down nobody is recorded, and `requester` still lets no other value in.
pub(crate) fn recorder(namespace: &str) -> Object {
    let plurals = |kinds: &[Kind]| -> Vec<&str> { kinds.iter().map(|kind| kind.plural()).collect() };
    let rule = |kind: Kind, resources: Vec<&str>| {
        json!({
            "apiGroups": [kind.group()], "apiVersions": [kind.version()],
            "operations": ["CREATE", "UPDATE"], "resources": resources, "scope": "Namespaced",
        })
    };
    let nacre = format!("system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}");
    let annotations = |object: &str| at(object, &["metadata", "annotations"], "{}");
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": RECORDER},
        "webhooks": [{
            "name": "requester.nacre.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {"name": SERVICE, "namespace": namespace, "path": RECORDER_PATH, "port": 443},
            },
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            // A webhook that comes later may change what is asked for.
            "reinvocationPolicy": "IfNeeded",
            "rules": [
                rule(Kind::NonAdminBackup, plurals(&TENANT_KINDS)),
                rule(Kind::Backup, plurals(&VELERO_VIEW)),
            ],
            "matchConditions": [
                {"name": "not-nacre", "expression": format!("request.userInfo.username != '{nacre}'")},
                {"name": "not-velero", "expression": format!(
                    "request.resource.group != '{}' || request.namespace != '{namespace}'", Kind::Backup.group())},
                {"name": "new-or-changed", "expression": format!(
                    "oldObject == null || !has(oldObject.spec) || !has(object.spec) || object.spec != oldObject.spec || \
                     ({}) != ({})", annotations("object"), annotations("oldObject"))},
            ],
            "sideEffects": "None",
            "timeoutSeconds": SECONDS,
        }],
    });
    Object { kind: Kind::MutatingWebhookConfiguration, body }
}

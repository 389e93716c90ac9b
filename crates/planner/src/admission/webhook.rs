//! The webhook: who is asked before a request is stored, and where it is found.

use api::Kind;
use serde_json::{Value, json};

use crate::Object;
use crate::install::{SERVICE_ACCOUNT, TENANT_KINDS};

/// The configuration, which comes from the installation; nacre only keeps its `caBundle` current.
pub const CONFIGURATION: &str = "nacre";
/// Where the API server finds nacre.
pub const SERVICE: &str = "nacre-webhook";
/// The port nacre listens on by default.
pub const PORT: u16 = 9443;
/// The path nacre answers at.
pub const PATH: &str = "/review";

/// How long the API server waits. nacre answers from memory; whoever waits longer than this is better off without.
const SECONDS: u8 = 3;

/// What nacre may do to the configuration: look at it, and say by which certificate it is known.
pub(crate) fn rule() -> Value {
    let kind = Kind::ValidatingWebhookConfiguration;
    json!({
        "apiGroups": [kind.group()], "resources": [kind.plural()], "resourceNames": [CONFIGURATION],
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

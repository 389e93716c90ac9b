//! The program: a Deployment as OADP's operator makes it, but with probes, limits and no privileges; how many of its pods may
//! be missing; and where it is reached.

use api::Kind;
use serde_json::{Value, json};

use super::roles::SERVICE_ACCOUNT;
use super::settings::Settings;
use super::{asks_nacre, marked};
use crate::{Object, admission};

/// The Deployment, its container and the label of its pods. OADP's operator has it under this name too, and looks for it when
/// it makes sure that there is one controller per cluster.
pub const CONTROLLER: &str = "non-admin-controller";

/// The Service by which metrics are read.
pub(super) const METRICS: &str = "nacre-metrics";

/// The Deployment and what belongs to it: what `enable` in a DataProtectionApplication switches.
pub fn program(settings: &Settings) -> Vec<Object> {
    let mut objects = vec![metrics_service(settings), deployment(settings)];
    if settings.replicas > 1 {
        objects.push(disruption_budget(settings));
    }
    objects
}

/// What makes the API server ask the program, if that is wanted.
pub fn webhook(settings: &Settings) -> Vec<Object> {
    let asked = admission::objects(&settings.namespace).into_iter().filter(asks_nacre);
    asked.filter(|_| settings.webhook).map(|object| marked(object.kind, object.body)).collect()
}

fn pods() -> Value {
    json!({"control-plane": CONTROLLER})
}

fn deployment(settings: &Settings) -> Object {
    let body = json!({
        "metadata": {"name": CONTROLLER, "namespace": settings.namespace, "labels": pods()},
        "spec": {
            "replicas": settings.replicas,
            "selector": {"matchLabels": pods()},
            // The new pod is ready before the old one stops.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": {"control-plane": CONTROLLER, "app.kubernetes.io/name": "nacre"},
                    "annotations": {"kubectl.kubernetes.io/default-container": CONTROLLER},
                },
                "spec": {
                    "serviceAccountName": SERVICE_ACCOUNT,
                    "imagePullSecrets": settings.image_pull_secrets,
                    "nodeSelector": settings.node_selector,
                    "tolerations": settings.tolerations,
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": pods()},
                    }],
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "terminationGracePeriodSeconds": 15,
                    "containers": [container(settings)],
                },
            },
        },
    });
    marked(Kind::Deployment, body)
}

/// No arguments: everything is in the environment, as OADP's operator has it.
fn container(settings: &Settings) -> Value {
    let webhook = if settings.webhook { format!(":{}", admission::webhook::PORT) } else { "0".to_owned() };
    json!({
        "name": CONTROLLER,
        "image": settings.image,
        "env": [
            {"name": "WATCH_NAMESPACE", "value": settings.namespace},
            {"name": "LOG_LEVEL", "value": settings.log_level.to_string()},
            {"name": "LOG_FORMAT", "value": settings.log_format},
            {"name": "WEBHOOK_BIND_ADDRESS", "value": webhook},
            {"name": "FENCE", "value": settings.fence.to_string()},
        ],
        "ports": [
            {"name": "metrics", "containerPort": 8080},
            {"name": "health", "containerPort": 8081},
            {"name": "webhook", "containerPort": admission::webhook::PORT},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": "health"}, "periodSeconds": 10, "failureThreshold": 6,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": settings.resources,
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

/// One has to be there, unless none is well anyway.
fn disruption_budget(settings: &Settings) -> Object {
    let body = json!({
        "metadata": {"name": CONTROLLER, "namespace": settings.namespace},
        "spec": {
            "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": pods()},
        },
    });
    marked(Kind::PodDisruptionBudget, body)
}

fn metrics_service(settings: &Settings) -> Object {
    let body = json!({
        "metadata": {"name": METRICS, "namespace": settings.namespace, "labels": pods()},
        "spec": {"selector": pods(), "ports": [{"name": "metrics", "port": 8080, "targetPort": "metrics"}]},
    });
    marked(Kind::Service, body)
}

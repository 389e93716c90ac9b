//! The console in the cluster: a Deployment whose account may do nothing and has no token. People sign in with their own.

use api::Kind;
use serde_json::{Value, json};

use super::marked;
use super::settings::Settings;
use crate::Object;

/// The Deployment, its account, its Service and the label of its pods.
pub const CONSOLE: &str = "nacre-console";

/// The port of the console, which speaks HTTP: what the site uses for sign-in and TLS stands before it.
const PORT: u16 = 8090;

/// All of it.
pub(super) fn objects(settings: &Settings) -> Vec<Object> {
    let meta = json!({"name": CONSOLE, "namespace": settings.namespace, "labels": pods()});
    let account = json!({"metadata": meta, "automountServiceAccountToken": false});
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
    let service = json!({"metadata": meta, "spec": {"selector": pods(), "ports": ports}});
    vec![
        marked(Kind::ServiceAccount, account),
        marked(Kind::Service, service),
        marked(Kind::Deployment, json!({"metadata": meta, "spec": deployment(settings)})),
    ]
}

fn pods() -> Value {
    json!({"control-plane": CONSOLE})
}

/// One replica: whoever pasted a token is known to the process that keeps it in memory, and to no other.
fn deployment(settings: &Settings) -> Value {
    let container = json!({
        "name": CONSOLE,
        "image": settings.image,
        // Without the controller in between: the program that has no permissions does not hold the one that has them.
        "command": ["/kubectl-nacre"],
        "args": ["console", "--in-cluster", "--velero-namespace", settings.namespace],
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        // Every namespace has this ConfigMap: without a token, it is all that is known of the API server.
        "volumeMounts": [{"name": "ca", "mountPath": "/etc/nacre", "readOnly": true}],
    });
    let items = json!([{"key": "ca.crt", "path": "ca.crt"}]);
    json!({
        "replicas": 1,
        "selector": {"matchLabels": pods()},
        "template": {
            "metadata": {"labels": {"control-plane": CONSOLE, "app.kubernetes.io/name": "nacre"}},
            "spec": {
                "serviceAccountName": CONSOLE,
                "automountServiceAccountToken": false,
                "imagePullSecrets": settings.image_pull_secrets,
                "nodeSelector": settings.node_selector,
                "tolerations": settings.tolerations,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
                "volumes": [{"name": "ca", "configMap": {"name": "kube-root-ca.crt", "items": items}}],
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install;

    #[test]
    fn the_console_may_do_nothing_by_itself() {
        let without = install::objects(&Settings::default());
        let with = install::objects(&Settings { console: true, ..Settings::default() });
        let added: Vec<&Object> = with.iter().filter(|object| !without.contains(object)).collect();
        let kinds: Vec<Kind> = added.iter().map(|object| object.kind).collect();
        assert_eq!(kinds, [Kind::ServiceAccount, Kind::Service, Kind::Deployment]);
        assert!(!with.iter().any(|object| object.kind != Kind::ServiceAccount
            && object.body["subjects"].to_string().contains(CONSOLE)));
        assert_eq!(added[0].body["automountServiceAccountToken"], false);
        assert_eq!(added[2].body["spec"]["template"]["spec"]["automountServiceAccountToken"], false);
        assert!(without.iter().all(|object| object.name() != CONSOLE));
    }
}

//! The console in the cluster: a Deployment whose account may do nothing and has no token. People sign in with their own.

use api::Kind;
use serde_json::{Value, json};

use super::marked;
use super::settings::Settings;
use crate::Object;

/// The Deployment, its account, its Service and the label of its pods.
pub const CONSOLE: &str = "nacre-console";

/// The ConfigMap with the authority of the administrators' storage, unless somebody names another.
pub const CONSOLE_CA: &str = "nacre-console-ca";

/// The flag with the URL, and the volume with the authority: an installation is read back by them.
pub(super) const URL: &str = "--url=";
pub(super) const CA_VOLUME: &str = "storage-ca";

/// Scheme and host of `https://console.example.com`; none if it is not such a URL.
pub fn web_address(url: &str) -> Option<(&str, &str)> {
    let (scheme, host) = url.trim_end_matches('/').split_once("://")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    let is_one = ["http", "https"].contains(&scheme) && !host.is_empty() && host.chars().all(plain);
    is_one.then_some((scheme, host))
}

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
        "args": ["console", "--in-cluster", "--velero-namespace", settings.namespace,
            format!("{URL}{}", settings.console_url), "--storage-ca=/etc/nacre-storage/ca.crt"],
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 6},
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        // Every namespace has this ConfigMap: without a token, it is all that is known of the API server.
        "volumeMounts": [
            {"name": "ca", "mountPath": "/etc/nacre", "readOnly": true},
            {"name": CA_VOLUME, "mountPath": "/etc/nacre-storage", "readOnly": true},
        ],
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
                "volumes": [
                    {"name": "ca", "configMap": {"name": "kube-root-ca.crt", "items": items}},
                    {"name": CA_VOLUME, "configMap": {"name": settings.console_ca, "items": items, "optional": true}},
                ],
            },
        },
    })
}

/// The values that an installed Deployment of the console shows.
pub(super) fn shown(deployment: &Value) -> Vec<(&'static str, Value)> {
    let pod = &deployment["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].as_array().into_iter().flatten();
    let url = args.filter_map(Value::as_str).find_map(|arg| arg.strip_prefix(URL));
    let mut volumes = pod["volumes"].as_array().into_iter().flatten();
    let ca = volumes
        .find(|volume| volume["name"] == CA_VOLUME)
        .and_then(|volume| volume["configMap"]["name"].as_str());
    let found = [
        ("console", Some(true.into())),
        ("consoleUrl", url.map(Value::from)),
        ("consoleCa", ca.map(Value::from)),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install;

    #[test]
    fn the_console_is_started_with_its_address_and_what_it_trusts() {
        let url = "https://console.example.com";
        let settings = Settings {
            console: true,
            console_url: url.to_owned(),
            console_ca: "bucket-ca".to_owned(),
            ..Settings::default()
        };
        let pod = deployment(&settings)["template"]["spec"].clone();
        let args = &pod["containers"][0]["args"];
        assert_eq!(args[4], format!("--url={url}"));
        assert_eq!(args[5], "--storage-ca=/etc/nacre-storage/ca.crt");
        assert_eq!(pod["volumes"][1]["configMap"]["name"], "bucket-ca");
        assert_eq!(pod["volumes"][1]["configMap"]["optional"], true, "most sites need none");
        assert!(settings.problems().is_empty());
        for odd in ["console.example.com", "ftp://a", "https://", "https://a/b", "https://a b"] {
            let settings = Settings { console_url: odd.to_owned(), ..settings.clone() };
            assert!(settings.problems()[0].contains("consoleUrl"), "{odd}");
        }
    }

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

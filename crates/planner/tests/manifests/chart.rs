//! The Helm chart in `deploy/chart`: the same objects, with the administrator's settings as values.
//!
//! An object is rendered with marks where a value belongs, and each mark is then replaced by the expression that fills it in. A
//! real helm compares the outcome with `kubectl nacre render` (crate e2e, `install`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::{Kind, labels};
use planner::Object;
use planner::admission::webhook::RECORDER;
use planner::install::uninstall::FINALIZERS;
use planner::install::{self, CONSOLE, CONTROLLER, LEASE, LEASE_NAMESPACE, LEASE_SECRET, Settings, UserRole};
use planner::velero_view::WATCHED;
use serde_json::{Value, json};

use super::WRITE;

const NAMESPACE: &str = "__namespace__";

/// Where in the Deployment each value belongs, and what fills it in. JSON is YAML, so lists and maps need no indentation.
static IN_THE_DEPLOYMENT: [(&str, &str); 10] = [
    ("/spec/replicas", "{{ .Values.replicas }}"),
    ("/spec/template/spec/imagePullSecrets", "{{ toJson .Values.imagePullSecrets }}"),
    ("/spec/template/spec/nodeSelector", "{{ toJson .Values.nodeSelector }}"),
    ("/spec/template/spec/tolerations", "{{ toJson .Values.tolerations }}"),
    ("/spec/template/spec/containers/0/image", "{{ .Values.image | quote }}"),
    ("/spec/template/spec/containers/0/resources", "{{ toJson .Values.resources }}"),
    ("LOG_LEVEL", "{{ .Values.logLevel | quote }}"),
    ("LOG_FORMAT", "{{ .Values.logFormat | quote }}"),
    ("WEBHOOK_BIND_ADDRESS", "{{ ternary \":9443\" \"0\" .Values.webhook | quote }}"),
    // `helm upgrade --reuse-values` from a chart that did not have the value leaves it out.
    ("FENCE", "{{ default false .Values.fence | quote }}"),
];

/// The same in that of the console, which has a size and a number of replicas of its own.
static IN_THE_CONSOLE: [(&str, &str); 6] = [
    IN_THE_DEPLOYMENT[1],
    IN_THE_DEPLOYMENT[2],
    IN_THE_DEPLOYMENT[3],
    IN_THE_DEPLOYMENT[4],
    (
        "/spec/template/spec/containers/0/args/4",
        "{{ printf \"--url=%s\" (default \"\" .Values.consoleUrl) | quote }}",
    ),
    (
        "/spec/template/spec/volumes/1/configMap/name",
        "{{ default \"nacre-console-ca\" .Values.consoleCa | quote }}",
    ),
];

#[test]
fn the_chart_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart");
    let files = files();
    if std::env::var_os(WRITE).is_some() {
        let _ = fs::remove_dir_all(&folder);
        for (path, text) in &files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    for (path, wanted) in &files {
        let path = folder.join(path);
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == *wanted, "{} is stale: run `make gen`", path.display());
    }
    let shipped = all_files(&folder);
    assert_eq!(shipped.len(), files.len(), "deploy/chart has a file nobody generates: {shipped:?}");
}

pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] }).collect()
}

fn files() -> BTreeMap<String, String> {
    let version = env!("CARGO_PKG_VERSION");
    let chart = json!({
        "apiVersion": "v2", "name": "nacre", "type": "application", "version": version, "appVersion": version,
        "description": "Backup and restore for namespace owners, by way of Velero",
        // Admission policies are stable since then.
        "kubeVersion": ">=1.30.0-0",
    });
    let mut files = BTreeMap::from([
        ("Chart.yaml".to_owned(), serde_saphyr::to_string(&chart).unwrap()),
        ("values.yaml".to_owned(), values()),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
        ("templates/uninstall.yaml".to_owned(), uninstall_hook()),
    ]);
    for object in install::definitions() {
        let plural = object.body["spec"]["names"]["plural"].as_str().unwrap();
        files.insert(format!("crds/{plural}.yaml"), serde_saphyr::to_string(&object.body).unwrap());
    }
    let settings = Settings {
        namespace: NAMESPACE.to_owned(),
        velero_view: true,
        fence: true,
        console: true,
        ..Settings::default()
    };
    let mut templates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let without = [
        (Settings { velero_view: false, ..settings.clone() }, ".Values.veleroView"),
        (Settings { fence: false, ..settings.clone() }, ".Values.fence"),
        (Settings { replicas: 1, ..settings.clone() }, "gt (int .Values.replicas) 1"),
        (Settings { webhook: false, ..settings.clone() }, ".Values.webhook"),
        (Settings { console: false, ..settings.clone() }, ".Values.console"),
    ];
    let without = without.map(|(settings, condition)| (install::objects(&settings), condition));
    for object in install::objects(&settings).into_iter().chain(install::recorder(&settings)) {
        if object.kind != Kind::CustomResourceDefinition {
            let file = format!("templates/{}.yaml", object.kind.name().to_lowercase());
            templates.entry(file).or_default().push(template(&object, &without));
        }
    }
    files.extend(templates.into_iter().map(|(file, texts)| (file, texts.join("---\n"))));
    files
}

const NOTES: &str = "nacre runs in {{ .Release.Namespace }}, with Velero.\n\n\
    Its CRDs were created if they were not there; Helm neither changes nor removes them later. After an upgrade \
    bring them up to date with those of the release:\n  tar -xzf nacre-manifests.tar.gz nacre/crds\n  kubectl apply \
    --server-side --force-conflicts -f nacre/crds\nHelm counts as another writer of the CRDs, hence --force-conflicts.\n\n\
    `helm uninstall` ends with a Job that removes \
    nacre's finalizers from requests, so that nothing of a tenant's is stuck. `kubectl nacre uninstall -n \
    {{ .Release.Namespace }}` removes the rest that nacre made, before or after.\n";

/// What Helm runs after it has removed everything else: it lets tenants' requests go. Not before, since the program puts its
/// finalizers back as long as it runs.
fn uninstall_hook() -> String {
    let rbac = "rbac.authorization.k8s.io";
    let name = "nacre-uninstall";
    let metadata = |namespace: Option<&str>, weight: &str| {
        let mut metadata = json!({"name": name, "labels": {labels::PART_OF: labels::PART_OF_VALUE}, "annotations": {
            "helm.sh/hook": "post-delete", "helm.sh/hook-weight": weight,
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    };
    let own = Some(NAMESPACE);
    let lease = Some(LEASE_NAMESPACE);
    let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]);
    let role = |kind: &str, namespace, rules: &Value| json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": metadata(namespace, "0"), "rules": rules});
    let binding = |kind: &str, namespace| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata(namespace, "0"),
            "roleRef": {"apiGroup": rbac, "kind": kind, "name": name}, "subjects": subjects})
    };
    let plurals: Vec<_> = FINALIZERS.iter().map(|(kind, _)| kind.plural()).collect();
    let requests = json!([{"apiGroups": [Kind::NonAdminBackup.group()], "resources": plurals, "verbs": ["list", "patch"]}]);
    let veleros: Vec<_> = WATCHED.iter().map(|kind| kind.plural()).collect();
    let copies = json!([{"apiGroups": [Kind::Backup.group()], "resources": veleros, "verbs": ["list", "patch", "delete"]}]);
    // Whether nacre is still at work.
    let leader = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [LEASE_SECRET], "verbs": ["get"]}]);
    let deployment = install::objects(&Settings { namespace: NAMESPACE.to_owned(), ..Settings::default() });
    let deployment =
        deployment.iter().find(|one| one.kind == Kind::Deployment && one.name() == CONTROLLER).unwrap();
    let pod = &deployment.body["spec"]["template"]["spec"];
    let container = json!({"name": name, "image": "__image__", "command": ["/kubectl-nacre"],
        "args": ["uninstall", "--requests-only", "-n", NAMESPACE],
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": pod["containers"][0]["securityContext"],
        "terminationMessagePolicy": "FallbackToLogsOnError"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(own, "1"),
        "spec": {"backoffLimit": 3, "activeDeadlineSeconds": 240, "template": {"spec": {
            "restartPolicy": "Never", "serviceAccountName": name, "containers": [container],
            "securityContext": pod["securityContext"], "imagePullSecrets": "__imagePullSecrets__",
            "nodeSelector": "__nodeSelector__", "tolerations": "__tolerations__"}}}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(own, "0")});
    let objects = [
        account,
        role("ClusterRole", None, &requests),
        binding("ClusterRole", None),
        role("Role", own, &leader),
        binding("Role", own),
        role(
            "Role",
            lease,
            &json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "resourceNames": [LEASE], "verbs": ["get"]}]),
        ),
        binding("Role", lease),
        job,
    ];
    let mut text = objects
        .map(|object| {
            serde_saphyr::to_string(&object)
                .unwrap()
                .replace(&format!(": {NAMESPACE}\n"), ": {{ .Release.Namespace | quote }}\n")
        })
        .join("---\n");
    // Copies are there only with the value, and so are the permissions for them.
    let of_copies = serde_saphyr::to_string(&copies).unwrap();
    let of_copies = format!("{{{{- if .Values.veleroView }}}}\n{of_copies}{{{{- end }}}}\n");
    let end = "kind: ClusterRole\n";
    let (before, after) =
        text.split_once(end).map(|(before, after)| (format!("{before}{end}"), after.to_owned())).unwrap();
    let (role, rest) = after.split_once("---\n").unwrap();
    text = format!("{before}{role}{of_copies}---\n{rest}");
    text = text.replace("__image__", "{{ .Values.image | quote }}");
    for list in ["imagePullSecrets", "nodeSelector", "tolerations"] {
        text = text.replace(&format!("__{list}__"), &format!("{{{{ toJson .Values.{list} }}}}"));
    }
    text.replace(NAMESPACE, "{{ .Release.Namespace }}")
}

/// The defaults, each with what it means.
fn values() -> String {
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    let said: BTreeMap<&str, &str> = BTreeMap::from([
        ("image", "The image of the controller."),
        ("imagePullSecrets", "What to show to whoever keeps the image: a list of {name: ...}."),
        ("replicas", "Number of replicas; one is leader, the others are standby."),
        ("logLevel", "How much to log: 0 (only fatal errors) to 6 (everything)."),
        ("logFormat", "How to log: json or text."),
        ("webhook", "Whether requests are checked as they are made, and not only once they are there."),
        (
            "console",
            "Whether the browser console runs in the cluster. It has no permissions: people sign in with their own token.",
        ),
        (
            "consoleUrl",
            "The URL that browsers use for the console: https://console.example.com. Other names are then turned away, and with \
             https the cookie goes over encrypted connections alone.",
        ),
        (
            "consoleCa",
            "The ConfigMap with the authority of the administrators' storage, in its key ca.crt, if that is not a public one. It \
             need not exist.",
        ),
        (
            "veleroView",
            "Whether Velero's own tools may work for tenants; where, labels of namespaces or the policy say.",
        ),
        (
            "fence",
            "Whether Velero is for tenants alone. Take cluster-admin away from it yourself: `kubectl nacre install --fence` would do that.",
        ),
        (
            "aggregateTo",
            "Which of the roles admin, edit and view include the permission to use nacre; [] for none. What view includes, \
             edit and admin include too, and what edit includes, admin does.",
        ),
        (
            "resources",
            "What a pod asks for, and what it may take. CPU is better not limited: a throttled leader may lose its lease.",
        ),
        ("nodeSelector", "On which nodes."),
        ("tolerations", "On which tainted nodes."),
    ]);
    let mut text =
        "# The fields of `kubectl nacre install -f`, and their defaults. Made by `make gen`.\n".to_owned();
    for (key, value) in defaults.as_object().unwrap() {
        let said = said.get(key.as_str()).unwrap_or_else(|| panic!("nobody says what {key} means"));
        let field = serde_saphyr::to_string(&json!({ key: value })).unwrap();
        text.extend(["\n# ", said, "\n", &field]);
    }
    text
}

fn template(object: &Object, without: &Without) -> String {
    let mut body = object.body.clone();
    let places = places(object);
    for (place, _) in places {
        if let Some(value) = value_at(&mut body, place) {
            *value = json!(mark(place));
        }
    }
    for role in UserRole::ALL {
        if let Some(value) = body["metadata"]["labels"].get_mut(role.label()) {
            *value = json!(mark(role.name()));
        }
    }
    let mut text = serde_saphyr::to_string(&body).unwrap();
    assert!(!text.contains("{{"), "{} would be taken for a template", object.name());
    for (place, expression) in places {
        text = text.replace(&mark(place), expression);
    }
    for role in UserRole::ALL {
        // `helm upgrade --reuse-values` from a chart that did not have the value leaves it out: that means all.
        let included = format!(
            "{{{{ or (kindIs \"invalid\" .Values.aggregateTo) (has \"{}\" .Values.aggregateTo) | quote }}}}",
            role.name()
        );
        text = text.replace(&mark(role.name()), &included);
    }
    text = text.replace(&format!(": {NAMESPACE}\n"), ": {{ .Release.Namespace | quote }}\n");
    text = text.replace(NAMESPACE, "{{ .Release.Namespace }}");
    match condition(object, without) {
        Some(condition) => format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"),
        None => text,
    }
}

/// Where values belong in an object.
fn places(object: &Object) -> &'static [(&'static str, &'static str)] {
    match (object.kind, object.name()) {
        (Kind::Deployment, CONTROLLER) => &IN_THE_DEPLOYMENT,
        (Kind::Deployment, CONSOLE) => &IN_THE_CONSOLE,
        _ => &[],
    }
}

/// A place by its path, or by the name of a variable in the environment.
fn value_at<'a>(body: &'a mut Value, place: &str) -> Option<&'a mut Value> {
    if place.starts_with('/') {
        return body.pointer_mut(place);
    }
    let env = body.pointer_mut("/spec/template/spec/containers/0/env")?.as_array_mut()?;
    env.iter_mut().find(|one| one["name"] == place).map(|one| &mut one["value"])
}

fn mark(place: &str) -> String {
    format!("__{}__", place.trim_start_matches('/').replace('/', "_"))
}

/// Worlds that lack something, and what has to be said for it to be there.
type Without = [(Vec<Object>, &'static str); 5];

/// When an object is there, if not always.
fn condition(object: &Object, without: &Without) -> Option<&'static str> {
    if super::is_mutation(object) {
        return Some(
            ".Capabilities.APIVersions.Has \"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy\"",
        );
    }
    let recording = [Kind::MutatingWebhookConfiguration, Kind::ClusterRole, Kind::ClusterRoleBinding];
    if object.name() == RECORDER && recording.contains(&object.kind) {
        return Some(
            "and .Values.webhook (not (.Capabilities.APIVersions.Has \
             \"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy\"))",
        );
    }
    let place = |object: &Object| (object.kind, object.namespace().to_owned(), object.name().to_owned());
    let same = |other: &Object| place(other) == place(object);
    without.iter().find(|(world, _)| !world.iter().any(same)).map(|(_, condition)| *condition)
}

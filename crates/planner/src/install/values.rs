//! What an installation is made with: what the administrator says now, and for everything else what is installed already.
//!
//! | value | what counts if nothing is said |
//! | --- | --- |
//! | what the Deployment shows | the Deployment, so that a change by hand is never taken back; then the record |
//! | `webhook`, `console`, `consoleUrl`, `consoleCa`, `aggregateTo` | the record, so that damage is repaired; then what is installed |
//! | `veleroView` | on if the record or the roles say so |

use api::Kind;
use serde_json::{Map, Value, json};

use super::aggregate::from_labels;
use super::console::shown as shown_by_console;
use super::decide::{Observed, decide};
use super::found::{is_ours, release};
use super::record::{RECORD, recorded};
use super::{CONSOLE, CONTROLLER, Found, SERVICE_ACCOUNT, Settings, VELERO_VIEW, VERSION};

/// Where Velero is, unless somebody says otherwise.
pub const DEFAULT_NAMESPACE: &str = "velero";

/// The values, and what should be known about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// What to install.
    pub settings: Settings,
    /// What was found to be different from what was recorded.
    pub remarks: Vec<String>,
}

/// Where to install: as said, or where nacre is installed already.
pub fn place(said: Option<&str>, found: &[Found]) -> String {
    let ours = |kind: Kind, name: &str| {
        let is_it = |one: &&Found| one.kind == kind && one.name() == name && is_ours(one);
        found.iter().find(is_it).map(Found::namespace)
    };
    let installed =
        || ours(Kind::Deployment, CONTROLLER).or_else(|| ours(Kind::ServiceAccount, SERVICE_ACCOUNT));
    said.or_else(installed).unwrap_or(DEFAULT_NAMESPACE).to_owned()
}

/// Puts together what is said now, by the names of the chart's values.yaml, and what is installed; or why that cannot be.
pub fn settle(said: &Map<String, Value>, found: &[Found], namespace: &str) -> Result<Values, Vec<String>> {
    let (mut fields, remarks) = merged(found, namespace).map_err(|why| vec![why])?;
    fields.extend(said.clone());
    let has_image = fields.contains_key("image");
    let mut settings: Settings =
        serde_json::from_value(fields.into()).map_err(|error| vec![error.to_string()])?;
    namespace.clone_into(&mut settings.namespace);
    // What stands in the way comes first: an image would not help.
    let refusals = decide(&Observed { settings: &settings, found, unserved: &[], velero: None }).refusals;
    if !refusals.is_empty() {
        return Err(refusals);
    }
    if !has_image {
        return Err(vec![format!(
            "image: nacre is not installed in {namespace} yet, so say which image to run: --image REGISTRY/nacre:{}, or \
             `image` in the file of --values",
            env!("CARGO_PKG_VERSION")
        )]);
    }
    if let Some(refusal) = other_version(said, found, namespace) {
        return Err(vec![refusal]);
    }
    let remarks = remarks.into_iter().filter(|(key, _)| !said.contains_key(key)).map(|(_, text)| text);
    let remarks = remarks.chain(moved_extra(found)).collect();
    Ok(Values { settings, remarks })
}

/// What is installed, as far as it can be seen, by the names of the chart's values.yaml.
pub fn current(found: &[Found], namespace: &str) -> Result<Map<String, Value>, String> {
    merged(found, namespace).map(|(fields, _)| fields)
}

type Remarks = Vec<(String, String)>;

fn merged(found: &[Found], namespace: &str) -> Result<(Map<String, Value>, Remarks), String> {
    let record = found
        .iter()
        .find(|one| one.kind == Kind::ConfigMap && one.name() == RECORD && one.namespace() == namespace);
    let mut fields = record.map(recorded).transpose()?.unwrap_or_default();
    let mut remarks = Vec::new();
    let deployment = deployment(found, namespace);
    for (key, value) in deployment.map(shown).unwrap_or_default() {
        if let Some(before) = fields.insert(key.clone(), value.clone()).filter(|before| *before != value) {
            let text = format!(
                "{key} is {} on the Deployment and was {} at the last install: it stays as it is",
                brief(&value),
                brief(&before)
            );
            remarks.push((key, text));
        }
    }
    if !fields.contains_key("webhook")
        && let Some(deployment) = deployment
    {
        fields.insert("webhook".to_owned(), has_webhook(deployment).into());
    }
    if found.iter().any(|one| one.kind == Kind::ClusterRole && one.name() == VELERO_VIEW && is_ours(one)) {
        fields.insert("veleroView".to_owned(), true.into());
    }
    let is_console = |one: &Found| one.kind == Kind::Deployment && one.name() == CONSOLE && is_ours(one);
    for (key, value) in
        found.iter().find(|one| is_console(one)).map(|one| shown_by_console(&one.body)).unwrap_or_default()
    {
        fields.entry(key).or_insert(value);
    }
    if !fields.contains_key("aggregateTo")
        && let Some(roles) = aggregated(found)
    {
        fields.insert("aggregateTo".to_owned(), roles);
    }
    Ok((fields, remarks))
}

fn deployment<'a>(found: &'a [Found], namespace: &str) -> Option<&'a Found> {
    let is_it = |one: &&Found| {
        one.kind == Kind::Deployment
            && one.name() == CONTROLLER
            && one.namespace() == namespace
            && is_ours(one)
    };
    found.iter().find(is_it)
}

/// The values that a Deployment shows.
fn shown(deployment: &Found) -> Map<String, Value> {
    let pod = &deployment.body["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let or = |value: &Value, empty: Value| if value.is_null() { empty } else { value.clone() };
    let resources = &container["resources"];
    let mut fields = json!({
        "image": container["image"],
        "imagePullSecrets": or(&pod["imagePullSecrets"], json!([])),
        "replicas": or(&deployment.body["spec"]["replicas"], json!(1)),
        "resources": {
            "requests": or(&resources["requests"], json!({})), "limits": or(&resources["limits"], json!({})),
        },
        "nodeSelector": or(&pod["nodeSelector"], json!({})),
        "tolerations": or(&pod["tolerations"], json!([])),
        "fence": environment(deployment, "FENCE").and_then(|fence| fence.parse::<bool>().ok()),
        "logFormat": environment(deployment, "LOG_FORMAT"),
        "logLevel": environment(deployment, "LOG_LEVEL").and_then(|level| level.parse::<u8>().ok()),
    });
    let fields = fields.as_object_mut().map(std::mem::take).unwrap_or_default();
    // What makes no sense as a value is not one.
    let sound = |key: &str, value: &Value| serde_json::from_value::<Settings>(json!({ key: value })).is_ok();
    fields.into_iter().filter(|(key, value)| !value.is_null() && sound(key, value)).collect()
}

fn environment<'a>(deployment: &'a Found, name: &str) -> Option<&'a str> {
    let env = deployment.body["spec"]["template"]["spec"]["containers"][0]["env"].as_array()?;
    env.iter().find(|one| one["name"] == name)?["value"].as_str()
}

/// On, unless the Deployment says otherwise.
fn has_webhook(deployment: &Found) -> bool {
    environment(deployment, "WEBHOOK_BIND_ADDRESS") != Some("0")
}

/// Which extra fields of users an older installation has recorded, and where they are listed now.
fn moved_extra(found: &[Found]) -> Option<String> {
    let listed = |policy: &Found| {
        let variables = policy.body["spec"]["variables"].as_array()?;
        let keys = variables.iter().find(|one| one["name"] == "extra_keys")?["expression"].as_str()?;
        serde_json::from_str::<Vec<String>>(keys).ok().filter(|keys| !keys.is_empty())
    };
    let keys = found.iter().filter(|one| is_ours(one)).find_map(listed)?;
    Some(format!(
        "extra fields of users ({0}) are no longer listed here: they are recorded if the policy has \
         requester: {{extra: [{0}]}}",
        keys.join(", ")
    ))
}

/// Which user-facing roles include nacre's, if its roles are there.
fn aggregated(found: &[Found]) -> Option<Value> {
    let roles = from_labels(|role, label| {
        let is_it = |one: &&Found| one.kind == Kind::ClusterRole && one.name() == role && is_ours(one);
        let found = found.iter().find(is_it)?;
        Some(found.body["metadata"]["labels"][label].as_str().map(str::to_owned))
    });
    serde_json::to_value(roles?).ok()
}

/// Roles of one version and a program of another do not always fit.
fn other_version(said: &Map<String, Value>, found: &[Found], namespace: &str) -> Option<String> {
    let deployment = deployment(found, namespace).filter(|one| release(one).is_none())?;
    let version = deployment.body["metadata"]["labels"][VERSION].as_str()?;
    let own = env!("CARGO_PKG_VERSION");
    (version != own && !said.contains_key("image")).then(|| {
        format!(
            "image: nacre {version} is installed and this is kubectl-nacre {own}: to upgrade, say --image with the image of {own} \
             (it runs {} now); to repair what is installed, use kubectl-nacre {version}",
            brief(&deployment.body["spec"]["template"]["spec"]["containers"][0]["image"])
        )
    })
}

/// A value on one line.
fn brief(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

//! What an administrator can say about the installation. The Helm chart's `values.yaml` has these fields and these defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UserRole;

/// What an administrator can say about the installation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a value of the chart")]
pub struct Settings {
    /// The namespace of Velero and nacre. Helm calls this the release's namespace.
    #[serde(skip)]
    pub namespace: String,
    /// The image to run.
    pub image: String,
    /// What to show to whoever keeps the image.
    pub image_pull_secrets: Vec<Value>,
    /// Number of replicas; one is leader, the others are standby.
    pub replicas: u32,
    /// How much to log: 0 (only fatal errors) to 6 (everything).
    pub log_level: u8,
    /// How to log: `json` or `text`.
    pub log_format: String,
    /// Whether requests are checked as they are made, and not only once they are there.
    pub webhook: bool,
    /// Whether the browser console runs in the cluster, for everybody with a token of their own.
    pub console: bool,
    /// The URL that browsers use for it; any if empty.
    pub console_url: String,
    /// The ConfigMap with the authority of the administrators' storage, in its key `ca.crt`. It need not exist.
    pub console_ca: String,
    /// Whether Velero's own tools may work for tenants; where, labels of namespaces or the policy say.
    pub velero_view: bool,
    /// Whether Velero is for tenants alone: then it is not cluster-admin, and nacre binds its permissions in tenants' namespaces.
    pub fence: bool,
    /// Which of Kubernetes' user-facing roles include the permission to use nacre.
    pub aggregate_to: Vec<UserRole>,
    /// What a pod asks for, and what it may take.
    pub resources: Memory,
    /// On which nodes.
    pub node_selector: BTreeMap<String, String>,
    /// On which tainted nodes.
    pub tolerations: Vec<Value>,
}

/// What a pod asks for, and what it may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Memory {
    /// What it asks for.
    pub requests: BTreeMap<String, String>,
    /// What it may take.
    pub limits: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "velero".to_owned(),
            image: concat!("nacre.dev/nacre:", env!("CARGO_PKG_VERSION")).to_owned(),
            image_pull_secrets: Vec::new(),
            replicas: 2,
            log_level: 4,
            log_format: "json".to_owned(),
            webhook: true,
            console: false,
            console_url: String::new(),
            console_ca: super::CONSOLE_CA.to_owned(),
            velero_view: false,
            fence: false,
            aggregate_to: UserRole::ALL.to_vec(),
            resources: Memory::default(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
        }
    }
}

/// 25 MB hold a thousand requests; the limit leaves room for tens of thousands. CPU is not limited: a throttled leader may
/// lose its lease.
impl Default for Memory {
    fn default() -> Self {
        let some = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
        };
        Self { requests: some(&[("cpu", "50m"), ("memory", "64Mi")]), limits: some(&[("memory", "512Mi")]) }
    }
}

impl Settings {
    /// What is wrong with them: the field, what it says, and what would do.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.image.trim().is_empty() {
            problems.push("image is empty; it names the image that holds the program nacre".to_owned());
        }
        if self.log_level > 6 {
            problems.push(format!("logLevel is {}; it goes from 0 to 6", self.log_level));
        }
        if !["json", "text"].contains(&self.log_format.as_str()) {
            problems.push(format!("logFormat is {:?}; it is json or text", self.log_format));
        }
        if !self.console_url.is_empty() && super::web_address(&self.console_url).is_none() {
            problems.push(format!(
                "consoleUrl is {:?}; it is a URL without a path, such as https://console.example.com",
                self.console_url
            ));
        }
        if self.console_ca.is_empty() {
            problems.push(format!("consoleCa is empty; it names a ConfigMap, such as {}", super::CONSOLE_CA));
        }
        if self.replicas > 10 {
            problems.push(format!(
                "replicas is {}; one is leader and the others are standby, so more than 10 only wait",
                self.replicas
            ));
        }
        problems
    }
}

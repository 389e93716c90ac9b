//! What an administrator says about the installation: a file, and flags over it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use planner::install::{DEFAULT_NAMESPACE, Settings, UserRole};
use serde_json::{Map, Value, json};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Installation")]
pub(super) struct InstallArgs {
    /// A file with the fields of the Helm chart's values.yaml. What is not in it stays as it is installed.
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Option<PathBuf>,

    /// The image of the controller. The first installation needs it.
    #[arg(long)]
    image: Option<String>,

    /// Number of replicas; one is leader, the others are standby.
    #[arg(long)]
    replicas: Option<u32>,

    /// How much to log: 0 (only fatal errors) to 6 (everything).
    #[arg(long)]
    log_level: Option<u8>,

    /// How to log: json or text.
    #[arg(long)]
    log_format: Option<String>,

    /// Check requests as they are made, and not only once they are there. On at first; --webhook=false turns it off.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    webhook: Option<bool>,

    /// The same as --webhook=false.
    #[arg(long, conflicts_with = "webhook")]
    no_webhook: bool,

    /// Run the browser console in the cluster, too. It has no permissions: people sign in with their own token. Off at
    /// first; --console=false removes it.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    console: Option<bool>,

    /// The URL that browsers use for the console: https://console.example.com. Other names are then turned away, and with
    /// https its cookie goes over encrypted connections alone.
    #[arg(long, value_name = "URL")]
    console_url: Option<String>,

    /// The ConfigMap with the authority of the administrators' storage, in its key ca.crt, for downloads in the console. It
    /// need not exist.
    #[arg(long, value_name = "CONFIGMAP")]
    console_ca: Option<String>,

    /// Give nacre and namespace owners the permissions for Velero's own tools in tenant namespaces. Off at first;
    /// --velero-view=false takes them away.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    velero_view: Option<bool>,

    /// Velero in this namespace is for tenants alone: take cluster-admin away from it, and bind its permissions in tenants'
    /// namespaces. Off at first; --fence=false takes nacre's roles away and leaves Velero without any.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fence: Option<bool>,

    /// Which of the roles admin, edit and view include the permission to use nacre, or `none`. All three at first.
    #[arg(long, value_name = "ROLE,...", value_delimiter = ',', value_parser = role)]
    aggregate_to: Vec<Included>,
}

/// One word of `--aggregate-to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Included {
    In(UserRole),
    None,
}

impl InstallArgs {
    /// What is said, by the names of the chart's values.yaml, and nothing else.
    pub(super) fn said(&self) -> Result<Map<String, Value>> {
        let mut said = match &self.values {
            None => Map::new(),
            Some(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
                in_file(&text).with_context(|| format!("in {shown}"))?
            }
        };
        let mut say = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                said.insert(key.to_owned(), value);
            }
        };
        say("image", self.image.as_deref().map(Value::from));
        say("replicas", self.replicas.map(Value::from));
        say("logLevel", self.log_level.map(Value::from));
        say("logFormat", self.log_format.as_deref().map(Value::from));
        say("webhook", self.webhook.or_else(|| self.no_webhook.then_some(false)).map(Value::from));
        say("console", self.console.map(Value::from));
        say("consoleUrl", self.console_url.as_deref().map(Value::from));
        say("consoleCa", self.console_ca.as_deref().map(Value::from));
        say("veleroView", self.velero_view.map(Value::from));
        say("fence", self.fence.map(Value::from));
        say("aggregateTo", self.aggregate_to()?.map(|roles| json!(roles)));
        Ok(said)
    }

    /// What it comes to where nothing is installed.
    pub(super) fn settings(&self, namespace: Option<&str>) -> Result<Settings> {
        let mut settings: Settings = serde_json::from_value(self.said()?.into())?;
        namespace.unwrap_or(DEFAULT_NAMESPACE).clone_into(&mut settings.namespace);
        Ok(settings)
    }

    fn aggregate_to(&self) -> Result<Option<Vec<UserRole>>> {
        let roles: Vec<UserRole> = UserRole::ALL
            .into_iter()
            .filter(|role| self.aggregate_to.contains(&Included::In(*role)))
            .collect();
        match self.aggregate_to.as_slice() {
            [] => Ok(None),
            [Included::None] => Ok(Some(Vec::new())),
            all if all.contains(&Included::None) => {
                bail!("--aggregate-to: `none` stands alone, or name some of admin, edit and view")
            }
            _ => Ok(Some(roles)),
        }
    }
}

/// The fields that a file mentions.
fn in_file(text: &str) -> Result<Map<String, Value>> {
    let whole: Settings = serde_saphyr::from_str(text)?;
    let mentioned: Value = serde_saphyr::from_str(text)?;
    let mentioned = mentioned.as_object().cloned().unwrap_or_default();
    let Value::Object(mut fields) = serde_json::to_value(whole)? else { return Ok(Map::new()) };
    fields.retain(|key, _| mentioned.contains_key(key));
    Ok(fields)
}

fn role(text: &str) -> Result<Included, String> {
    let named = UserRole::ALL.into_iter().find(|role| role.name() == text).map(Included::In);
    let none = (text == "none").then_some(Included::None);
    named.or(none).ok_or_else(|| "name some of admin, edit and view, or none".to_owned())
}

/// Reads `2m`, `90s`; a bare number is seconds.
pub(super) fn patience(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => crate::send::duration(text),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{Included, UserRole, in_file, patience, role};

    #[test]
    fn a_file_says_what_it_mentions_and_nothing_else() {
        let said = in_file("image: a:1\nresources: {limits: {memory: 1Gi}}\n").unwrap();
        assert_eq!(said.keys().collect::<Vec<_>>(), ["image", "resources"]);
        assert_eq!(said["image"], json!("a:1"));
        assert!(in_file("imgae: a:1\n").is_err());
    }

    #[test]
    fn how_long_is_a_duration_or_seconds() {
        assert_eq!(patience("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(patience("90"), Ok(Duration::from_secs(90)));
        assert!(patience("soon").is_err());
    }

    #[test]
    fn roles_are_admin_edit_view_or_none() {
        assert_eq!(role("edit"), Ok(Included::In(UserRole::Edit)));
        assert_eq!(role("none"), Ok(Included::None));
        assert!(role("cluster-admin").is_err());
    }
}

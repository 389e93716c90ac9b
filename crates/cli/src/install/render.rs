//! `render`: the manifests that `install` would apply.

use std::io::Write as _;

use anyhow::{Result, bail};
use planner::Object;
use planner::install::{Settings, objects};
use serde_json::{Value, json};

use super::settings::InstallArgs;
use crate::output::{Format, Outcome, lines};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre render -n velero > nacre.yaml       for kubectl apply, or a repository
  kubectl nacre render --no-definitions             without nacre's CRDs

Needs no cluster. Velero's namespace is not among the manifests: deleting them must not delete every backup.")]
pub(crate) struct Render {
    #[command(flatten)]
    wishes: InstallArgs,

    /// Leave out nacre's CRDs.
    #[arg(long)]
    no_definitions: bool,
}

pub(crate) fn render(render: &Render, namespace: Option<&str>, format: Format) -> Result<Outcome> {
    let settings = render.wishes.settings(namespace)?;
    print(&settings, render.no_definitions, format)
}

/// Prints manifests; these are for programs, so a table of them is YAML.
pub(super) fn print(settings: &Settings, no_definitions: bool, format: Format) -> Result<Outcome> {
    let problems = settings.problems();
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    let wanted = |object: &Object| !no_definitions || object.kind != api::Kind::CustomResourceDefinition;
    let objects: Vec<Object> = objects(settings).into_iter().filter(wanted).collect();
    let text = match format {
        Format::Table | Format::Wide | Format::Yaml => {
            let texts: Result<Vec<_>, _> =
                objects.iter().map(|object| serde_saphyr::to_string(&object.body)).collect();
            texts?.join("---\n")
        }
        Format::Json => {
            let items: Vec<Value> = objects.into_iter().map(|object| object.body).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            format!("{}\n", serde_json::to_string_pretty(&list)?)
        }
        Format::Name => lines(objects.iter().map(super::changes::named)),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Outcome::Good)
}

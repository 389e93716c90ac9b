//! `render`: the manifests that `install` would apply.

use std::io::Write as _;

use anyhow::{Result, bail};
use api::Kind;
use planner::Object;
use planner::install::{Part, SERVICE_ACCOUNT, SINCE_1_36, Settings, objects_without};
use serde_json::{Value, json};

use super::settings::InstallArgs;
use crate::output::{Format, Outcome, lines};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre render -n velero > nacre.yaml       for kubectl apply, or a repository
  kubectl nacre render --no-crds                    without nacre's CRDs
  kubectl nacre render --only admission -n openshift-adp     one part, for another namespace of Velero's
  kubectl nacre render --only oadp,admission,requester-webhook -n openshift-adp
                                                    all that OADP does not bring; doctor prints it for your cluster

Needs no cluster. Velero's namespace is not among the manifests: deleting them must not delete every backup.")]
pub(crate) struct Render {
    #[command(flatten)]
    wishes: InstallArgs,

    /// Leave out nacre's CRDs.
    #[arg(long, alias = "no-definitions")]
    no_crds: bool,

    /// For Kubernetes before 1.36: have nacre's webhook record who asks, instead of the API server by itself.
    #[arg(long)]
    requester_webhook: bool,

    /// Only these parts: crds, request-crds, controller, admission, requester, requester-webhook, velero-view, operator, oadp.
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_parser = part)]
    only: Vec<Part>,

    /// The service account that OADP runs nacre as; goes with --only oadp alone.
    #[arg(long, value_name = "NAME", default_value = SERVICE_ACCOUNT)]
    service_account: String,
}

fn part(text: &str) -> Result<Part, String> {
    let found = Part::ALL.into_iter().find(|part| part.name() == text);
    found.ok_or_else(|| format!("name some of {}", Part::ALL.map(Part::name).join(", ")))
}

pub(crate) fn render(render: &Render, namespace: Option<&str>, format: Format) -> Result<Outcome> {
    let settings = render.wishes.settings(namespace)?;
    if render.service_account != SERVICE_ACCOUNT && render.only != [Part::Oadp] {
        bail!(
            "--service-account goes with --only oadp alone: everything else, admission policies included, knows nacre by \
             the service account {SERVICE_ACCOUNT}"
        );
    }
    if !render.only.is_empty() {
        let parts = render.only.iter();
        let objects = parts.flat_map(|part| part.objects(&settings, &render.service_account)).collect();
        return print_objects(objects, format);
    }
    let unserved = if render.requester_webhook { &SINCE_1_36[..] } else { &[] };
    print(&settings, unserved, render.no_crds, format)
}

/// Prints manifests; these are for programs, so a table of them is YAML.
pub(super) fn print(
    settings: &Settings,
    unserved: &[Kind],
    no_crds: bool,
    format: Format,
) -> Result<Outcome> {
    let problems = settings.problems();
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    let wanted = |object: &Object| !no_crds || object.kind != Kind::CustomResourceDefinition;
    print_objects(objects_without(settings, unserved).into_iter().filter(wanted).collect(), format)
}

fn print_objects(objects: Vec<Object>, format: Format) -> Result<Outcome> {
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

//! What an administrator says about the installation: a file, and flags over it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use planner::install::Settings;

/// Where Velero is, unless `-n` says otherwise.
const VELERO: &str = "velero";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Installation")]
pub(super) struct Wishes {
    /// A file with the fields of the Helm chart's values.yaml.
    #[arg(short = 'f', long, value_name = "FILE")]
    values: Option<PathBuf>,

    /// The image that holds the program nacre.
    #[arg(long)]
    image: Option<String>,

    /// How many pods; one acts, the others stand by.
    #[arg(long)]
    replicas: Option<u32>,

    /// How much to log: 0 (nothing but the end) to 6 (everything).
    #[arg(long)]
    log_level: Option<u8>,

    /// How to log: json or text.
    #[arg(long)]
    log_format: Option<String>,

    /// Check requests once they are there, not already as they are made.
    #[arg(long)]
    no_webhook: bool,

    /// Give nacre and namespace owners the rights for Velero's own tools in tenants' namespaces.
    #[arg(long)]
    velero_view: bool,
}

impl Wishes {
    /// What they come to.
    pub(super) fn settings(&self, namespace: Option<&str>) -> Result<Settings> {
        let mut settings = match &self.values {
            None => Settings::default(),
            Some(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
                serde_saphyr::from_str(&text).with_context(|| format!("in {shown}"))?
            }
        };
        namespace.unwrap_or(VELERO).clone_into(&mut settings.namespace);
        if let Some(image) = &self.image {
            settings.image.clone_from(image);
        }
        if let Some(format) = &self.log_format {
            settings.log_format.clone_from(format);
        }
        settings.replicas = self.replicas.unwrap_or(settings.replicas);
        settings.log_level = self.log_level.unwrap_or(settings.log_level);
        settings.webhook &= !self.no_webhook;
        settings.velero_view |= self.velero_view;
        Ok(settings)
    }
}

/// Where an installation is looked for, unless the flags say otherwise.
pub(super) fn somewhere(namespace: Option<&str>) -> Settings {
    Settings { namespace: namespace.unwrap_or(VELERO).to_owned(), ..Settings::default() }
}

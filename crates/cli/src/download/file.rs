//! `backup download`: what is in a backup, as a file.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use api::NonAdminBackup;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::NamedTempFile;

use super::{Fetching, Link};
use crate::{
    connect::Session,
    object_name::ObjectName,
    output::{Outcome, say},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup download daily                  daily-data.tar.gz in this folder
  kubectl nacre backup download daily --to - | tar tz  what is in it
  kubectl nacre backup download daily --to /tmp/d.tar.gz --force

The file holds the manifests of the namespace, Secrets included, and no volume data; only you can read it.
It appears under its name when it is whole, and not before.")]
pub(crate) struct Download {
    /// Which backup.
    name: ObjectName,

    /// Output file, or `-` for standard output. Default: `NAME-data.tar.gz` in the current directory.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    fetching: Fetching,
}

pub(crate) async fn run(session: &Session, args: &Download) -> Result<Outcome> {
    let name = args.name.of::<NonAdminBackup>()?;
    let to = args.to.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-data.tar.gz")));
    let piped = to.as_os_str() == "-";
    if !piped && !args.force && to.exists() {
        bail!("{} exists already; use --force to overwrite it, or --to another file", to.display());
    }
    let done = args
        .fetching
        .with_link(session, "BackupContents", name, async |link: Link| {
            if piped { pipe(&link).await } else { save(&link, &to, args.force).await }
        })
        .await?;
    match done {
        None => Ok(Outcome::Interrupted),
        Some(bytes) => {
            if !piped {
                say(&format!("{} ({})\n", to.display(), indicatif::HumanBytes(bytes)))?;
            }
            Ok(Outcome::Good)
        }
    }
}

async fn pipe(link: &Link) -> Result<u64> {
    let mut out = io::stdout().lock();
    let bytes = link.read(|bytes, _| Ok(out.write_all(bytes)?)).await?;
    out.flush()?;
    Ok(bytes)
}

/// Under another name until it is whole: whatever ends this early leaves nothing behind.
async fn save(link: &Link, to: &Path, force: bool) -> Result<u64> {
    let folder =
        to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file =
        NamedTempFile::new_in(folder).with_context(|| format!("writing to {}", folder.display()))?;
    let bar = io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{bar:30.cyan/dim}  {bytes} of {total_bytes}  {eta:.dim}");
        let bar = ProgressBar::new(0);
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar
    });
    let bytes = link
        .read(|bytes, size| {
            if let Some(bar) = &bar {
                bar.set_length(size.unwrap_or_default());
                bar.inc(bytes.len() as u64);
            }
            Ok(file.write_all(bytes)?)
        })
        .await?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    file.as_file().sync_all()?;
    if force { file.persist(to).map(|_| ()) } else { file.persist_noclobber(to).map(|_| ()) }
        .map_err(|error| error.error)
        .with_context(|| format!("writing {}", to.display()))?;
    Ok(bytes)
}

//! `backup logs` and `restore logs`: Velero's own log, unpacked.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::write::MultiGzDecoder;
use kube::Resource;

use super::{Fetching, Link};
use crate::{connect::Session, object_name::ObjectName, output::Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup logs daily | grep level=error
  kubectl nacre restore logs back

The log is there when the backup or restore is over. A download request is made for it, and removed again.")]
pub(crate) struct Logs {
    /// Which one.
    name: ObjectName,

    #[command(flatten)]
    fetching: Fetching,
}

/// Prints a log of this kind.
pub(crate) async fn run<K: Resource<DynamicType = ()>>(
    session: &Session,
    kind: &str,
    args: &Logs,
) -> Result<Outcome> {
    let done = args.fetching.with_link(session, kind, args.name.of::<K>()?, print).await?;
    Ok(done.map_or(Outcome::Interrupted, |()| Outcome::Good))
}

async fn print(link: Link) -> Result<()> {
    let mut unpacked = MultiGzDecoder::new(std::io::stdout().lock());
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    unpacked.try_finish().context("the log ends in the middle")?;
    Ok(unpacked.get_mut().flush()?)
}

/// Fetches a small file whole, unpacked.
pub(crate) async fn whole(link: Link) -> Result<Vec<u8>> {
    let mut unpacked = MultiGzDecoder::new(Vec::new());
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    unpacked.finish().context("the file ends in the middle")
}

//! `backup logs` and `restore logs`: Velero's own log, unpacked.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::write::MultiGzDecoder;
use kube::Resource;

use super::unpack::{Bounded, Printable};
use super::{Fetching, Link};
use crate::{connect::Session, object_name::ObjectName, output::Outcome};

/// The most of a log that is printed: Velero's own have a few megabytes.
const LOG_LIMIT: u64 = 4 << 30;
/// The most that is unpacked into memory of a small file.
const WHOLE_LIMIT: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup logs daily | grep level=error
  kubectl nacre restore logs back

The log is there when the backup or restore is over. A download request is made for it, and removed again.")]
pub(crate) struct Logs {
    /// The name of the backup or restore whose log to show.
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
    let out = Bounded::new(Printable::new(std::io::stdout().lock()), LOG_LIMIT);
    let mut unpacked = MultiGzDecoder::new(out);
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    unpacked.try_finish().context("the log ends in the middle")?;
    Ok(unpacked.get_mut().flush()?)
}

/// Fetches a small file whole, unpacked.
pub(crate) async fn whole(link: Link) -> Result<Vec<u8>> {
    let mut unpacked = MultiGzDecoder::new(Bounded::new(Vec::new(), WHOLE_LIMIT));
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    Ok(unpacked.finish().context("the file ends in the middle")?.into_inner())
}

//! `backup delete`: with or without the data.

use anyhow::Result;
use api::NonAdminBackup;

use crate::{
    connect::Session,
    delete::{DeleteArgs, How},
    output::Outcome,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup delete daily                    asks first
  kubectl nacre backup delete daily old --yes --wait   until the data is gone
  kubectl nacre backup delete daily --keep-data        forget it, and leave the data in the storage

Deleting a backup with its data also deletes the records of restores made from it; what they brought back stays.
With --keep-data Velero may find the data again, and then the backup comes back.")]
pub(super) struct Delete {
    #[command(flatten)]
    which: DeleteArgs,

    /// Keep the data in the storage.
    #[arg(long)]
    keep_data: bool,
}

pub(super) async fn run(session: &Session, args: &Delete) -> Result<Outcome> {
    let (how, consequence) = if args.keep_data {
        (How::Plainly, "and leave its data in the storage")
    } else {
        (How::WithData, "together with its data")
    };
    args.which.delete::<NonAdminBackup>(session, how, consequence).await
}

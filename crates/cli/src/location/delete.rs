//! `location delete`: the location and the records of what is in it, not the bytes.

use anyhow::Result;
use api::NonAdminBackupStorageLocation;

use crate::{
    connect::Session,
    delete::{DeleteArgs, How},
    output::Outcome,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre location delete mine --wait

The backups kept in the location go with it, and so does an administrator's approval. What is in the bucket stays there.")]
pub(super) struct Delete {
    #[command(flatten)]
    which: DeleteArgs,
}

pub(super) async fn run(session: &Session, args: &Delete) -> Result<Outcome> {
    let consequence = async |locations: &[NonAdminBackupStorageLocation]| {
        let its = if locations.len() == 1 { "its" } else { "their" };
        format!("with {its} backups (what is in the bucket stays there)")
    };
    args.which.delete::<NonAdminBackupStorageLocation>(session, How::Plainly, consequence).await
}

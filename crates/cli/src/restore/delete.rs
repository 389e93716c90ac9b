//! `restore delete`: deletes the restore; the restored objects stay.

use anyhow::Result;
use api::NonAdminRestore;

use crate::{
    connect::Session,
    delete::{DeleteArgs, How},
    output::Outcome,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre restore delete back
  kubectl nacre restore delete --all --yes

What the restore has brought back stays.")]
pub(super) struct Delete {
    #[command(flatten)]
    which: DeleteArgs,
}

pub(super) async fn run(session: &Session, args: &Delete) -> Result<Outcome> {
    let consequence = async |restores: &[NonAdminRestore]| {
        let it = if restores.len() == 1 { "it" } else { "they" };
        let has = if restores.len() == 1 { "has" } else { "have" };
        format!("(what {it} {has} brought back stays)")
    };
    args.which.delete::<NonAdminRestore>(session, How::Plainly, consequence).await
}

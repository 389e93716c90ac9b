//! `backup delete`: with or without the data.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminRestore};

use crate::{
    connect::Session,
    delete::{DeleteArgs, How},
    list,
    output::Outcome,
    text::count,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup delete daily                    asks first
  kubectl nacre backup delete daily old --yes --wait   until the data is gone
  kubectl nacre backup delete daily --keep-data        forget it, and leave the data in the storage

Deleting a backup with its data also deletes the records of restores made from it; what they brought back stays.
With --keep-data the data stays in the storage. Velero looks there every minute or so: the backup comes back.")]
pub(super) struct Delete {
    #[command(flatten)]
    which: DeleteArgs,

    /// Keep the data in the storage.
    #[arg(long)]
    keep_data: bool,
}

pub(super) async fn run(session: &Session, args: &Delete) -> Result<Outcome> {
    let how = if args.keep_data { How::Plainly } else { How::WithData };
    let consequence = async |backups: &[NonAdminBackup]| match how {
        How::Plainly => left_in_storage(backups.len()),
        How::WithData => with_data(backups.len(), restores_of(session, backups).await),
    };
    args.which.delete::<NonAdminBackup>(session, how, consequence).await
}

/// How many restores were made from these backups: their records go too. None if the caller may not know.
async fn restores_of(session: &Session, backups: &[NonAdminBackup]) -> Option<usize> {
    let restores = list::all::<NonAdminRestore>(session, Some(&session.namespace), None, false).await.ok()?;
    let named = |restore: &NonAdminRestore| {
        let source = restore.spec.restore_spec.backup_name.as_deref();
        backups.iter().any(|backup| source.is_some() && backup.metadata.name.as_deref() == source)
    };
    Some(restores.items.iter().filter(|(restore, _)| named(restore)).count())
}

fn left_in_storage(backups: usize) -> String {
    let comes = if backups == 1 { "it comes" } else { "they come" };
    format!(
        "and leave {} data in the storage, where Velero finds it: {comes} back within minutes",
        its(backups)
    )
}

fn with_data(backups: usize, restores: Option<usize>) -> String {
    let data = format!("together with {} data", its(backups));
    match restores {
        Some(0) => data,
        None => format!("{data} and the records of restores made from {}", it(backups)),
        Some(restores) => {
            let restores = count(i64::try_from(restores).unwrap_or(i64::MAX), "restore");
            format!("{data} and the record of {restores} made from {}", it(backups))
        }
    }
}

const fn its(backups: usize) -> &'static str {
    if backups == 1 { "its" } else { "their" }
}

const fn it(backups: usize) -> &'static str {
    if backups == 1 { "it" } else { "them" }
}

#[cfg(test)]
mod tests {
    use super::{left_in_storage, with_data};

    #[test]
    fn the_question_names_data_and_restores_in_the_right_number() {
        assert_eq!(with_data(1, Some(0)), "together with its data");
        assert_eq!(
            with_data(2, Some(3)),
            "together with their data and the record of 3 restores made from them"
        );
        assert_eq!(with_data(1, None), "together with its data and the records of restores made from it");
        assert_eq!(
            left_in_storage(2),
            "and leave their data in the storage, where Velero finds it: they come back within minutes"
        );
    }
}

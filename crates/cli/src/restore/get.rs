//! `restore get`: lists restores.

use anyhow::Result;
use api::NonAdminRestore;
use jiff::Timestamp;

use crate::{
    connect::Session,
    list::{Found, ListArgs},
    output::{Format, Outcome},
    progress::RequestProgress,
    table::Table,
    text::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre restore get
  kubectl nacre restore get back -o yaml
  kubectl nacre restore get -A -o wide")]
pub(super) struct Get {
    #[command(flatten)]
    which: ListArgs,
}

pub(super) async fn run(session: &Session, args: &Get) -> Result<Outcome> {
    args.which.show(session, "restores", table).await
}

pub(crate) fn table(found: &Found<NonAdminRestore>, format: Format, all: bool, now: Timestamp) -> Table {
    let mut table = Table::with_wide(
        &["NAME", "BACKUP", "STATUS", "ITEMS", "ERRORS", "WARNINGS", "AGE"],
        &["QUEUE", "VELERO-NAME"],
        format,
    );
    let items = found.newest_last();
    for (restore, unreadable) in &items {
        let progress = RequestProgress::from(restore);
        let velero = &progress.velero;
        let over = velero.completed.is_some();
        let name = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.name.clone());
        table.row_with_wide(
            [
                progress.name().into(),
                restore.spec.restore_spec.backup_name.clone().into(),
                if unreadable.is_some() { "Unreadable".into() } else { progress.cell() },
                progress.items().into(),
                over.then_some(velero.errors).into(),
                over.then_some(velero.warnings).into(),
                progress.meta.creation_timestamp.as_ref().map(|time| age(time.0, now)).into(),
            ],
            [progress.position.filter(|position| *position > 0).into(), name.into()],
        );
    }
    table.by_namespace(all, items.iter().map(|(restore, _)| &restore.metadata))
}

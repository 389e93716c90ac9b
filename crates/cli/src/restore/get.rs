//! `restore get`: how the restores stand.

use anyhow::Result;
use api::NonAdminRestore;
use jiff::Timestamp;

use crate::{
    connect::Session,
    list::{Found, Which},
    output::{Format, Outcome, print, remark},
    story::Story,
    table::{Cell, Table},
    words::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre restore get
  kubectl nacre restore get back -o yaml
  kubectl nacre restore get -A -o wide")]
pub(super) struct Get {
    #[command(flatten)]
    which: Which,
}

pub(super) async fn run(session: &Session, args: &Get) -> Result<Outcome> {
    let raw = matches!(session.format, Format::Json | Format::Yaml);
    let found: Found<NonAdminRestore> = args.which.read(session, raw).await?;
    if found.items.is_empty() && !raw {
        remark(args.which.nothing(session, "restores"));
        return Ok(Outcome::Good);
    }
    let table = || table(&found, session.format, args.which.all_namespaces, Timestamp::now()).to_string();
    print(session.format, &found, table, || found.names())?;
    Ok(Outcome::Good)
}

fn table(found: &Found<NonAdminRestore>, format: Format, all: bool, now: Timestamp) -> Table {
    let mut table = Table::with_wide(
        &["NAME", "BACKUP", "STATUS", "ITEMS", "ERRORS", "WARNINGS", "AGE"],
        &["QUEUE", "VELERO-NAME"],
        format,
    );
    let mut items: Vec<_> = found.items.iter().collect();
    items.sort_by_key(|(restore, _)| {
        let meta = &restore.metadata;
        (meta.creation_timestamp.as_ref().map(|time| time.0), meta.namespace.clone(), meta.name.clone())
    });
    for (restore, unreadable) in &items {
        let story = Story::from(restore);
        let velero = &story.velero;
        let over = velero.completed.is_some();
        let name = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.name.clone());
        table.row_with_wide(
            [
                story.name().into(),
                restore.spec.restore_spec.backup_name.clone().into(),
                if unreadable.is_some() { "Unreadable".into() } else { story.cell() },
                story.items().into(),
                over.then_some(velero.errors).into(),
                over.then_some(velero.warnings).into(),
                story.meta.creation_timestamp.as_ref().map(|time| age(time.0, now)).into(),
            ],
            [story.position.filter(|position| *position > 0).into(), name.into()],
        );
    }
    if all {
        let spaces = items.iter().map(|(restore, _)| Cell::from(restore.metadata.namespace.clone()));
        table.insert_first("NAMESPACE", spaces);
    }
    table
}

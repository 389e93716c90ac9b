//! `backup get`: lists backups.

use anyhow::Result;
use api::NonAdminBackup;
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
  kubectl nacre backup get
  kubectl nacre backup get daily -o yaml
  kubectl nacre backup get -A -o wide
  kubectl nacre backup get -o name | tail -1")]
pub(super) struct Get {
    #[command(flatten)]
    which: ListArgs,
}

pub(super) async fn run(session: &Session, args: &Get) -> Result<Outcome> {
    args.which.show(session, "backups", table).await
}

pub(crate) fn table(found: &Found<NonAdminBackup>, format: Format, all: bool, now: Timestamp) -> Table {
    let mut table = Table::with_wide(
        &["NAME", "STATUS", "ITEMS", "ERRORS", "WARNINGS", "AGE", "EXPIRES"],
        &["LOCATION", "QUEUE", "VELERO-NAME"],
        format,
    );
    let items = found.newest_last();
    for (backup, unreadable) in &items {
        let progress = RequestProgress::from(backup);
        let velero = &progress.velero;
        let over = velero.completed.is_some();
        let name = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.name.clone());
        table.row_with_wide(
            [
                progress.name().into(),
                if unreadable.is_some() { "Unreadable".into() } else { progress.cell() },
                progress.items().into(),
                over.then_some(velero.errors).into(),
                over.then_some(velero.warnings).into(),
                progress.meta.creation_timestamp.as_ref().map(|time| age(time.0, now)).into(),
                velero.expires.map(|expires| age(now, expires)).into(),
            ],
            [
                backup.spec.backup_spec.storage_location.clone().into(),
                progress.position.filter(|position| *position > 0).into(),
                name.into(),
            ],
        );
    }
    table.by_namespace(all, items.iter().map(|(backup, _)| &backup.metadata))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::progress::tests::{at_velero, backup, refused};

    fn shown(format: Format, all: bool) -> String {
        let mut later = backup(&refused("InvalidBackupSpec", "no"));
        later.metadata.name = Some("later".to_owned());
        later.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-11-15T12:59:00Z".parse().unwrap(),
        ));
        let done = backup(&at_velero(&json!({
            "phase": "Completed", "completionTimestamp": "2026-11-15T12:00:20Z", "expiration": "2026-12-15T12:00:00Z",
            "progress": {"totalItems": 42, "itemsBackedUp": 42}, "warnings": 1,
        })));
        let found = Found::of(vec![(later, None), (done, None)]);
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        anstream::adapter::strip_str(&table(&found, format, all, now).to_string()).to_string()
    }

    #[test]
    fn a_glance_is_enough() {
        insta::assert_snapshot!(shown(Format::Table, false), @r"
        NAME    STATUS      ITEMS   ERRORS   WARNINGS   AGE   EXPIRES
        daily   Completed   42/42   0        1          60m   29d
        later   Refused     -       -        -          60s   -
        ");
    }

    #[test]
    fn wide_says_where_it_is() {
        insta::assert_snapshot!(shown(Format::Wide, true), @r"
        NAMESPACE   NAME    STATUS      ITEMS   ERRORS   WARNINGS   AGE   EXPIRES   LOCATION   QUEUE   VELERO-NAME
        shop        daily   Completed   42/42   0        1          60m   29d       -          3       shop-daily-uid
        shop        later   Refused     -       -        -          60s   -         -          -       -
        ");
    }
}

//! `location get`: lists locations.

use anyhow::Result;
use api::NonAdminBackupStorageLocation;
use jiff::Timestamp;

use super::state::LocationState;
use crate::{
    connect::Session,
    list::{Found, ListArgs},
    output::{Format, Outcome},
    table::Table,
    text::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre location get
  kubectl nacre location get mine -o yaml
  kubectl nacre location get -A -o wide")]
pub(super) struct Get {
    #[command(flatten)]
    which: ListArgs,
}

pub(super) async fn run(session: &Session, args: &Get) -> Result<Outcome> {
    args.which.show(session, "locations", table).await
}

pub(crate) fn table(
    found: &Found<NonAdminBackupStorageLocation>,
    format: Format,
    all: bool,
    now: Timestamp,
) -> Table {
    let mut table = Table::with_wide(
        &["NAME", "STATUS", "PROVIDER", "BUCKET/PREFIX", "ACCESS", "AGE"],
        &["CREDENTIAL", "LAST-REACHED", "VELERO-NAME"],
        format,
    );
    for (location, unreadable) in &found.items {
        let place = LocationState::from(location);
        let spec = &location.spec.backup_storage_location_spec;
        let velero =
            location.status.as_ref().and_then(|status| status.velero_backup_storage_location.as_ref());
        let reached = velero.and_then(|velero| velero.status.as_ref()?.last_validation_time.clone());
        let prefix = spec.object_storage.prefix.as_ref();
        let bucket = &spec.object_storage.bucket;
        table.row_with_wide(
            [
                location.metadata.name.clone().into(),
                if unreadable.is_some() { "Unreadable".into() } else { place.cell() },
                spec.provider.as_str().into(),
                prefix.map_or_else(|| bucket.clone(), |prefix| format!("{bucket}/{prefix}")).into(),
                spec.access_mode.as_deref().unwrap_or("ReadWrite").into(),
                location.metadata.creation_timestamp.as_ref().map(|time| age(time.0, now)).into(),
            ],
            [
                spec.credential.as_ref().map(|key| format!("{}={}", key.name, key.key)).into(),
                reached.map(|time| age(time.0, now)).into(),
                velero.and_then(|velero| velero.name.clone()).into(),
            ],
        );
    }
    table.by_namespace(all, found.items.iter().map(|(location, _)| &location.metadata))
}

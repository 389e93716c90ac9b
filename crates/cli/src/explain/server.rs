//! A server-side dry run, which also asks nacre's webhook if it is installed.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminBackupSpec, velero::BackupSpec};
use kube::{api::PostParams, core::ObjectMeta};
use planner::backup::fixed;
use serde::Serialize;

use super::manifest::Manifest;
use crate::{connect::Session, list::Readable, warnings};

/// What the API server says.
#[derive(Debug, Default, Serialize)]
pub(super) struct ServerAnswer {
    /// Why it would reject the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) denied: Option<String>,
    /// Whether nacre's webhook had a say.
    pub(super) webhook: bool,
    /// Fields that the administrators set, and to what, as the webhook warns of them: whoever asks may not read the policy.
    #[serde(skip)]
    pub(super) set: Vec<(String, String)>,
}

/// Asks the API server; none about an object that cannot even be read.
pub(super) async fn ask(session: &Session, manifest: &Manifest) -> Result<Option<ServerAnswer>> {
    let denied = match manifest {
        Manifest::Backup(object) => dry_run(session, object.as_ref().clone()).await?,
        Manifest::Restore(object) => dry_run(session, object.as_ref().clone()).await?,
        Manifest::Location(object) => dry_run(session, object.as_ref().clone()).await?,
        Manifest::Malformed { .. } => return Ok(None),
    };
    // A request that nacre always refuses shows whether its webhook is listening.
    let forbidden =
        BackupSpec { excluded_namespaces: Some(vec!["none".to_owned()]), ..BackupSpec::default() };
    let probe = NonAdminBackup {
        metadata: ObjectMeta { name: Some("explain".to_owned()), ..ObjectMeta::default() },
        spec: NonAdminBackupSpec { backup_spec: forbidden, delete_backup: None },
        status: None,
    };
    let webhook = dry_run(session, probe).await?.is_some_and(|why| why.contains("webhook"));
    let set = match manifest {
        Manifest::Backup(object) if denied.is_none() => set(session, object.as_ref().clone()).await?,
        _ => Vec::new(),
    };
    Ok(Some(ServerAnswer { denied, webhook, set }))
}

/// Fields of a backup that the administrators set.
async fn set(session: &Session, backup: NonAdminBackup) -> Result<Vec<(String, String)>> {
    let warnings = warnings::of_dry_run(session, &as_new(backup)).await?;
    let read = warnings.iter().filter_map(|warning| fixed::read(warning));
    Ok(read.map(|(field, value)| (field.to_owned(), value.to_owned())).collect())
}

/// Why the API server would reject an object, if it would.
async fn dry_run<K: Readable>(session: &Session, object: K) -> Result<Option<String>> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match session.api::<K>().create(&params, &as_new(object)).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code != 401 && status.code < 500 => {
            Ok(Some(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The same under a new name: its own may be taken, by the very object that is asked about.
fn as_new<K: Readable>(mut object: K) -> K {
    let meta = object.meta();
    let name = meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default();
    let stem: String = name.chars().take(200).collect();
    *object.meta_mut() = ObjectMeta {
        generate_name: Some(format!("{}-", stem.trim_end_matches(['-', '.']))),
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        ..ObjectMeta::default()
    };
    object
}

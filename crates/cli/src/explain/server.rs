//! A server-side dry run, which also asks nacre's webhook if it is installed.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminBackupSpec, velero::BackupSpec};
use kube::{api::PostParams, core::ObjectMeta};
use serde::Serialize;

use super::manifest::Manifest;
use crate::{connect::Session, list::Readable};

/// What the API server says.
#[derive(Debug, Serialize)]
pub(super) struct ServerAnswer {
    /// Why it would reject the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) denied: Option<String>,
    /// Whether nacre's webhook had a say.
    pub(super) webhook: bool,
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
    Ok(Some(ServerAnswer { denied, webhook }))
}

/// Why the API server would reject an object, if it would.
async fn dry_run<K: Readable>(session: &Session, mut object: K) -> Result<Option<String>> {
    let meta = object.meta();
    let name = meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default();
    // As a new one: the name may be taken, by the very object that is asked about.
    let stem: String = name.chars().take(200).collect();
    *object.meta_mut() = ObjectMeta {
        generate_name: Some(format!("{}-", stem.trim_end_matches(['-', '.']))),
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        ..ObjectMeta::default()
    };
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match session.api::<K>().create(&params, &object).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code != 401 && status.code < 500 => {
            Ok(Some(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

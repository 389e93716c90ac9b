//! Reading what a link leads to, with the client that kube already brings.

use std::{io::Write, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use engine::LinkError;
use http::Response;
use http_body_util::BodyExt as _;
use k8s_openapi::ByteString;
use kube::client::Body;
use tempfile::NamedTempFile;

use crate::{connect::Session, list};

/// Which storage to believe that it is who it says it is.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The certificates of its authority.
    pub(crate) file: Option<PathBuf>,
    /// Any.
    pub(crate) blind: bool,
}

/// Certificates, and the file they are kept in while they are needed.
type Kept = (Trust, Option<NamedTempFile>);

impl Trust {
    fn for_link(&self) -> engine::Trust {
        match &self.file {
            _ if self.blind => engine::Trust::Any,
            Some(file) => engine::Trust::File(file.clone()),
            None => engine::Trust::System,
        }
    }

    /// The same, or that of the tenant's own location if nothing was said.
    pub(super) async fn or_of_location(self, session: &Session, kind: &str, name: &str) -> Kept {
        if self.file.is_some() || self.blind {
            return (self, None);
        }
        // Without it the system's own authorities are asked, as for every other certificate.
        let found = authority(session, kind, name).await.ok().flatten();
        let written = found.and_then(|pem| {
            let mut file = NamedTempFile::new().ok()?;
            file.write_all(&pem).ok()?;
            Some(file)
        });
        let file = written.as_ref().map(|file| file.path().to_path_buf());
        (Self { file, blind: false }, written)
    }
}

/// The certificates that the location of a backup says its endpoint has.
async fn authority(session: &Session, kind: &str, name: &str) -> Result<Option<Vec<u8>>> {
    let backup = if kind.starts_with("Restore") {
        let (restore, _) = list::one::<NonAdminRestore>(session, name).await?;
        restore.spec.restore_spec.backup_name.context("a backup")?
    } else {
        name.to_owned()
    };
    let (backup, _) = list::one::<NonAdminBackup>(session, &backup).await?;
    let Some(location) = backup.spec.backup_spec.storage_location else { return Ok(None) };
    let (location, _) = list::one::<NonAdminBackupStorageLocation>(session, &location).await?;
    let Some(encoded) = location.spec.backup_storage_location_spec.object_storage.ca_cert else {
        return Ok(None);
    };
    let ByteString(pem) = serde_json::from_value(encoded.into())?;
    Ok(Some(pem))
}

/// A link that whoever has it can follow: it is never shown.
pub(crate) struct Link {
    link: engine::Link,
    kept: Kept,
}

impl Link {
    pub(super) fn new(url: &str, kept: Kept) -> Result<Self> {
        Ok(Self { link: engine::Link::new(url)?, kept })
    }

    /// Streams what the link leads to, and says how much there was.
    pub(crate) async fn read(&self, mut take: impl FnMut(&[u8], Option<u64>) -> Result<()>) -> Result<u64> {
        let response = self.ask().await?;
        let size = response.headers().get(http::header::CONTENT_LENGTH);
        let size = size.and_then(|size| size.to_str().ok()?.parse().ok());
        let mut body = response.into_body();
        let mut total = 0;
        let host = self.link.host();
        while let Some(frame) = body.frame().await {
            let frame = frame.with_context(|| format!("the storage at {host} broke off"))?;
            if let Ok(bytes) = frame.into_data() {
                total += bytes.len() as u64;
                take(&bytes, size)?;
            }
        }
        if let Some(size) = size.filter(|size| *size != total) {
            bail!("the storage at {host} sent {total} of {size} bytes");
        }
        Ok(total)
    }

    async fn ask(&self) -> Result<Response<Body>> {
        match self.link.open(&self.kept.0.for_link()).await {
            Err(LinkError::Unreachable { host, why }) => bail!(
                "the storage at {host} cannot be reached from here (the link was made for Velero's side of the network): {why}"
            ),
            answer => Ok(answer?),
        }
    }
}

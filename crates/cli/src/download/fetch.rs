//! Reading what a link leads to, with the client that kube already brings.

use std::{io::Write, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use k8s_openapi::ByteString;
use kube::{Client, Config, client::Body};
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
    uri: Uri,
    host: String,
    kept: Kept,
}

impl Link {
    pub(super) fn new(url: &str, kept: Kept) -> Result<Self> {
        let Ok(uri) = url.parse::<Uri>() else { bail!("Velero's link is not one") };
        let host = uri.authority().map(ToString::to_string).context("Velero's link names no host")?;
        Ok(Self { uri, host, kept })
    }

    /// Streams what the link leads to, and says how much there was.
    pub(crate) async fn read(&self, mut take: impl FnMut(&[u8], Option<u64>) -> Result<()>) -> Result<u64> {
        let response = self.ask().await?;
        let size = response.headers().get(http::header::CONTENT_LENGTH);
        let size = size.and_then(|size| size.to_str().ok()?.parse().ok());
        let mut body = response.into_body();
        let mut total = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.with_context(|| format!("the storage at {} broke off", self.host))?;
            if let Ok(bytes) = frame.into_data() {
                total += bytes.len() as u64;
                take(&bytes, size)?;
            }
        }
        if let Some(size) = size.filter(|size| *size != total) {
            bail!("the storage at {} sent {total} of {size} bytes", self.host);
        }
        Ok(total)
    }

    async fn ask(&self) -> Result<Response<Body>> {
        let mut config = Config::new(self.uri.clone());
        config.cluster_url = Uri::builder()
            .scheme(self.uri.scheme_str().unwrap_or("https"))
            .authority(self.host.as_str())
            .path_and_query("/")
            .build()?;
        config.root_cert_file.clone_from(&self.kept.0.file);
        config.accept_invalid_certs = self.kept.0.blind;
        // What is in the bucket is wanted as it is.
        config.disable_compression = true;
        config.default_retry = false;
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let request = Request::get(target).body(Body::empty())?;
        let response = match Client::try_from(config)?.send(request).await {
            Ok(response) => response,
            Err(error) => bail!(
                "the storage at {} cannot be reached from here (the link was made for Velero's side of the network): {}",
                self.host,
                anyhow::Error::from(error).root_cause()
            ),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.into_body().collect_bytes().await.unwrap_or_default();
        let code = code(&String::from_utf8_lossy(&text));
        bail!("the storage at {} answered {status}{code}", self.host)
    }
}

/// The one word of an S3 answer that says what is wrong. The rest may hold keys.
fn code(text: &str) -> String {
    let word =
        text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(word, _)| word);
    word.map_or_else(String::new, |word| format!(" ({word})"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_code_of_an_answer_is_shown() {
        let answer = "<Error><Code>AccessDenied</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(super::code(answer), " (AccessDenied)");
        assert_eq!(super::code("<html>"), "");
    }
}

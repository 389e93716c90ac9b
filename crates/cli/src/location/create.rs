//! `location create`, with the flags of `velero backup-location create` as far as a namespace owner can use them.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, Result, anyhow};
use api::{
    Duration, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationSpec,
    velero::{BackupStorageLocationSpec, ObjectStorageLocation},
};
use clap::Parser as _;
use k8s_openapi::{ByteString, api::core::v1::SecretKeySelector};
use kube::core::ObjectMeta;

use crate::{
    backup::in_one_line,
    connect::Session,
    output::Outcome,
    send::{Sending, pair, secret_key, written_duration},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl create secret generic bucket-key --from-file=cloud=./credentials
  kubectl nacre location create mine --provider aws --bucket my-backups --region eu-west-1 \\
      --credential bucket-key=cloud --wait
  kubectl nacre location create minio --provider aws --bucket shop --credential bucket-key=cloud \\
      --region minio --config s3ForcePathStyle=true,s3Url=https://minio.example.com

An administrator may have to approve it: --wait waits for that too. It cannot be changed later; make a new one instead.")]
pub(super) struct Create {
    /// Name of the location.
    name: String,

    /// Storage provider: aws (and everything S3-compatible), azure or gcp.
    #[arg(long)]
    provider: String,

    /// The bucket.
    #[arg(long)]
    bucket: String,

    /// Prefix in the bucket; nacre puts the namespace before it.
    #[arg(long)]
    prefix: Option<String>,

    /// Secret of this namespace with the credential, and the key in it.
    #[arg(long, value_name = "SECRET=KEY", value_parser = secret_key)]
    credential: (String, String),

    /// The region; short for --config region=...
    #[arg(long)]
    region: Option<String>,

    /// More settings of the provider: s3Url=...,s3ForcePathStyle=true.
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = pair)]
    config: Vec<(String, String)>,

    /// A PEM file with the CA certificates of the endpoint.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Whether Velero may write to it.
    #[arg(long, value_name = "MODE", value_parser = ["ReadWrite", "ReadOnly"])]
    access_mode: Option<String>,

    /// How often Velero imports backups from it.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    backup_sync_period: Option<Duration>,

    /// How often Velero validates it.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    validation_frequency: Option<Duration>,

    #[command(flatten)]
    sending: Sending,
}

pub(super) async fn run(session: &Session, args: Create) -> Result<Outcome> {
    let certificates = match &args.cacert {
        Some(path) => Some(std::fs::read(path).with_context(|| format!("reading {}", path.display()))?),
        None => None,
    };
    let location = args.location(certificates)?;
    Box::pin(args.sending.send(session, location, true)).await
}

/// The flags alone, for somebody who fills in a form instead.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    create: Create,
}

/// A location as these flags describe it. No file is read.
pub(crate) fn prepared(name: &str, flags: &[String]) -> Result<NonAdminBackupStorageLocation> {
    let arguments = flags.iter().map(String::as_str).chain(["--", name]);
    let flags = Flags::try_parse_from(arguments).map_err(|error| anyhow!("{}", in_one_line(&error)))?;
    flags.create.location(None)
}

impl Create {
    fn location(&self, certificates: Option<Vec<u8>>) -> Result<NonAdminBackupStorageLocation> {
        Ok(NonAdminBackupStorageLocation {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: NonAdminBackupStorageLocationSpec {
                backup_storage_location_spec: self.spec(certificates)?,
            },
            status: None,
        })
    }

    fn spec(&self, certificates: Option<Vec<u8>>) -> Result<BackupStorageLocationSpec> {
        let region = self.region.iter().map(|region| ("region".to_owned(), region.clone()));
        let config: BTreeMap<String, String> = self.config.iter().cloned().chain(region).collect();
        // Bytes are base64 in manifests.
        let encoded = certificates.map(|bytes| serde_json::to_value(ByteString(bytes))).transpose()?;
        let (name, key) = self.credential.clone();
        Ok(BackupStorageLocationSpec {
            provider: self.provider.clone(),
            config: (!config.is_empty()).then_some(config),
            credential: Some(SecretKeySelector { name, key, optional: None }),
            object_storage: ObjectStorageLocation {
                bucket: self.bucket.clone(),
                prefix: self.prefix.clone(),
                ca_cert: encoded.and_then(|text| text.as_str().map(str::to_owned)),
                ca_cert_ref: None,
            },
            access_mode: self.access_mode.clone(),
            backup_sync_period: self.backup_sync_period.clone(),
            validation_frequency: self.validation_frequency.clone(),
            ..BackupStorageLocationSpec::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        create: Create,
    }

    #[test]
    fn flags_become_the_fields_velero_has() {
        let program = Program::parse_from([
            "create",
            "mine",
            "--provider",
            "aws",
            "--bucket",
            "b",
            "--prefix",
            "p",
            "--credential",
            "keys=cloud",
            "--region",
            "here",
            "--config",
            "s3Url=http://x,s3ForcePathStyle=true",
        ]);
        let spec = program.create.spec(Some(b"pem".to_vec())).unwrap();
        insta::assert_snapshot!(serde_json::to_string(&spec).unwrap(), @r#"{"provider":"aws","config":{"region":"here","s3ForcePathStyle":"true","s3Url":"http://x"},"credential":{"key":"cloud","name":"keys"},"objectStorage":{"bucket":"b","prefix":"p","caCert":"cGVt"}}"#);
    }
}

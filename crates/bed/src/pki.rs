//! Keys and certificates of one bed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Paths of the PEM files the API server is started with.
#[derive(Debug)]
pub(crate) struct Pki {
    pub(crate) ca: PathBuf,
    pub(crate) server_cert: PathBuf,
    pub(crate) server_key: PathBuf,
    /// Signs the tokens of ServiceAccounts.
    pub(crate) token_key: PathBuf,
    pub(crate) token_public_key: PathBuf,
}

impl Pki {
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let write = |name: &str, pem: String| -> Result<PathBuf> {
            let path = folder.join(name);
            std::fs::write(&path, pem).with_context(|| format!("writing {}", path.display()))?;
            Ok(path)
        };

        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "nacre bed");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_cert = ca.self_signed(&ca_key)?;

        let server_key = KeyPair::generate()?;
        let mut server = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let server_cert = server.signed_by(&server_key, &Issuer::new(ca, ca_key))?;

        let token_key = KeyPair::generate()?;
        Ok(Self {
            ca: write("ca.crt", ca_cert.pem())?,
            server_cert: write("server.crt", server_cert.pem())?,
            server_key: write("server.key", server_key.serialize_pem())?,
            token_key: write("tokens.key", token_key.serialize_pem())?,
            token_public_key: write("tokens.pub", token_key.public_key_pem())?,
        })
    }
}

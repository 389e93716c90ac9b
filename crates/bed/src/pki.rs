//! Keys and certificates of one bed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Paths of the PEM files the API server is started with.
#[derive(Debug)]
pub(crate) struct Pki {
    pub(crate) ca: PathBuf,
    pub(crate) server_cert: PathBuf,
    pub(crate) server_key: PathBuf,
    /// Signs the tokens of ServiceAccounts.
    pub(crate) token_key: PathBuf,
    pub(crate) token_public_key: PathBuf,
    /// By which the API server talks to kubelets.
    pub(crate) client_cert: PathBuf,
    pub(crate) client_key: PathBuf,
}

impl Pki {
    /// For an API server on the loopback address.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        Self::make_for(folder, &[])
    }

    /// For an API server that has other names and addresses too.
    pub(crate) fn make_for(folder: &Path, names: &[&str]) -> Result<Self> {
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
        let names = ["127.0.0.1", "localhost"].iter().chain(names).map(|&name| name.to_owned());
        let mut server = CertificateParams::new(names.collect::<Vec<_>>())?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let issuer = Issuer::new(ca, ca_key);
        let server_cert = server.signed_by(&server_key, &issuer)?;

        let client_key = KeyPair::generate()?;
        let mut client = CertificateParams::default();
        client.distinguished_name.push(DnType::CommonName, "kube-apiserver-kubelet-client");
        client.distinguished_name.push(DnType::OrganizationName, "system:masters");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_cert = client.signed_by(&client_key, &issuer)?;

        let token_key = KeyPair::generate()?;
        Ok(Self {
            ca: write("ca.crt", ca_cert.pem())?,
            server_cert: write("server.crt", server_cert.pem())?,
            server_key: write("server.key", server_key.serialize_pem())?,
            token_key: write("tokens.key", token_key.serialize_pem())?,
            token_public_key: write("tokens.pub", token_key.public_key_pem())?,
            client_cert: write("client.crt", client_cert.pem())?,
            client_key: write("client.key", client_key.serialize_pem())?,
        })
    }
}

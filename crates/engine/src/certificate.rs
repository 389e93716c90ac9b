//! Certificates: generating, verifying and serving them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use api::HiddenSecret;
use planner::admission::certificate::{Pair, Validity, stored};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, RootCertStore, ServerConfig};

/// Allowed clock skew.
const SKEW: Duration = Duration::from_mins(5);

/// Which of the two stored certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateSlot {
    /// The certificate in use.
    Current,
    /// The certificate that replaces it.
    Next,
}

/// Generates a certificate for these names, signed by a new CA whose key is discarded.
pub fn make(names: &[String], lifetime: Duration) -> Result<Pair, rcgen::Error> {
    let now = SystemTime::now();
    let valid = |params: &mut CertificateParams| {
        params.not_before = (now - SKEW).into();
        params.not_after = (now + lifetime).into();
    };
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "nacre webhook authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    valid(&mut authority);
    let authority_key = KeyPair::generate()?;
    let signed = authority.self_signed(&authority_key)?;

    let mut server = CertificateParams::new(names.to_vec())?;
    server.distinguished_name.push(DnType::CommonName, "nacre webhook");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    valid(&mut server);
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok(Pair { authority: signed.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
}

/// The state of a stored certificate for these names; `margin` is how long before its expiry it counts as expiring.
pub fn validity(
    secret: &HiddenSecret,
    which: CertificateSlot,
    names: &[String],
    margin: Duration,
) -> Validity {
    let now = SystemTime::now();
    let good_at = |time: SystemTime| {
        let time = time.duration_since(SystemTime::UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch);
        time.is_some_and(|time| verify(secret, which, names, time).is_ok())
    };
    if !good_at(now) {
        Validity::Invalid
    } else if good_at(now + margin) {
        Validity::Valid
    } else {
        Validity::Expiring
    }
}

/// Verifies a certificate as the API server would.
fn verify(
    secret: &HiddenSecret,
    which: CertificateSlot,
    names: &[String],
    time: UnixTime,
) -> Result<(), Error> {
    let certified = load(secret, which)?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(stored(secret, "ca.crt")) {
        roots.add(authority.map_err(unreadable)?)?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(unreadable)?;
    for name in names {
        let name = ServerName::try_from(name.as_str()).map_err(unreadable)?;
        verifier.verify_server_cert(certified.end_entity_cert()?, &[], &name, &[], time)?;
    }
    Ok(())
}

/// A stored certificate with its key, which belong together.
fn load(secret: &HiddenSecret, which: CertificateSlot) -> Result<CertifiedKey, Error> {
    let (certificate, key) = match which {
        CertificateSlot::Current => ("tls.crt", "tls.key"),
        CertificateSlot::Next => ("next.crt", "next.key"),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(stored(secret, certificate)).collect();
    let key = PrivateKeyDer::from_pem_slice(stored(secret, key)).map_err(unreadable)?;
    CertifiedKey::from_der(chain.map_err(unreadable)?, key, &provider())
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::General(error.to_string())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Serves the current certificate. Replacing it does not interrupt connections.
#[derive(Debug, Default)]
pub struct Presenter {
    shown: RwLock<Option<Arc<CertifiedKey>>>,
}

impl Presenter {
    /// Serves the stored certificate from now on.
    pub fn show(&self, secret: &HiddenSecret) -> Result<(), Error> {
        let certified = load(secret, CertificateSlot::Current)?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// The TLS acceptor that uses it.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Presenter {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::{Hidden, HiddenSecret};
    use planner::admission::certificate::{Pair, Validity};

    use super::{CertificateSlot, Presenter, make, validity};

    const HOUR: Duration = Duration::from_hours(1);

    fn names() -> Vec<String> {
        vec!["nacre-webhook.velero.svc".to_owned(), "127.0.0.1".to_owned()]
    }

    fn kept(pair: &Pair) -> HiddenSecret {
        let mut secret = HiddenSecret::default();
        for (key, text) in
            [("ca.crt", &pair.authority), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)]
        {
            secret.data.insert(key.to_owned(), Hidden::from(text.clone().into_bytes()));
        }
        secret
    }

    #[test]
    fn a_fresh_certificate_is_sound_until_it_ends() {
        let secret = kept(&make(&names(), HOUR).unwrap());
        let judged = |margin| validity(&secret, CertificateSlot::Current, &names(), margin);
        assert_eq!(judged(HOUR / 2), Validity::Valid);
        assert_eq!(judged(HOUR * 2), Validity::Expiring);
        assert_eq!(validity(&secret, CertificateSlot::Next, &names(), HOUR / 2), Validity::Invalid);
        Presenter::default().show(&secret).unwrap();
    }

    #[test]
    fn one_that_the_api_server_would_not_take_is_useless() {
        let (one, other) = (make(&names(), HOUR).unwrap(), make(&names(), HOUR).unwrap());
        let sound = |pair: Pair| validity(&kept(&pair), CertificateSlot::Current, &names(), Duration::ZERO);
        assert_eq!(sound(one.clone()), Validity::Valid);
        assert_eq!(sound(Pair { authority: other.authority, ..one.clone() }), Validity::Invalid);
        assert_eq!(sound(Pair { key: other.key, ..one.clone() }), Validity::Invalid);
        assert_eq!(sound(Pair { certificate: "no PEM".to_owned(), ..one.clone() }), Validity::Invalid);
        assert_eq!(sound(Pair { certificate: one.authority.clone(), ..one.clone() }), Validity::Invalid);
        assert_eq!(sound(make(&names()[..1], HOUR).unwrap()), Validity::Invalid, "for other names");
    }
}

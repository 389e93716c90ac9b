//! The webhook: an invalid request is rejected at once with the controller's message; without it, by condition; and its
//! certificate is renewed without downtime.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, condition};
use bed::{Bed, eventually};
use e2e::{NACRE, TestCluster};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TIMEOUT: Duration = Duration::from_mins(2);

const BAD: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminBackup\n\
                   metadata: {name: bad, namespace: shop}\n\
                   spec: {backupSpec: {includedNamespaces: [rival]}}\n";

/// A restore that comes before its backup, in one file with it.
const ONE_FILE: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminRestore\n\
                        metadata: {name: back, namespace: shop}\nspec: {restoreSpec: {backupName: daily}}\n---\n\
                        apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminBackup\n\
                        metadata: {name: daily, namespace: shop}\nspec: {backupSpec: {}}\n";

async fn apply(bed: &Bed, name: &str, yaml: &str) -> Result<bed::Output> {
    let file = bed.folder().join(name);
    std::fs::write(&file, yaml)?;
    bed.kubectl(&["apply", "-f", &file.display().to_string(), "--as=ada"]).await
}

const DAILY: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminBackup\n\
                     metadata: {name: daily, namespace: shop}\nspec: {backupSpec: {}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_saves_no_volume_is_warned_of_before_it_is_made() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}}}});
    shop.create::<PersistentVolumeClaim>("data", claim).await?;
    // No node agent runs here.
    let _nacre = test_cluster.start_answering(&shop, &[]).await?;
    let warned = apply(&test_cluster.bed, "daily.yaml", DAILY).await?;
    ensure!(warned.success, "it goes through: {warned:?}");
    ensure!(
        warned.stderr.contains("volume data of claim \"data\" will NOT be in this backup"),
        "{}",
        warned.stderr
    );
    Ok(())
}

/// F6: the webhook, or all of nacre, is down
#[tokio::test(flavor = "multi_thread")]
async fn f6_a_bad_backup_is_refused_at_once_or_by_condition_in_the_same_words() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let (nacre, _) = test_cluster.start_answering(&shop, &[]).await?;

    let refused = apply(&test_cluster.bed, "bad.yaml", BAD).await?;
    ensure!(!refused.success, "{}", refused.stdout);
    let (_, words) = refused.stderr.split_once("denied the request: ").context(refused.stderr.clone())?;
    let words = words.trim().to_owned();
    ensure!(shop.api::<NonAdminBackup>().get_opt("bad").await?.is_none());

    // What the next document heals is a warning, and goes through.
    let warned = apply(&test_cluster.bed, "one-file.yaml", ONE_FILE).await?;
    ensure!(warned.success && warned.stderr.contains("there is no NonAdminBackup"), "{warned:?}");
    ensure!(shop.restore_ends("back").await? == "Completed");
    let details = nacre.details().await?;
    ensure!(!details.contains("webhook"), "{details}");
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(12)).await?;

    // With nacre down it is accepted, without much of a wait; once nacre is back, it is refused by condition.
    drop(nacre);
    let began = Instant::now();
    apply(&test_cluster.bed, "bad.yaml", BAD).await?.ok()?;
    ensure!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // Without the right to look at its configuration, as under OADP's role, that is one extra less, and named.
    let roles = Api::<ClusterRole>::all(test_cluster.bed.client().await?);
    let mut role = roles.get("nacre").await?;
    let about =
        |rule: &PolicyRule| rule.api_groups.iter().flatten().any(|group| group.starts_with("admission"));
    role.rules.iter_mut().for_each(|rules| rules.retain(|rule| !about(rule)));
    let fewer = Patch::Merge(json!({ "rules": role.rules }));
    roles.patch("nacre", &PatchParams::default(), &fewer).await?;
    let nacre = test_cluster.start_nacre().await?;
    eventually("the missing right to be named", TIMEOUT, async || {
        let details = nacre.details().await?;
        ensure!(details.contains("the webhook does not work") && details.contains("forbidden"), "{details}");
        Ok(())
    })
    .await?;
    let said = shop
        .wait("it to be refused", "bad", |backup: Option<&NonAdminBackup>| {
            let accepted = condition::get(&backup?.status.as_ref()?.conditions, condition::ACCEPTED)?;
            (accepted.status == "False").then(|| accepted.message.clone())
        })
        .await?;
    ensure!(said == words, "the webhook says {words:?}, the controller {said:?}");
    // A bad one can still be labelled and deleted.
    shop.edit::<NonAdminBackup>("bad", json!({"metadata": {"labels": {"a": "b"}}})).await?;
    shop.delete::<NonAdminBackup>("bad").await?;
    shop.gone::<NonAdminBackup>("bad").await
}

/// Connects as the API server does, trusting these authorities.
async fn connects(address: SocketAddr, bundle: &[u8]) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle) {
        roots.add(authority?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::from(address.ip());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_without_a_question_unanswered() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    // Everything happens as many times faster than usual; a busy API server still has two seconds to hear of a change.
    let lifetime = [("WEBHOOK_CERTIFICATE_LIFETIME", "24s")];
    let (nacre, here) = test_cluster.start_answering(&shop, &lifetime).await?;
    // A replica without the lease shares the certificate and answers as well.
    let (second, elsewhere) = test_cluster.start_standby(&lifetime).await?;

    let secrets = test_cluster.admin::<Secret>().await?;
    let shown = async || {
        let data = secrets.get("nacre-webhook").await?.data.unwrap_or_default();
        data.get("tls.crt").map(|bytes| bytes.0.clone()).context("no certificate")
    };
    let configurations = Api::<ValidatingWebhookConfiguration>::all(test_cluster.bed.client().await?);
    let bundle = async || {
        let webhooks = configurations.get("nacre").await?.webhooks.unwrap_or_default();
        webhooks.into_iter().find_map(|one| one.client_config.ca_bundle).context("no bundle")
    };
    let mut certificates = vec![shown().await?];
    let began = Instant::now();
    let mut asked = 0;
    while certificates.len() < 3 {
        // The API server keeps connections; a new connection at any moment must work too.
        for address in [here, elsewhere] {
            let known = bundle().await?;
            if let Err(error) = connects(address, &known.0).await {
                ensure!(bundle().await? != known, "{address} is not trusted: {error:#}");
            }
        }
        // A question that nobody answers is one that passes.
        let said = shop.would_create("bad", json!({"includeClusterResources": true})).await?;
        ensure!(said.is_some(), "unanswered after {asked}, at {:?}", began.elapsed());
        asked += 1;
        let now = shown().await?;
        if certificates.last() != Some(&now) {
            certificates.push(now);
            if certificates.len() == 2 {
                test_cluster.ask_at(elsewhere).await?;
            }
        }
        ensure!(began.elapsed() < Duration::from_mins(2), "{} in two minutes", certificates.len());
    }

    // A configuration that was reset gets its caBundle again.
    let mut emptied = configurations.get("nacre").await?;
    for webhook in emptied.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = None;
    }
    let change = Patch::Merge(json!({ "webhooks": emptied.webhooks }));
    configurations.patch("nacre", &PatchParams::default(), &change).await?;
    eventually("the bundle to be back", TIMEOUT, async || {
        let said = shop.would_create("bad", json!({"includeClusterResources": true})).await?;
        ensure!(said.is_some(), "nobody objects");
        Ok(())
    })
    .await?;
    ensure!(nacre.process.is_running() && second.process.is_running());
    Ok(())
}

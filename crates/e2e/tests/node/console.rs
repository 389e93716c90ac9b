//! The console in a pod, behind a proxy that signs people in and passes on their tokens. Part of `make long`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{NonAdminBackup, labels};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bed::{Output, busybox_image, eventually};
use e2e::{NodeCluster, VELERO};
use image::libraries;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};

use crate::alone;

const IMAGE: &str = "localhost/sign-in-proxy:test";
const PROXY: &str = "sign-in-proxy";
const PORT: u16 = 4180;
/// The account of the console's own pod.
const ACCOUNT: &str = "system:serviceaccount:velero:nacre-console";
/// How the console's requests begin in the audit log.
const CONSOLE: &str = "nacre-console/";
const TIMEOUT: Duration = Duration::from_mins(3);

/// What somebody signs in with at the proxy.
fn password(person: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{person}:secret of {person}")))
}

/// Somebody of the site: an account of the cluster, and its token.
async fn person(cluster: &NodeCluster, namespace: &str, name: &str, role: Option<&str>) -> Result<String> {
    let meta = json!({"name": name, "namespace": namespace});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta});
    let binding = role.map(|role| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})
    });
    apply(cluster, [Some(account), binding].into_iter().flatten()).await?;
    let token = cluster.site.kubectl(&["create", "token", name, "--namespace", namespace]).await?.ok()?;
    Ok(token.trim().to_owned())
}

async fn apply(cluster: &NodeCluster, objects: impl Iterator<Item = Value>) -> Result<()> {
    let objects = objects.map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
    cluster.site.apply(&objects).await
}

/// Runs the proxy in a pod before the console, and returns where it listens.
async fn proxy(cluster: &NodeCluster, people: Value) -> Result<String> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sign-in-proxy"));
    let shared = libraries(&program)?.into_iter().map(|path| (path.clone(), path));
    let files = shared.chain([(program, PathBuf::from("/proxy"))]).collect();
    let node = cluster.site.node()?;
    let archive = node.folder().join("proxy.tar");
    busybox_image(IMAGE, files)?.write(&archive)?;
    node.load_image(&archive).await?;
    let meta = json!({"name": PROXY, "namespace": VELERO});
    // Where a Service is stands in the environment of pods that start after it.
    let start = "exec /proxy $NACRE_CONSOLE_SERVICE_HOST:$NACRE_CONSOLE_SERVICE_PORT";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {
        "automountServiceAccountToken": false,
        "containers": [{"name": "proxy", "image": IMAGE, "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", start], "readinessProbe": {"tcpSocket": {"port": PORT}},
            "volumeMounts": [{"name": "people", "mountPath": "/people"}]}],
        "volumes": [{"name": "people", "secret": {"secretName": PROXY}}]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": people});
    apply(cluster, [secret, pod].into_iter()).await?;
    let pods = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
    eventually("the proxy to be ready", TIMEOUT, async || {
        let status = pods.get(PROXY).await?.status.unwrap_or_default();
        let ready =
            status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
        ensure!(ready, "{status:?}");
        Ok(format!("{}:{PORT}", status.pod_ip.context("no address")?))
    })
    .await
}

/// A browser, as far as it takes one: it signs in as somebody.
struct Browser<'a> {
    cluster: &'a NodeCluster,
    host: &'a str,
}

impl Browser<'_> {
    async fn fetch(&self, who: Option<&str>, path: &str, form: Option<&str>) -> Result<Output> {
        let (url, origin) = (format!("http://{}{path}", self.host), format!("Origin: http://{}", self.host));
        let signs_in = who.map(|who| format!("Authorization: {}", password(who)));
        let mut args = vec!["wget", "-q", "-O", "-", "--header", "X-Forwarded-Access-Token: forged"];
        if let Some(header) = &signs_in {
            args.extend(["--header", header]);
        }
        if let Some(form) = form {
            args.extend(["--header", &origin, "--post-data", form]);
        }
        args.push(&url);
        self.cluster.site.run_as(&self.cluster.site.kubeconfig(), "busybox", &args).await
    }

    async fn page(&self, who: &str, path: &str) -> Result<String> {
        self.fetch(Some(who), path, None).await?.ok()
    }
}

#[tokio::test]
async fn behind_a_proxy_that_signs_in_everybody_is_who_they_are() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let namespace = cluster.tenant("console", "carl").await?.namespace.clone();
    cluster.set_policy("downloads: {platformStorage: all}").await?;
    let audit = cluster.site.node()?.audit()?;
    let mark = audit.mark().await?;
    let args = ["install", "--console", "--wait", "--timeout", "4m"];
    cluster.cli(&args).await?.ok()?;
    let ada = person(&cluster, &namespace, "ada", Some("admin")).await?;
    let eve = person(&cluster, &namespace, "eve", None).await?;
    let people = json!({"ada": format!("{}\n{ada}\n", password("ada")), "eve": format!("{}\n{eve}\n", password("eve"))});
    let host = proxy(&cluster, people).await?;
    let browser = Browser { cluster: &cluster, host: &host };
    let own = format!("/ns/{namespace}");

    // Nobody gets past the proxy by a token of their own making.
    let nobody = browser.fetch(None, &own, None).await?;
    ensure!(!nobody.success && nobody.stderr.contains("401"), "{nobody:?}");
    // A Service leads to a pod some time after that is ready.
    let reached = async || browser.page("ada", &own).await;
    let page = eventually("the console to be reached through its Service", TIMEOUT, reached).await?;
    ensure!(page.contains("Not safe: there is no good backup"), "{page}");
    ensure!(page.contains(&format!("system:serviceaccount:{namespace}:ada")), "{page}");
    ensure!(!page.contains(&ada), "the token is on the page");
    // To whoever may not look, it is as if it did not exist.
    let (there, nowhere) = tokio::try_join!(
        browser.fetch(Some("eve"), &own, None),
        browser.fetch(Some("eve"), "/ns/nowhere", None)
    )?;
    ensure!(
        !there.success && there.stderr == nowhere.stderr && there.stdout == nowhere.stdout,
        "{there:?} {nowhere:?}"
    );

    // A backup by the form is ada's own, and Velero makes it.
    let form = browser.page("ada", &format!("{own}/new-backup")).await?;
    let csrf = form.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let csrf = csrf.context("no form")?;
    let fields = format!("csrf={csrf}&name=clicked&do=create");
    // The answer leads to the new page. Small clients stop there.
    let _ = browser.fetch(Some("ada"), &format!("{own}/backups"), Some(&fields)).await?;
    let forged = browser
        .fetch(Some("eve"), &format!("{own}/backups"), Some(&fields.replace("clicked", "forged")))
        .await?;
    ensure!(!forged.success, "{forged:?}");
    let backups = Api::<NonAdminBackup>::namespaced(cluster.site.client().await?, &namespace);
    let made = backups.get("clicked").await?;
    let record = made.annotations().get(labels::REQUESTER).context("no record")?;
    ensure!(record.contains(&format!("system:serviceaccount:{namespace}:ada")), "{record}");
    ensure!(backups.get_opt("forged").await?.is_none());
    eventually("the backup to be shown as good", TIMEOUT, async || {
        let page = browser.page("ada", &own).await?;
        ensure!(!page.contains("there is no good backup"), "{page}");
        Ok(())
    })
    .await?;

    // The log of it comes from the administrators' storage, through a program whose image has no files of a system.
    let page = browser.page("ada", &format!("{own}/backups/clicked")).await?;
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let fields = format!("csrf={}&do=BackupLog", csrf.context("no form")?);
    let log = browser.fetch(Some("ada"), &format!("{own}/backups/clicked/files"), Some(&fields)).await?;
    ensure!(log.success && log.stdout.len() > 100 && !log.stdout.contains("<html"), "{log:?}");

    // Behind a proxy there is nothing to sign out of here.
    ensure!(!page.contains("Sign out"), "{page}");

    // No token is in a log, and the session ends with the token.
    for pod in ["deployment/nacre-console", &format!("pod/{PROXY}")] {
        let log = cluster.site.kubectl(&["logs", pod, "--namespace", VELERO]).await?.ok()?;
        ensure!(!log.contains(&ada) && !log.contains(&eve), "a token is in the log of {pod}");
    }
    let accounts = Api::<ServiceAccount>::namespaced(cluster.site.client().await?, &namespace);
    accounts.delete("ada", &DeleteParams::default()).await?;
    eventually("the token to be rejected", TIMEOUT, async || {
        let answer = browser.fetch(Some("ada"), &own, None).await?;
        ensure!(!answer.success && answer.stderr.contains("401"), "{answer:?}");
        Ok(())
    })
    .await?;

    // The pod runs as an account of its own, as which nothing was asked: neither done, nor read, nor refused.
    let own = ["get", "pods", "--namespace", VELERO, "--output=jsonpath={.items[*].spec.serviceAccountName}"];
    let accounts = cluster.site.kubectl(&own).await?.ok()?;
    ensure!(accounts.split(' ').any(|name| ACCOUNT.ends_with(&format!(":{name}"))), "{accounts}");
    let all = audit.since(mark).await?;
    let as_itself = all.only(|one| one.user == ACCOUNT);
    ensure!(as_itself.is_empty(), "{:#?}", as_itself.tally());
    // What the people asked for is there, with what was only read.
    let ada = format!("system:serviceaccount:{namespace}:ada");
    let asked = all.by(CONSOLE);
    let reads = asked.only(|one| one.user == ada && one.verb == "list");
    ensure!(!reads.is_empty(), "{:#?}", asked.tally());
    cluster.site.kubectl(&["delete", "pod,secret", PROXY, "--namespace", VELERO, "--now"]).await?.ok()?;
    cluster.cli(&["install", "--console=false", "--wait", "--timeout", "4m"]).await?.ok()?;
    Ok(())
}

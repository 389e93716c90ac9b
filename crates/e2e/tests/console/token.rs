//! The console in a cluster: everybody comes with their own token, and the console has nothing else.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{Bed, Process, eventually};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::browser::Driver;
use crate::cluster::{owner, test_cluster};

/// How the console's requests begin in the audit log.
const CONSOLE: &str = "nacre-console/";

/// A service account with the role admin in a namespace, and its token.
async fn robot(bed: &Bed, namespace: &str) -> Result<String> {
    let meta = json!({"name": "robot", "namespace": namespace});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}]});
    bed.apply_yaml(&account.to_string()).await?;
    bed.apply_yaml(&binding.to_string()).await?;
    let file = bed.service_account_kubeconfig(namespace, "robot").await?;
    let config: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    Ok(config["users"][0]["user"]["token"].as_str().context("a token")?.to_owned())
}

/// The console as its Deployment runs it, with a kubeconfig that it must not read.
async fn console(bed: &Bed, decoy: &Path) -> Result<(Process, String)> {
    let [port] = bed::free_ports()?;
    let config: Value = serde_json::from_slice(&std::fs::read(bed.kubeconfig())?)?;
    let authority = config["clusters"][0]["cluster"]["certificate-authority"].as_str().context("a file")?;
    let bind = format!("127.0.0.1:{port}");
    let program = bed.program(e2e::command_line()?, "console-in-cluster", decoy);
    let program = program.args(["console", "--in-cluster", "--bind", &bind, "--api-server", bed.server()]);
    let process = program.args(["--certificate-authority", authority]).start()?;
    let listens = eventually("the console", Duration::from_mins(2), async || {
        ensure!(process.output().contains("the console listens"), "{}", process.output());
        Ok(())
    });
    process.must_live(listens).await?;
    Ok((process, format!("http://{bind}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_comes_with_their_own_token() -> Result<()> {
    let cluster = test_cluster().await?;
    let bed = &cluster.bed;
    owner("browser-token", "dan").await?;
    let token = robot(bed, "browser-token").await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "decoy", "namespace": "browser-token"}});
    bed.apply_yaml(&account.to_string()).await?;
    let decoy = bed.service_account_kubeconfig("browser-token", "decoy").await?;
    let (process, base) = console(bed, &decoy).await?;
    let mark = bed.audit().mark().await?;
    let driver = Driver::start().await?;
    let browser = driver.browser("robot").await?;

    browser.open(&format!("{base}/ns/browser-token")).await?;
    browser.sees("Paste a token of yours").await?;
    browser.inspect("40-sign-in").await?;
    browser.write("#token", "nonsense").await?;
    browser.click("form[action='/login'] button").await?;
    browser.sees("does not accept this token").await?;
    browser.write("#token", &token).await?;
    browser.click("form[action='/login'] button").await?;
    browser.sees("Which namespace?").await?;
    browser.sees("You are not permitted to list namespaces").await?;
    browser.inspect("42-which-namespace").await?;
    browser.write("#namespace", "browser-token").await?;
    browser.click("form[action='/go'] button").await?;
    browser.sees("Not safe: there is no good backup").await?;
    browser.sees("system:serviceaccount:browser-token:robot").await?;

    // The token is where it must be, and nowhere else.
    let kept = browser
        .script("return JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
        .await?;
    ensure!(kept == json!("[\"\",{},{}]"), "{kept}");
    ensure!(!process.output().contains(&token), "the token is in the log");

    // Nothing was done as the account of the kubeconfig that the console has next to it, whatever it calls itself.
    let all = bed.audit().since(mark).await?;
    let decoys = all.only(|one| one.user == "system:serviceaccount:browser-token:decoy");
    ensure!(decoys.is_empty(), "{decoys:?}");
    // Everything was done as that account: the console has no other.
    let asked = all.by(CONSOLE);
    let robot = "system:serviceaccount:browser-token:robot";
    let own = |one: &&bed::Request| one.user == robot;
    let others: Vec<_> = asked.as_slice().iter().filter(|one| one.code != 401 && !own(one)).collect();
    ensure!(others.is_empty() && asked.as_slice().iter().any(|one| own(&one)), "{asked:?}");

    // The session ends with the token.
    let accounts: Api<ServiceAccount> = Api::namespaced(bed.client().await?, "browser-token");
    accounts.delete("robot", &DeleteParams::default()).await?;
    eventually("the token to be rejected", Duration::from_mins(3), async || {
        // The page that is open finds out by itself, and is not loaded again.
        let text = browser.text().await?;
        ensure!(text.contains("Signed out") || text.contains("Paste a token of yours"), "{text}");
        Ok(())
    })
    .await?;
    browser.inspect("41-signed-out").await?;
    browser.open(&format!("{base}/ns/browser-token")).await?;
    browser.sees("Paste a token of yours").await
}

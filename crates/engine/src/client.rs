//! The Kubernetes client: its user agent, its timeouts, and no retries of its own.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use kube::runtime::watcher;
use kube::{Client, Config};

use crate::leadership::{Gate, Leadership};

/// The user agent, as in the API server's audit log.
pub fn user_agent() -> String {
    format!("nacre/{}", env!("CARGO_PKG_VERSION"))
}

/// How long a watch lasts before it is restarted at its resourceVersion, in seconds. A dead connection may never report
/// an error, so only a timeout detects it.
const WATCHED: u32 = 60;
/// Read timeout of a connection. The API server times out after a minute too.
const SILENCE: Duration = Duration::from_secs(75);

/// How many objects one answer to a list has at most. An object has up to a mebibyte and more, and a tenant can fill
/// several kinds with those, which are all listed at the start: a page of each fits into nacre's memory limit.
const PAGE: u32 = 25;

/// Watch parameters for all objects, with a timeout.
pub fn everything() -> watcher::Config {
    watcher::Config::default().timeout(WATCHED).page_size(PAGE)
}

/// The host names of the API server: the one in use, and the one in every pod's environment.
pub async fn api_server() -> Result<Vec<String>, kube::Error> {
    let ours = config().await?.cluster_url.host().map(str::to_owned);
    let reported = std::env::var("KUBERNETES_SERVICE_HOST").ok().filter(|host| !host.is_empty());
    Ok(ours.into_iter().chain(reported).collect())
}

/// Connects with `KUBECONFIG` or the pod's service account.
pub async fn connect() -> Result<Client, kube::Error> {
    Client::try_from(config().await?)
}

/// The same, but writes are sent only while this process is leader.
pub async fn connect_behind(leadership: &Leadership) -> Result<Client, kube::Error> {
    let line = ClientBuilder::try_from(config().await?)?;
    Ok(line.with_layer(&Gate(leadership.clone())).build())
}

/// `KUBECONFIG` or the default file, else the pod's service account.
async fn config() -> Result<Config, kube::Error> {
    let mut config = match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
        Ok(config) => config,
        Err(_) => Config::infer().await.map_err(kube::Error::InferConfig)?,
    };
    if let Ok(agent) = user_agent().parse() {
        config.headers.push((http::header::USER_AGENT, agent));
    }
    // Which failures are worth retrying, and when, is `error`'s to say: a client that waits by itself holds a worker.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config.write_timeout = Some(Duration::from_secs(30));
    Ok(config)
}

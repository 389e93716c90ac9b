//! A client that says who it is and leaves retrying to us.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::KubeConfigOptions;
use kube::runtime::watcher;
use kube::{Client, Config};

use crate::leadership::{Gate, Leadership};

/// What the API server's audit log calls us.
pub fn user_agent() -> String {
    format!("nacre/{}", env!("CARGO_PKG_VERSION"))
}

/// How long a watch lasts before it is begun anew where it was, in seconds. A line may die without a word, as when the
/// machine at its other end does: then nothing more is heard by it, and only the clock can tell.
const WATCHED: u32 = 60;
/// How long a line may be silent that should not be. The API server gives up after a minute too, and says so.
const SILENCE: Duration = Duration::from_secs(75);

/// Watches everything, and notices when it is cut off.
pub fn everything() -> watcher::Config {
    watcher::Config::default().timeout(WATCHED)
}

/// The hosts by which the API server is reached from here: the one we use, and the one every pod is told.
pub async fn api_server() -> Result<Vec<String>, kube::Error> {
    let ours = config().await?.cluster_url.host().map(str::to_owned);
    let told = std::env::var("KUBERNETES_SERVICE_HOST").ok().filter(|host| !host.is_empty());
    Ok(ours.into_iter().chain(told).collect())
}

/// Connects as the environment says.
pub async fn connect() -> Result<Client, kube::Error> {
    Client::try_from(config().await?)
}

/// The same, by a line on which nothing is written unless this process leads.
pub async fn connect_behind(leadership: &Leadership) -> Result<Client, kube::Error> {
    let line = ClientBuilder::try_from(config().await?)?;
    Ok(line.with_layer(&Gate(leadership.clone())).build())
}

/// As the environment says: `KUBECONFIG` or the usual file, else the pod's own account.
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

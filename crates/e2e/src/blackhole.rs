//! A connection to the API server that can become a black hole, as when the other machine dies: nothing is closed, and
//! no byte is passed on any more.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A line, open.
pub struct Blackhole {
    deaths: watch::Sender<()>,
    /// Leads through it.
    pub kubeconfig: PathBuf,
}

impl Blackhole {
    /// Lays one to the API server of this kubeconfig file.
    pub async fn lay(kubeconfig: &Path) -> Result<Self> {
        let mut file = Kubeconfig::read_from(kubeconfig)?;
        let cluster = file.clusters.first_mut().and_then(|named| named.cluster.as_mut());
        let server = cluster.and_then(|cluster| cluster.server.as_mut()).context("no server is named")?;
        let to: SocketAddr = server.trim_start_matches("https://").parse()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        *server = format!("https://{}:{port}", to.ip());
        let through = kubeconfig.with_file_name(format!("pipe-{port}.kubeconfig"));
        std::fs::write(&through, serde_json::to_string(&file)?).context("writing the pipe's kubeconfig")?;
        let (deaths, _) = watch::channel(());
        let reported = deaths.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, to, reported.subscribe()));
            }
        });
        Ok(Self { deaths, kubeconfig: through })
    }

    /// Whoever talks by it now is never answered again. New calls come through.
    pub fn dies(&self) {
        self.deaths.send_replace(());
    }
}

async fn carry(mut near: TcpStream, to: SocketAddr, mut death: watch::Receiver<()>) {
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        // Both ends stay open, so that neither learns of it.
        _ = death.changed() => pending().await,
    }
}

//! A gate in front of the store: while it is closed, nothing is written there, so whatever Velero is at goes on.

use std::net::Ipv4Addr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) struct Gate {
    open: watch::Sender<bool>,
    /// Where it listens, for `s3Url`.
    pub(crate) url: String,
}

impl Gate {
    /// A closed gate in front of the store at this address.
    pub(crate) async fn closed(store: &str) -> Result<Self> {
        let to = store.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (open, is_open) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, to.clone(), is_open.clone()));
            }
        });
        Ok(Self { open, url })
    }

    /// What waits is written now, and what comes later at once.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn carry(mut near: TcpStream, to: String, is_open: watch::Receiver<bool>) -> Result<()> {
    let mut far = TcpStream::connect(to).await?;
    let (mut from_near, mut to_near) = near.split();
    let (mut from_far, to_far) = far.split();
    tokio::select! {
        sent = send(&mut from_near, to_far, is_open) => sent,
        answered = copy(&mut from_far, &mut to_near) => Ok(answered.map(drop)?),
    }
}

/// Passes requests on. Each begins with a piece of its own: clients wait for the answer to the last one.
async fn send(
    from: &mut tokio::net::tcp::ReadHalf<'_>,
    mut to: tokio::net::tcp::WriteHalf<'_>,
    mut is_open: watch::Receiver<bool>,
) -> Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        if piece[..read].starts_with(b"PUT ") {
            is_open.wait_for(|open| *open).await?;
        }
        to.write_all(&piece[..read]).await?;
    }
}

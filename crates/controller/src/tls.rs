//! TLS connections, for axum to serve.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use engine::Supervisor;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

/// Maximum number of connections; an API server opens a handful.
const CONNECTIONS: usize = 128;
/// How long a handshake may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after accept failed, such as when file descriptors are used up.
const EXHAUSTED: Duration = Duration::from_secs(1);

/// Connections whose TLS handshake is done. Handshakes run concurrently, so a slow client delays nobody.
pub(crate) struct Secured {
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
    local: SocketAddr,
}

/// A connection and its permit.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    _place: OwnedSemaphorePermit,
}

/// Accepts connections for the lifetime of the process.
pub(crate) fn secured(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    supervisor: &Supervisor,
) -> io::Result<Secured> {
    let local = listener.local_addr()?;
    let (sender, ready) = mpsc::channel(16);
    supervisor.spawn("webhook listener", accept(listener, acceptor, sender));
    Ok(Secured { ready, local })
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, ready: mpsc::Sender<(Connection, SocketAddr)>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(EXHAUSTED).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            debug!(%peer, "webhook: connection refused: too many connections");
            continue;
        };
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            match timeout(TIMEOUT, acceptor.accept(stream)).await {
                // The receiver lives as long as the process.
                Ok(Ok(stream)) => drop(ready.send((Connection { stream, _place: place }, peer)).await),
                Ok(Err(error)) => debug!(%peer, %error, "webhook: TLS handshake failed"),
                Err(_) => debug!(%peer, "webhook: TLS handshake timed out"),
            }
        });
    }
}

impl Listener for Secured {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // Whoever accepts lives as long as the process.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }
}

mod io_of_connection {
    //! A connection reads and writes as its stream does.

    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::Connection;

    impl AsyncRead for Connection {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Connection {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }
}

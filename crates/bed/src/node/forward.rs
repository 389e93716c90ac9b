//! A way from this process into the node's network: a port of the loopback address that leads to the API server.
//!
//! Commands run inside the network namespace, but a test is one process with many threads. Sockets belong to the
//! namespace of the thread that opens them, so one thread enters the namespace and opens them all.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Forward {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Forward {
    /// Every connection to its port becomes one to `target`, as seen from the network namespace of a process.
    pub(crate) fn start(process: u32, target: SocketAddr) -> Result<Self> {
        let path = format!("/proc/{process}/ns/net");
        let namespace = File::open(&path).with_context(|| format!("opening {path}"))?;
        // Bound before the thread changes its namespace: it stays a socket of this one.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        thread::Builder::new().name("forward".to_owned()).spawn(move || {
            if move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).is_err() {
                return;
            }
            drop(namespace);
            for client in listener.incoming().flatten() {
                if flag.load(Ordering::Relaxed) {
                    return;
                }
                // Whoever connects while nobody listens there sees the connection closed, and retries.
                if let Ok(server) = TcpStream::connect(target) {
                    let _ = join(client, server);
                }
            }
        })?;
        Ok(Self { address, ended })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies in both directions until each side has closed its own.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })?;
    }
    Ok(())
}

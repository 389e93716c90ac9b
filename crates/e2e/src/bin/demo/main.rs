//! `make demo`: the tenant's story on a real cluster, with real output. Where a node can run, with a real volume.

mod on_node;
mod show;
mod without_node;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use bed::Node;

use crate::show::{heading, line};

#[tokio::main]
async fn main() -> ExitCode {
    let began = Instant::now();
    let reported = tokio::select! {
        reported = story() => reported,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted; the cluster is gone")),
    };
    match reported {
        Ok(look_around) => {
            heading(&format!(
                "SUCCESS: the whole demo took {:.0} s; the cluster is gone again.",
                began.elapsed().as_secs_f64()
            ));
            line(&format!("   To keep one and look around: {look_around}, and make down when done."));
            line("   In a browser: make up, then kubectl nacre --as=ada -n shop console.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            heading(&format!("FAILURE: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the command that starts such a cluster.
async fn story() -> Result<&'static str> {
    let reason = if std::env::args().any(|arg| arg == "--without-node") {
        "--without-node was given".to_owned()
    } else {
        match Node::check_ready() {
            Ok(()) => return Box::pin(on_node::story()).await.map(|()| "make up NODE=1"),
            Err(reason) => format!("{reason:#}"),
        }
    };
    line(&format!("Without a node, so no pod runs and no volume is lost: {reason}."));
    Box::pin(without_node::story()).await.map(|()| "make up")
}

//! `make demo`: the tenant's story on a real cluster, with real output. Where a node can run, with a real volume.

mod on_node;
mod show;
mod without_node;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use bed::Node;
use e2e::check_sqlite;

use crate::show::{heading, line};

#[tokio::main]
async fn main() -> ExitCode {
    let began = Instant::now();
    let reported = tokio::select! {
        reported = story() => reported,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted; the cluster is gone")),
    };
    match reported {
        Ok(kind) => {
            heading(&format!(
                "SUCCESS: the whole demo took {:.0} s; the cluster is gone again.",
                began.elapsed().as_secs_f64()
            ));
            for last in kind.look_around() {
                line(&format!("   {last}"));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            heading(&format!("FAILURE: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// What the story ran on.
#[derive(Clone, Copy)]
enum Kind {
    Node,
    WithoutNode,
}

impl Kind {
    /// How to keep such a cluster, and to open the console on it: as `tools/try.sh` has it.
    fn look_around(self) -> Vec<String> {
        let programs = std::env::current_exe().ok();
        let programs =
            programs.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new("target/release"));
        let path = format!("PATH={}:$PATH", programs.display());
        let console = "kubectl-nacre --as=ada -n shop console";
        let (up, commands) = match self {
            Self::Node => {
                // The console listens in the network of the node, so the browser is started there too.
                let inside = format!("export {path}; .bed/cluster/enter {console} --no-open --port 8090");
                let browser = ".bed/cluster/enter chromium --no-sandbox --user-data-dir=$(mktemp -d) LINK";
                (
                    "make up NODE=1",
                    vec![inside, format!("{browser}   # in a second shell, with the link it prints")],
                )
            }
            Self::WithoutNode => {
                let config = "KUBECONFIG=$PWD/.bed/cluster/kubeconfig/admin";
                ("make up", vec![format!("export {config} {path}; {console}")])
            }
        };
        let keep = format!("To keep one and look around: {up}, and make down when done. In a browser:");
        std::iter::once(keep).chain(commands.into_iter().map(|command| format!("  {command}"))).collect()
    }
}

/// Returns what it ran on.
async fn story() -> Result<Kind> {
    let reason = if std::env::args().any(|arg| arg == "--without-node") {
        "--without-node was given".to_owned()
    } else {
        match Node::check_ready().and_then(|()| check_sqlite()) {
            Ok(()) => return Box::pin(on_node::story()).await.map(|()| Kind::Node),
            Err(reason) => format!("{reason:#}"),
        }
    };
    line(&format!("Without a node, so no pod runs and no volume is lost: {reason}."));
    Box::pin(without_node::story()).await.map(|()| Kind::WithoutNode)
}

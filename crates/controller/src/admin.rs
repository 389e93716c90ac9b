//! /livez, /readyz, /healthz and /metrics.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use engine::Supervisor;
use tokio::net::TcpListener;

use crate::args::Bind;

/// What /readyz reports: whether all caches are synced, and what is disabled because permissions are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub(crate) ready: bool,
    pub(crate) details: Vec<String>,
}

/// Serves the probes, unless they are disabled.
pub(crate) async fn probes(
    bind: Bind,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
    supervisor: &Supervisor,
) -> Result<()> {
    let readiness = Arc::new(readiness);
    let ready = move || async move {
        let now = readiness();
        let code = if now.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let word = if now.ready { "ok" } else { "starting" };
        (code, format!("{word}\n{}\n", now.details.join("\n")))
    };
    let alive = || async { "ok\n" };
    let routes =
        Router::new().route("/livez", get(alive)).route("/healthz", get(alive)).route("/readyz", get(ready));
    serve("probes", bind, routes, supervisor).await
}

/// Serves the metrics, unless they are disabled.
pub(crate) async fn metrics(
    bind: Bind,
    text: Arc<dyn Fn() -> String + Send + Sync>,
    supervisor: &Supervisor,
) -> Result<()> {
    let routes = Router::new().route("/metrics", get(move || async move { text() }));
    serve("metrics", bind, routes, supervisor).await
}

async fn serve(name: &str, bind: Bind, routes: Router, supervisor: &Supervisor) -> Result<()> {
    let Some(address) = bind else { return Ok(()) };
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    supervisor.spawn(name, async move {
        // Serving ends only with the process.
        let _ = axum::serve(listener, routes).await;
    });
    Ok(())
}

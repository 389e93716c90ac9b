//! `console`: what the commands show and do, in a browser, as the person in front of it and with their permissions alone.

mod guard;
mod html;
mod link;
mod live;
mod login;
mod pages;
mod person;
mod replacing;
mod serve;
#[cfg(test)]
mod tests;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{Config, client::ClientBuilder};
use tokio::net::TcpListener;

use self::{
    guard::Address,
    link::Link,
    login::{Logins, SignIn},
    serve::{Console, Storage},
};
use crate::{
    connect::Session,
    interrupt::interrupted,
    output::{Format, Outcome, remark, say},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre console                                opens the console of your namespace in the browser
  kubectl nacre console -n shop --as jane              as somebody else, if you may impersonate
  kubectl nacre console --no-open --port 8080          prints the link only

The console listens on this machine alone. The link it prints holds a code that is valid once; the browser gets a cookie
for it. It has no permissions of its own: it does everything as you. Ctrl-C ends it.
In a cluster (--in-cluster, as `nacre console` runs it) everybody signs in with their own token.")]
pub(crate) struct Args {
    /// The port on this machine. Default: any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Do not open the browser.
    #[arg(long)]
    no_open: bool,

    /// Run for everybody, in the cluster: users sign in with their own token, and no kubeconfig is read.
    #[arg(long)]
    pub(crate) in_cluster: bool,

    /// The address to listen on in the cluster.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8090", requires = "in_cluster")]
    bind: SocketAddr,

    /// The URL that browsers use for the console in the cluster: https://console.example.com.
    #[arg(long, value_name = "URL", requires = "in_cluster", value_parser = Address::of_url)]
    url: Option<Address>,

    /// The certificates of the authority of the administrators' storage, for downloads. Public ones are trusted too. The file
    /// need not exist.
    #[arg(long, value_name = "FILE", requires = "in_cluster")]
    storage_ca: Option<PathBuf>,

    /// The API server, as the console in the cluster reaches it. Default: that of the cluster.
    #[arg(long, value_name = "URL", requires = "in_cluster")]
    api_server: Option<String>,

    /// The certificates of the API server's authority.
    #[arg(long, value_name = "FILE", requires = "in_cluster", default_value = "/etc/nacre/ca.crt")]
    certificate_authority: PathBuf,
}

/// On a laptop, as the person of the kubeconfig.
pub(crate) async fn run(session: &Session, args: &Args) -> Result<Outcome> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
    let listener = listener.with_context(|| format!("listening on port {}", args.port))?;
    let port = listener.local_addr()?.port();
    let mut link = Link::new(port)?;
    let url = link.url();
    let page = if args.no_open { None } else { Some(link.write_page().map(Path::to_owned)) };
    let sign_in = SignIn::Code { session: session.clone(), link: Mutex::new(Some(link)) };
    let console = Console::new(Logins::new(sign_in)?, Address::Loopback(port), Storage::System);
    say(&format!("{url}\n"))?;
    // Some browsers are not permitted to read the page: those that Linux distributions run in a sandbox.
    remark(
        "The link is valid once, on this machine. Open it yourself if the browser does not. Ctrl-C ends the console.",
    );
    if page.is_some_and(|page| !page.is_ok_and(|page| link::open(&page))) {
        remark("No browser could be opened: open the link yourself.");
    }
    let served = serve_until(listener, serve::router(console.clone()), interrupted()).await;
    // A link that nobody used leaves no file behind.
    console.logins.withdraw();
    served
}

/// In a cluster, as whoever signs in, with their token and nothing else.
pub(crate) async fn in_cluster(args: &Args, velero_namespace: &str) -> Result<Outcome> {
    let server = args.api_server.clone().map_or_else(own_api_server, Ok)?;
    let file = &args.certificate_authority;
    let pem = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let authority = certificates(&pem);
    if authority.is_empty() {
        bail!("{} holds no certificate", file.display());
    }
    let mut config = Config::new(server.parse().with_context(|| format!("the API server {server:?}"))?);
    config.root_cert = Some(authority);
    let agent = concat!("nacre-console/", env!("CARGO_PKG_VERSION"));
    config.headers.push(("user-agent".parse()?, agent.parse()?));
    let velero_namespace = velero_namespace.to_owned();
    let connect = move |token: &str| {
        let mut config = config.clone();
        config.auth_info.token = Some(token.to_owned().into());
        Ok(Session {
            client: ClientBuilder::try_from(config)?.build(),
            namespace: String::new(),
            velero_namespace: velero_namespace.clone(),
            format: Format::Table,
            follows_links: false,
        })
    };
    let listener = TcpListener::bind(args.bind).await;
    let listener = listener.with_context(|| format!("listening on {}", args.bind))?;
    remark(format_args!("the console listens on {}, and talks to {server}", listener.local_addr()?));
    let logins = Logins::new(SignIn::Token(Box::new(connect)))?;
    let storage = Storage::Container(args.storage_ca.clone());
    let router = serve::router(Console::new(logins, args.url.clone().unwrap_or(Address::Any), storage));
    serve_until(listener, router, stopped()).await
}

/// The API server of the cluster that this pod is in.
fn own_api_server() -> Result<String> {
    let part = |name| std::env::var(name).with_context(|| format!("{name} is not set: is this a pod?"));
    let host = part("KUBERNETES_SERVICE_HOST")?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Ok(format!("https://{host}:{}", part("KUBERNETES_SERVICE_PORT")?))
}

/// The certificates in a PEM file, each as the client takes them.
fn certificates(pem: &str) -> Vec<Vec<u8>> {
    let blocks = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let bodies = blocks.filter_map(|block| Some(block.split_once("-----END CERTIFICATE-----")?.0));
    bodies.filter_map(|body| STANDARD.decode(body.split_whitespace().collect::<String>()).ok()).collect()
}

/// What a pod is stopped by.
async fn stopped() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminated => {}
        () = interrupted() => {}
    }
}

/// Serves until somebody ends it. Open connections, such as live progress, do not keep it.
async fn serve_until(
    listener: TcpListener,
    router: axum::Router,
    end: impl Future<Output = ()>,
) -> Result<Outcome> {
    tokio::select! {
        served = axum::serve(listener, router) => served.map(|()| Outcome::Good).map_err(Into::into),
        () = end => Ok(Outcome::Good),
    }
}

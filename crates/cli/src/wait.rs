//! `wait`: follow a backup or restore that is on its way.

use std::time::Duration;

use anyhow::Result;

use crate::{
    connect::Session,
    live::ShowsProgress,
    output::Outcome,
    send::{conclude, duration},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup wait daily
  kubectl nacre restore wait back --timeout 30m || echo not yet

Exit codes: 0 Completed, 3 PartiallyFailed or 0 items, 1 Failed, refused or gone, 4 still not over, 130 interrupted.
Ctrl-C ends the wait, not what is waited for.")]
pub(crate) struct Wait {
    /// Which one.
    name: String,

    /// How long to wait. Default: forever.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run<K: ShowsProgress>(session: &Session, args: &Wait) -> Result<Outcome> {
    conclude::<K>(session, &args.name, args.timeout).await
}

//! `wait`: follow a backup, restore or location until it is finished. Each kind has its own examples, at its command.

use std::time::Duration;

use anyhow::Result;

use crate::{
    connect::Session,
    live::ShowsProgress,
    object_name::ObjectName,
    output::Outcome,
    send::{conclude, duration},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// The name of what to wait for, as `get` lists it.
    name: ObjectName,

    /// How long to wait. Default: forever.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run<K: ShowsProgress>(session: &Session, args: &Wait) -> Result<Outcome> {
    conclude::<K>(session, args.name.of::<K>()?, args.timeout).await
}

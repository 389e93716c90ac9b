//! What becomes of a restore, for commands that need more than the page.

use std::sync::Arc;

use anyhow::Result;
use api::{NonAdminRestore, velero::RestoreSpec};
use planner::Policy;

use super::{Manifest, Source, explain, server, world_of};
use crate::{connect::Session, output::without_webhook};

/// Whether a restore would pass, and what Velero would be given.
#[derive(Debug)]
pub(crate) struct RestoreVerdict {
    /// passes, refused, waits or unknown.
    pub(crate) verdict: &'static str,
    /// Why it would not pass now.
    pub(crate) reason: Option<String>,
    /// What Velero would be given, if it would pass.
    pub(crate) spec: Option<RestoreSpec>,
    /// The policy, or the default where it cannot be read.
    pub(crate) policy: Arc<Policy>,
    /// Where the policy was read.
    pub(crate) source: Source,
}

/// Says what would become of a restore if it were sent now.
pub(crate) async fn verdict_of_restore(
    session: &Session,
    restore: &NonAdminRestore,
) -> Result<RestoreVerdict> {
    let manifest = Manifest::Restore(Box::new(restore.clone()));
    let (world, allowed) = world_of(session, &manifest).await?;
    let answer = explain(&world, &manifest, allowed.source);
    let api_server = match allowed.source {
        Source::Unreadable => server::ask(session, &manifest).await?,
        Source::File | Source::Cluster => None,
    };
    let denied = api_server.as_ref().and_then(|server| server.denied.as_deref()).map(without_webhook);
    let answer = answer.checked_by(api_server);
    let spec = answer.velero_spec.map(serde_json::from_value).transpose()?;
    let (verdict, reason) = match denied {
        Some(why) => ("refused", Some(why)),
        None => (answer.verdict, answer.reason),
    };
    let policy = allowed.policy.unwrap_or_default();
    Ok(RestoreVerdict { verdict, reason, spec, policy, source: allowed.source })
}

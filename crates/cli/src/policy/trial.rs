//! Trying a policy on all requests of the cluster.

use anyhow::{Context as _, Result, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use planner::{
    policy::{CONFIG_MAP, KEY, Policies, Reading, load},
    trial::{Observed, Trial, trial},
};

use crate::{
    allowed,
    connect::Session,
    list,
    table::{Cell, Table},
};

/// What a policy in this text would refuse. A DataProtectionApplication of the cluster counts too, unless the text brings
/// its own.
pub(crate) async fn look(session: &Session, text: &str) -> Result<Trial> {
    let examined = planner::policy::examine(text);
    let readings = allowed::from_cluster(session).await?;
    if let (Reading::Forbidden, _) | (_, Reading::Forbidden) = (&readings.config_map, &readings.applications)
    {
        bail!("only administrators, who can read the policy, can try another one on all requests");
    }
    let tried = if examined.plain {
        let mut changed = allowed::from_text(text.to_owned());
        changed.applications = readings.applications.clone();
        load(None, &changed).policies
    } else {
        examined.policies
    };
    let tried = tried.context("this policy would not count, so nothing is tried")?;
    let in_force: Policies = load(None, &readings).policies.unwrap_or_default();
    let spaces: Api<Namespace> = Api::all(session.client.clone());
    let (spaces, backups, restores, locations, schedules) = tokio::try_join!(
        async { Ok(list::in_parts(&spaces).await?) },
        // What became of them does not matter.
        list::everywhere(session, |backup| Some(NonAdminBackup { status: None, ..backup })),
        list::everywhere(session, |restore| Some(NonAdminRestore { status: None, ..restore })),
        list::everywhere(session, |location| Some(NonAdminBackupStorageLocation {
            status: None,
            ..location
        })),
        list::everywhere(session, Some),
    )
    .context("reading all requests, which is for administrators")?;
    let seen = Observed {
        admin_namespace: session.velero_namespace.clone(),
        namespaces: spaces,
        backups,
        restores,
        locations,
        schedules,
        now: Timestamp::now(),
    };
    Ok(trial(&seen, &tried, &in_force))
}

/// The policy as the ConfigMap has it; empty if there is none.
pub(crate) async fn text_in_force(session: &Session) -> String {
    let map = session.in_velero_namespace::<ConfigMap>().get_opt(CONFIG_MAP).await.ok().flatten();
    map.and_then(|map| map.data?.remove(KEY)).unwrap_or_default()
}

/// The result in one sentence.
pub(crate) fn sentence(trial: &Trial) -> String {
    let (refused, requests) = (trial.refused.len(), trial.requests);
    let already = refused - trial.newly_refused();
    let also = match already {
        0 => String::new(),
        _ => format!(", {already} of which the policy in force refuses too"),
    };
    format!("would refuse {refused} of {requests} requests{also}")
}

/// What would be refused, the new ones first.
pub(crate) fn table(trial: &Trial) -> Table {
    let mut table = Table::new(&["KIND", "NAMESPACE", "NAME", "NOW", "WHY"]);
    let mut refused: Vec<_> = trial.refused.iter().collect();
    refused.sort_by_key(|one| (one.refused_already, one.namespace.clone(), one.kind, one.name.clone()));
    for one in refused {
        let now = if one.refused_already { "refused" } else { "accepted" };
        table.row([
            Cell::from(one.kind),
            one.namespace.as_str().into(),
            one.name.as_str().into(),
            now.into(),
            one.reason.as_str().into(),
        ]);
    }
    table
}

//! ConfigMaps of nacre's own that make something survive a restart, or that the API server reads. They are written when that changes, and at no other
//! time.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use engine::{Cluster, Executor, Leadership, Retry, Supervisor, chain};
use planner::policy::IN_FORCE;
use planner::requester::LIST;
use planner::turns::LEDGER;
use planner::usage::RECORD;
use planner::{Action, Key, Plan, State};
use tokio::time::{Instant, sleep};

/// How long to wait before the same is written again for which the permission was missing.
const WITHOUT_PERMISSION: Duration = Duration::from_mins(10);

/// What is kept in a ConfigMap.
struct Record {
    task: &'static str,
    name: &'static str,
    /// The write that makes the ConfigMap current, if one is needed.
    write: fn(&State) -> Option<Action>,
    /// The shortest time between two writes.
    interval: Duration,
    /// What is missing without it.
    missing: &'static str,
}

/// The policy in force, for when its source vanishes.
const POLICY: Record = Record {
    task: "policy copy",
    name: IN_FORCE,
    write: State::policy_copy_write,
    interval: Duration::from_secs(1),
    missing: "a policy that vanishes is not in force after a restart of nacre",
};

/// What deleted backups and restores used today. Many that are deleted at once are one write.
const USAGE: Record = Record {
    task: "usage",
    name: RECORD,
    write: State::usage_record_write,
    interval: Duration::from_secs(5),
    missing: "what deleted backups used today is forgotten after a restart of nacre",
};

/// What namespaces have used of Velero, which decides whose turn it is.
const TURNS: Record = Record {
    task: "queue ledger",
    name: LEDGER,
    write: State::ledger_write,
    interval: Duration::from_mins(1),
    missing: "what a namespace has used of Velero is forgotten with its backups when nacre restarts",
};

/// Which extra fields of users are recorded. The API server reads it.
const EXTRA: Record = Record {
    task: "requester extra",
    name: LIST,
    write: State::requester_extra_write,
    interval: Duration::from_secs(1),
    missing: "the extra fields of users that are recorded are not those that the policy lists",
};

/// Keeps all records current.
pub(crate) fn keep_all(
    supervisor: &Supervisor,
    cluster: &Arc<Cluster>,
    executor: &Executor,
    leadership: &Leadership,
) {
    for record in [POLICY, USAGE, TURNS, EXTRA] {
        let task = record.task;
        supervisor.spawn(task, keep(record, cluster.clone(), executor.clone(), leadership.clone()));
    }
}

/// Keeps a record current.
async fn keep(record: Record, cluster: Arc<Cluster>, executor: Executor, leadership: Leadership) {
    let mut failures = 0_u32;
    // What nacre has no permission to write, and until when it does not try again.
    let mut refused: Option<(Action, Instant)> = None;
    loop {
        sleep(record.interval).await;
        leadership.until_leader().await;
        let (about, write) = {
            let look = cluster.look();
            let about = Key::new(Kind::ConfigMap, look.admin_namespace(), record.name);
            (about, (record.write)(&look))
        };
        let known = |write: &Action| {
            refused.as_ref().is_some_and(|(action, until)| action == write && Instant::now() < *until)
        };
        let Some(write) = write.filter(|write| !known(write)) else { continue };
        let Err(failure) = executor.execute(&about, &Plan::done().then(write.clone())).await else {
            (failures, refused) = (0, None);
            cluster.degraded().enable(record.missing);
            continue;
        };
        failures = failures.saturating_add(1);
        if failure.retry() == Retry::BackOff {
            let why = format!("its record, ConfigMap {}, is not written: {}", record.name, chain(&failure));
            cluster.degraded().disable(record.missing, &why);
        }
        match failure.status().map(|status| status.code) {
            Some(403) => refused = Some((write, Instant::now() + WITHOUT_PERMISSION)),
            _ => sleep(failure.retry().after(failures).delay().unwrap_or(record.interval)).await,
        }
    }
}

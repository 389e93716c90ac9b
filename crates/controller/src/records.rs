//! ConfigMaps of nacre's own that make something survive a restart, or that the API server reads. They are written when that changes, and at no other
//! time.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use engine::{Cluster, Executor, Leadership, Retry, Supervisor, chain};
use planner::{Action, Key, Plan, State, records};
use tokio::time::{Instant, sleep};

/// How long to wait before the same is written again for which the permission was missing.
const WITHOUT_PERMISSION: Duration = Duration::from_mins(10);

/// How a ConfigMap is kept current.
struct Record {
    task: &'static str,
    of: records::Record,
    /// The write that makes the ConfigMap current, if one is needed.
    write: fn(&State) -> Option<Action>,
    /// The shortest time between two writes.
    interval: Duration,
}

const POLICY: Record = Record {
    task: "policy copy",
    of: records::POLICY,
    write: State::policy_copy_write,
    interval: Duration::from_secs(1),
};

/// Many backups that are deleted at once are one write.
const USAGE: Record = Record {
    task: "usage",
    of: records::USAGE,
    write: State::usage_record_write,
    interval: Duration::from_secs(5),
};

const TURNS: Record = Record {
    task: "queue ledger",
    of: records::TURNS,
    write: State::ledger_write,
    interval: Duration::from_mins(1),
};

const EXTRA: Record = Record {
    task: "requester extra",
    of: records::EXTRA,
    write: State::requester_extra_write,
    interval: Duration::from_secs(1),
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
    let records::Record { name, missing } = record.of;
    let mut failures = 0_u32;
    // What nacre has no permission to write, and until when it does not try again.
    let mut refused: Option<(Action, Instant)> = None;
    loop {
        sleep(record.interval).await;
        leadership.until_leader().await;
        let (about, write) = {
            let look = cluster.look();
            let about = Key::new(Kind::ConfigMap, look.admin_namespace(), name);
            (about, (record.write)(&look))
        };
        let known = |write: &Action| {
            refused.as_ref().is_some_and(|(action, until)| action == write && Instant::now() < *until)
        };
        let Some(write) = write.filter(|write| !known(write)) else { continue };
        let Err(failure) = executor.execute(&about, &Plan::done().then(write.clone())).await else {
            (failures, refused) = (0, None);
            cluster.degraded().enable(missing);
            continue;
        };
        failures = failures.saturating_add(1);
        if failure.retry() == Retry::BackOff {
            let why = format!("its record, ConfigMap {name}, is not written: {}", chain(&failure));
            cluster.degraded().disable(missing, &why);
        }
        match failure.status().map(|status| status.code) {
            Some(403) => refused = Some((write, Instant::now() + WITHOUT_PERMISSION)),
            _ => sleep(failure.retry().after(failures).delay().unwrap_or(record.interval)).await,
        }
    }
}

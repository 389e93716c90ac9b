//! Telling administrators what is wrong with the policy, as Events on whatever says it. The same is in `/readyz` and counted in
//! `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use api::{DataProtectionApplication, Kind};
use engine::{Cluster, Leadership, Teller};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use planner::policy::{CONFIG_MAP, Problem, Source};
use planner::state::WatchedKind;
use planner::{Event, State};
use tokio::time::sleep;

/// How often to see whether there is something new to tell.
const LOOK: Duration = Duration::from_secs(1);
/// The policy as written is not the one that counts.
const BROKEN: &str = "PolicyBroken";
/// It is again.
const MENDED: &str = "PolicyMended";

/// Tells each mistake once, and once that all are mended, for as long as the process runs.
pub(crate) async fn tell_problems(cluster: Arc<Cluster>, teller: Teller, leadership: Leadership) {
    let mut told: Vec<Problem> = Vec::new();
    loop {
        sleep(LOOK).await;
        leadership.granted().await;
        let look = cluster.look();
        let problems: Vec<Problem> =
            look.policy_problems().iter().filter(|problem| problem.is_error()).cloned().collect();
        if problems == told {
            continue;
        }
        for problem in problems.iter().filter(|problem| !told.contains(problem)) {
            let (kind, about) = place(&look, problem.source);
            let note = format!("{problem}; until this is mended, the last good policy goes on counting");
            teller.tell(kind, &about, &Event::warning(BROKEN, note));
        }
        if problems.is_empty()
            && let Some(last) = told.last()
        {
            let (kind, about) = place(&look, last.source);
            teller.tell(kind, &about, &Event::normal(MENDED, "the policy as written counts"));
        }
        told = problems;
    }
}

/// The object that says it.
fn place(look: &State, source: Source) -> (Kind, ObjectMeta) {
    let (kind, found) = match source {
        Source::ConfigMap => {
            let map: Option<Arc<ConfigMap>> = look.config_map(CONFIG_MAP);
            (Kind::ConfigMap, map.map(|map| map.metadata.clone()))
        }
        Source::DataProtectionApplication => {
            let first = DataProtectionApplication::store(look).all().next();
            (Kind::DataProtectionApplication, first.map(|seen| seen.object.metadata.clone()))
        }
    };
    let nowhere = || ObjectMeta {
        name: Some(CONFIG_MAP.to_owned()),
        namespace: Some(look.admin_namespace().to_owned()),
        ..ObjectMeta::default()
    };
    (kind, found.unwrap_or_else(nowhere))
}

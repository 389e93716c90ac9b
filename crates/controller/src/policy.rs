//! Reports problems of the policy to administrators: as Events on the object that contains them, in `/readyz` and in
//! `/metrics`. And keeping a policy that vanished in force for as long as it is to be.

use std::sync::Arc;
use std::time::Duration;

use api::{DataProtectionApplication, Kind};
use engine::{Cluster, EventRecorder, Leadership};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use planner::policy::{CONFIG_MAP, Problem, Source, Vanished, WHEN_VANISHED};
use planner::state::WatchedKind;
use planner::{Event, State};
use tokio::time::sleep;

/// How often to check for new problems.
const INTERVAL: Duration = Duration::from_secs(1);
/// Event reason: the policy as written is not in effect.
const BROKEN: &str = "PolicyBroken";
/// Event reason: the policy as written is in effect again.
const MENDED: &str = "PolicyMended";
/// A source of the policy is gone, and in force for ten minutes more.
const VANISHED: &str = "PolicyVanished";
/// It is there again.
const RETURNED: &str = "PolicyReturned";
/// It was gone for so long that it is no longer in force.
const ENDED: &str = "PolicyEnded";

/// Tells each mistake once, and once that all are mended, and likewise of a policy that vanishes, for as long as the
/// process runs.
pub(crate) async fn report_problems(cluster: Arc<Cluster>, recorder: EventRecorder, leadership: Leadership) {
    let mut reported: Vec<Problem> = Vec::new();
    let mut vanished: Vec<Vanished> = Vec::new();
    loop {
        sleep(INTERVAL).await;
        leadership.until_leader().await;
        let look = cluster.look();
        let now = look.policy_vanished().to_vec();
        for (about, event) in news(&vanished, &now, Timestamp::now()) {
            let (kind, about) = gone(&look, about);
            recorder.record(kind, &about, &event);
        }
        vanished = now;
        let problems: Vec<Problem> =
            look.policy_problems().iter().filter(|problem| problem.is_error()).cloned().collect();
        if problems == reported {
            continue;
        }
        for problem in problems.iter().filter(|problem| !reported.contains(problem)) {
            let (kind, about) = place(&look, problem.source);
            let note = format!("{problem}; until this is fixed, the last valid policy stays in effect");
            recorder.record(kind, &about, &Event::warning(BROKEN, note));
        }
        if problems.is_empty()
            && let Some(last) = reported.last()
        {
            let (kind, about) = place(&look, last.source);
            recorder.record(kind, &about, &Event::normal(MENDED, "the policy as written counts"));
        }
        reported = problems;
    }
}

/// What is to be told of sources that vanished, given what was told before.
fn news<'a>(before: &'a [Vanished], now: &'a [Vanished], time: Timestamp) -> Vec<(&'a Vanished, Event)> {
    let appeared = now.iter().filter(|one| !before.contains(one));
    let appeared =
        appeared.map(|one| (one, Event::warning(VANISHED, format!("{one}. To do: {WHEN_VANISHED}"))));
    let over = before.iter().filter(|one| !now.contains(one)).map(|one| {
        let event = if time < one.until {
            Event::normal(RETURNED, "the policy is there again and counts as written")
        } else {
            Event::warning(
                ENDED,
                format!("{} {} is still gone: its policy no longer applies", one.source, one.name),
            )
        };
        (one, event)
    });
    appeared.chain(over).collect()
}

/// Lets go of a policy that vanished when its time is over. Standbys do so too: their webhooks decide by the policy.
pub(crate) async fn end_vanished(cluster: Arc<Cluster>) {
    loop {
        sleep(INTERVAL).await;
        cluster.end_vanished_policy();
    }
}

/// The object that vanished, or the one that took its place.
fn gone(look: &State, vanished: &Vanished) -> (Kind, ObjectMeta) {
    let (kind, found) = place(look, vanished.source);
    let there = found.name.as_deref() == Some(vanished.name.as_str());
    let nowhere = || ObjectMeta {
        name: Some(vanished.name.clone()),
        namespace: Some(look.admin_namespace().to_owned()),
        ..ObjectMeta::default()
    };
    (kind, if there { found } else { nowhere() })
}

/// The object that contains the problem.
fn place(look: &State, source: Source) -> (Kind, ObjectMeta) {
    let (kind, found) = match source {
        Source::ConfigMap => {
            let map: Option<Arc<ConfigMap>> = look.admin::<ConfigMap>(CONFIG_MAP);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn vanished() -> Vanished {
        let time = |text: &str| text.parse().unwrap();
        Vanished {
            source: Source::ConfigMap,
            name: CONFIG_MAP.to_owned(),
            since: time("2026-11-16T12:00:00Z"),
            until: time("2026-11-16T12:10:00Z"),
        }
    }

    #[test]
    fn a_policy_that_vanishes_is_told_once_and_how_it_ended() {
        let (gone, none) = ([vanished()], []);
        let soon = "2026-11-16T12:01:00Z".parse().unwrap();
        let reported = |before: &[Vanished], now: &[Vanished], time| -> Vec<(bool, &'static str, String)> {
            let all = news(before, now, time).into_iter();
            all.map(|(_, event)| (event.warning, event.reason, event.note)).collect()
        };
        let first = reported(&none, &gone, soon);
        assert_eq!((first.len(), first[0].0, first[0].1), (1, true, VANISHED));
        assert!(first[0].2.contains("stays in force until 2026-11-16T12:10:00Z"), "{first:?}");
        assert!(first[0].2.contains("storageLocations.requireApproval: false"), "{first:?}");
        assert!(reported(&gone, &gone, soon).is_empty());
        assert_eq!(reported(&gone, &none, soon)[0].1, RETURNED);
        let late = reported(&gone, &none, vanished().until);
        assert_eq!((late[0].0, late[0].1), (true, ENDED));
    }
}

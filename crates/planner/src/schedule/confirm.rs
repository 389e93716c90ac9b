//! Runs are asked for by the person who last changed the schedule. What was recorded of that person ages: groups change,
//! people leave. So after `requester.maxAge` somebody has to confirm the schedule, by any change of its spec.
//!
//! The API server's record has no time. So nacre writes down when it first saw the generation of the spec. nacre itself
//! changes a spec only right after somebody did (`skipImmediately`), or when administrators change a default schedule.

use api::condition::{self, Finding, Status};
use api::{Confirmation, NonAdminScheduleStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Observed, status::whole};
use crate::policy::RequesterMode;
use crate::requester::{self, Identity};
use crate::{Event, Policy};

/// How long before the end somebody is asked to confirm: at most this, and at most a quarter of the whole time.
const LEAD: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Since when it is known who asks for the runs, and until when; none where nothing is checked.
pub(super) fn confirmation(seen: &Observed, policy: &Policy) -> Option<Confirmation> {
    let limit = SignedDuration::try_from(policy.requester.max_age()?).ok()?;
    let meta = &seen.schedule.metadata;
    let known = matches!(requester::of(meta), Identity::Known(_));
    if policy.requester.mode == RequesterMode::Ignore || !known {
        return None;
    }
    let generation = meta.generation.unwrap_or_default();
    let before = seen.reported().and_then(|status| status.confirmation.as_ref());
    // Later than now is a clock that was set back since.
    let before = before.filter(|before| before.generation == generation && before.time.0 <= seen.now);
    let time = before.map_or_else(|| whole(seen.now), |before| before.time.clone());
    let until = time.0.checked_add(limit).unwrap_or(Timestamp::MAX);
    Some(Confirmation { generation, time, until: Time(until) })
}

/// Why no run is made until somebody confirms the schedule. Runs that need no permissions go on.
pub(super) fn overdue(seen: &Observed, policy: &Policy) -> Option<String> {
    let confirmation = confirmation(seen, policy).filter(|found| found.until.0 <= seen.now)?;
    let stops = policy.requester.mode == RequesterMode::Enforce && needs_permissions(seen);
    stops.then(|| format!("nobody confirmed the schedule until {}: {}", confirmation.until.0, how(seen)))
}

fn needs_permissions(seen: &Observed) -> bool {
    requester::needs_permissions(&seen.schedule.spec.template.backup_spec)
}

fn how(seen: &Observed) -> String {
    format!("run kubectl nacre schedule confirm {}, or change its spec", seen.name())
}

/// Reports until when the schedule has to be confirmed, and the Event when that is near or past.
pub(super) fn report(seen: &Observed, policy: &Policy, status: &mut NonAdminScheduleStatus) -> Option<Event> {
    status.confirmation = confirmation(seen, policy);
    let Some(Confirmation { time, until, .. }) = &status.confirmation else {
        condition::remove(&mut status.conditions, condition::REQUESTER_CONFIRMED);
        return None;
    };
    let lead = LEAD.min(until.0.duration_since(time.0) / 4);
    let left = until.0.duration_since(seen.now);
    let user = requester::of(&seen.schedule.metadata);
    let asked = format!("{:?} asks for the runs", user.user().unwrap_or_default());
    let (is, reason, message) = if left > lead {
        let message = format!("{asked}, which has to be confirmed until {}", until.0);
        (Status::True, condition::RECENTLY_CONFIRMED, message)
    } else if left.is_positive() {
        let message = format!("{asked}, which has to be confirmed until {}: {}", until.0, how(seen));
        (Status::False, condition::CONFIRMATION_DUE, message)
    } else {
        let stopped = overdue(seen, policy).is_some();
        let runs = if stopped { "no run is made" } else { "runs go on, since they need no permissions" };
        let message = format!("{asked}, and nobody confirmed it until {}; {runs}: {}", until.0, how(seen));
        (Status::False, condition::CONFIRMATION_OVERDUE, message)
    };
    let before = condition::get(&status.conditions, condition::REQUESTER_CONFIRMED);
    let news = is == Status::False && before.is_none_or(|before| before.reason != reason);
    let event = news.then(|| Event::warning(reason, message.clone()));
    let finding = Finding { type_: condition::REQUESTER_CONFIRMED, status: is, reason, message: &message };
    condition::set(&mut status.conditions, finding, seen.schedule.metadata.generation, seen.now);
    event
}

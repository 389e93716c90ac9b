//! What a request that waits for its turn shows: its position, and when it starts.

use api::QueueInfo;
use api::condition::{self, Finding, Status};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{Estimate, Place};

/// Why a position is no promise.
const MAY_RISE: &str = "more if a namespace asks that has used less";

impl Estimate {
    /// The estimate that a status shows.
    pub fn shown(info: &QueueInfo) -> Option<Self> {
        let time = |time: &Option<Time>| Some(time.as_ref()?.0);
        let [about, earliest, latest] =
            [&info.estimated_start, &info.earliest_start, &info.latest_start].map(time);
        Some(Self { about: about?, earliest: earliest?, latest: latest? })
    }
}

/// What is shown at this place, given what is shown already: an estimate stays for as long as it holds.
fn info(place: Place, shown: Option<&QueueInfo>, now: Timestamp) -> QueueInfo {
    let estimated_queue_position = place.position();
    let newer = if let Place::Behind(_, estimate) = place { estimate } else { None };
    let before = shown.and_then(Estimate::shown);
    let estimate = match (before, newer) {
        (Some(before), Some(newer)) if before.still_holds(&newer, now) => Some(before),
        _ => newer,
    };
    QueueInfo {
        estimated_queue_position,
        estimated_start: estimate.map(|estimate| Time(estimate.about)),
        earliest_start: estimate.map(|estimate| Time(estimate.earliest)),
        latest_start: estimate.map(|estimate| Time(estimate.latest)),
    }
}

/// How far off what is shown is; none if it can stay. Where no estimate is shown, the CRD may not know estimates (OADP's do
/// not): then one comes with the next position, and never causes a write by itself.
pub fn off(place: Place, shown: &QueueInfo, now: Timestamp) -> Option<u64> {
    let off = shown.estimated_queue_position.abs_diff(place.position());
    let before = Estimate::shown(shown);
    let holds = before.is_none() || Estimate::shown(&info(place, Some(shown), now)) == before;
    (off > 0 || !holds).then_some(off.max(1))
}

/// Writes the position and the estimate into a status, in a field and in a condition.
pub(crate) fn show(
    place: Place,
    (conditions, shown): (&mut Vec<Condition>, &mut Option<QueueInfo>),
    generation: Option<i64>,
    now: Timestamp,
) {
    let reason = match place {
        Place::OnHold(_) => condition::HELD_BY_ADMINISTRATOR,
        Place::AtLimit(_) => condition::NAMESPACE_LIMIT_REACHED,
        Place::Next(_) | Place::Behind(..) => condition::OTHERS_FIRST,
    };
    let before = condition::get(conditions, condition::WAITING_FOR_TURN);
    let same =
        before.is_some_and(|before| before.reason == reason && before.observed_generation == generation);
    if same && shown.as_ref().is_some_and(|shown| off(place, shown, now).is_none()) {
        return;
    }
    let info = info(place, shown.as_ref(), now);
    let message = message(place, &info);
    let finding =
        Finding { type_: condition::WAITING_FOR_TURN, status: Status::True, reason, message: &message };
    condition::set(conditions, finding, generation, now);
    *shown = Some(info);
}

fn message(place: Place, info: &QueueInfo) -> String {
    let ahead = info.estimated_queue_position - 1;
    match Estimate::shown(info) {
        _ if matches!(place, Place::OnHold(_)) => {
            "an administrator holds it back; it goes on once it is released".to_owned()
        }
        _ if matches!(place, Place::AtLimit(_)) => format!(
            "this namespace has as many unfinished restores as it may have, which is {ahead}; it goes on when one of them \
             has ended"
        ),
        Some(estimate) => format!("starts at about {}; {ahead} ahead of you, {MAY_RISE}", times(&estimate)),
        None => format!("{ahead} ahead of you, {MAY_RISE}"),
    }
}

/// As in `2026-01-01 14:32 UTC (14:28 to 14:40)`.
fn times(estimate: &Estimate) -> String {
    let Estimate { about, earliest, latest } = estimate;
    let all = [about, earliest, latest].map(|time| time.to_zoned(TimeZone::UTC));
    let clock = if all.iter().all(|time| time.second() == 0) { "%H:%M" } else { "%H:%M:%S" };
    let day = |at: usize| {
        let same = at > 0 && all[at].date() == all[0].date();
        let format = if same { clock.to_owned() } else { format!("%Y-%m-%d {clock}") };
        all[at].strftime(&format).to_string()
    };
    format!("{} UTC ({} to {})", day(0), day(1), day(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn estimate(about: &str, earliest: &str, latest: &str) -> Estimate {
        Estimate { about: at(about), earliest: at(earliest), latest: at(latest) }
    }

    fn shown(place: Place) -> (Vec<Condition>, Option<QueueInfo>) {
        let (mut conditions, mut info) = (Vec::new(), None);
        show(place, (&mut conditions, &mut info), Some(1), at("2026-01-01T14:20:00Z"));
        (conditions, info)
    }

    fn words(place: Place) -> String {
        shown(place).0.remove(0).message
    }

    #[test]
    fn the_message_has_times_that_stay_true() {
        let soon = estimate("2026-01-01T14:32:00Z", "2026-01-01T14:28:00Z", "2026-01-01T14:40:00Z");
        assert_eq!(
            words(Place::Behind(3, Some(soon))),
            "starts at about 2026-01-01 14:32 UTC (14:28 to 14:40); 3 ahead of you, more if a namespace asks that has used less"
        );
        let night = estimate("2026-01-01T23:50:00Z", "2026-01-01T23:40:10Z", "2026-01-02T00:40:00Z");
        assert_eq!(times(&night), "2026-01-01 23:50:00 UTC (23:40:10 to 2026-01-02 00:40:00)");
        assert_eq!(
            words(Place::Behind(2, None)),
            "2 ahead of you, more if a namespace asks that has used less"
        );
        assert_eq!(
            words(Place::AtLimit(2)),
            "this namespace has as many unfinished restores as it may have, which is 2; it goes on when one of them has ended"
        );
        assert_eq!(words(Place::OnHold(3)), "an administrator holds it back; it goes on once it is released");
    }

    /// Released clients show the first position as the next one to start.
    #[test]
    fn what_is_held_back_is_never_the_next_one() {
        let position = |ahead| shown(Place::OnHold(ahead)).1.unwrap().estimated_queue_position;
        assert_eq!([0, 1, 4].map(position), [2, 2, 5]);
    }

    #[test]
    fn an_estimate_that_holds_is_not_written_again_and_one_that_is_over_is() {
        let soon = estimate("2026-01-01T14:32:00Z", "2026-01-01T14:28:00Z", "2026-01-01T14:40:00Z");
        let later = estimate("2026-01-01T14:36:00Z", "2026-01-01T14:30:00Z", "2026-01-01T14:42:00Z");
        let (mut conditions, mut info) = shown(Place::Behind(3, Some(soon)));
        let before = (conditions.clone(), info.clone());
        let mut again = |place, now| {
            show(place, (&mut conditions, &mut info), Some(1), at(now));
            (conditions.clone(), info.clone())
        };
        assert_eq!(again(Place::Behind(3, Some(later)), "2026-01-01T14:30:00Z"), before);
        let (_, moved) = again(Place::Behind(2, Some(later)), "2026-01-01T14:30:00Z");
        assert_eq!(Estimate::shown(&moved.unwrap()), Some(soon), "only the position is another");
        let (_, over) = again(Place::Behind(2, Some(later)), "2026-01-01T14:41:00Z");
        assert_eq!(Estimate::shown(&over.unwrap()), Some(later));
    }

    /// Under OADP's CRDs the API server drops the fields.
    #[test]
    fn an_estimate_that_the_crd_does_not_know_causes_no_write_by_itself() {
        let soon = estimate("2026-01-01T14:32:00Z", "2026-01-01T14:28:00Z", "2026-01-01T14:40:00Z");
        let (mut conditions, _) = shown(Place::Behind(3, Some(soon)));
        let before = conditions.clone();
        let pruned = QueueInfo { estimated_queue_position: 4, ..QueueInfo::default() };
        let mut info = Some(pruned.clone());
        let later = estimate("2026-01-01T16:36:00Z", "2026-01-01T15:30:00Z", "2026-01-01T17:42:00Z");
        assert_eq!(off(Place::Behind(3, Some(later)), &pruned, at("2026-01-01T15:00:00Z")), None);
        show(
            Place::Behind(3, Some(later)),
            (&mut conditions, &mut info),
            Some(1),
            at("2026-01-01T15:00:00Z"),
        );
        assert_eq!((conditions, info), (before, Some(pruned)));
    }
}

//! What matters about a namespace.

use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, NonAdminSchedule, condition};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;
use planner::{
    HealedBy, healed_by,
    last_good::{self, ClaimSafety, Problem, Seen},
};
use serde::Serialize;

use crate::{
    describe::page::moment,
    location::{known::Known, state::LocationState},
    preview::World,
    progress::{End, RequestProgress, State},
    schedule,
    text::age,
};

/// What matters about a namespace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) namespace: String,
    /// The newest backup that could bring the whole namespace back now.
    pub(crate) last_good: Option<Line>,
    /// Whether there is one, and no later backup went wrong.
    pub(crate) last_was_good: bool,
    /// Backups that ended since then and are not good, with the reason, oldest first.
    pub(crate) not_counted: Vec<Line>,
    pub(crate) running: Vec<Line>,
    pub(crate) queued: Vec<Line>,
    /// Held back, and by what. They go on by themselves when that is over.
    pub(crate) waiting: Vec<Line>,
    /// Refused for what they say.
    pub(crate) refused: Vec<Line>,
    /// Ended badly since the last good one.
    pub(crate) failed: Vec<Line>,
    /// Restores that are not over, and the one that ended last.
    pub(crate) restores: Vec<Line>,
    pub(crate) locations: Vec<Line>,
    /// When each schedule runs next, and its last good backup.
    pub(crate) schedules: Vec<Line>,
    pub(crate) used: Used,
    /// What the administrators allow; none if that cannot be read.
    pub(crate) limits: Option<Limits>,
    /// Backups of an earlier namespace of this name that wait for an administrator.
    pub(crate) held_back: usize,
    /// The claims that exist now; none if they cannot be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claims: Option<Vec<Claim>>,
    /// Why the namespace is not safe, or not all of it.
    pub(crate) problems: Vec<Attention>,
}

/// A claim, and where its data stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    pub(crate) name: String,
    /// Saved, LeftOut, NotSaved, NotInIt, NoGoodBackup or Unknown.
    pub(crate) data: String,
    pub(crate) message: String,
    #[serde(skip)]
    pub(crate) safety: ClaimSafety,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<i64>,
}

/// A reason why the namespace is not safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Attention {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl From<&Problem> for Attention {
    fn from(problem: &Problem) -> Self {
        Self { reason: problem.reason(), message: problem.to_string() }
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) message: String,
    /// What holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<&'static str>,
    /// Why it is not a good backup, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_good: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Timestamp>,
    #[serde(skip)]
    pub(crate) good: bool,
}

/// How much of the limits is used.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Used {
    pub(crate) backups: usize,
    pub(crate) unfinished: usize,
    pub(crate) locations: usize,
}

/// What the administrators allow.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Limits {
    pub(crate) backups: Option<usize>,
    pub(crate) unfinished: Option<usize>,
    pub(crate) locations: Option<usize>,
}

fn line(progress: &RequestProgress<'_>) -> Line {
    Line {
        name: progress.name().to_owned(),
        status: progress.word().to_owned(),
        message: progress.sentence(),
        waits_for: None,
        not_good: None,
        ended: progress.velero.completed,
        expires: progress.velero.expires,
        good: progress.state() == State::Finished(End::Completed),
    }
}

/// What a backup waits for, and the message.
fn held_by<'a>(progress: &RequestProgress<'a>, has_location: bool) -> Option<(&'static str, &'a str)> {
    let State::Waiting(why) = progress.state() else { return None };
    let accepted = condition::get(progress.conditions, condition::ACCEPTED)?;
    let for_what = match (healed_by(accepted)?, accepted.reason.as_str()) {
        (HealedBy::Limit, _) => "a limit to be free again",
        (_, condition::POLICY_UNAVAILABLE) => "the policy",
        (_, condition::NAMESPACE_NOT_SEEN) => "its namespace",
        // The only other object that a backup waits for is its location.
        (HealedBy::OtherObject, _) if has_location => "its location",
        _ => "the cluster",
    };
    Some((for_what, why))
}

fn waiting((for_what, why): (&'static str, &str), progress: &RequestProgress<'_>) -> Line {
    let message = format!("for {for_what}: {why}");
    Line { message, waits_for: Some(for_what), ..line(progress) }
}

impl Line {
    /// Velero could not back up what was asked for, or not all of it.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.not_good, Some("Failed" | "PartiallyFailed"))
    }
}

impl Summary {
    pub(crate) fn of(
        namespace: &str,
        backups: &[NonAdminBackup],
        restores: &[NonAdminRestore],
        locations: &Known,
        held_back: usize,
        limits: Option<Limits>,
        now: Timestamp,
    ) -> Self {
        let mut stories: Vec<RequestProgress<'_>> = backups.iter().map(RequestProgress::from).collect();
        stories.sort_by_key(|progress| (progress.meta.creation_timestamp.clone(), progress.name()));
        let which = |wanted: fn(State<'_>) -> bool| {
            stories.iter().filter(|progress| wanted(progress.state())).map(line).collect::<Vec<_>>()
        };
        let has_location = |progress: &RequestProgress<'_>| {
            let meant =
                backups.iter().find(|backup| backup.metadata.name.as_deref() == Some(progress.name()));
            meant.is_some_and(|backup| backup.spec.backup_spec.storage_location.is_some())
        };
        let held = |progress: &RequestProgress<'_>| {
            held_by(progress, has_location(progress)).map(|by| waiting(by, progress))
        };
        let refused = |progress: &RequestProgress<'_>| match progress.state() {
            State::Refused(why) => Some(Line { message: why.to_owned(), ..line(progress) }),
            _ => None,
        };
        let found = last_good::find(backups, |backup| locations.storage(backup), now);
        let attention = found.not_counted.iter().any(|(_, why)| why.needs_attention());
        let not_counted: Vec<Line> = found
            .not_counted
            .iter()
            .rev()
            .map(|(backup, why)| {
                let line = line(&RequestProgress::from(*backup));
                let ended = last_good::ended(backup);
                Line { message: why.to_string(), not_good: Some(why.reason()), ended, ..line }
            })
            .collect();
        let failed = |line: &&Line| line.has_failed();
        let sentence = |failed: &Line| {
            let progress = stories.iter().find(|progress| progress.name() == failed.name);
            progress.map_or_else(|| failed.clone(), line)
        };
        let mut back: Vec<RequestProgress<'_>> = restores.iter().map(RequestProgress::from).collect();
        back.sort_by_key(|progress| (progress.meta.creation_timestamp.clone(), progress.name()));
        let last = back.iter().rposition(|progress| matches!(progress.state(), State::Finished(_)));
        let back = back.iter().enumerate().filter(|(at, progress)| {
            Some(*at) == last || !matches!(progress.state(), State::Finished(_) | State::Deleting(_))
        });
        let own = ObjectMeta { name: Some(namespace.to_owned()), ..ObjectMeta::default() };
        let own = Namespace { metadata: own, ..Namespace::default() };
        let others = World { namespace: own, backups: backups.to_vec(), ..World::default() }.used();
        Self {
            namespace: namespace.to_owned(),
            last_was_good: found.good.is_some() && !attention,
            last_good: found.good.map(|good| line(&RequestProgress::from(good))),
            running: which(|state| matches!(state, State::Running | State::Finishing)),
            queued: which(|state| {
                matches!(state, State::Turn(_) | State::Held(_) | State::Queued(_) | State::New)
            }),
            waiting: stories.iter().filter_map(held).collect(),
            refused: stories.iter().filter_map(refused).collect(),
            failed: not_counted.iter().filter(failed).map(sentence).collect(),
            not_counted,
            restores: back.map(|(_, progress)| line(progress)).collect(),
            locations: locations.own.iter().map(place).collect(),
            schedules: Vec::new(),
            used: Used { backups: others.alive, unfinished: others.active, locations: locations.own.len() },
            limits,
            held_back,
            claims: None,
            problems: Vec::new(),
        }
    }

    /// The same with where the data of the claims stands, and whether all this is safe.
    pub(crate) fn with_claims(
        mut self,
        backups: &[NonAdminBackup],
        schedules: &[NonAdminSchedule],
        claims: Option<&[String]>,
        now: Timestamp,
    ) -> Self {
        let name = self.last_good.as_ref().map(|good| good.name.as_str());
        let good =
            name.and_then(|name| backups.iter().find(|one| one.metadata.name.as_deref() == Some(name)));
        let seen = Seen { good, later_went_wrong: !self.last_was_good, claims, schedules, now };
        self.problems = last_good::problems(&seen).iter().map(Attention::from).collect();
        self.claims = claims.map(|claims| claims.iter().map(|name| claim(good, name)).collect());
        self
    }

    /// The same with the schedules of the namespace.
    pub(crate) fn with_schedules(mut self, schedules: &[NonAdminSchedule], now: Timestamp) -> Self {
        self.schedules = schedules.iter().map(|schedule| scheduled(schedule, now)).collect();
        self.schedules.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// Whether the namespace could not be brought back as it was when it was last meant to be saved.
    pub(crate) fn needs_attention(&self) -> bool {
        !self.last_was_good || !self.problems.is_empty()
    }
}

fn claim(good: Option<&NonAdminBackup>, name: &str) -> Claim {
    let safety = last_good::claim_safety(good, name);
    let status = good.and_then(|good| good.status.as_ref());
    let listed = status.and_then(|status| status.claims.iter().find(|claim| claim.name == name));
    let message = match safety {
        ClaimSafety::Saved => "in the last good backup",
        ClaimSafety::LeftOut => "left out of the last good backup on purpose",
        ClaimSafety::NotSaved => "its data is NOT in the last good backup",
        ClaimSafety::NotInIt => "NOT in the last good backup: it is newer",
        ClaimSafety::NoGoodBackup => "NOT in any good backup",
        ClaimSafety::Unknown => "not known: the last good backup does not say",
    };
    let why = listed.and_then(|claim| claim.message.as_deref()).filter(|why| !why.is_empty());
    Claim {
        name: name.to_owned(),
        data: format!("{safety:?}"),
        message: why.map_or_else(|| message.to_owned(), |why| format!("{message}: {why}")),
        safety,
        bytes: listed.and_then(|claim| claim.bytes.or(claim.total_bytes)),
    }
}

fn place(location: &NonAdminBackupStorageLocation) -> Line {
    let place = LocationState::from(location);
    let name = location.metadata.name.clone().unwrap_or_default();
    let found = location.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let refused = condition::get(found, condition::BACKUPS_IMPORTED)
        .map(|_| format!("; some backups in it cannot be used: kubectl nacre location describe {name}"));
    Line {
        status: place.word().to_owned(),
        message: place.sentence() + &refused.unwrap_or_default(),
        name,
        waits_for: None,
        not_good: None,
        ended: None,
        expires: None,
        good: place == LocationState::Available,
    }
}

fn scheduled(schedule: &NonAdminSchedule, now: Timestamp) -> Line {
    let name = schedule.metadata.name.clone().unwrap_or_default();
    let status = schedule.status.clone().unwrap_or_default();
    let next = match &status.next_run {
        Some(next) => format!("next run in {}", age(now, next.0)),
        None => schedule::word(schedule).to_lowercase(),
    };
    let good = status.last_good_backup.as_ref().zip(status.last_good_time.as_ref());
    let good = good.map_or_else(
        || "no good backup yet".to_owned(),
        |(name, time)| format!("last good backup {name}, {} ago", age(time.0, now)),
    );
    let fine =
        |type_: &str| condition::get(&status.conditions, type_).is_none_or(|found| found.status == "True");
    let confirm = status.confirmation.as_ref().filter(|_| !fine(condition::REQUESTER_CONFIRMED));
    let confirm = confirm.map(|found| {
        let until = moment(found.until.0, now);
        format!("; to be confirmed until {until}: kubectl nacre schedule confirm {name}")
    });
    Line {
        status: schedule::word(schedule).to_owned(),
        message: format!("{next}; {good}{}", confirm.unwrap_or_default()),
        waits_for: None,
        not_good: None,
        ended: None,
        expires: None,
        good: status.next_run.is_some()
            && fine(condition::RUNNING_ON_TIME)
            && fine(condition::REQUESTER_CONFIRMED),
        name,
    }
}

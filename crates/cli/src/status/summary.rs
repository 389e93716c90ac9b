//! What matters about a namespace.

use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, condition};
use jiff::Timestamp;
use planner::last_good;
use serde::Serialize;

use crate::{
    location::{known::Known, state::Place},
    preview::World,
    story::{End, State, Story},
};

/// What matters about a namespace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) namespace: String,
    /// The newest backup that could bring the whole namespace back now.
    pub(super) last_good: Option<Line>,
    /// Whether there is one, and no later backup went wrong.
    pub(super) last_was_good: bool,
    /// Backups that ended since then and are not good, with the reason, oldest first.
    pub(super) not_counted: Vec<Line>,
    pub(super) running: Vec<Line>,
    pub(super) queued: Vec<Line>,
    /// Held back, and by what. They go on by themselves when that is over.
    pub(super) waiting: Vec<Line>,
    /// Refused for what they say.
    pub(super) refused: Vec<Line>,
    /// Ended badly since the last good one.
    pub(super) failed: Vec<Line>,
    /// Restores that are not over, and the one that ended last.
    pub(super) restores: Vec<Line>,
    pub(super) locations: Vec<Line>,
    pub(super) used: Used,
    /// What the administrators allow; none if that cannot be read.
    pub(super) limits: Option<Limits>,
    /// Backups of an earlier namespace of this name that wait for an administrator.
    pub(super) held_back: usize,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) told: String,
    /// What holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waits_for: Option<&'static str>,
    /// Why it is not a good backup, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_good: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Timestamp>,
    #[serde(skip)]
    pub(super) good: bool,
}

/// How much of the limits is used.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Used {
    pub(super) backups: usize,
    pub(super) unfinished: usize,
    pub(super) locations: usize,
}

/// What the administrators allow.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Limits {
    pub(super) backups: Option<usize>,
    pub(super) unfinished: Option<usize>,
    pub(super) locations: Option<usize>,
}

fn line(story: &Story<'_>) -> Line {
    Line {
        name: story.name().to_owned(),
        status: story.word().to_owned(),
        told: story.sentence(),
        waits_for: None,
        not_good: None,
        ended: story.velero.completed,
        expires: story.velero.expires,
        good: story.state() == State::Over(End::Completed),
    }
}

/// What holds a backup back, and the words it was told in. A location that is not there yet counts: making it is enough.
fn held_by<'a>(
    story: &Story<'a>,
    locations: &[NonAdminBackupStorageLocation],
    named: Option<&str>,
) -> Option<(&'static str, &'a str)> {
    match story.state() {
        State::Waiting(why) => {
            let reason = condition::get(story.conditions, condition::ACCEPTED)?.reason.as_str();
            Some(match reason {
                condition::NAMESPACE_LIMIT_REACHED => ("room", why),
                condition::POLICY_UNAVAILABLE => ("the policy", why),
                _ => ("the cluster", why),
            })
        }
        State::Refused(why) if why.starts_with(LOCATION) => {
            let named = named?;
            let found = locations.iter().find(|one| one.metadata.name.as_deref() == Some(named));
            let there = found.is_some_and(|one| Place::from(one) == Place::Available);
            (!there).then_some(("its location", why))
        }
        _ => None,
    }
}

/// How refusals begin that are about the location.
const LOCATION: &str = "spec.backupSpec.storageLocation: ";

fn waiting((for_what, why): (&'static str, &str), story: &Story<'_>) -> Line {
    let told = format!("for {for_what}: {why}");
    Line { status: "Waiting".to_owned(), told, waits_for: Some(for_what), ..line(story) }
}

impl Line {
    /// Velero could not back up what was asked for, or not all of it.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.not_good, Some("Failed" | "PartiallyFailed"))
    }
}

impl Summary {
    pub(super) fn of(
        namespace: &str,
        backups: &[NonAdminBackup],
        restores: &[NonAdminRestore],
        locations: &Known,
        held_back: usize,
        limits: Option<Limits>,
        now: Timestamp,
    ) -> Self {
        let mut stories: Vec<Story<'_>> = backups.iter().map(Story::from).collect();
        stories.sort_by_key(|story| (story.meta.creation_timestamp.clone(), story.name()));
        let which = |wanted: fn(State<'_>) -> bool| {
            stories.iter().filter(|story| wanted(story.state())).map(line).collect::<Vec<_>>()
        };
        let location = |story: &Story<'_>| {
            let meant = backups.iter().find(|backup| backup.metadata.name.as_deref() == Some(story.name()));
            meant.and_then(|backup| backup.spec.backup_spec.storage_location.clone())
        };
        let held = |story: &Story<'_>| {
            held_by(story, &locations.own, location(story).as_deref()).map(|by| waiting(by, story))
        };
        let refused = |story: &Story<'_>| match story.state() {
            State::Refused(why) if held(story).is_none() => {
                Some(Line { told: why.to_owned(), ..line(story) })
            }
            _ => None,
        };
        let found = last_good::find(backups, |backup| locations.storage(backup), now);
        let attention = found.not_counted.iter().any(|(_, why)| why.needs_attention());
        let not_counted: Vec<Line> = found
            .not_counted
            .iter()
            .rev()
            .map(|(backup, why)| {
                let line = line(&Story::from(*backup));
                let ended = last_good::ended(backup);
                Line { told: why.to_string(), not_good: Some(why.reason()), ended, ..line }
            })
            .collect();
        let failed = |line: &&Line| line.has_failed();
        let sentence = |failed: &Line| {
            let story = stories.iter().find(|story| story.name() == failed.name);
            story.map_or_else(|| failed.clone(), line)
        };
        let mut back: Vec<Story<'_>> = restores.iter().map(Story::from).collect();
        back.sort_by_key(|story| (story.meta.creation_timestamp.clone(), story.name()));
        let last = back.iter().rposition(|story| matches!(story.state(), State::Over(_)));
        let back = back.iter().enumerate().filter(|(at, story)| {
            Some(*at) == last || !matches!(story.state(), State::Over(_) | State::Leaving(_))
        });
        let others = World { backups: backups.to_vec(), ..World::default() }.others();
        Self {
            namespace: namespace.to_owned(),
            last_was_good: found.good.is_some() && !attention,
            last_good: found.good.map(|good| line(&Story::from(good))),
            running: which(|state| matches!(state, State::Running | State::Finishing)),
            queued: which(|state| matches!(state, State::Queued(_) | State::New)),
            waiting: stories.iter().filter_map(held).collect(),
            refused: stories.iter().filter_map(refused).collect(),
            failed: not_counted.iter().filter(failed).map(sentence).collect(),
            not_counted,
            restores: back.map(|(_, story)| line(story)).collect(),
            locations: locations.own.iter().map(place).collect(),
            used: Used { backups: others.alive, unfinished: others.active, locations: locations.own.len() },
            limits,
            held_back,
        }
    }

    /// Whether the namespace could not be brought back as it was when it was last meant to be saved.
    pub(super) fn needs_attention(&self) -> bool {
        !self.last_was_good
    }
}

fn place(location: &NonAdminBackupStorageLocation) -> Line {
    let place = Place::from(location);
    Line {
        name: location.metadata.name.clone().unwrap_or_default(),
        status: place.word().to_owned(),
        told: place.sentence(),
        waits_for: None,
        not_good: None,
        ended: None,
        expires: None,
        good: place == Place::Available,
    }
}

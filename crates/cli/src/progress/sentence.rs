//! The progress of a backup or a restore in sentences, and what its owner can do next.

use jiff::Timestamp;
use planner::turns::Estimate;
use planner::volumes::{VolumeBytes, size};

use super::{End, RequestProgress, State, Velero, What};
use crate::text::{count, span};

impl RequestProgress<'_> {
    /// A sentence, without its name.
    pub(crate) fn sentence(&self) -> String {
        let noun = self.what.noun();
        let velero = &self.velero;
        match self.state() {
            State::New => "nacre has not processed it yet".to_owned(),
            State::Refused(why) => format!("refused: {why}"),
            State::Waiting(why) => format!("waiting: {why}"),
            State::Gone(why) | State::Deleting(why) if !why.is_empty() => why.to_owned(),
            State::Gone(_) => format!("Velero does not have the {noun} any more"),
            State::Deleting(_) => "being deleted".to_owned(),
            State::Turn(ahead) => match self.starts {
                Some(starts) => format!("{}; {ahead} ahead of you", expected(&starts, self.now)),
                None => format!("waits for its turn, {ahead} ahead of you"),
            },
            State::Held(why) => why.to_owned(),
            State::Queued(0) => "next in Velero's queue".to_owned(),
            State::Queued(ahead) => format!("in Velero's queue, {ahead} ahead of it"),
            State::Running if self.waits_for_volumes().is_some() => {
                self.waits_for_volumes().unwrap_or_default().to_owned()
            }
            State::Running => match (velero.done, velero.total) {
                (done, Some(total)) => {
                    format!("{} of {}{}", done.unwrap_or_default(), count(total, "item"), self.volumes())
                }
                _ => format!("Velero has started{}", self.volumes()),
            },
            State::Finishing if velero.phase.starts_with("WaitingForPlugin") => {
                format!("the items are done, volume data is still on its way{}", self.volumes())
            }
            State::Finishing if self.waits_for_volumes().is_some() => {
                self.waits_for_volumes().unwrap_or_default().to_owned()
            }
            State::Finishing if velero.phase == "Completed" => {
                "the items are done, the volume data is being checked".to_owned()
            }
            State::Finishing => "Velero is finishing".to_owned(),
            State::Finished(End::Completed) => format!("complete{}", self.extent()),
            State::Finished(End::DataMissing) => {
                format!("{} (the rest is complete{})", self.data_missing().unwrap_or_default(), self.extent())
            }
            State::Finished(End::Empty) => {
                let done = if self.what == What::Backup { "backed up" } else { "restored" };
                format!("nothing was {done}: 0 items{}", problems(velero))
            }
            State::Finished(End::PartiallyFailed) => match self.data_missing() {
                Some(missing) => format!("{missing} (the rest is done only in part{})", problems(velero)),
                None => format!("done only in part{}", problems(velero)),
            },
            State::Finished(End::Failed) if velero.phase == "Failed" => format!("failed{}", self.reasons()),
            State::Finished(End::Failed) => format!("failed as {}{}", velero.phase, self.reasons()),
        }
    }

    /// How far the volume data is, ready to follow how far the items are.
    fn volumes(&self) -> String {
        let known = self.volume_bytes();
        known.map_or_else(String::new, |VolumeBytes { done, total }| {
            format!(", {} of {} of volume data", size(done), size(total))
        })
    }

    /// How much was done in what time, ready to follow a word.
    fn extent(&self) -> String {
        let velero = &self.velero;
        let items = velero.total.map_or_else(String::new, |total| format!(", {}", count(total, "item")));
        let seconds =
            velero.started.zip(velero.completed).map(|(from, to)| to.as_second() - from.as_second());
        // Velero's times are whole seconds: nothing took none.
        let taken = seconds
            .filter(|seconds| *seconds > 0)
            .map_or_else(String::new, |taken| format!(" in {}", span(taken)));
        format!("{items}{taken}{}", problems(velero))
    }

    /// What follows the word: its sentence, without the word in it.
    pub(crate) fn detail(&self) -> String {
        match self.state() {
            State::Refused(why) | State::Waiting(why) => why.to_owned(),
            _ => self.sentence(),
        }
    }

    /// Word and sentence on one line.
    pub(crate) fn headline(&self) -> String {
        format!("{} - {}", self.word(), self.detail())
    }

    /// Velero's message on why it ended badly, ready to follow a sentence.
    pub(crate) fn reasons(&self) -> String {
        let errors = self.velero.validation_errors.iter().map(String::as_str);
        let reasons: Vec<&str> = self.velero.failure.into_iter().chain(errors).collect();
        if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
    }

    /// What its owner can do next, as commands and short sentences.
    pub(crate) fn next(&self) -> Vec<String> {
        let (noun, name) = (self.what.noun(), self.name());
        let see = |verb: &str| format!("kubectl nacre {noun} {verb} {name}");
        match (self.state(), self.what) {
            (State::New, _) => vec![
                see("wait"),
                "if nothing happens for a minute, ask the administrators whether nacre runs".to_owned(),
            ],
            (
                State::Waiting(_)
                | State::Turn(_)
                | State::Held(_)
                | State::Queued(_)
                | State::Running
                | State::Finishing,
                _,
            ) => {
                vec![see("wait")]
            }
            (State::Refused(_), _) => vec![
                format!(
                    "correct what was refused and create a new {noun}, or fix what it names: it is then checked again"
                ),
                format!("kubectl nacre explain {noun} {name}"),
                see("delete"),
            ],
            (State::Gone(_), _) => vec![see("delete"), format!("kubectl nacre {noun} create")],
            (State::Finished(End::Completed), What::Backup) => {
                vec![format!("kubectl nacre restore create --from-backup {name}")]
            }
            (State::Finished(End::Completed), What::Restore) => Vec::new(),
            (State::Finished(End::Empty), What::Backup) => vec![
                format!("{}   (shows which filters were in effect)", see("describe")),
                "kubectl nacre backup create --wait   (everything in the namespace)".to_owned(),
            ],
            (State::Finished(End::Empty), What::Restore) => vec![
                format!("{}   (shows which backup and which filters were in effect)", see("describe")),
                "kubectl nacre backup get   (shows how many items each backup holds)".to_owned(),
            ],
            (State::Finished(End::DataMissing), What::Backup) => vec![
                format!("{}   (shows what became of each claim)", see("describe")),
                format!("kubectl nacre restore create --from-backup {name}   (brings back what is in it)"),
            ],
            (State::Finished(End::DataMissing), What::Restore) => vec![see("describe")],
            (State::Finished(End::PartiallyFailed), What::Backup) => vec![
                see("logs"),
                format!("{} --details", see("describe")),
                format!("kubectl nacre restore create --from-backup {name}   (brings back what is in it)"),
            ],
            (State::Finished(_), _) => vec![see("logs"), format!("{} --details", see("describe"))],
            (State::Deleting(_), _) => vec![format!("{} --wait --yes", see("delete"))],
        }
    }
}

/// As in `starts in about 12 min (8 to 20)`.
fn expected(starts: &Estimate, now: Timestamp) -> String {
    let left = |time: Timestamp| (time.as_second() - now.as_second()).max(0);
    let (earliest, about, latest) = (left(starts.earliest), left(starts.about), left(starts.latest));
    if latest == 0 {
        return "should have started by now".to_owned();
    }
    let (unit, name) = match latest {
        ..=180 => (1, "s"),
        181..=10_800 => (60, "min"),
        _ => (3600, "h"),
    };
    let about = (about + unit / 2) / unit;
    let (earliest, latest) = (earliest / unit, (latest + unit - 1) / unit);
    format!("starts in about {about} {name} ({earliest} to {latest})")
}

fn problems(velero: &Velero<'_>) -> String {
    let reported = [(velero.errors, "error"), (velero.warnings, "warning")];
    let reported: Vec<String> = reported
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| count(number, noun))
        .collect();
    if reported.is_empty() { String::new() } else { format!(", with {}", reported.join(" and ")) }
}

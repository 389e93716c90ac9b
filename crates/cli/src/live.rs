//! Waiting for an object, with a live view of it: fed by the watch, drawn on standard error, and only on a terminal.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use kube::{
    Api,
    core::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt as _, watcher},
};
use planner::{view, volumes::size};

use crate::{
    connect::Session,
    interrupt::interrupted,
    list::Readable,
    location::state::LocationState,
    output::{Outcome, remark},
    progress::{RequestProgress, State},
    style,
    text::{printable, span},
};

/// Failures in a row after which watching is given up.
const MAX_READ_ERRORS: usize = 5;

/// How soon an object is looked at again that does not change.
const LOOK_AGAIN: Duration = Duration::from_secs(20);

/// How an object looks at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// One word; a new one is worth a line even where there is no terminal.
    pub(crate) word: String,
    /// A sentence, without its name.
    pub(crate) sentence: String,
    /// Done, and all there is: bytes of volume data, or items where no volume data is on its way.
    pub(crate) amount: Option<(u64, u64)>,
    /// Bytes of volume data that are done, for the rate.
    pub(crate) bytes: Option<u64>,
    /// How a wait for it ends; none if it goes on.
    pub(crate) outcome: Option<Outcome>,
}

/// A kind whose progress can be shown while waiting.
pub(crate) trait ShowsProgress: Readable {
    /// What it is called on the command line.
    const NOUN: &'static str;
    /// How it looks now.
    fn moment(&self) -> Moment;
    /// What to do next, as commands.
    fn next(&self) -> Vec<String>;
}

fn of_progress(progress: &RequestProgress<'_>) -> Moment {
    let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let items = count(progress.velero.done).zip(count(progress.velero.total));
    let volumes = progress.volume_bytes();
    let bytes = volumes.and_then(|volumes| count(Some(volumes.done)).zip(count(Some(volumes.total))));
    Moment {
        word: progress.word().to_owned(),
        sentence: printable(&progress.sentence()),
        amount: bytes.or_else(|| items.filter(|_| progress.state() == State::Running)),
        bytes: bytes.map(|(done, _)| done),
        outcome: progress.outcome(),
    }
}

impl ShowsProgress for NonAdminBackup {
    const NOUN: &'static str = "backup";

    fn moment(&self) -> Moment {
        of_progress(&RequestProgress::from(self))
    }

    fn next(&self) -> Vec<String> {
        RequestProgress::from(self).next()
    }
}

impl ShowsProgress for NonAdminRestore {
    const NOUN: &'static str = "restore";

    fn moment(&self) -> Moment {
        of_progress(&RequestProgress::from(self))
    }

    fn next(&self) -> Vec<String> {
        RequestProgress::from(self).next()
    }
}

impl ShowsProgress for NonAdminBackupStorageLocation {
    const NOUN: &'static str = "location";

    fn moment(&self) -> Moment {
        let place = LocationState::from(self);
        Moment {
            word: place.word().to_owned(),
            sentence: printable(&place.sentence()),
            amount: None,
            bytes: None,
            outcome: place.outcome(),
        }
    }

    fn next(&self) -> Vec<String> {
        LocationState::from(self).next(self.metadata.name.as_deref().unwrap_or_default())
    }
}

/// How a wait ended.
pub(crate) enum Ended<T> {
    /// With what was waited for.
    Reached(T),
    /// The time was over.
    Late,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// Watches one object until `look` has seen enough; it is given none when there is no such object.
pub(crate) async fn until<K: Readable, T>(
    session: &Session,
    name: &str,
    timeout: Option<Duration>,
    mut look: impl FnMut(Option<K>) -> Result<Option<T>>,
) -> Result<Ended<T>> {
    let watching = async {
        let kind = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(session.client.clone(), &session.namespace, &kind);
        let states = watcher::watch_object(api, name).default_backoff();
        let mut states = std::pin::pin!(states);
        let mut failures = 0;
        let mut last = None;
        loop {
            match tokio::time::timeout(LOOK_AGAIN, states.next()).await {
                // Nothing changed but the time, which some sentences depend on.
                Err(_) => {
                    let object = last.as_ref().map(|object| view::read(object).0);
                    if let Some(seen) = object.map(|object| look(Some(object))).transpose()?.flatten() {
                        return Ok(seen);
                    }
                }
                Ok(None) => break,
                Ok(Some(Ok(object))) => {
                    failures = 0;
                    last = object.map(|object| serde_json::to_value(&object)).transpose()?;
                    if let Some(seen) = look(last.as_ref().map(|object| view::read(object).0))? {
                        return Ok(seen);
                    }
                }
                Ok(Some(Err(error))) => {
                    failures += 1;
                    if failures >= MAX_READ_ERRORS || is_final(&error) {
                        return Err(error.into());
                    }
                }
            }
        }
        bail!("the watch ended by itself")
    };
    let late = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        reached = watching => reached.map(Ended::Reached),
        () = late => Ok(Ended::Late),
        () = interrupted() => Ok(Ended::Interrupted),
    }
}

/// Trying again would give the same answer.
pub(crate) fn is_final(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(kube::Error::Api(answer))
    | watcher::Error::WatchStartFailed(kube::Error::Api(answer))
    | watcher::Error::WatchError(answer)) = error
    else {
        return false;
    };
    [401, 403, 404].contains(&answer.code)
}

/// Waits until an object has come to an end, showing how it gets there. The last that was seen of it comes along.
pub(crate) async fn follow<K: ShowsProgress>(
    session: &Session,
    name: &str,
    timeout: Option<Duration>,
) -> Result<(Outcome, Option<K>)> {
    follow_until(session, name, timeout, |object: &K| object.moment().outcome).await
}

/// The same until `over` has seen enough.
pub(crate) async fn follow_until<K: ShowsProgress>(
    session: &Session,
    name: &str,
    timeout: Option<Duration>,
    over: impl Fn(&K) -> Option<Outcome>,
) -> Result<(Outcome, Option<K>)> {
    let mut view = View::new(K::NOUN, name);
    let mut last: Option<K> = None;
    let ended = until(session, name, timeout, |object: Option<K>| {
        let Some(object) = object else {
            if last.is_some() {
                return Ok(Some(Outcome::Failed));
            }
            bail!("there is no {} {name:?} in namespace {}", K::NOUN, session.namespace);
        };
        let outcome = over(&object);
        // The caller prints how it ended.
        if outcome.is_none() {
            view.show(&object.moment());
        }
        last = Some(object);
        Ok(outcome)
    })
    .await?;
    view.clear();
    let (noun, so_far) = (K::NOUN, last.as_ref().map_or_else(String::new, |last| last.moment().sentence));
    let later = format!("it goes on by itself; `kubectl nacre {noun} wait {name}` waits again");
    Ok(match ended {
        Ended::Reached(outcome) => (outcome, last),
        Ended::Late => {
            let after =
                span(timeout.map_or(0, |timeout| i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX)));
            remark(format_args!("after {after} {noun} {name} is not done: {so_far}; {later}"));
            (Outcome::Late, None)
        }
        Ended::Interrupted => {
            remark(format_args!("{noun} {name} was not stopped ({so_far}): {later}"));
            (Outcome::Interrupted, None)
        }
    })
}

/// Waits until an object is gone, showing what it waits for.
pub(crate) async fn until_gone<K: ShowsProgress>(
    session: &Session,
    name: &str,
    timeout: Option<Duration>,
) -> Result<Outcome> {
    let mut view = View::new(K::NOUN, name);
    let mut last = String::new();
    let ended = until(session, name, timeout, |object: Option<K>| {
        let Some(object) = object else { return Ok(Some(())) };
        let moment = object.moment();
        last.clone_from(&moment.sentence);
        view.show(&moment);
        Ok(None)
    })
    .await?;
    view.clear();
    let noun = K::NOUN;
    Ok(match ended {
        Ended::Reached(()) => {
            remark(format_args!("{noun} {name} is gone"));
            Outcome::Good
        }
        Ended::Late => {
            remark(format_args!("{noun} {name} is not gone yet: {last}; it goes on by itself"));
            Outcome::Late
        }
        Ended::Interrupted => {
            remark(format_args!("{noun} {name} goes on being deleted ({last})"));
            Outcome::Interrupted
        }
    })
}

/// A line that changes in place, or lines in a row where there is no terminal.
struct View {
    bar: Option<ProgressBar>,
    title: String,
    last: String,
    rate: Rate,
}

/// How fast volume data moves, since it was first seen to.
#[derive(Default)]
struct Rate(Option<(Instant, u64)>);

impl Rate {
    /// The bytes in a second, ready to follow the sentence; nothing while it is not known.
    fn follow(&mut self, bytes: Option<u64>, now: Instant) -> String {
        let Some(bytes) = bytes else {
            self.0 = None;
            return String::new();
        };
        let (since, first) = *self.0.get_or_insert((now, bytes));
        let moved = bytes.saturating_sub(first);
        match now.duration_since(since).as_secs() {
            seconds if seconds > 0 && moved > 0 => {
                format!(" ({}/s)", size(i64::try_from(moved / seconds).unwrap_or(i64::MAX)))
            }
            _ => String::new(),
        }
    }
}

impl View {
    fn new(noun: &str, name: &str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, title: format!("{noun} {name}"), last: String::new(), rate: Rate::default() }
    }

    fn show(&mut self, moment: &Moment) {
        let Some(bar) = &self.bar else {
            if self.last != moment.word {
                self.last.clone_from(&moment.word);
                remark(format_args!("{}: {}", self.title, moment.sentence));
            }
            return;
        };
        // The words last: whoever sees them sees the bar that goes with them.
        if let Some((done, total)) = moment.amount {
            bar.set_length(total);
            bar.set_position(done);
        }
        bar.set_style(look(moment.amount.is_some()));
        bar.set_prefix(self.title.clone());
        bar.set_message(moment.sentence.clone() + &self.rate.follow(moment.bytes, Instant::now()));
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn look(counted: bool) -> ProgressStyle {
    let template = if counted {
        "{spinner:.cyan} {prefix:.bold}  {bar:30.cyan/dim}  {msg}  {elapsed:.dim}"
    } else {
        "{spinner:.cyan} {prefix:.bold}  {msg}  {elapsed:.dim}"
    };
    // The template is one of ours: if it were wrong, the plain one would do.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .progress_chars("━╸─")
}

/// How an object ended, in a line for people.
pub(crate) fn verdict<K: ShowsProgress>(name: &str, moment: &Moment) -> String {
    let style = match moment.outcome {
        Some(Outcome::Good) => style::GOOD,
        Some(Outcome::Attention) => style::WARNING,
        Some(_) => style::BAD,
        None => style::BUSY,
    };
    format!("{} {name}: {}\n", K::NOUN, style::paint(style, &moment.sentence))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Rate;

    #[test]
    fn the_rate_counts_from_when_bytes_were_first_seen() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(rate.follow(None, at(0)), "");
        assert_eq!(rate.follow(Some(1 << 20), at(5)), "");
        assert_eq!(rate.follow(Some(21 << 20), at(15)), " (2 MiB/s)");
        // Another volume begins, and nothing is known for a moment.
        assert_eq!(rate.follow(None, at(16)), "");
        assert_eq!(rate.follow(Some(1), at(17)), "");
    }
}

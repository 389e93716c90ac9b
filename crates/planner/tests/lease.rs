//! Several processes, one Lease, and a Secret for those who may not use it, with permissions that come and go, clocks that
//! neither agree nor run alike, responses that come late or never, and paused processes: two are never leader at the same time.

#![expect(clippy::unwrap_used, reason = "a helper's failure is a test's failure")]

use std::time::Duration;

use planner::election::{Election, GRACE, Next, Store};
use planner::lease::{Choice, Observed, Record, Times, decide};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// One moment of the simulation, in milliseconds.
const TICK: u64 = 5;
/// Disturbances happen before this; whatever happened, afterwards there is peace.
const CHAOS: u64 = 30_000;
const PEACE: u64 = 60_000;
/// When an answer is no longer waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What is built wrong on purpose, so that the property shows that it can fail.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    /// The holder counts its time from the answer instead of from the question.
    CountsFromTheAnswer,
    /// The API server takes a write whatever version it means to replace.
    NoPrecondition,
    /// Whoever goes by the Lease does not see the Secret.
    NoLookAtTheSecret,
    /// Whoever writes the Secret is leader at once.
    NoGrace,
    /// A record in the Secret that has run out is not removed, but counts as gone.
    NoRemoval,
}

#[derive(Clone, Debug)]
struct Machine {
    /// How far its clock is ahead, in milliseconds.
    ahead: u64,
    /// How fast it runs, in thousandths.
    pace: u64,
    /// Its lease, in seconds.
    lease: u64,
}

/// From `at` for a while, a process stands still or its requests take long.
#[derive(Clone, Debug)]
struct Fault {
    who: usize,
    at: u64,
    lasts: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// As by SIGSTOP.
    Stands,
    /// Requests arrive late by so much.
    Asks(u64),
    /// Answers arrive late by so much.
    Hears(u64),
    /// The Lease is forbidden.
    MayNot,
}

#[derive(Clone, Debug)]
enum Ask {
    Look(Store),
    Write(Store, Record),
    /// The Secret, in this version.
    Remove(String),
}

#[derive(Clone, Debug)]
enum Answer {
    Found(Option<Record>),
    Beaten,
    Refused,
}

struct Call {
    ask: Ask,
    sent: Duration,
    arrives: u64,
    answered: u64,
    answer: Option<Answer>,
    given_up: bool,
}

struct Process {
    machine: Machine,
    election: Election,
    calls: Vec<Call>,
}

struct World {
    flaw: Flaw,
    lease: Option<Record>,
    secret: Option<Record>,
    versions: u64,
    processes: Vec<Process>,
    faults: Vec<Fault>,
}

impl Machine {
    fn clock(&self, at: u64) -> Duration {
        Duration::from_micros(self.ahead * 1000 + at * self.pace)
    }

    fn times(&self) -> Times {
        let duration = Duration::from_secs(self.lease);
        Times { duration, renew: duration / 3, retry: duration / 10 }
    }
}

impl World {
    fn new(flaw: Flaw, machines: &[Machine], faults: &[Fault]) -> Self {
        let process = |(number, machine): (usize, &Machine)| Process {
            machine: machine.clone(),
            election: Election::new(&format!("process-{number}"), machine.times(), true),
            calls: Vec::new(),
        };
        let processes = machines.iter().enumerate().map(process).collect();
        Self { flaw, lease: None, secret: None, versions: 0, processes, faults: faults.to_vec() }
    }

    fn fault(&self, who: usize, now: u64, which: impl Fn(&What) -> Option<u64>) -> Option<u64> {
        let current = self.faults.iter().filter(|fault| {
            fault.who % self.processes.len() == who && (fault.at..fault.at + fault.lasts).contains(&now)
        });
        current.filter_map(|fault| which(&fault.what)).max()
    }

    /// The server takes what has arrived.
    fn serve(&mut self, now: u64) {
        for who in 0..self.processes.len() {
            let may_not = self.fault(who, now, |what| (*what == What::MayNot).then_some(0)).is_some();
            for number in 0..self.processes[who].calls.len() {
                let call = &self.processes[who].calls[number];
                if call.answer.is_none() && call.arrives <= now {
                    let answer = self.answer(&call.ask.clone(), may_not);
                    self.processes[who].calls[number].answer = Some(answer);
                }
            }
        }
    }

    fn answer(&mut self, ask: &Ask, may_not: bool) -> Answer {
        let (flaw, versions) = (self.flaw, self.versions + 1);
        let store = match ask {
            Ask::Look(store) | Ask::Write(store, _) => *store,
            Ask::Remove(_) => Store::Secret,
        };
        if store == Store::Lease && may_not {
            return Answer::Refused;
        }
        let stored = if store == Store::Lease { &mut self.lease } else { &mut self.secret };
        let found = stored.as_ref().map(|record| record.version.as_str()).unwrap_or_default();
        match ask {
            Ask::Look(_) => Answer::Found(stored.clone()),
            Ask::Write(_, wanted) if found == wanted.version || flaw == Flaw::NoPrecondition => {
                self.versions = versions;
                *stored = Some(Record { version: versions.to_string(), ..wanted.clone() });
                Answer::Found(stored.clone())
            }
            Ask::Remove(_) if flaw == Flaw::NoRemoval => Answer::Found(None),
            Ask::Remove(version) if found == version => {
                *stored = None;
                Answer::Found(None)
            }
            _ => Answer::Beaten,
        }
    }

    /// One process hears its answers and does what is next.
    fn run(&mut self, who: usize, now: u64) {
        if self.fault(who, now, |what| (*what == What::Stands).then_some(0)).is_some() {
            return;
        }
        let late = |which: fn(&What) -> Option<u64>| self.fault(who, now, which).unwrap_or_default();
        let asks = late(|what| if let What::Asks(late) = what { Some(*late) } else { None });
        let hears = late(|what| if let What::Hears(late) = what { Some(*late) } else { None });
        let flaw = self.flaw;
        let process = &mut self.processes[who];
        let clock = process.machine.clock(now);
        let election = &mut process.election;
        for call in process.calls.iter_mut().filter(|call| !call.given_up) {
            if let Some(answer) = call.answer.clone().filter(|_| call.answered <= now) {
                call.given_up = true;
                hear(election, call, answer, clock, flaw);
            } else if clock > call.sent + TIMEOUT {
                call.given_up = true;
                election.failed(store_of(&call.ask), clock);
            }
        }
        process.calls.retain(|call| !call.given_up || call.answer.is_none());
        if process.calls.iter().any(|call| !call.given_up) {
            return;
        }
        let ask = match election.step(clock) {
            Next::Wait(_) => return,
            Next::Look(store) => Ask::Look(store),
            Next::Write(store) => {
                let version = election.version(store).unwrap_or_default().to_owned();
                let promised = u64::try_from(process.machine.times().promise()).unwrap();
                let promised = Some(Duration::from_secs(promised));
                Ask::Write(store, Record { holder: format!("process-{who}"), promised, version })
            }
            Next::RemoveSecret => Ask::Remove(election.version(Store::Secret).unwrap().to_owned()),
        };
        let arrives = now + TICK + asks;
        let call = Call {
            ask,
            sent: clock,
            arrives,
            answered: arrives + TICK + hears,
            answer: None,
            given_up: false,
        };
        process.calls.push(call);
    }

    fn acting(&self, now: u64) -> Vec<usize> {
        let may = |process: &Process| {
            process.election.term().is_some_and(|(_, until)| process.machine.clock(now) < until)
        };
        (0..self.processes.len()).filter(|who| may(&self.processes[*who])).collect()
    }

    /// Runs the story. Says when two were acting, or that in the end nobody was.
    fn run_all(&mut self) -> Result<(), TestCaseError> {
        for now in (0..CHAOS + PEACE).step_by(usize::try_from(TICK).unwrap()) {
            self.serve(now);
            for who in 0..self.processes.len() {
                self.run(who, now);
            }
            let acting = self.acting(now);
            prop_assert!(acting.len() <= 1, "{acting:?} all act at {now} ms");
        }
        prop_assert_eq!(self.acting(CHAOS + PEACE).len(), 1, "after a long peace there is a leader");
        Ok(())
    }
}

fn store_of(ask: &Ask) -> Store {
    match ask {
        Ask::Look(store) | Ask::Write(store, _) => *store,
        Ask::Remove(_) => Store::Secret,
    }
}

fn hear(election: &mut Election, call: &Call, answer: Answer, clock: Duration, flaw: Flaw) {
    let store = store_of(&call.ask);
    match (answer, &call.ask) {
        (Answer::Found(_), Ask::Look(Store::Secret))
            if flaw == Flaw::NoLookAtTheSecret
                && election.term().is_none_or(|(by, _)| by == Store::Lease) =>
        {
            election.saw(store, call.sent, clock, None);
        }
        (Answer::Found(record), Ask::Look(_)) => election.saw(store, call.sent, clock, record),
        (Answer::Found(record), Ask::Write(..)) => {
            let from = if flaw == Flaw::CountsFromTheAnswer { clock } else { call.sent };
            let is_hasty = flaw == Flaw::NoGrace && store == Store::Secret;
            let since = if is_hasty { clock.saturating_sub(GRACE) } else { clock };
            election.wrote(store, from, since, record.clone().unwrap());
            if is_hasty {
                election.saw(store, call.sent, clock, record);
            }
        }
        (Answer::Found(_), Ask::Remove(_)) => election.removed(call.sent, clock),
        (Answer::Beaten, _) => election.beaten(store, clock),
        (Answer::Refused, _) => election.refused(store, clock),
    }
}

fn machines() -> impl Strategy<Value = Vec<Machine>> {
    // Clocks run alike within some percent: far worse than any real pair.
    let machine = (20_000_u64..100_000_000, 960_u64..1040, 1_u64..6);
    let machine = machine.prop_map(|(ahead, pace, lease)| Machine { ahead, pace, lease });
    prop::collection::vec(machine, 2..4)
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let what = prop_oneof![
        Just(What::Stands),
        (0_u64..3000).prop_map(What::Asks),
        (0_u64..3000).prop_map(What::Hears),
        Just(What::MayNot),
    ];
    let fault = (0_usize..4, 0..CHAOS, 0_u64..10_000, what).prop_map(|(who, at, lasts, what)| Fault {
        who,
        at,
        lasts,
        what,
    });
    // The role has no Leases at first, and then an administrator gives it more: every process finds out at its own time.
    let arrives = prop_oneof![Just(0), 0..CHAOS];
    (prop::collection::vec(fault, 0..12), arrives, prop::collection::vec(0_u64..4000, 4)).prop_map(
        |(mut faults, arrives, late)| {
            let until = |late: &u64| if arrives == 0 { 0 } else { arrives + late };
            let may_not = |(who, late)| Fault { who, at: 0, lasts: until(late), what: What::MayNot };
            faults.extend(late.iter().enumerate().map(may_not));
            faults
        },
    )
}

fn try_all(flaw: Flaw, cases: u32) -> Result<(), String> {
    // What was built wrong on purpose need not be reported in the shortest way.
    let max_shrink_iters = if flaw == Flaw::None { u32::MAX } else { 0 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let reported = runner
        .run(&(machines(), faults()), |(machines, faults)| World::new(flaw, &machines, &faults).run_all());
    reported.map_err(|error| error.to_string())
}

#[test]
fn at_no_moment_do_two_act_and_after_all_trouble_one_does() {
    try_all(Flaw::None, 150).unwrap();
}

#[test]
fn a_holder_that_counts_from_the_answer_would_be_found() {
    let found = try_all(Flaw::CountsFromTheAnswer, 300).unwrap_err();
    assert!(found.contains("all act at"), "{found}");
}

#[test]
fn a_server_that_ignores_versions_would_be_found() {
    let found = try_all(Flaw::NoPrecondition, 300).unwrap_err();
    assert!(found.contains("all act at"), "{found}");
}

#[test]
fn a_holder_of_the_lease_that_does_not_look_at_the_secret_would_be_found() {
    let found = try_all(Flaw::NoLookAtTheSecret, 300).unwrap_err();
    assert!(found.contains("all act at"), "{found}");
}

#[test]
fn a_holder_of_the_secret_that_does_not_wait_would_be_found() {
    let found = try_all(Flaw::NoGrace, 300).unwrap_err();
    assert!(found.contains("all act at"), "{found}");
}

#[test]
fn a_record_that_is_passed_over_instead_of_removed_would_be_found() {
    let found = try_all(Flaw::NoRemoval, 1000).unwrap_err();
    assert!(found.contains("all act at"), "{found}");
}

const TIMES: Times = Times {
    duration: Duration::from_secs(10),
    renew: Duration::from_secs(3),
    retry: Duration::from_millis(500),
};

fn about(holder: &str, promised: u64, unchanged: u64) -> Choice {
    let promised = Some(Duration::from_secs(promised));
    let record = Record { holder: holder.to_owned(), promised, version: "1".to_owned() };
    let unchanged_for = Duration::from_millis(unchanged);
    decide(&Observed { record: Some(&record), unchanged_for, me: "me", times: TIMES })
}

#[test]
fn what_is_nobodys_or_ours_is_written_and_what_is_anothers_only_when_its_time_is_up() {
    let nothing = Observed { record: None, unchanged_for: Duration::ZERO, me: "me", times: TIMES };
    assert_eq!(decide(&nothing), Choice::Write);
    assert_eq!(about("", 10, 0), Choice::Write, "handed back");
    assert_eq!(about("me", 10, 0), Choice::Write);
    assert_eq!(about("other", 10, 1000), Choice::Wait(TIMES.retry));
    assert_eq!(about("other", 10, 9_900), Choice::Wait(Duration::from_millis(100)));
    assert_eq!(about("other", 10, 10_000), Choice::Write);
    assert_eq!(about("other", 60, 10_000), Choice::Wait(TIMES.retry), "what its holder promised counts");
    assert_eq!(about("me-too", 10, 0), Choice::Wait(TIMES.retry), "a name is ours as a whole or not at all");
}

#[test]
fn times_that_one_failure_would_break_are_refused() {
    assert_eq!(TIMES.problem(), None);
    let wrong = |times: Times| times.problem().unwrap();
    assert!(wrong(Times { duration: Duration::from_millis(900), ..TIMES }).contains("at least 1s"));
    assert!(wrong(Times { retry: Duration::ZERO, ..TIMES }).contains("longer than 0"));
    assert!(wrong(Times { renew: Duration::from_secs(9), ..TIMES }).contains("at most 5s"));
}

#[test]
fn the_promise_is_never_shorter_than_the_lease() {
    assert_eq!(Times { duration: Duration::from_millis(1500), ..TIMES }.promise(), 2);
    assert_eq!(TIMES.promise(), 10);
}

#[test]
fn a_standby_that_sees_the_secret_go_asks_for_the_lease_before_it_claims_anything() {
    let at = Duration::from_secs;
    let mut standby = Election::new("standby", TIMES, true);
    standby.refused(Store::Lease, at(0));
    let record = Record { holder: "leader".to_owned(), promised: Some(at(15)), version: "1".to_owned() };
    standby.saw(Store::Secret, at(0), at(0), Some(record));
    // The leader may use the Lease now, and has removed the Secret.
    standby.saw(Store::Secret, at(3), at(3), None);
    assert_eq!(standby.step(at(3)), Next::Look(Store::Lease));
    // It is still forbidden: then the Secret is for whoever is first.
    standby.refused(Store::Lease, at(3));
    assert_eq!(standby.step(at(3)), Next::Write(Store::Secret));
}

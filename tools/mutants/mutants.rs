//! The switches of `make mutants`, in its copy of this crate: which change is on, and which test reaches which change.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::LazyLock;
use std::time::Instant;

static ON: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("MUTANT").ok()?.parse().ok());
static REACHED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("MUTANTS_REACHED").ok());

thread_local! {
    /// Each test has a thread of its own, named after it.
    static SEEN: RefCell<Seen> = RefCell::new(Seen::new());
}

struct Seen {
    test: String,
    since: Instant,
    changes: BTreeSet<usize>,
}

impl Seen {
    fn new() -> Self {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        Self { test, since: Instant::now(), changes: BTreeSet::new() }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let Some(path) = &*REACHED else { return };
        let changes: Vec<_> = self.changes.iter().map(ToString::to_string).collect();
        let line = format!("{} {} {}\n", self.test, self.since.elapsed().as_secs_f64(), changes.join(" "));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file can be written");
    }
}

/// Whether this change is on.
pub fn on(change: usize) -> bool {
    if REACHED.is_some() {
        let _ = SEEN.try_with(|seen| seen.borrow_mut().changes.insert(change));
    }
    *ON == Some(change)
}

/// One of two iterators.
pub enum Either<A, B> {
    First(A),
    Second(B),
}

impl<A: Iterator, B: Iterator<Item = A::Item>> Iterator for Either<A, B> {
    type Item = A::Item;

    fn next(&mut self) -> Option<A::Item> {
        match self {
            Self::First(first) => first.next(),
            Self::Second(second) => second.next(),
        }
    }
}

//! How much Velero is given at a time.

/// How much Velero is given at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// How many jobs of this kind Velero works on at a time.
    pub workers: usize,
    /// How many it is given at a time; none for as many as there are.
    pub in_flight: Option<usize>,
    /// How many more while jobs are over in a moment, each of another namespace: Velero would wait for nacre otherwise.
    pub short: usize,
}

/// How many more jobs Velero is given while they are over in a moment.
const SHORT: usize = 8;

/// What took at most this many milliseconds was over in a moment. Velero counts in whole seconds: what takes less than one
/// may begin in one second and end in the next.
pub(super) const MOMENT: u64 = 1000;

impl Capacity {
    /// As many as Velero works on, and one more, so that it is never idle; and some more of short ones.
    pub fn of(workers: usize, in_flight: Option<usize>) -> Self {
        let workers = workers.max(1);
        let short = if in_flight.is_none() { SHORT } else { 0 };
        let in_flight = in_flight.unwrap_or(workers + 1);
        Self { workers, in_flight: Some(in_flight).filter(|most| *most > 0), short }
    }

    /// How many jobs may be of a namespace of which Velero has another already. Velero does not work on two backups of a
    /// namespace at once, so that more of them would leave workers idle.
    pub(super) fn doubles(self) -> usize {
        self.in_flight.map_or(usize::MAX, |most| most.saturating_sub(self.workers))
    }

    /// What Velero can be given while it has so many.
    pub(super) fn room(self, has: usize) -> Room {
        match self.in_flight {
            Some(most) if has >= most + self.short => Room::None,
            Some(most) if has >= most => Room::Short,
            _ => Room::Any,
        }
    }
}

/// What Velero can be given while it has what it has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Any job.
    Any,
    /// A job that will be over in a moment, of a namespace of which Velero has none.
    Short,
    /// Nothing.
    None,
}

//! Who is next, and what that makes of the virtual time.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::capacity::{MOMENT, Room};
use super::{Arrival, Capacity, Place, Tag, Turns, Waiter, cost};
use crate::Key;

/// The sort key of turns: the front first, then by priority, then by virtual time, then by age. Where Velero is given only
/// short ones of other namespaces, those of which Velero has one already come last among those of the same time.
type Rank<'a> = (bool, Reverse<u64>, u64, bool, &'a Arrival);

impl Turns {
    /// The tag of a request whose turn it is.
    fn tag(&self, waiter: &Waiter) -> Tag {
        let &Waiter { priority, weight, .. } = waiter;
        let (start, charged) = (self.start(waiter), self.durations.charged(&waiter.uid));
        let time = self.time_after(priority, start, cost(charged, weight));
        Tag { priority, start, time, weight, charged }
    }

    /// When a request starts, in virtual time. One that was moved to the front does not move the time of the others.
    fn start(&self, waiter: &Waiter) -> u64 {
        let given = self.on_the_way.get(&waiter.arrival.1).map_or("", |(name, _)| name.as_str());
        match self.classes.get(&Reverse(waiter.priority)) {
            Some(class) if waiter.is_front => class.time(),
            Some(class) => class.start_of(&waiter.uid, given),
            None => 0,
        }
    }

    /// The virtual time once a job has started then that costs this much. Where others go first in turn and are passed, since
    /// Velero has enough of their namespaces for its workers, the time stays with them: else they would lose what they are
    /// owed. But nobody gets ahead of the time by more than one job. Where a namespace weighs more than the one worker that it
    /// can use, it is passed again and again: the time would fall behind, and who comes then would have saved something up.
    fn time_after(&self, priority: u64, start: u64, cost: u64) -> u64 {
        let Some(class) = self.classes.get(&Reverse(priority)) else { return start };
        let waiter = |arrival: &Arrival| self.waiting.get(&arrival.1);
        let mut heads = class.heads();
        // One at the limit of its namespace does not want a worker.
        let first = heads.find(|(_, arrival, _)| waiter(arrival).is_some_and(|one| !self.is_at_limit(one)));
        let first = first.map_or(start, |(first, ..)| first);
        first.max(start.saturating_sub(cost)).min(start)
    }

    /// How many jobs Velero has, or is about to be given. More running ones than there are workers cannot be: whatever is
    /// in such a phase beyond them occupies nobody.
    pub fn in_flight(&self, capacity: Capacity) -> usize {
        self.queued + self.running.min(capacity.workers) + self.on_the_way.len()
    }

    /// How many jobs Velero was seen to work on at a time, lately. It is given one more than that, so that with more workers
    /// it is soon seen to work on more.
    pub fn workers(&self) -> usize {
        self.workers.max(1)
    }

    /// What Velero can be given; what is on the way for this request is not one more.
    fn room(&self, capacity: Capacity, request: Option<&Key>) -> Room {
        let own = request.is_some_and(|key| self.on_the_way.contains_key(key));
        capacity.room(self.in_flight(capacity).saturating_sub(usize::from(own)))
    }

    /// How many others of its namespace are on the way.
    fn others_on_the_way(&self, waiter: &Waiter) -> usize {
        let other = |(key, (_, given)): &(&Key, &(String, Waiter))| {
            **key != waiter.arrival.1 && given.uid == waiter.uid
        };
        self.on_the_way.iter().filter(other).count()
    }

    /// Whether Velero has a job of its namespace, or is about to be given another one.
    fn has_another(&self, waiter: &Waiter) -> bool {
        self.of.contains_key(&waiter.uid) || self.others_on_the_way(waiter) > 0
    }

    /// Whether there is room for it, once it is the first: it is expected to take as long as the last one of its namespace
    /// did. If there is none, nobody passes it: it is the next one when there is.
    fn has_room(&self, waiter: &Waiter, room: Room) -> bool {
        room != Room::Short || self.durations.charged(&waiter.uid) <= MOMENT && !self.has_another(waiter)
    }

    /// Whether its namespace has as many at Velero as it may have.
    pub(super) fn is_at_limit(&self, waiter: &Waiter) -> bool {
        let Some(most) = waiter.most else { return false };
        let unfinished = self.unfinished.get(&waiter.uid).copied().unwrap_or_default();
        unfinished + self.others_on_the_way(waiter) >= most
    }

    /// Whether a worker could begin with a job of this namespace while Velero has what it has.
    fn fits(&self, waiter: &Waiter, capacity: Capacity, room: Room) -> bool {
        if self.is_at_limit(waiter) {
            return false;
        }
        // While Velero has enough for its workers, nobody passes anybody else to keep them busy.
        if capacity.workers == 1 || capacity.in_flight.is_none() || room == Room::Short {
            return true;
        }
        let (uid, own) = (&waiter.uid, &waiter.arrival.1);
        let mut of = self.of.clone();
        for (_, (_, waiter)) in self.on_the_way.iter().filter(|(key, _)| *key != own) {
            *of.entry(waiter.uid.clone()).or_default() += 1;
        }
        let doubles: usize = of.values().map(|number| number.saturating_sub(1)).sum();
        !of.contains_key(uid) || doubles < capacity.doubles()
    }

    /// The request whose turn it is, if Velero can be given one.
    pub fn next(&self, capacity: Capacity) -> Option<&Key> {
        let room = self.room(capacity, None);
        if self.waiting.is_empty() || room == Room::None {
            return None;
        }
        let (.., (_, key)) = self.first_but(None, capacity, room)?;
        self.waiting.get(key).filter(|waiter| self.has_room(waiter, room)).map(|_| key)
    }

    /// Where a request is.
    pub fn place(&self, waiter: &Waiter, capacity: Capacity, now: Timestamp) -> Place {
        if self.is_next(waiter, capacity) {
            Place::Next(self.tag(waiter))
        } else {
            self.behind(waiter, capacity, now)
        }
    }

    /// Whether it is this one's turn.
    fn is_next(&self, waiter: &Waiter, capacity: Capacity) -> bool {
        // Where Velero is given everything, nobody waits for anybody else.
        if capacity.in_flight.is_none() && waiter.most.is_none() {
            return true;
        }
        let own = Some(&waiter.arrival.1);
        let room = self.room(capacity, own);
        if room == Room::None || !self.fits(waiter, capacity, room) || !self.has_room(waiter, room) {
            return false;
        }
        let first = self.first_but(own, capacity, room);
        first.is_none_or(|first| self.rank(waiter) < first)
    }

    /// The rank of one for which there is room.
    fn rank<'a>(&self, waiter: &'a Waiter) -> Rank<'a> {
        if waiter.is_front {
            return (false, Reverse(0), 0, false, &waiter.arrival);
        }
        (true, Reverse(waiter.priority), self.start(waiter), false, &waiter.arrival)
    }

    /// The first of those that wait, apart from this one.
    fn first_but(&self, except: Option<&Key>, capacity: Capacity, room: Room) -> Option<Rank<'_>> {
        let waiter = |arrival: &Arrival| self.waiting.get(&arrival.1).filter(|_| Some(&arrival.1) != except);
        let fits = |arrival: &Arrival| waiter(arrival).is_some_and(|one| self.fits(one, capacity, room));
        if let Some(arrival) = self.front.iter().find(|arrival| fits(arrival)) {
            return Some((false, Reverse(0), 0, false, arrival));
        }
        self.classes.iter().find_map(|(priority, class)| {
            let mut heads = class.heads().filter(|(_, arrival, _)| fits(arrival));
            let (start, first, _) = heads.next()?;
            let behind = |arrival: &Arrival| {
                room == Room::Short && waiter(arrival).is_some_and(|one| self.has_another(one))
            };
            if !behind(first) {
                return Some((true, *priority, start, false, first));
            }
            // Of several that have used as much, one goes first of which Velero has none.
            let mut same = heads.take_while(|(other, ..)| *other == start);
            let found = same.find(|(_, arrival, _)| !behind(arrival));
            Some((true, *priority, start, found.is_none(), found.map_or(first, |(_, arrival, _)| arrival)))
        })
    }
}

//! Breadth-first search, so that a violation is found with the fewest steps.

use std::collections::HashMap;
use std::thread;

use crate::moves::State;
use crate::rules;
use crate::setups::Setup;
use runtime::Bug;

/// How many states are looked at before what they lead to is put together.
const BATCH: usize = 4096;

/// How much there was.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) moves: usize,
    /// States in which nothing is left to do but to wait.
    pub(crate) ends: usize,
    pub(crate) depth: usize,
}

/// How a state was first come to, and what happens next if everybody is fair.
struct Node {
    from: u32,
    by: u16,
    next: Option<u64>,
}

/// What a look at one state brings.
struct Look {
    next: Option<u64>,
    moves: usize,
    new: Vec<(u16, u64, State)>,
    wrong: Option<(Option<u16>, String)>,
}

/// Explores a setup completely; an error contains the violated rule, and the steps that lead to it.
pub(crate) fn explore(setup: Setup, bug: Option<Bug>) -> Result<Found, String> {
    let start = State::new(&setup, bug);
    let mut known = HashMap::from([(start.fingerprint(), 0_u32)]);
    let mut nodes = vec![Node { from: 0, by: 0, next: None }];
    let mut frontier = vec![(0_u32, start)];
    let mut found = Found { states: 1, moves: 0, ends: 0, depth: 0 };
    while !frontier.is_empty() {
        let mut following = Vec::new();
        while !frontier.is_empty() {
            let batch = frontier.split_off(frontier.len().saturating_sub(BATCH));
            for (at, look) in look_at(batch, &setup, &known) {
                nodes[at as usize].next = look.next;
                found.moves += look.moves;
                found.ends += usize::from(look.next.is_none());
                if let Some((by, wrong)) = look.wrong {
                    return Err(story(&setup, bug, &nodes, at, by, &wrong));
                }
                for (by, fingerprint, state) in look.new {
                    let number = u32::try_from(nodes.len()).unwrap();
                    if *known.entry(fingerprint).or_insert(number) == number {
                        nodes.push(Node { from: at, by, next: None });
                        following.push((number, state));
                    }
                }
            }
        }
        found.depth += 1;
        frontier = following;
        if std::env::var_os("NACRE_MODEL_TELL").is_some() {
            println!("{}: {} states, {} moves, depth {}", setup.name, nodes.len(), found.moves, found.depth);
        }
    }
    found.states = nodes.len();
    match circle(&nodes, &known) {
        Some(at) => Err(story(&setup, bug, &nodes, at, None, "everybody is busy for ever")),
        None => Ok(found),
    }
}

fn look_at(batch: Vec<(u32, State)>, setup: &Setup, known: &HashMap<u64, u32>) -> Vec<(u32, Look)> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut shares: Vec<Vec<(u32, State)>> = (0..workers).map(|_| Vec::new()).collect();
    for (at, one) in batch.into_iter().enumerate() {
        shares[at % workers].push(one);
    }
    thread::scope(|scope| {
        let work = |share: Vec<(u32, State)>| {
            let looks = share.into_iter().map(|(at, state)| (at, look(&state, setup, known)));
            looks.collect::<Vec<_>>()
        };
        let running: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || work(share))).collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn look(state: &State, setup: &Setup, known: &HashMap<u64, u32>) -> Look {
    let mut look = Look { next: None, moves: 0, new: Vec::new(), wrong: None };
    for (by, (step, fair)) in state.moves(setup).into_iter().enumerate() {
        let by = u16::try_from(by).unwrap();
        if let Some(wrong) = rules::wrong_to_send(state, &step) {
            look.wrong = Some((Some(by), wrong));
            return look;
        }
        let next = state.after(setup, &step);
        let fingerprint = next.fingerprint();
        look.moves += 1;
        if by == 0 && fair {
            look.next = Some(fingerprint);
        }
        if known.contains_key(&fingerprint) {
            continue;
        }
        if let Some(wrong) = rules::wrong(&next, setup).or_else(|| rules::wrong_to_decide(&next, &step)) {
            look.wrong = Some((Some(by), wrong));
            return look;
        }
        look.new.push((by, fingerprint, next));
    }
    // Everybody is done: whatever is not over must say what it waits for. Every other state leads to such a one.
    if look.next.is_none() {
        look.wrong = rules::ends_badly(state, setup).map(|wrong| (None, wrong));
    }
    look
}

/// A state from which everybody is busy for ever.
fn circle(nodes: &[Node], known: &HashMap<u64, u32>) -> Option<u32> {
    const NEW: u8 = 0;
    const ON_THE_WAY: u8 = 1;
    const ENDS: u8 = 2;
    let mut marks = vec![NEW; nodes.len()];
    for from in 0..nodes.len() {
        let mut way = Vec::new();
        let mut at = from;
        while marks[at] == NEW {
            marks[at] = ON_THE_WAY;
            way.push(at);
            match nodes[at].next.and_then(|next| known.get(&next)) {
                Some(next) => at = *next as usize,
                None => break,
            }
        }
        if marks[at] == ON_THE_WAY && nodes[at].next.is_some() {
            return u32::try_from(at).ok();
        }
        for at in way {
            marks[at] = ENDS;
        }
    }
    None
}

/// How it came about.
fn story(setup: &Setup, bug: Option<Bug>, nodes: &[Node], at: u32, last: Option<u16>, wrong: &str) -> String {
    let mut way: Vec<_> = last.into_iter().collect();
    let mut at = at;
    while at != 0 {
        way.push(nodes[at as usize].by);
        at = nodes[at as usize].from;
    }
    let mut state = State::new(setup, bug);
    let mut lines = vec![format!("{}: {wrong}", setup.name)];
    for by in way.into_iter().rev() {
        let (step, _) = state.moves(setup).swap_remove(usize::from(by));
        lines.push(format!("- {}", state.reported(setup, &step)));
        state = state.after(setup, &step);
    }
    lines.join("\n")
}

//! What can go wrong between a program and the API server, by seed: requests get lost, responses get lost after the
//! write was done, the server answers 409, 429, 5xx or 404; watches are cut, expire, and come late and out of order.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::time::sleep;

/// The faults of one seed: the same seed gives the same fates in the same order.
#[derive(Debug)]
pub(crate) struct Faults {
    state: Mutex<Dice>,
}

#[derive(Debug)]
struct Dice {
    seed: u64,
    /// How many writes may still go wrong, so that everything comes to an end.
    left: u32,
    /// How many went wrong.
    struck: u32,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is passed on, perhaps a little later, so that others overtake it.
    Passes(Duration),
    /// The server never hears of it.
    Lost,
    /// The server does it, and the answer gets lost.
    Unanswered,
    /// Nobody answers for a while, and then the line is cut.
    Hangs,
    /// The server refuses with this code.
    Refused(u16),
}

/// What becomes of a watch: how late its events come, and when it is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) delay: Duration,
    pub(crate) cut: Option<Duration>,
    pub(crate) expired: bool,
}

impl Faults {
    /// So many things go wrong, by this seed; none while there are none left.
    pub(crate) fn new(seed: u64, many: u32) -> Self {
        let seed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { state: Mutex::new(Dice { seed, left: many, struck: 0 }) }
    }

    /// Restarts with another seed.
    pub(crate) fn reset(&self, seed: u64, many: u32) {
        let fresh = Self::new(seed, many);
        let fresh = fresh.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    /// How many writes went wrong since it was reset.
    pub(crate) fn struck(&self) -> u32 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).struck
    }

    pub(crate) fn fate(&self) -> Fate {
        let mut dice = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if dice.left == 0 || dice.below(3) > 0 {
            let delay = if dice.left == 0 { 0 } else { dice.below(120) };
            return Fate::Passes(Duration::from_millis(delay));
        }
        dice.left -= 1;
        dice.struck += 1;
        match dice.below(8) {
            0 => Fate::Lost,
            1 | 2 => Fate::Unanswered,
            3 => Fate::Hangs,
            4 => Fate::Refused(409),
            5 => Fate::Refused(429),
            6 => Fate::Refused(500),
            _ => Fate::Refused(401),
        }
    }

    pub(crate) fn line(&self) -> Line {
        let mut dice = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if dice.left == 0 {
            return Line { delay: Duration::ZERO, cut: None, expired: false };
        }
        let delay = Duration::from_millis(dice.below(400));
        let cut = (dice.below(2) == 0).then(|| Duration::from_millis(300 + dice.below(3000)));
        Line { delay, cut, expired: dice.below(6) == 0 }
    }
}

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % many
    }
}

/// The server's refusal.
pub(crate) fn refusal(code: u16) -> Response {
    let reason = match code {
        401 => "Unauthorized",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": "a fault was injected", "details": {"retryAfterSeconds": 1},
    });
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = (code, status.to_string()).into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// An answer that breaks off before anything is said.
pub(crate) fn cut() -> Response {
    let nothing = stream::once(async { Err::<String, _>(std::io::Error::other("the line was cut")) });
    Response::new(Body::from_stream(nothing))
}

/// A watch that comes late and is cut.
pub(crate) fn disturbed(answer: Response, line: Line) -> Response {
    let (parts, body) = answer.into_parts();
    let late = body.into_data_stream().then(move |chunk| async move {
        sleep(line.delay).await;
        chunk
    });
    let body = match line.cut {
        Some(cut) => Body::from_stream(late.take_until(sleep(cut))),
        None => Body::from_stream(late),
    };
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use super::{Fate, Faults};

    #[test]
    fn the_same_seed_gives_the_same_fates_and_they_come_to_an_end() {
        let fates = |seed| {
            let faults = Faults::new(seed, 5);
            (0..100).map(|_| faults.fate()).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        let struck = fates(7).iter().filter(|fate| !matches!(fate, Fate::Passes(_))).count();
        assert_eq!(struck, 5);
    }
}

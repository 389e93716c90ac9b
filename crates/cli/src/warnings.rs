//! What the API server says beside its answer: nacre's webhook warns of what another object could heal.

use std::sync::{Mutex, PoisonError};

use http::{HeaderValue, Response, header::WARNING};
use tower::util::MapResponseLayer;

use crate::words::printable;

/// What was heard since somebody last asked. One process runs one command.
static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A layer of a client that listens to every answer.
pub(crate) fn listener<B>() -> MapResponseLayer<impl FnOnce(Response<B>) -> Response<B> + Clone> {
    MapResponseLayer::new(|response: Response<B>| {
        let told = response.headers().get_all(WARNING).iter().filter_map(text);
        let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in told {
            if !heard.contains(&warning) {
                heard.push(warning);
            }
        }
        drop(heard);
        response
    })
}

/// What was heard since this was last asked, each once.
pub(crate) fn heard() -> Vec<String> {
    std::mem::take(&mut HEARD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The words of `299 - "words"`, with a terminal in mind.
fn text(header: &HeaderValue) -> Option<String> {
    let said = String::from_utf8_lossy(header.as_bytes());
    let (_code, rest) = said.trim().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let quoted = rest.strip_prefix('"')?;
    let mut words = String::new();
    let mut letters = quoted.chars();
    loop {
        match letters.next()? {
            '"' => return Some(printable(&words)),
            '\\' => words.push(letters.next()?),
            letter => words.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_taken_out_of_its_quotes() {
        let said = |text_: &str| text(&HeaderValue::from_bytes(text_.as_bytes()).unwrap());
        assert_eq!(said(r#"299 - "there is no \"x\" \\ yet""#).as_deref(), Some(r#"there is no "x" \ yet"#));
        assert_eq!(said(r#"299 - "naïve" "Sun, 15 Nov 2026 12:00:00 GMT""#).as_deref(), Some("naïve"));
        for odd in ["", "299", "299 - bare", r#"299 - "open"#, r#"299 - "end\"#] {
            assert_eq!(said(odd), None, "{odd}");
        }
    }
}

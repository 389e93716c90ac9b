//! Warnings of the API server: nacre's webhook warns about what another object could fix.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use http::{
    HeaderValue, Request, Response,
    header::{CONTENT_TYPE, WARNING},
};
use kube::client::Body;
use serde_json::json;
use tower::util::MapResponseLayer;

use crate::{connect::Session, list::Readable, text::printable};

/// Warnings received since the last call. One process runs one command.
static RECEIVED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A program that runs for long, as the console does, asks for none of them.
const MOST: usize = 100;

/// A layer of a client that listens to every answer.
pub(crate) fn listener<B>() -> MapResponseLayer<impl FnOnce(Response<B>) -> Response<B> + Clone> {
    MapResponseLayer::new(|response: Response<B>| {
        let reported = response.headers().get_all(WARNING).iter().filter_map(text);
        let mut received = RECEIVED.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in reported {
            if received.len() < MOST && !received.contains(&warning) {
                received.push(warning);
            }
        }
        drop(received);
        response
    })
}

/// Warnings received since the last call, each once.
pub(crate) fn received() -> Vec<String> {
    std::mem::take(&mut RECEIVED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What the API server warns of when it is asked to create this object, which it does not; nothing if it rejects it.
pub(crate) async fn of_dry_run<K: Readable>(session: &Session, object: &K) -> Result<Vec<String>> {
    let path = format!("{}?dryRun=All", K::url_path(&(), Some(&session.namespace)));
    let mut object = serde_json::to_value(object)?;
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let answer = session.client.send(request.body(Body::from(object.to_string().into_bytes()))?).await?;
    if !answer.status().is_success() {
        return Ok(Vec::new());
    }
    Ok(answer.headers().get_all(WARNING).iter().filter_map(text).collect())
}

/// The words of `299 - "words"`, with a terminal in mind.
fn text(header: &HeaderValue) -> Option<String> {
    let header_text = String::from_utf8_lossy(header.as_bytes());
    let (_code, rest) = header_text.trim().split_once(' ')?;
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
        let header_text = |text_: &str| text(&HeaderValue::from_bytes(text_.as_bytes()).unwrap());
        assert_eq!(
            header_text(r#"299 - "there is no \"x\" \\ yet""#).as_deref(),
            Some(r#"there is no "x" \ yet"#)
        );
        assert_eq!(header_text(r#"299 - "naïve" "Sun, 15 Nov 2026 12:00:00 GMT""#).as_deref(), Some("naïve"));
        for odd in ["", "299", "299 - bare", r#"299 - "open"#, r#"299 - "end\"#] {
            assert_eq!(header_text(odd), None, "{odd}");
        }
    }
}

//! Who sits in front of the browser: a one-time code on a laptop, the user's own token in a cluster. Nothing of this is
//! written anywhere but to memory.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::http::{HeaderMap, header};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::{
    digest, hmac,
    rand::{SecureRandom as _, SystemRandom},
};
use tokio::sync::watch;

use super::link::Link;
use crate::connect::Session;

/// How long a session lives without being used.
const IDLE: Duration = Duration::from_hours(8);
/// So many sessions at most: the one that was not used for longest goes.
const MOST: usize = 1000;
/// So many of one user, so that nobody displaces everybody else.
const MOST_OF_ONE: usize = 20;
/// Tokens are shorter than this, also those with many groups in them.
const LONGEST_TOKEN: usize = 16 << 10;

/// How people sign in.
pub(super) enum SignIn {
    /// On a laptop: whoever has the code of the link is the person of the kubeconfig. It is good for one use.
    Code { session: Session, link: Mutex<Option<Link>> },
    /// In a cluster: by a token of the API server's. This makes a connection of it, and of nothing else.
    Token(Connect),
}

/// Makes a connection of a token.
pub(super) type Connect = Box<dyn Fn(&str) -> Result<Session> + Send + Sync>;

/// A browser that has signed in.
struct Login {
    session: Session,
    /// Whose it is, as the API server says.
    user: String,
    used: Instant,
    /// When the token ends, as far as it says so itself. The API server has the last word.
    ends: Option<Timestamp>,
    /// Closed when the session is forgotten.
    forgotten: watch::Sender<()>,
}

/// What a request goes by of a browser that has signed in.
struct Signed {
    session: Session,
    user: String,
    life: Life,
}

impl Login {
    fn signed(&self) -> Signed {
        let life = Life { ends: self.ends, forgotten: Some(self.forgotten.subscribe()) };
        Signed { session: self.session.clone(), user: self.user.clone(), life }
    }
}

/// How long a session lives, for what outlives the request that it began with.
#[derive(Clone)]
pub(super) struct Life {
    ends: Option<Timestamp>,
    /// None if it is kept nowhere.
    forgotten: Option<watch::Receiver<()>>,
}

impl Life {
    /// Waits until the session ends: it is forgotten, or its token ends.
    pub(super) async fn over(self) {
        let forgotten = async {
            let Some(mut forgotten) = self.forgotten else { return std::future::pending().await };
            while forgotten.changed().await.is_ok() {}
        };
        let ended = async {
            let Some(ends) = self.ends else { return std::future::pending().await };
            let left = ends.duration_since(Timestamp::now());
            tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
        };
        tokio::select! {
            () = forgotten => {}
            () = ended => {}
        }
    }
}

/// Everybody who has signed in.
pub(super) struct Logins {
    pub(super) sign_in: SignIn,
    key: hmac::Key,
    /// By the hash of the cookie: who has signed in.
    by_cookie: Mutex<Sessions>,
    /// By the hash of the token that a proxy passes on: connections that are open. Anybody can send a token, so these never
    /// displace those who have signed in.
    by_token: Mutex<Sessions>,
}

type Sessions = HashMap<Vec<u8>, Login>;

/// A person, and the text that their forms carry.
pub(super) struct Known {
    pub(super) session: Session,
    pub(super) csrf: String,
    pub(super) life: Life,
    /// A proxy signs the person in, with every request.
    pub(super) is_by_proxy: bool,
    /// The API server has not been asked about this token.
    pub(super) is_unknown: bool,
}

impl Logins {
    pub(super) fn new(sign_in: SignIn) -> Result<Self> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret()?.as_bytes());
        Ok(Self { sign_in, key, by_cookie: Mutex::default(), by_token: Mutex::default() })
    }

    /// Who sends this request: by a proxy's header, or by the cookie.
    pub(super) fn who(&self, headers: &HeaderMap, cookie_name: &str, now: Timestamp) -> Option<Known> {
        if let SignIn::Token(connect) = &self.sign_in
            && let Some(token) = token_of(headers)
        {
            // A connection that is open already is used again.
            if let Some(Signed { session, user, life }) = find(&self.by_token, &hash(token), now) {
                let csrf = self.csrf_of_user(&user);
                return Some(Known { session, csrf, life, is_by_proxy: true, is_unknown: false });
            }
            let life = Life { ends: end_of(token), forgotten: None };
            // Nobody knows yet whose it is.
            let (session, csrf) = (connect(token).ok()?, self.csrf("token", token));
            return Some(Known { session, csrf, life, is_by_proxy: true, is_unknown: true });
        }
        let cookie = cookie(headers, cookie_name)?;
        let Signed { session, life, .. } = find(&self.by_cookie, &hash(cookie), now)?;
        let csrf = self.csrf("cookie", cookie);
        Some(Known { session, csrf, life, is_by_proxy: false, is_unknown: false })
    }

    /// Keeps the connection of a token that a proxy passed on, now that the API server has said whose it is.
    pub(super) fn keep(&self, headers: &HeaderMap, known: Known, user: &str) -> Known {
        let Some(token) = token_of(headers).filter(|_| !user.is_empty()) else { return known };
        let life = keep(&self.by_token, hash(token), known.session.clone(), user, end_of(token));
        Known { csrf: self.csrf_of_user(user), life, is_unknown: false, ..known }
    }

    /// Exchanges the code of the link for a cookie. The second use of a code is nobody's.
    pub(super) fn exchange(&self, given: &str) -> Option<String> {
        let SignIn::Code { session, link } = &self.sign_in else { return None };
        let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
        let right = link.as_ref().is_some_and(|link| hash(&link.code) == hash(given));
        if !right {
            return None;
        }
        *link = None;
        drop(link);
        self.admit(session.clone(), "", None)
    }

    /// From now on the link leads nowhere, if nobody has used it.
    pub(super) fn withdraw(&self) {
        if let SignIn::Code { link, .. } = &self.sign_in {
            *link.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// The connection of a token, before it is known whether the API server accepts it.
    pub(super) fn connect(&self, token: &str) -> Option<Session> {
        let token = token.trim();
        let plausible = !token.is_empty()
            && token.len() <= LONGEST_TOKEN
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        match &self.sign_in {
            SignIn::Token(connect) if plausible => connect(token).ok(),
            _ => None,
        }
    }

    /// A new cookie for a session of this user.
    pub(super) fn admit(&self, session: Session, user: &str, ends: Option<Timestamp>) -> Option<String> {
        let cookie = secret().ok()?;
        keep(&self.by_cookie, hash(&cookie), session, user, ends);
        Some(cookie)
    }

    /// Forgets a browser.
    pub(super) fn forget(&self, headers: &HeaderMap, cookie_name: &str) {
        if let Some(cookie) = cookie(headers, cookie_name) {
            locked(&self.by_cookie).remove(&hash(cookie));
        }
        if let Some(token) = token_of(headers) {
            locked(&self.by_token).remove(&hash(token));
        }
    }

    /// A proxy renews tokens, and a form that was loaded before is sent after that: it goes by whose it is.
    fn csrf_of_user(&self, user: &str) -> String {
        self.csrf("user", user)
    }

    fn csrf(&self, by: &str, whose: &str) -> String {
        hex(hmac::sign(&self.key, format!("form by {by} {whose}").as_bytes()).as_ref())
    }

    /// Whether a form carries the text that this person's forms carry.
    pub(super) fn is_own_form(csrf: &str, given: &str) -> bool {
        hash(csrf) == hash(given)
    }
}

fn locked(sessions: &Mutex<Sessions>) -> MutexGuard<'_, Sessions> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session under a key, unless it is over.
fn find(sessions: &Mutex<Sessions>, key: &[u8], now: Timestamp) -> Option<Signed> {
    let mut sessions = locked(sessions);
    let login = sessions.get_mut(key)?;
    if login.used.elapsed() > IDLE || login.ends.is_some_and(|ends| ends <= now) {
        sessions.remove(key);
        return None;
    }
    login.used = Instant::now();
    Some(login.signed())
}

/// Keeps a session, in place of the one that was not used for longest if there are too many: of this user, or at all.
fn keep(
    sessions: &Mutex<Sessions>,
    key: Vec<u8>,
    session: Session,
    user: &str,
    ends: Option<Timestamp>,
) -> Life {
    let group = counted_as(user);
    let mut sessions = locked(sessions);
    sessions.retain(|_, login| login.used.elapsed() <= IDLE);
    let own = sessions.values().filter(|login| counted_as(&login.user) == group).count();
    let of_one = own >= MOST_OF_ONE;
    if of_one || sessions.len() >= MOST {
        let candidates = sessions.iter().filter(|(_, login)| !of_one || counted_as(&login.user) == group);
        let oldest = candidates.min_by_key(|(_, login)| login.used).map(|(key, _)| key.clone());
        oldest.map(|key| sessions.remove(&key));
    }
    let forgotten = watch::Sender::new(());
    let login = Login { session, user: user.to_owned(), used: Instant::now(), ends, forgotten };
    let life = login.signed().life;
    sessions.insert(key, login);
    life
}

/// Whose sessions count together: whoever can make service accounts in a namespace can make many.
fn counted_as(user: &str) -> &str {
    match user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.find(':')) {
        Some(at) => &user[.."system:serviceaccount:".len() + at],
        None => user,
    }
}

/// The user's own token, from whoever signs people in before the console.
fn token_of(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let forwarded = || headers.get("x-forwarded-access-token").and_then(|value| value.to_str().ok());
    bearer.or_else(forwarded).filter(|token| !token.is_empty() && token.len() <= LONGEST_TOKEN)
}

/// When a token ends that says so: OpenShift's opaque ones do not.
pub(super) fn end_of(token: &str) -> Option<Timestamp> {
    let claims = token.split('.').nth(1)?;
    let claims: serde_json::Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Timestamp::from_second(claims["exp"].as_i64()?).ok()
}

/// What a browser brings under this name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// Equal hashes are equal texts, and comparing them takes no longer for a better guess.
fn hash(text: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

/// 256 bits that nobody can guess.
pub(super) fn secret() -> Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_when_it_ends() {
        // {"exp":1800000000,"sub":"ann"}
        let token = "e30.eyJleHAiOjE4MDAwMDAwMDAsInN1YiI6ImFubiJ9.x";
        assert_eq!(end_of(token), Timestamp::from_second(1_800_000_000).ok());
        assert_eq!(end_of("sha256~opaque"), None);
        assert_eq!(end_of("a.!!.c"), None);
    }

    #[test]
    fn service_accounts_of_a_namespace_count_together() {
        assert_eq!(counted_as("system:serviceaccount:shop:a"), counted_as("system:serviceaccount:shop:b"));
        assert_ne!(counted_as("system:serviceaccount:shop:a"), counted_as("system:serviceaccount:bank:a"));
        assert_eq!(counted_as("jane:doe"), "jane:doe");
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "xnacre=1; nacre=2; nacre2=3".parse().unwrap());
        assert_eq!(cookie(&headers, "nacre"), Some("2"));
        assert_eq!(cookie(&headers, "none"), None);
    }
}

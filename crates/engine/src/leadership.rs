//! Whether this process is leader. The check is a layer of the client, behind every queue, so that no writer can bypass
//! it or check too early.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use http::{Method, Request};
use kube::client::Body;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tower::{BoxError, Layer, Service};

/// Whether this process may write, and the number of writes in flight.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<watch::Sender<State>>);

/// A write was not sent, because this process is not leader.
#[derive(Clone, Copy, Debug, Error)]
#[error("this process does not hold the lease (any more), so it writes nothing")]
pub struct NotLeading;

#[derive(Debug)]
struct State {
    term: Term,
    leader_status: LeaderStatus,
    /// Shutting down: no new writes are sent.
    closed: bool,
    in_flight: usize,
    /// How often this process became leader, and the last of these terms that it has begun to decide in.
    terms: u64,
    begun: u64,
}

#[derive(Clone, Copy, Debug)]
enum Term {
    None,
    /// Whichever comes first: the monotonic clock stops while a machine is suspended, the wall clock can be changed.
    Until(Instant, SystemTime),
}

/// Leader or standby, as shown in the log and in `/readyz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaderStatus {
    /// The lease was not read yet.
    #[default]
    Starting,
    /// This process is leader.
    Leading,
    /// Another process is leader.
    Standby(String),
    /// The leader is unknown.
    Unknown(String),
    /// This process is leader by a record in a Secret: it is not permitted to use leases.
    LeadingBySecret(String),
}

impl fmt::Display for LeaderStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("standby: the lease was not read yet"),
            Self::Leading => f.write_str("leader: this process holds the lease"),
            Self::Standby(holder) => write!(f, "standby: {holder} holds the lease"),
            Self::Unknown(why) => write!(f, "standby: {why}"),
            Self::LeadingBySecret(why) => write!(f, "leader: this process holds the lease {why}"),
        }
    }
}

impl Default for Leadership {
    fn default() -> Self {
        let state = State {
            term: Term::None,
            leader_status: LeaderStatus::Starting,
            closed: false,
            in_flight: 0,
            terms: 0,
            begun: 0,
        };
        Self(Arc::new(watch::Sender::new(state)))
    }
}

impl Leadership {
    /// Whether this process is leader now.
    pub fn is_leader(&self) -> bool {
        self.0.borrow().admits()
    }

    /// Waits until this process is leader.
    pub async fn until_leader(&self) {
        // This struct owns the sender, so the channel does not close.
        let _ = self.0.subscribe().wait_for(State::admits).await;
    }

    /// Waits until this process is leader, and knows what a new leader has to find out first.
    pub async fn until_term_begun(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.admits() && state.begun == state.terms).await;
    }

    /// Waits until this process is leader in a term that is not begun. Returns the number of the term.
    pub(crate) async fn until_new_term(&self) -> u64 {
        let new = |state: &State| state.admits() && state.begun != state.terms;
        match self.0.subscribe().wait_for(new).await {
            Ok(state) => state.terms,
            Err(_) => 0,
        }
    }

    /// What a new leader has to find out is known for this term.
    pub(crate) fn begin_term(&self, term: u64) {
        self.0.send_modify(|state| state.begun = term);
    }

    /// Sends no new writes. Writes in flight finish.
    pub fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    /// Leader or standby.
    pub fn leader_status(&self) -> LeaderStatus {
        let state = self.0.borrow();
        match &state.leader_status {
            LeaderStatus::Leading | LeaderStatus::LeadingBySecret(_) if !state.valid() => {
                LeaderStatus::Unknown("the lease could not be renewed in time".to_owned())
            }
            leader_status => leader_status.clone(),
        }
    }

    /// Becomes leader until this time.
    pub(crate) fn lead_until(&self, end: Instant, wall: SystemTime, leader_status: LeaderStatus) {
        self.set(Term::Until(end, wall), leader_status);
    }

    pub(crate) fn become_standby(&self, leader_status: LeaderStatus) {
        self.set(Term::None, leader_status);
    }

    /// Records why the lease could not be renewed. A lease that is held stays valid until it expires.
    pub(crate) fn explain(&self, why: String) {
        self.0.send_if_modified(|state| {
            let silent = state.valid();
            if !silent {
                state.leader_status = LeaderStatus::Unknown(why);
            }
            false
        });
    }

    /// Waits until shutdown was requested and no write is in flight.
    pub(crate) async fn finished(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.closed && state.in_flight == 0).await;
    }

    fn set(&self, term: Term, leader_status: LeaderStatus) {
        self.0.send_modify(|state| {
            if state.leader_status != leader_status {
                tracing::info!("{leader_status}");
            }
            // A lease that ran out may have been another's meanwhile, also if this process has it again.
            if !state.valid() && matches!(term, Term::Until(..)) {
                state.terms += 1;
            }
            state.term = term;
            state.leader_status = leader_status;
        });
    }

    fn admit(&self) -> Option<Permit> {
        let mut admitted = false;
        self.0.send_if_modified(|state| {
            admitted = state.admits();
            state.in_flight += usize::from(admitted);
            false
        });
        admitted.then(|| Permit(self.clone()))
    }

    /// Waits until this process is not leader any more.
    async fn over(&self) {
        let mut news = self.0.subscribe();
        loop {
            let term = news.borrow_and_update().term;
            let changed = match term {
                Term::None => return,
                Term::Until(end, _) => tokio::select! {
                    biased;
                    () = sleep_until(end) => return,
                    changed = news.changed() => changed,
                },
            };
            if changed.is_err() {
                return;
            }
        }
    }
}

impl State {
    fn valid(&self) -> bool {
        match self.term {
            Term::None => false,
            Term::Until(end, wall) => Instant::now() < end && SystemTime::now() < wall,
        }
    }

    fn admits(&self) -> bool {
        !self.closed && self.valid()
    }
}

/// One write in flight.
struct Permit(Leadership);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|state| {
            state.in_flight = state.in_flight.saturating_sub(1);
            state.closed && state.in_flight == 0
        });
    }
}

/// The leader check, as a layer of the client.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) Leadership);

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, leadership: self.0.clone() }
    }
}

/// The client's service behind the leader check.
#[derive(Clone, Debug)]
pub(crate) struct Gated<S> {
    inner: S,
    leadership: Leadership,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Error = BoxError>,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if changes_nothing(&request) {
            return self.inner.call(request).boxed();
        }
        let Some(permit) = self.leadership.admit() else { return ready(Err(NotLeading.into())).boxed() };
        let answer = self.inner.call(request);
        let leadership = self.leadership.clone();
        async move {
            let _permit = permit;
            tokio::select! {
                // Checked immediately before sending, so that a process that was paused past its lease does not send a
                // stale write.
                biased;
                () = leadership.over() => Err(NotLeading.into()),
                answer = answer => answer,
            }
        }
        .boxed()
    }
}

/// Reads and access reviews, which are created but not stored.
fn changes_nothing(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        || path.starts_with("/apis/authorization.k8s.io/")
        || path.starts_with("/apis/authentication.k8s.io/")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use futures::FutureExt;
    use http::{Method, Request, Response};
    use kube::client::Body;
    use tokio::time::{Instant, advance, sleep};
    use tower::{BoxError, Layer, Service};

    use super::{Gate, Gated, LeaderStatus, Leadership, NotLeading};

    /// Answers after a second.
    #[derive(Clone)]
    struct Server;

    impl Service<Request<Body>> for Server {
        type Response = Response<()>;
        type Error = BoxError;
        type Future = futures::future::BoxFuture<'static, Result<Response<()>, BoxError>>;

        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), BoxError>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            sleep(Duration::from_secs(1)).map(|()| Ok(Response::new(()))).boxed()
        }
    }

    fn behind(leadership: &Leadership) -> Gated<Server> {
        Gate(leadership.clone()).layer(Server)
    }

    fn send(
        to: &mut Gated<Server>,
        method: Method,
        path: &str,
    ) -> <Gated<Server> as Service<Request<Body>>>::Future {
        to.call(Request::builder().method(method).uri(path).body(Body::empty()).unwrap())
    }

    fn lead_for(leadership: &Leadership, seconds: u64) {
        let lasts = Duration::from_secs(seconds);
        leadership.lead_until(Instant::now() + lasts, SystemTime::now() + lasts, LeaderStatus::Leading);
    }

    fn refused<T>(answer: Result<T, BoxError>) -> bool {
        answer.err().is_some_and(|error| error.is::<NotLeading>())
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_reads_and_asks_but_writes_nothing() {
        let leadership = Leadership::default();
        let mut server = behind(&leadership);
        assert!(send(&mut server, Method::GET, "/api/v1/namespaces").await.is_ok());
        let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert!(send(&mut server, Method::POST, review).await.is_ok());
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(refused(send(&mut server, method, "/api/v1/namespaces/shop/events").await));
        }
        lead_for(&leadership, 10);
        assert!(send(&mut server, Method::POST, "/api/v1/namespaces/shop/events").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_ran_out_sends_nothing_more_though_nobody_said_so() {
        let leadership = Leadership::default();
        let mut server = behind(&leadership);
        lead_for(&leadership, 10);
        let begun = send(&mut server, Method::POST, "/x");
        advance(Duration::from_secs(11)).await;
        assert!(!leadership.is_leader());
        assert!(refused(begun.await), "what was about to be sent is not");
        assert!(refused(send(&mut server, Method::POST, "/x").await));
        assert_eq!(
            leadership.leader_status(),
            LeaderStatus::Unknown("the lease could not be renewed in time".to_owned())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_keeps_what_is_on_its_way() {
        let leadership = Leadership::default();
        let mut server = behind(&leadership);
        lead_for(&leadership, 1);
        let begun = tokio::spawn(send(&mut server, Method::POST, "/x"));
        advance(Duration::from_millis(900)).await;
        lead_for(&leadership, 10);
        assert!(begun.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_writes_nothing_though_its_clock_stood_still() {
        let leadership = Leadership::default();
        let mut server = behind(&leadership);
        let woke_later = SystemTime::now() - Duration::from_secs(1);
        let end = Instant::now() + Duration::from_secs(5);
        leadership.lead_until(end, woke_later, LeaderStatus::Leading);
        assert!(refused(send(&mut server, Method::POST, "/x").await));
    }

    #[tokio::test(start_paused = true)]
    async fn each_term_is_begun_once_and_a_renewal_is_no_new_term() {
        let leadership = Leadership::default();
        lead_for(&leadership, 10);
        assert!(leadership.until_term_begun().now_or_never().is_none(), "nothing is known yet");
        let first = leadership.until_new_term().await;
        leadership.begin_term(first);
        leadership.until_term_begun().await;
        lead_for(&leadership, 10);
        assert!(leadership.until_new_term().now_or_never().is_none(), "a renewal");
        advance(Duration::from_secs(11)).await;
        lead_for(&leadership, 10);
        assert!(leadership.until_term_begun().now_or_never().is_none(), "another may have been leader");
        assert_ne!(leadership.until_new_term().await, first);
        // An answer for the term before does not begin this one.
        leadership.begin_term(first);
        assert!(leadership.until_term_begun().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn closing_lets_what_is_on_its_way_come_to_its_end() {
        let leadership = Leadership::default();
        let mut server = behind(&leadership);
        lead_for(&leadership, 10);
        let begun = tokio::spawn(send(&mut server, Method::POST, "/x"));
        leadership.close();
        assert!(refused(send(&mut server, Method::POST, "/x").await));
        assert!(leadership.finished().now_or_never().is_none(), "one is on its way");
        assert!(begun.await.unwrap().is_ok());
        leadership.finished().await;
        assert!(leadership.until_leader().now_or_never().is_none(), "nothing begins any more");
    }
}

//! Counting what was written, and by whom, from the API server's own audit log.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::json;

use crate::access::Access;
use crate::wait::eventually;

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
const READS: [&str; 3] = ["get", "list", "watch"];

const LEASES: &str = "leases";
/// The Secret that takes the place of nacre's Lease where it may not use Leases.
const LEASE_SECRET: &str = "nacre-lease";

/// The user agent of the requests by which we learn how far the log has come.
const FENCE: &str = "bed-fence/";

/// How long a program may take to write all it has to.
const SETTLES: Duration = Duration::from_mins(2);

/// How long the log may lag behind the answers.
const LAG: Duration = Duration::from_mins(1);

/// The audit policy: one line per finished request, of writes alone unless reads are wanted too.
pub(crate) fn policy(reads: bool) -> String {
    let verbs: Vec<_> = WRITES.into_iter().chain(READS.into_iter().filter(|_| reads)).collect();
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{ "level": "Metadata", "verbs": verbs }, { "level": "None" }],
    });
    format!("{policy:#}\n")
}

/// A request as the API server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who sent it: the program.
    pub user_agent: String,
    /// On whose behalf: the impersonated user if there is one.
    pub user: String,
    /// As RBAC calls it: `create`, `patch`, ...
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, followed by the subresource if there is one: `backups`, `nonadminbackups/status`.
    pub resource: String,
    /// Empty for what is cluster-wide.
    pub namespace: String,
    /// Empty for a creation, whose name is only in the object.
    pub name: String,
    /// The HTTP code of the answer.
    pub code: u16,
    /// The token it was sent with, if the API server logs it: distinguishes processes of one service account.
    pub credential: String,
    /// When it came in.
    pub received: Timestamp,
    /// When it was answered.
    pub answered: Timestamp,
}

impl Request {
    /// Whether it asked for a change. Access reviews are created and not stored.
    pub fn is_write(&self) -> bool {
        WRITES.contains(&self.verb.as_str()) && self.group != "authorization.k8s.io"
    }

    /// Whether it is about a lease, or about what takes the place of nacre's.
    pub fn is_of_lease(&self) -> bool {
        self.resource == LEASES || (self.resource == "secrets" && self.name == LEASE_SECRET)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, namespace, code, .. } = self;
        let place = if namespace.is_empty() { "the cluster" } else { namespace };
        write!(f, "{verb} {resource} in {place}: {code}")
    }
}

/// Requests in the order in which they were answered.
#[derive(Debug, Clone, Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Those of the programs whose user agent begins like this.
    #[must_use]
    pub fn by(&self, user_agent: &str) -> Self {
        self.only(|request| request.user_agent.starts_with(user_agent))
    }

    /// Those that change something. Leases are apart: holding on to one is a sign of life and changes nothing else.
    #[must_use]
    pub fn writes(&self) -> Self {
        self.only(|request| request.is_write() && !request.is_of_lease())
    }

    /// Writes of leases.
    #[must_use]
    pub fn lease_writes(&self) -> Self {
        self.only(|request| request.is_write() && request.is_of_lease())
    }

    /// Those that satisfy a condition.
    #[must_use]
    pub fn only(&self, condition: impl Fn(&Request) -> bool) -> Self {
        Self(self.0.iter().filter(|request| condition(request)).cloned().collect())
    }

    /// How many there are of each sort, such as `patch nonadminbackups/status in shop: 200`.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for request in &self.0 {
            *tally.entry(request.to_string()).or_default() += 1;
        }
        tally
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Request] {
        &self.0
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Mark(u64);

/// The audit log of one bed.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a> {
    pub(crate) log: &'a Path,
    pub(crate) access: &'a Access,
    /// Where this process reaches the API server, if that is in a network of its own.
    pub(crate) forward: Option<SocketAddr>,
}

impl Audit<'_> {
    /// The place in the log behind every request that was answered before.
    pub async fn mark(self) -> Result<Mark> {
        self.fence().await
    }

    /// Every request answered since.
    pub async fn since(self, mark: Mark) -> Result<Requests> {
        self.fence().await?;
        Ok(Requests(self.follow(mark)?.collect::<Result<_>>()?))
    }

    /// Every request answered since, one at a time and as they come. What was answered a moment ago may not be in the log
    /// yet: a second mark makes sure.
    pub fn follow(self, mark: Mark) -> Result<Follow> {
        let mut file = File::open(self.log).with_context(|| format!("opening {}", self.log.display()))?;
        file.seek(SeekFrom::Start(mark.0))?;
        Ok(Follow { reader: BufReader::new(file), place: mark.0, line: String::new() })
    }

    /// Watches for so long and fails if a program whose user agent begins like this wrote anything.
    pub async fn quiet(self, user_agent: &str, window: Duration) -> Result<()> {
        let mark = self.mark().await?;
        tokio::time::sleep(window).await;
        let writes = self.since(mark).await?.writes().by(user_agent);
        ensure!(
            writes.is_empty(),
            "{user_agent} was not quiet for {window:?}, it wrote {:#?}",
            writes.tally()
        );
        Ok(())
    }

    /// Waits until a program has written nothing for so long.
    pub async fn until_quiet(self, user_agent: &str, window: Duration) -> Result<()> {
        eventually("nothing to be written any more", SETTLES, async || self.quiet(user_agent, window).await)
            .await
    }

    /// Sends a request that changes nothing and waits for it in the log. What was answered before it was
    /// sent is in the log by then: the API server logs a request before it ends the answer.
    async fn fence(self) -> Result<Mark> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let user_agent = format!("{FENCE}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let before = Mark(std::fs::metadata(self.log).map_or(0, |log| log.len()));
        let mut config = self.access.config(&self.access.admin_kubeconfig(), &user_agent).await?;
        if let Some(address) = self.forward {
            config.cluster_url = format!("https://{address}").parse()?;
        }
        let reviews = Api::<SelfSubjectReview>::all(Client::try_from(config)?);
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        let quoted = format!("\"{user_agent}\"");
        eventually("the audit log to catch up", LAG, async || {
            let mut log = self.follow(before)?;
            while let Some(line) = log.line()? {
                if line.contains(&quoted) {
                    return Ok(Mark(log.place));
                }
            }
            Err(anyhow!("no {user_agent} in the log"))
        })
        .await
    }
}

/// The log from some place on. However long it is, it is never held as a whole; at its present end there is nothing, and
/// later there may be more.
#[derive(Debug)]
pub struct Follow {
    reader: BufReader<File>,
    place: u64,
    line: String,
}

impl Follow {
    /// The next complete line.
    fn line(&mut self) -> Result<Option<&str>> {
        // What was not complete the last time is gone on with.
        if self.line.ends_with('\n') {
            self.line.clear();
        }
        self.place += u64::try_from(self.reader.read_line(&mut self.line)?)?;
        Ok(self.line.ends_with('\n').then_some(&self.line))
    }
}

impl Iterator for Follow {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let request = self.line().transpose()?.and_then(parse);
            if !request.as_ref().is_ok_and(|request| request.user_agent.starts_with(FENCE)) {
                return Some(request);
            }
        }
    }
}

/// Where the API server notes which token a service account came with.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

fn parse(line: &str) -> Result<Request> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Event {
        verb: String,
        user: User,
        impersonated_user: Option<User>,
        #[serde(default)]
        user_agent: String,
        #[serde(default)]
        object_ref: Object,
        response_status: Option<Status>,
        request_received_timestamp: MicroTime,
        stage_timestamp: MicroTime,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct User {
        username: String,
        extra: BTreeMap<String, Vec<String>>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Object {
        #[serde(rename = "apiGroup")]
        group: String,
        resource: String,
        subresource: String,
        namespace: String,
        name: String,
    }
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        code: u16,
    }
    let event: Event =
        serde_json::from_str(line).with_context(|| format!("reading the audit log's line {line}"))?;
    let Object { group, mut resource, subresource, namespace, name } = event.object_ref;
    if !subresource.is_empty() {
        resource = format!("{resource}/{subresource}");
    }
    let credential = event.user.extra.get(CREDENTIAL).and_then(|all| all.first()).cloned();
    Ok(Request {
        credential: credential.unwrap_or_default(),
        received: event.request_received_timestamp.0,
        answered: event.stage_timestamp.0,
        user_agent: event.user_agent,
        user: event.impersonated_user.unwrap_or(event.user).username,
        verb: event.verb,
        group,
        resource,
        namespace,
        name,
        code: event.response_status.map_or(0, |status| status.code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_told_in_words() {
        let line = json!({
            "verb": "patch",
            "user": { "username": "bed" },
            "impersonatedUser": { "username": "ada" },
            "userAgent": "kubectl/v1.36.3",
            "objectRef": { "resource": "nonadminbackups", "subresource": "status", "namespace": "shop", "name": "one" },
            "responseStatus": { "code": 200 },
            "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
            "stageTimestamp": "2026-01-02T03:04:05.200001Z",
        });
        let request = parse(&line.to_string()).unwrap();
        assert_eq!(request.user, "ada");
        let requests = Requests(vec![request.clone(), request]);
        assert_eq!(
            requests.tally(),
            BTreeMap::from([("patch nonadminbackups/status in shop: 200".to_owned(), 2)])
        );
        assert_eq!(requests.by("kubectl/").len(), 2);
        assert!(requests.by("nacre/").is_empty());
        assert_eq!(requests.writes().len(), 2);
        assert!(requests.lease_writes().is_empty());
    }

    #[test]
    fn a_line_that_is_still_being_written_is_read_once_it_is_whole() {
        use std::io::Write as _;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log =
            Follow { reader: BufReader::new(file.reopen().unwrap()), place: 0, line: String::new() };
        let line = json!({"verb": "create", "user": {"username": "ada"},
            "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z", "stageTimestamp": "2026-01-02T03:04:05.000002Z"});
        let line = line.to_string();
        let (head, tail) = line.split_at(20);
        file.write_all(head.as_bytes()).unwrap();
        assert!(log.next().is_none());
        file.write_all(tail.as_bytes()).unwrap();
        assert!(log.next().is_none(), "it has no end yet");
        file.write_all(b"\n").unwrap();
        assert_eq!(log.next().unwrap().unwrap().user, "ada");
        assert!(log.next().is_none());
        assert_eq!(log.place, u64::try_from(line.len()).unwrap() + 1);
    }

    #[test]
    fn reads_are_logged_only_on_request() {
        let verbs = |reads| {
            serde_json::from_str::<serde_json::Value>(&policy(reads)).unwrap()["rules"][0]["verbs"]
                .to_string()
        };
        assert!(!verbs(false).contains("list") && verbs(true).contains("list"));
    }
}

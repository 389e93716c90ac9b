//! `queue promote`, `hold` and `release`: one annotation on the request, and an Event for the owners of the namespace.

use std::fmt::Debug;

use anyhow::{Context as _, Result, bail};
use api::{NonAdminBackup, NonAdminRestore, labels};
use clap::ValueEnum;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
    core::{NamespaceResourceScope, ObjectMeta},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::order::{Waits, is_held_back};
use crate::{
    connect::Session,
    list::qualified,
    output::{Format, Outcome, lines, print, remark},
    text::printable,
};

/// Which requests, and why.
#[derive(Debug, clap::Args)]
struct Which {
    /// What they are.
    #[arg(value_enum)]
    kind: Kind,

    /// NAMESPACE/NAME, or a name in the namespace that -n names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Reason, shown to the owners of the namespace in an Event.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    #[value(alias = "nab")]
    Backup,
    #[value(alias = "nar")]
    Restore,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre queue promote backup shop/before-upgrade
  kubectl nacre queue promote restore back -n shop --reason 'ticket 4711'

What Velero has already keeps its place there. It takes the verb queue on the kind in all namespaces, which
cluster-admin has. The owners of the namespace see an Event QueuePromoted.")]
pub(super) struct Promote {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre queue hold backup shop/huge --reason 'storage maintenance until 18:00'

It waits until it is released; its owners can still delete it. It takes the verb queue on the kind in all namespaces.
The owners of the namespace see an Event QueueHeld.")]
pub(super) struct Hold {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre queue release backup shop/huge

It has the place again that it would have had. The owners of the namespace see an Event QueueReleased.")]
pub(super) struct Release {
    #[command(flatten)]
    which: Which,
}

/// What is to become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Front,
    Hold,
    None,
}

impl Mark {
    /// The command that does it.
    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Front => "promote",
            Self::Hold => "hold",
            Self::None => "release",
        }
    }

    /// The mark that a command sets.
    pub(crate) fn of_verb(verb: &str) -> Option<Self> {
        [Self::Front, Self::Hold, Self::None].into_iter().find(|mark| mark.verb() == verb)
    }

    const fn value(self) -> Option<&'static str> {
        match self {
            Self::Front => Some(labels::QUEUE_FRONT),
            Self::Hold => Some(labels::QUEUE_HOLD),
            Self::None => None,
        }
    }

    /// The Event's reason, the participle for the answer, and the sentence for the owners of the namespace.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Front => ("QueuePromoted", "promoted", "moved it to the front of the queue"),
            Self::Hold => ("QueueHeld", "held", "holds it: it does not start until it is released"),
            Self::None => ("QueueReleased", "released", "gave it its usual place in the queue again"),
        }
    }
}

impl Promote {
    pub(super) async fn run(&self, session: &Session, given: Option<&str>) -> Result<Outcome> {
        self.which.mark(session, given, Mark::Front).await
    }
}

impl Hold {
    pub(super) async fn run(&self, session: &Session, given: Option<&str>) -> Result<Outcome> {
        self.which.mark(session, given, Mark::Hold).await
    }
}

impl Release {
    pub(super) async fn run(&self, session: &Session, given: Option<&str>) -> Result<Outcome> {
        self.which.mark(session, given, Mark::None).await
    }
}

impl Which {
    async fn mark(&self, session: &Session, given: Option<&str>, mark: Mark) -> Result<Outcome> {
        match self.kind {
            Kind::Backup => self.all::<NonAdminBackup>(session, given, mark).await,
            Kind::Restore => self.all::<NonAdminRestore>(session, given, mark).await,
        }
    }

    async fn all<K: Markable>(&self, session: &Session, given: Option<&str>, mark: Mark) -> Result<Outcome> {
        // All of them are found before any is written.
        let mut meant = Vec::new();
        for name in &self.names {
            let (namespace, name) = place(name, given)?;
            meant.push(Meant::<K>::find(session, namespace, name, mark).await?);
        }
        let user = caller(session).await;
        let mut recorded = true;
        for one in &meant {
            if let Some(problem) = one.write(session, mark, user.as_deref(), self.reason.as_deref()).await? {
                remark(problem);
                recorded = false;
            }
        }
        let names: Vec<String> = meant.iter().map(|one| qualified::<K>(&one.name)).collect();
        let (_, participle, _) = mark.words();
        let table = || {
            let done = |one: &Meant<K>| printable(&format!("{}/{} {participle}", one.namespace, one.name));
            lines(meant.iter().map(done))
        };
        let format = if session.format == Format::Wide { Format::Table } else { session.format };
        print(format, &names, table, || names.clone())?;
        Ok(Outcome::attention_if(!recorded))
    }
}

/// One request that waits, to be marked. What did not work although it is marked, if anything.
pub(crate) async fn one(
    session: &Session,
    kind: Kind,
    place: (&str, &str),
    mark: Mark,
    reason: Option<&str>,
) -> Result<Option<String>> {
    match kind {
        Kind::Backup => one_of::<NonAdminBackup>(session, place, mark, reason).await,
        Kind::Restore => one_of::<NonAdminRestore>(session, place, mark, reason).await,
    }
}

async fn one_of<K: Markable>(
    session: &Session,
    (namespace, name): (&str, &str),
    mark: Mark,
    reason: Option<&str>,
) -> Result<Option<String>> {
    let meant = Meant::<K>::find(session, namespace, name, mark).await?;
    let user = caller(session).await;
    meant.write(session, mark, user.as_deref(), reason).await
}

/// A kind that waits in the queue.
trait Markable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Waits + DeserializeOwned + Clone + Debug
{
}

impl Markable for NonAdminBackup {}
impl Markable for NonAdminRestore {}

/// A request that is to be marked.
struct Meant<K> {
    api: Api<K>,
    found: K,
    namespace: String,
    name: String,
}

impl<K: Markable> Meant<K> {
    async fn find(session: &Session, namespace: &str, name: &str, mark: Mark) -> Result<Self> {
        let api: Api<K> = Api::namespaced(session.client.clone(), namespace);
        let found = api.get(name).await?;
        if mark != Mark::None && !is_held_back(&found) {
            bail!("{namespace}/{name} does not wait in nacre's queue: see kubectl nacre queue list");
        }
        Ok(Self { api, found, namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Marks it, and records an Event; why there is no Event, if there is none.
    async fn write(
        &self,
        session: &Session,
        mark: Mark,
        user: Option<&str>,
        why: Option<&str>,
    ) -> Result<Option<String>> {
        let Self { api, found, namespace, name } = self;
        let (reason, participle, _) = mark.words();
        let change = json!({"metadata": {"annotations": {labels::QUEUE: mark.value()}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await
            .with_context(|| format!("{namespace}/{name} is not {participle}"))?;
        let event = event::<K>(Resource::meta(found), mark, user, why, Timestamp::now());
        let events: Api<Event> = Api::namespaced(session.client.clone(), namespace);
        let recorded = events.create(&PostParams::default(), &event).await;
        Ok(recorded.err().map(|error| {
            format!("{namespace}/{name} is {participle}, but Event {reason} is not recorded: {error}")
        }))
    }
}

/// Which object a name means.
fn place<'a>(name: &'a str, given: Option<&'a str>) -> Result<(&'a str, &'a str)> {
    let mut parts = name.rsplit('/');
    match (parts.next(), parts.next(), given) {
        (Some(name), Some(namespace), None) => Ok((namespace, name)),
        (Some(name), Some(namespace), Some(given)) if namespace == given => Ok((namespace, name)),
        (Some(_), Some(namespace), Some(given)) => {
            bail!("{name:?} is in {namespace}, and -n is {given}: name one of them")
        }
        (Some(name), None, Some(given)) => Ok((given, name)),
        _ => bail!("{name:?} has no namespace: write NAMESPACE/NAME, or add -n"),
    }
}

/// Who the caller is, if the API server answers that.
async fn caller(session: &Session) -> Option<String> {
    let api: Api<SelfSubjectReview> = Api::all(session.client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username
}

fn event<K: Resource<DynamicType = ()>>(
    about: &ObjectMeta,
    mark: Mark,
    user: Option<&str>,
    why: Option<&str>,
    now: Timestamp,
) -> Event {
    let (reason, _, sentence) = mark.words();
    let who = user.map_or_else(|| "an administrator".to_owned(), |user| format!("administrator {user}"));
    let why = why.map(|why| format!(": {}", printable(why))).unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}.", about.name.as_deref().unwrap_or_default())),
            namespace: about.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: about.name.clone(),
            namespace: about.namespace.clone(),
            uid: about.uid.clone(),
            ..ObjectReference::default()
        },
        reason: Some(reason.to_owned()),
        message: Some(format!("{who} {sentence}{why}")),
        type_: Some("Normal".to_owned()),
        source: Some(EventSource { component: Some("kubectl-nacre".to_owned()), host: None }),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_needs_one_namespace() {
        assert_eq!(place("shop/daily", None).unwrap(), ("shop", "daily"));
        assert_eq!(place("daily", Some("shop")).unwrap(), ("shop", "daily"));
        assert_eq!(
            place("backup/shop/daily", None).unwrap(),
            ("shop", "daily"),
            "as queue list -o name has it"
        );
        assert!(place("daily", None).unwrap_err().to_string().contains("NAMESPACE/NAME"));
        assert!(place("shop/daily", Some("farm")).is_err());
    }

    #[test]
    fn owners_see_who_did_what_and_why() {
        let about = ObjectMeta {
            name: Some("daily".to_owned()),
            namespace: Some("shop".to_owned()),
            ..ObjectMeta::default()
        };
        let told = |mark, why| {
            let event = event::<NonAdminBackup>(&about, mark, Some("root"), why, Timestamp::UNIX_EPOCH);
            format!("{} {}", event.reason.unwrap(), event.message.unwrap())
        };
        assert_eq!(
            told(Mark::Hold, Some("until 18:00")),
            "QueueHeld administrator root holds it: it does not start until it is released: until 18:00"
        );
        assert_eq!(
            told(Mark::Front, None),
            "QueuePromoted administrator root moved it to the front of the queue"
        );
        assert_eq!(
            told(Mark::None, None),
            "QueueReleased administrator root gave it its usual place in the queue again"
        );
    }
}

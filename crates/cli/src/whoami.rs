//! `whoami`: who the caller is to nacre, and what the caller could back up and bring back.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use api::NonAdminBackup;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use planner::Policy;
use planner::requester::{
    self, Abilities, Access, Answer, Answers, Ask, Attributes, Foretold, Identity, Requester, Wish,
    abilities, create_role,
};
use planner::served::Served;
use serde::Serialize;

use crate::{
    allowed,
    connect::Session,
    output::{Outcome, lines, print},
    resources,
};

/// How many questions at a time.
const AT_ONCE: usize = 16;
/// A wildcard, and the rest: more rounds of questions there are not.
const ROUNDS: usize = 3;
/// By what OpenShift limits a token.
const SCOPES: &str = "scopes.authorization.openshift.io";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre whoami                                    what you could back up and bring back here
  kubectl nacre whoami -n shop --as jane                  the same for somebody else, if you may impersonate

Where it is recorded who asks, nacre gives nobody more than they could do themselves. What you lack is left out
of restores, and of backups into storage of your own.")]
pub(crate) struct Whoami {}

/// Who the caller is, and what the caller could not do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    user: String,
    groups: Vec<String>,
    namespace: String,
    /// Kinds that a backup into storage of one's own would leave out.
    not_backed_up: Vec<String>,
    /// Kinds that a restore would leave out.
    not_restored: Vec<String>,
    may_run_commands: bool,
    /// What an administrator would run.
    commands: Vec<String>,
}

pub(crate) async fn run(session: &Session) -> Result<Outcome> {
    let requester = caller(session).await?;
    let namespace = allowed::namespace(session).await;
    let allowed = allowed::read(session, &namespace, None).await?;
    let policy = allowed.policy.unwrap_or_default();
    let mut access = access(session, requester.clone()).await?;
    for _ in 0..ROUNDS {
        match abilities(&access, &policy) {
            Ok(abilities) => return show(session, &requester, &access, abilities),
            Err(asks) => learn(session, &mut access, asks).await?,
        }
    }
    bail!("the API server does not say what you may do")
}

/// What the caller would not get of a request; nothing where nobody records who asks.
pub(crate) async fn foretell(
    session: &Session,
    served: &[Served],
    wish: Wish<'_>,
    policy: &Policy,
) -> Result<Foretold> {
    let Some(identity) = recorded(session).await? else { return Ok(Foretold::default()) };
    let mut access = Access {
        identity,
        namespace: session.namespace.clone(),
        served: Some(served.into()),
        now: Timestamp::now(),
        ..Access::default()
    };
    for _ in 0..ROUNDS {
        match requester::foretell(&access, wish, policy) {
            Ok(foretold) => return Ok(foretold),
            Err(asks) => learn(session, &mut access, asks).await?,
        }
    }
    Ok(Foretold::default())
}

/// The caller as the API server would record it; none if it does not.
async fn recorded(session: &Session) -> Result<Option<Identity>> {
    let probe = NonAdminBackup {
        metadata: ObjectMeta { generate_name: Some("whoami-".to_owned()), ..ObjectMeta::default() },
        ..NonAdminBackup::default()
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match session.api::<NonAdminBackup>().create(&dry, &probe).await {
        Ok(made) => Ok(Some(requester::of(&made.metadata)).filter(|who| *who != Identity::Unrecorded)),
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Who the API server takes the caller for.
pub(crate) async fn caller(session: &Session) -> Result<Requester> {
    let reviews = Api::<SelfSubjectReview>::all(session.client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review
        .status
        .and_then(|status| status.user_info)
        .context("the API server does not say who you are")?;
    Ok(Requester {
        user: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        scopes: user.extra.and_then(|mut extra| extra.remove(SCOPES)).unwrap_or_default(),
        ..Requester::default()
    })
}

/// What is known of the caller's permissions before anything was asked.
async fn access(session: &Session, requester: Requester) -> Result<Access> {
    let served =
        resources::served(session).await.context("the cluster does not say which resources it serves")?;
    Ok(Access {
        identity: Identity::Known(Arc::new(requester)),
        namespace: session.namespace.clone(),
        served: Some(served.into()),
        now: Timestamp::now(),
        ..Access::default()
    })
}

/// Asks what the caller may do.
async fn learn(session: &Session, access: &mut Access, asks: Vec<Ask>) -> Result<()> {
    let asked = asks.into_iter().filter_map(|ask| match ask {
        Ask::Review(review) => Some(review.attributes),
        Ask::Served => None,
    });
    let answers: Vec<(Attributes, bool)> = stream::iter(asked)
        .map(|attributes| async { may(session, &attributes).await.map(|allowed| (attributes, allowed)) })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut known = Answers::clone(&access.answers);
    known.extend(
        answers.into_iter().map(|(attributes, allowed)| (attributes, Answer { allowed, at: access.now })),
    );
    access.answers = Arc::new(known);
    Ok(())
}

/// Whether the caller may do something. Everybody may ask this about themselves.
async fn may(session: &Session, attributes: &Attributes) -> kube::Result<bool> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: some(&session.namespace),
                verb: some(attributes.verb),
                group: some(&attributes.group),
                resource: some(&attributes.resource),
                subresource: some(attributes.subresource),
                name: some(&attributes.name),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews = Api::<SelfSubjectAccessReview>::all(session.client.clone());
    let reviewed = reviews.create(&PostParams::default(), &review).await?;
    Ok(reviewed.status.is_some_and(|status| status.allowed))
}

fn show(session: &Session, requester: &Requester, access: &Access, abilities: Abilities) -> Result<Outcome> {
    let Abilities { not_backed_up, not_restored, may_run_commands, denied } = abilities;
    let answered = Answered {
        user: requester.user.clone(),
        groups: requester.groups.clone(),
        namespace: session.namespace.clone(),
        commands: create_role(access, &denied),
        not_backed_up,
        not_restored,
        may_run_commands,
    };
    print(session.format, &answered, || page(&answered), || vec![answered.user.clone()])?;
    Ok(Outcome::Good)
}

fn page(answered: &Answered) -> String {
    let all_but = |names: &[String]| {
        if names.is_empty() {
            "everything".to_owned()
        } else {
            format!("everything but {}", names.join(", "))
        }
    };
    let mut page = vec![
        format!("You are {}, in {}.", answered.user, answered.groups.join(", ")),
        format!("In namespace {} you can", answered.namespace),
        format!("  back up into storage of your own:  {}", all_but(&answered.not_backed_up)),
        "  back up into the cluster's storage: everything".to_owned(),
        format!("  restore:                            {}", all_but(&answered.not_restored)),
        format!(
            "  run commands in pods by hooks:      {}",
            if answered.may_run_commands { "yes" } else { "no" }
        ),
    ];
    if !answered.commands.is_empty() {
        page.push("For the rest, an administrator would run:".to_owned());
        page.extend(answered.commands.iter().map(|line| format!("  {line}")));
    }
    lines(page)
}

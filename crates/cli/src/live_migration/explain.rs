//! `explain`: why somebody may or may not migrate.

use anyhow::Result;
use live_migration::{
    explain::{self, Answer, PowerCheck},
    preview::grant_command,
};
use planner::kubevirt::Power;
use planner::rbac::Scope;
use planner::rbac::subject::{Identity, Who};

use super::{
    gather,
    review::{self, Question},
    show,
};
use crate::{
    connect::Session,
    output::{Outcome, lines, print, remark},
    table::Table,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration explain -n shop                     may I?
  kubectl nacre migration explain --user ann -n shop          may she?
  kubectl nacre migration explain --serviceaccount ops:mover -n shop db

Reads only. Exit code 3 if a migration cannot be started. Asking about others needs permission to read roles and bindings.")]
pub(super) struct Explain {
    /// About this user, instead of yourself.
    #[arg(long, conflicts_with = "serviceaccount")]
    user: Option<String>,

    /// Who is in this group; may be repeated.
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,

    /// About this service account.
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = super::grant::account)]
    serviceaccount: Option<Who>,

    /// The machine to migrate; any if absent.
    machine: Option<String>,
}

pub(super) async fn run(session: &Session, args: &Explain) -> Result<Outcome> {
    let about_me = args.user.is_none() && args.serviceaccount.is_none() && args.groups.is_empty();
    let identity = match (&args.user, &args.serviceaccount) {
        _ if about_me => review::myself(&session.client).await?,
        (_, Some(account)) => with_groups(account.identity(), &args.groups),
        (user, None) => {
            let everybody = vec!["system:authenticated".to_owned()];
            let identity = Identity { user: user.clone().unwrap_or_default(), groups: everybody };
            with_groups(identity, &args.groups)
        }
    };
    let namespace = &session.namespace;
    let answer = match gather::rbac(&session.client).await {
        Ok(rbac) => {
            let answer = explain::explain(&rbac, &identity, namespace, args.machine.as_deref());
            confirm(session, &identity, args.machine.as_deref(), &answer).await?;
            answer
        }
        // A tenant reads neither roles nor bindings, but may always ask about itself.
        Err(error) if about_me && gather::is_forbidden(&error) => {
            about_myself(session, args.machine.as_deref(), &identity).await?
        }
        Err(error) => return Err(error),
    };
    print(
        session.format,
        &answer,
        || table(&answer, &identity, namespace),
        || answer.remedy.iter().cloned().collect(),
    )?;
    Ok(Outcome::attention_if(!answer.can_migrate))
}

async fn confirm(
    session: &Session,
    identity: &Identity,
    machine: Option<&str>,
    answer: &Answer,
) -> Result<()> {
    let questions = answer.verdicts.iter().map(|verdict| Question {
        identity: identity.clone(),
        namespace: session.namespace.clone(),
        request: verdict.power.request(),
        name: name_for(verdict.power, machine),
    });
    let confirmed = review::allowed(&session.client, questions.collect()).await?;
    for (verdict, allowed) in answer.verdicts.iter().zip(confirmed) {
        if verdict.allowed != allowed {
            let word = if allowed { "allows" } else { "denies" };
            remark(format_args!("the API server {word} {}, by other means than RBAC", verdict.power.name()));
        }
    }
    Ok(())
}

async fn about_myself(session: &Session, machine: Option<&str>, identity: &Identity) -> Result<Answer> {
    let mut verdicts = Vec::new();
    for power in Power::ALL {
        let name = name_for(power, machine);
        let allowed = review::allowed_to_me(&session.client, &session.namespace, power, &name).await?;
        verdicts.push(PowerCheck { power, allowed, paths: Vec::new() });
    }
    let can_migrate =
        verdicts.iter().any(|one| one.allowed && matches!(one.power, Power::Create | Power::Migrate));
    let because =
        "starting and deleting migrations takes kubevirt.io:migrate, which a cluster administrator grants";
    let scope = Scope::Namespace(session.namespace.clone());
    Ok(Answer {
        verdicts,
        can_migrate,
        because: if can_migrate { Vec::new() } else { vec![because.to_owned()] },
        remedy: (!can_migrate).then(|| grant_command(&Who::named(&identity.user), &scope)),
    })
}

/// Only `migrate` is about a machine; the others are about migration objects.
fn name_for(power: Power, machine: Option<&str>) -> String {
    machine.filter(|_| power == Power::Migrate).unwrap_or_default().to_owned()
}

fn with_groups(mut identity: Identity, groups: &[String]) -> Identity {
    identity.groups.extend(groups.iter().cloned());
    identity
}

fn table(answer: &Answer, identity: &Identity, namespace: &str) -> String {
    let word = if answer.can_migrate { "can" } else { "cannot" };
    let who = if identity.user.is_empty() { identity.groups.join(", ") } else { identity.user.clone() };
    let mut rows = Table::new(&["POWER", "ALLOWED", "THROUGH"]);
    for verdict in &answer.verdicts {
        let allowed = if verdict.allowed { "yes" } else { "no" };
        rows.row([verdict.power.name().to_owned(), allowed.to_owned(), show::sources(&verdict.paths)]);
    }
    let reasons = answer.because.iter().map(|reason| format!("because {reason}"));
    let remedy = answer.remedy.iter().map(|command| format!("to grant it: {command}"));
    format!("{who} {word} start a migration in {namespace}\n\n{rows}\n{}", lines(reasons.chain(remedy)))
}

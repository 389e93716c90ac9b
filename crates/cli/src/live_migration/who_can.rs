//! `who-can`: everybody with a live-migration permission, and how.

use anyhow::Result;
use live_migration::{
    indirect::{Roundabout, roundabouts},
    preview::dormant,
    who_can::{Right, rights},
};
use planner::rbac::{Scope, rules::Request, subject::Who};
use serde::Serialize;

use super::{
    gather,
    review::{self, Question},
    show,
};
use crate::{
    connect::Session,
    output::{Format, Outcome, print, remark},
    table::Table,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration who-can -n shop
  kubectl nacre migration who-can -A -o wide        with every step of the way
  kubectl nacre migration who-can -A -o json | jq '.rights[] | select(.scope == \"cluster\")'

Reads only. Every right is confirmed by a SubjectAccessReview; exit code 3 if one is not.")]
pub(super) struct WhoCan {
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Do not ask the API server to confirm each right.
    #[arg(long)]
    no_confirm: bool,
}

/// Something found, and what the API server says of it.
#[derive(Serialize)]
struct Confirmed<T> {
    #[serde(flatten)]
    found: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
}

#[derive(Serialize)]
struct Holders {
    rights: Vec<Confirmed<Right>>,
    indirect: Vec<Confirmed<Roundabout>>,
    dormant: Vec<String>,
}

pub(super) async fn run(session: &Session, args: &WhoCan) -> Result<Outcome> {
    let rbac = gather::rbac(&session.client).await?;
    let wanted = |scope: &Scope| args.all_namespaces || scope.includes(&session.namespace);
    let every = rights(&rbac);
    let mut indirect = roundabouts(&rbac, &every);
    indirect.retain(|found| wanted(&found.scope));
    let found: Vec<Right> = every.into_iter().filter(|right| wanted(&right.scope)).collect();
    let answer = Holders {
        rights: confirmed(session, args, found, direct).await?,
        indirect: confirmed(session, args, indirect, by_detour).await?,
        dormant: dormant(&rbac),
    };
    for binding in &answer.dormant {
        remark(format_args!(
            "{binding} names kubevirt.io:migrate, which does not exist; it gives nothing yet"
        ));
    }
    let contradicted = answer.rights.iter().any(|right| right.confirmed == Some(false))
        || answer.indirect.iter().any(|right| right.confirmed == Some(false));
    if contradicted {
        remark(
            "the API server contradicts some of this: it may authorize by other means than RBAC, or just have changed",
        );
    }
    print(session.format, &answer, || table(&answer, session.format == Format::Wide), || names(&answer))?;
    Ok(Outcome::attention_if(contradicted))
}

async fn confirmed<T>(
    session: &Session,
    args: &WhoCan,
    found: Vec<T>,
    ask: fn(&T) -> Question,
) -> Result<Vec<Confirmed<T>>> {
    let answers: Vec<Option<bool>> = if args.no_confirm {
        vec![None; found.len()]
    } else {
        review::allowed(&session.client, found.iter().map(ask).collect())
            .await?
            .into_iter()
            .map(Some)
            .collect()
    };
    Ok(found.into_iter().zip(answers).map(|(found, confirmed)| Confirmed { found, confirmed }).collect())
}

fn direct(right: &Right) -> Question {
    // A right for some objects only is asked about by one of them.
    let name = if right.whole() { None } else { right.paths.iter().flat_map(|path| &path.only).next() };
    question(&right.who, &right.scope, right.power.request(), name)
}

fn by_detour(found: &Roundabout) -> Question {
    question(&found.who, &found.scope, found.request, found.path.only.first())
}

fn question(who: &Who, scope: &Scope, request: Request, name: Option<&String>) -> Question {
    Question {
        identity: who.identity(),
        namespace: scope.namespace().unwrap_or_default().to_owned(),
        request,
        name: name.cloned().unwrap_or_default(),
    }
}

fn table(answer: &Holders, wide: bool) -> String {
    let mut rows = Table::new(&["SUBJECT", "NAMESPACE", "CAN", "CONFIRMED", "THROUGH"]);
    for found in &answer.rights {
        let right = &found.found;
        let through = if wide {
            right.paths.iter().map(show::path).collect::<Vec<_>>().join("; ")
        } else {
            show::sources(&right.paths)
        };
        let limited = if right.whole() { "" } else { " (some)" };
        let can = format!("{}{limited}", right.power.name());
        rows.row([right.who.to_string(), show::place(&right.scope), can, word(found.confirmed), through]);
    }
    for Confirmed { found, confirmed } in &answer.indirect {
        // The word that JSON has for it.
        let detour = serde_json::to_value(found.detour).unwrap_or_default();
        let can = format!("~{}", detour.as_str().unwrap_or_default());
        let through =
            if wide { show::path(&found.path) } else { show::sources(std::slice::from_ref(&found.path)) };
        rows.row([found.who.to_string(), show::place(&found.scope), can, word(*confirmed), through]);
    }
    if rows.is_empty() { "nobody\n".to_owned() } else { rows.to_string() }
}

fn word(confirmed: Option<bool>) -> String {
    confirmed.map_or("-", |yes| if yes { "yes" } else { "NO" }).to_owned()
}

fn names(answer: &Holders) -> Vec<String> {
    let mut names: Vec<String> = answer.rights.iter().map(|found| found.found.who.to_string()).collect();
    names.dedup();
    names
}

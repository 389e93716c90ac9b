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
    let answer = holders(session, args).await?;
    for remarked in answer.remarks() {
        remark(remarked);
    }
    let wide = session.format == Format::Wide;
    let shown = || match table(&answer, wide) {
        rows if rows.is_empty() => "nobody\n".to_owned(),
        rows => rows.to_string(),
    };
    print(session.format, &answer, shown, || names(&answer))?;
    Ok(Outcome::attention_if(answer.is_contradicted()))
}

/// Everybody in all namespaces who can migrate, with every step of the way, and what there is to remark.
pub(crate) async fn look(session: &Session) -> Result<(Table, Vec<String>)> {
    let answer = holders(session, &WhoCan { all_namespaces: true, no_confirm: false }).await?;
    Ok((table(&answer, true), answer.remarks()))
}

async fn holders(session: &Session, args: &WhoCan) -> Result<Holders> {
    let rbac = gather::rbac(&session.client).await?;
    let wanted = |scope: &Scope| args.all_namespaces || scope.includes(&session.namespace);
    let every = rights(&rbac);
    let mut indirect = roundabouts(&rbac, &every);
    indirect.retain(|found| wanted(&found.scope));
    let found: Vec<Right> = every.into_iter().filter(|right| wanted(&right.scope)).collect();
    Ok(Holders {
        rights: confirmed(session, args, found, direct).await?,
        indirect: confirmed(session, args, indirect, by_detour).await?,
        dormant: dormant(&rbac),
    })
}

impl Holders {
    fn is_contradicted(&self) -> bool {
        self.rights.iter().any(|right| right.confirmed == Some(false))
            || self.indirect.iter().any(|right| right.confirmed == Some(false))
    }

    fn remarks(&self) -> Vec<String> {
        let dormant = self.dormant.iter().map(|binding| {
            format!("{binding} names kubevirt.io:migrate, which does not exist; it gives nothing yet")
        });
        let contradicted = self.is_contradicted().then(|| CONTRADICTED.to_owned());
        dormant.chain(contradicted).collect()
    }
}

const CONTRADICTED: &str = "the API server contradicts some of this: it may authorize by other means than RBAC, or just have changed";

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

fn table(answer: &Holders, wide: bool) -> Table {
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
    rows
}

fn word(confirmed: Option<bool>) -> String {
    confirmed.map_or("-", |yes| if yes { "yes" } else { "NO" }).to_owned()
}

fn names(answer: &Holders) -> Vec<String> {
    let mut names: Vec<String> = answer.rights.iter().map(|found| found.found.who.to_string()).collect();
    names.dedup();
    names
}

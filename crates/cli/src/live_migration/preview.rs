//! `preview`: who would lose what.

use anyhow::Result;
use jiff::Timestamp;
use live_migration::preview::{Preview as Answer, dormant, preview};

use super::{gather, show};
use crate::{
    connect::Session,
    output::{Outcome, lines, print, remark},
    table::Table,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration preview
  kubectl nacre migration preview --announced 2026-11-01T00:00:00Z
  kubectl nacre migration preview -o json | jq -r '.grants[]'      a grant for everybody who would lose

Reads only. Exit code 3 if anybody would lose a right, 0 if nobody would.")]
pub(super) struct Preview {
    /// When tenants learned of the upgrade: roles of their own made since then are marked.
    #[arg(long, value_name = "TIME")]
    announced: Option<Timestamp>,
}

pub(super) async fn run(session: &Session, args: &Preview) -> Result<Outcome> {
    let rbac = gather::rbac(&session.client).await?;
    let answer = preview(&rbac, args.announced);
    for binding in dormant(&rbac) {
        remark(format_args!("{binding} waits for kubevirt.io:migrate, and comes alive with it"));
    }
    print(
        session.format,
        &answer,
        || table(&answer),
        || answer.losses.iter().map(|loss| loss.who.to_string()).collect(),
    )?;
    Ok(Outcome::attention_if(!answer.losses.is_empty()))
}

fn table(answer: &Answer) -> String {
    let mut rows = Table::new(&["SUBJECT", "NAMESPACE", "CHANGE", "POWERS", "THROUGH"]);
    for loss in &answer.losses {
        let through = show::sources(&loss.paths);
        rows.row([
            loss.who.to_string(),
            show::place(&loss.scope),
            "loses".into(),
            show::powers(&loss.loses),
            through,
        ]);
    }
    for (word, list) in [("keeps", &answer.kept), ("gains", &answer.gains)] {
        for kept in list {
            let through = show::sources(&kept.paths);
            rows.row([
                kept.who.to_string(),
                show::place(&kept.scope),
                word.into(),
                show::powers(&kept.keeps),
                through,
            ]);
        }
    }
    let changes = if rows.is_empty() {
        "nobody can migrate, and nobody would lose anything\n".to_owned()
    } else {
        rows.to_string()
    };
    let roles = answer.own_roles.iter().map(|role| {
        let since = role.since.as_deref().unwrap_or("unknown");
        let mark = if role.suspicious { ", after the announcement" } else { "" };
        let powers = show::powers(&role.gives);
        format!("role {}/{} gives {powers} and stays (since {since}{mark})", role.namespace, role.name)
    });
    let grants = answer.grants.iter().map(|command| format!("to keep it: {command}"));
    format!("{changes}{}", lines(roles.chain(grants)))
}

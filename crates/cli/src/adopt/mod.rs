//! `kubectl nacre adopt`: gives the backups of a deleted namespace to the re-created one.

mod facts;
mod record;

use anyhow::{Result, bail};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    allowed::{self, Source},
    confirm::Consent,
    connect::Session,
    output::{Format, Outcome, lines, print, remark, say},
    table::{Cell, Table},
    text::{age, count},
    whoami,
};
use facts::{Facts, Left};
use record::Given;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre adopt --list                           what is not adopted yet, and what was adopted
  kubectl nacre adopt shop --dry-run                   what the owners of `shop` would get
  kubectl nacre adopt shop
  kubectl nacre adopt shop --remove                    revoke the adoption

A namespace that was deleted and re-created may belong to somebody else: backups of the earlier one in the
cluster's own storage are not shown until an administrator adopts them. Whoever owns the namespace then can restore
them, Secrets included. It is stored in the ConfigMap nacre-adoptions in Velero's namespace, with your user name, for just the
namespace as it is now: if that is deleted and re-created, it needs a new decision.")]
pub(crate) struct Adopt {
    /// The namespace that gets the backups.
    #[arg(value_name = "NAMESPACE", required_unless_present = "list")]
    name: Option<String>,

    /// List backups of deleted namespaces, and what was adopted.
    #[arg(long, conflicts_with_all = ["name", "remove", "dry_run"])]
    list: bool,

    /// Revoke the adoption: backups found from now on are not given to the namespace. What it already has stays.
    #[arg(long)]
    remove: bool,

    /// Print what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,
}

/// Velero has to find the backups in the storage first.
const FOUND_LATER: &str =
    "Backups of a namespace that was deleted just now are found within two minutes: look again then.";

/// What is handed over, for programs.
#[derive(Serialize)]
struct Adoption<'a> {
    namespace: &'a str,
    uid: &'a str,
    done: &'static str,
    backups: &'a [Left],
}

pub(crate) async fn run(session: &Session, args: &Adopt) -> Result<Outcome> {
    match &args.name {
        None => list(session).await,
        Some(name) if args.remove => take_back(session, name, args).await,
        Some(name) => hand_over(session, name, args).await,
    }
}

async fn hand_over(session: &Session, name: &str, args: &Adopt) -> Result<Outcome> {
    let facts = Facts::read(session).await?;
    let Some(namespace) = facts.namespace(name) else {
        bail!(
            "there is no namespace {name:?}; create it first, since backups are given to a namespace by uid"
        );
    };
    if namespace.metadata.deletion_timestamp.is_some() {
        bail!("namespace {name} is being deleted; wait until it is gone, and create it again");
    }
    let allowed = allowed::read(&session.within(name), namespace, None).await?;
    let policy = allowed.policy.as_deref().filter(|_| allowed.source != Source::Unreadable);
    let namespaces = policy.map(|policy| policy.namespaces.clone()).unwrap_or_default();
    if let Some(why) = namespaces.why_closed(name, &session.velero_namespace) {
        bail!("namespace {name} may not have backups; {why}");
    }
    let left = facts.left_for(namespace);
    let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
    let reported = |done: &'static str, words: String| {
        let answer = Adoption { namespace: name, uid, done, backups: &left };
        let table = || shown(&left) + &lines([words]);
        print(session.format, &answer, table, || left.iter().map(|left| left.velero.clone()).collect())
    };
    if facts.is_given(namespace) {
        reported("already", format!("namespace {name} has been given them already; nothing was done"))?;
        return Ok(Outcome::Good);
    }
    if left.is_empty() {
        reported(
            "nothing",
            format!("there is nothing to adopt for namespace {name}; nothing was changed. {FOUND_LATER}"),
        )?;
        return Ok(Outcome::Good);
    }
    let number = count(i64::try_from(left.len()).unwrap_or(i64::MAX), "backup");
    if args.dry_run {
        reported("dryRun", format!("{number} would be given to namespace {name} (uid {uid})"))?;
        return Ok(Outcome::Good);
    }
    let people = matches!(session.format, Format::Table | Format::Wide);
    if people {
        say(&shown(&left))?;
    }
    let question = format!("Give {number} of an earlier namespace {name} to its current owners (uid {uid})?");
    if !args.consent.given(&question)? {
        remark("nothing was adopted");
        return Ok(Outcome::Failed);
    }
    // The API server checks the name. Without one the adoption counts as well.
    let by = whoami::caller(session).await.ok().map(|caller| caller.user);
    record::write(session, name, Some(Given { uid, by: by.as_deref() })).await?;
    let words = format!(
        "{number} given to namespace {name}; see `kubectl nacre backup get -n {name}` in a few seconds"
    );
    if people {
        say(&lines([words]))?;
    } else {
        reported("handedOver", words)?;
    }
    Ok(Outcome::Good)
}

async fn take_back(session: &Session, name: &str, args: &Adopt) -> Result<Outcome> {
    let record = record::read(session).await?;
    if !record.contains_key(name) {
        bail!("nothing was given to namespace {name}; `kubectl nacre adopt --list` shows what was");
    }
    if args.dry_run {
        say(&format!("the adoption for namespace {name} would be revoked\n"))?;
        return Ok(Outcome::Good);
    }
    record::write(session, name, None).await?;
    say(&format!(
        "the adoption for namespace {name} was revoked: backups found from now on are not given to it, what it already has stays\n"
    ))?;
    Ok(Outcome::Good)
}

async fn list(session: &Session) -> Result<Outcome> {
    let facts = Facts::read(session).await?;
    let rows = facts.overview();
    if rows.is_empty() && !matches!(session.format, Format::Json | Format::Yaml) {
        remark(format_args!("Nothing is held back, and nothing was adopted. {FOUND_LATER}"));
        return Ok(Outcome::Good);
    }
    let table = || {
        let mut table = Table::new(&["NAMESPACE", "STATE", "HELD-BACK", "UID", "BY"]);
        for row in &rows {
            table.row([
                row.namespace.as_str().into(),
                row.state.cell(),
                row.held_back.to_string().into(),
                row.uid.as_deref().into(),
                row.by.as_deref().into(),
            ]);
        }
        table.to_string()
    };
    print(session.format, &rows, table, || {
        rows.iter().map(|row| format!("namespace/{}", row.namespace)).collect()
    })?;
    Ok(Outcome::Good)
}

/// What is held back, or nothing at all.
fn shown(left: &[Left]) -> String {
    let now = Timestamp::now();
    let mut table = Table::new(&["BACKUP", "STATUS", "COMPLETED", "EARLIER-NAMESPACE", "VELERO-NAME"]);
    for left in left {
        table.row([
            Cell::from(left.backup.as_str()),
            left.status.as_deref().into(),
            left.completed.map(|time| format!("{} ago", age(time, now))).into(),
            left.from.as_deref().into(),
            left.velero.as_str().into(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.to_string() }
}

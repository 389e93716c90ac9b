//! `doctor`: whether the cluster is ready for nacre, and how to fix what is not. Nothing is changed.

mod gather;
mod show;

use anyhow::Result;
use planner::doctor::{CheckStatus, Finding, examine};
use serde::Serialize;

use crate::{
    connect::Session,
    describe::page::Page,
    output::{Outcome, print},
    wrap,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre doctor
  kubectl nacre doctor -n backup                   where Velero is in namespace backup
  kubectl nacre doctor -o json | jq '.findings[] | select(.verdict == \"problem\")'

Reads only. What you are not permitted to read is reported as not checked.
Exit code 1 if there is a problem; warnings alone do not count.")]
pub(crate) struct Doctor {}

/// The diagnosis, for programs.
#[derive(Serialize)]
struct Diagnosis {
    problems: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

/// Looks at the cluster with Velero in the given namespace, or where it is said to be.
pub(crate) async fn run(session: &Session, given: Option<&str>) -> Result<Outcome> {
    let velero_namespace = given.unwrap_or(&session.velero_namespace).to_owned();
    let diagnosis = diagnose(&Session { velero_namespace, ..session.clone() }).await?;
    let names = || diagnosis.findings.iter().map(show::line).collect();
    print(session.format, &diagnosis, || wrap::to_terminal(show::page(&diagnosis)), names)?;
    Ok(if diagnosis.problems > 0 { Outcome::Failed } else { Outcome::Good })
}

async fn diagnose(session: &Session) -> Result<Diagnosis> {
    let findings = examine(&Box::pin(gather::observe(session)).await?);
    let number = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    Ok(Diagnosis { problems: number(CheckStatus::Problem), warnings: number(CheckStatus::Warning), findings })
}

/// The diagnosis as a page of tables.
pub(crate) async fn look(session: &Session) -> Result<Page> {
    Ok(show::tables(&diagnose(session).await?))
}

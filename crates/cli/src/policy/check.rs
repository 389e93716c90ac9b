//! `policy check`: the problems of a policy before it is applied.

use std::{io::Read as _, path::PathBuf};

use anyhow::{Context as _, Result};
use planner::{
    policy::{Examined, Problem, Severity, examine},
    trial::Trial,
};
use serde::Serialize;

use super::trial;
use crate::{
    connect::Session,
    output::{Format, Outcome, lines, print, remark},
    style,
    table::{Cell, Table},
    text::{count, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre policy check -f policy.yaml
  kubectl nacre policy check -f dpa.yaml               a DataProtectionApplication
  kubectl get configmap nacre-policy -n velero -o yaml | kubectl nacre policy check -f -
  kubectl nacre policy check -f policy.yaml --requests  and which existing requests it would refuse

The file holds a policy as such, or manifests: the ConfigMap nacre-policy and DataProtectionApplications count, and where
both speak, both must be satisfied.
--requests tries it on all backups, restores, locations and schedules of the cluster, as if each were sent now. What is
finished stays as it is; limits on numbers are not counted.
Exit codes: 0 fine, 1 it would not count, 3 it would, but hardly does what was meant, or refuses what is accepted now.")]
pub(super) struct Check {
    /// The file; - for standard input.
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,

    /// Also try it on the existing requests; for administrators.
    #[arg(long)]
    pub(super) requests: bool,
}

/// A problem for programs.
#[derive(Serialize)]
struct ReportedProblem<'a> {
    severity: &'static str,
    source: String,
    field: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    message: &'a str,
}

#[derive(Serialize)]
struct CheckedPolicy<'a> {
    found: &'a [String],
    usable: bool,
    problems: Vec<ReportedProblem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<&'a Trial>,
}

/// Checks it, and tries it on the requests of the cluster.
pub(super) async fn run_on_requests(session: &Session, args: &Check) -> Result<Outcome> {
    let text = args.read()?;
    let usable = examine(&text).policies.is_some();
    let trial = if usable { Some(Box::pin(trial::look(session, &text)).await?) } else { None };
    let outcome = show(args, &text, session.format, trial.as_ref())?;
    let news = Outcome::attention_if(trial.is_some_and(|trial| trial.newly_refused() > 0));
    Ok(if outcome == Outcome::Good { news } else { outcome })
}

pub(super) fn run(args: &Check, format: Format) -> Result<Outcome> {
    show(args, &args.read()?, format, None)
}

impl Check {
    fn is_from_input(&self) -> bool {
        self.filename.as_os_str() == "-"
    }

    fn read(&self) -> Result<String> {
        if !self.is_from_input() {
            let read = std::fs::read_to_string(&self.filename);
            return read.with_context(|| format!("reading {}", self.filename.display()));
        }
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        Ok(text)
    }
}

fn show(args: &Check, text: &str, format: Format, trial: Option<&Trial>) -> Result<Outcome> {
    let name =
        if args.is_from_input() { "standard input".to_owned() } else { args.filename.display().to_string() };
    let examined = examine(text);
    let answer = CheckedPolicy {
        found: &examined.found,
        usable: examined.policies.is_some(),
        problems: examined.problems.iter().map(ReportedProblem::from).collect(),
        trial,
    };
    let fields = || answer.problems.iter().map(|reported| reported.field.to_owned()).collect();
    let tried = || match trial {
        Some(trial) if trial.refused.is_empty() => format!("{}\n", trial::sentence(trial)),
        Some(trial) => format!("{}\n{}", trial::sentence(trial), trial::table(trial)),
        None => String::new(),
    };
    print(format, &answer, || page(&name, &examined) + &tried(), fields)?;
    let errors = examined.problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = examined.problems.len() - errors;
    if !examined.problems.is_empty() {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        remark(format_args!("{}, {}", count(number(errors), "error"), count(number(warnings), "warning")));
    }
    Ok(if errors > 0 { Outcome::Failed } else { Outcome::attention_if(warnings > 0) })
}

/// What is wrong with a policy, and whether it would count.
pub(crate) fn look(text: &str) -> (Table, bool) {
    let examined = examine(text);
    let mut table = Table::new(&["LINE", "FIELD", "PROBLEM", "WHAT"]);
    for problem in &examined.problems {
        let severity = match problem.severity {
            Severity::Error => Cell::painted(style::BAD, "error"),
            Severity::Warning => Cell::painted(style::WARNING, "warning"),
        };
        let line = problem.position.map(|position| position.line);
        table.row([line.into(), problem.path.as_str().into(), severity, problem.message.as_str().into()]);
    }
    (table, examined.policies.is_some())
}

fn page(name: &str, examined: &Examined) -> String {
    if examined.problems.is_empty() {
        return format!("{name}: {}: {}\n", examined.found.join(", "), style::paint(style::GOOD, "fine"));
    }
    lines(examined.problems.iter().map(|problem| line(name, examined, problem)))
}

/// As compilers do it, so that editors find the place. A text within a manifest has places of its own.
fn line(name: &str, examined: &Examined, problem: &Problem) -> String {
    let reported = printable(&problem.to_string());
    match (problem.position, examined.plain) {
        (Some(_), true) => format!("{name}:{reported}"),
        (Some(_), false) => format!("{name}, {}:{reported}", planner::policy::KEY),
        (None, _) => format!("{name}: {reported}"),
    }
}

impl<'a> From<&'a Problem> for ReportedProblem<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            source: problem.source.to_string(),
            field: &problem.path,
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
            message: &problem.message,
        }
    }
}

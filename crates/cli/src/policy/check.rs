//! `policy check`: the problems of a policy before it is applied.

use std::{io::Read as _, path::PathBuf};

use anyhow::{Context as _, Result};
use planner::policy::{Examined, Problem, Severity, examine};
use serde::Serialize;

use crate::{
    output::{Format, Outcome, lines, print, remark},
    style,
    text::{count, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre policy check -f policy.yaml
  kubectl nacre policy check -f dpa.yaml               a DataProtectionApplication
  kubectl get configmap nacre-policy -n velero -o yaml | kubectl nacre policy check -f -

The file holds a policy as such, or manifests: the ConfigMap nacre-policy and DataProtectionApplications count, and where
both speak, both must be satisfied.
Exit codes: 0 fine, 1 it would not count, 3 it would, but hardly does what was meant.")]
pub(super) struct Check {
    /// The file; - for standard input.
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
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
}

pub(super) fn run(args: &Check, format: Format) -> Result<Outcome> {
    let from_input = args.filename.as_os_str() == "-";
    let text = if from_input {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        text
    } else {
        std::fs::read_to_string(&args.filename)
            .with_context(|| format!("reading {}", args.filename.display()))?
    };
    let name = if from_input { "standard input".to_owned() } else { args.filename.display().to_string() };
    let examined = examine(&text);
    let answer = CheckedPolicy {
        found: &examined.found,
        usable: examined.policies.is_some(),
        problems: examined.problems.iter().map(ReportedProblem::from).collect(),
    };
    let fields = || answer.problems.iter().map(|reported| reported.field.to_owned()).collect();
    print(format, &answer, || page(&name, &examined), fields)?;
    let errors = examined.problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = examined.problems.len() - errors;
    if !examined.problems.is_empty() {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        remark(format_args!("{}, {}", count(number(errors), "error"), count(number(warnings), "warning")));
    }
    Ok(if errors > 0 { Outcome::Failed } else { Outcome::attention_if(warnings > 0) })
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

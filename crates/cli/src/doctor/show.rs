//! The diagnosis on a screen: what is wrong catches the eye, and its fix is right below.

use anstyle::Style;
use planner::doctor::{Area, CheckStatus, Finding};

use super::Diagnosis;
use crate::{
    describe::page::{Page, section, top},
    output::lines,
    style,
    table::{Cell, Table},
    text::{count, printable},
};

/// The width of the verdict on the left.
const MARGIN: usize = 13;

pub(super) fn page(diagnosis: &Diagnosis) -> String {
    let mut page: Vec<String> = Vec::new();
    let mut last = None;
    for finding in &diagnosis.findings {
        if last != Some(finding.area) {
            page.extend(last.map(|_| String::new()));
            page.push(style::paint(style::HEADING, heading(finding.area)));
            last = Some(finding.area);
        }
        let (style, word) = verdict(finding.verdict);
        let padding = MARGIN - word.len();
        page.push(format!("  {}{:padding$}{}", style::paint(style, word), "", one_line(&finding.message)));
        page.extend(finding.fix.iter().map(|fix| format!("  {:MARGIN$}fix: {}", "", one_line(fix))));
    }
    page.extend([String::new(), end(diagnosis)]);
    lines(page)
}

/// The same as tables, one for each area.
pub(super) fn tables(diagnosis: &Diagnosis) -> Page {
    let areas = diagnosis.findings.chunk_by(|one, other| one.area == other.area);
    let sections = areas.map(|findings| {
        let mut table = Table::new(&["", "WHAT", "FIX"]);
        for finding in findings {
            let (style, word) = verdict(finding.verdict);
            let fix = finding.fix.as_deref().unwrap_or_default();
            table.row([Cell::painted(style, word), finding.message.as_str().into(), fix.into()]);
        }
        section(findings.first().map_or("", |first| heading(first.area)), table)
    });
    sections.fold(top(vec![end(diagnosis)]), |page, section| page + section)
}

/// How it stands in all.
fn end(diagnosis: &Diagnosis) -> String {
    let number = |number: usize, noun: &str| count(i64::try_from(number).unwrap_or(i64::MAX), noun);
    let unseen =
        diagnosis.findings.iter().filter(|finding| finding.verdict == CheckStatus::NotChecked).count();
    let but = if unseen > 0 { format!("; {} not checked", number(unseen, "thing")) } else { String::new() };
    let (style, reported) = match (diagnosis.problems, diagnosis.warnings) {
        (0, 0) if unseen > 0 => (style::QUIET, "nothing wrong was seen".to_owned()),
        (0, 0) => (style::GOOD, "nothing is wrong".to_owned()),
        (0, warnings) => (style::WARNING, number(warnings, "warning")),
        (problems, 0) => (style::BAD, number(problems, "problem")),
        (problems, warnings) => {
            (style::BAD, format!("{}, {}", number(problems, "problem"), number(warnings, "warning")))
        }
    };
    format!("{}{but}", style::paint(style, reported))
}

/// A finding on one line, for shells.
pub(super) fn line(finding: &Finding) -> String {
    format!("{}: {}", verdict(finding.verdict).1, one_line(&finding.message))
}

fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

fn heading(area: Area) -> &'static str {
    match area {
        Area::Velero => "Velero",
        Area::Storage => "Storage",
        Area::Nacre => "nacre",
        Area::Admission => "Admission",
        Area::Rights => "Permissions",
        Area::Policy => "Policy",
    }
}

fn verdict(verdict: CheckStatus) -> (Style, &'static str) {
    match verdict {
        CheckStatus::Ok => (style::GOOD, "ok"),
        CheckStatus::Note => (style::QUIET, "note"),
        CheckStatus::NotChecked => (style::QUIET, "not checked"),
        CheckStatus::Warning => (style::WARNING, "warning"),
        CheckStatus::Problem => (style::BAD, "problem"),
    }
}

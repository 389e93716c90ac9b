//! The page with the figures, and its plots.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::chart::{Line, Point, draw};
use super::results::{Load, Record, Results, Who};
use super::{findings, table};

/// The part between these is rewritten by every run; the text around it is not.
const BEGIN: &str = "<!-- begin: written by make bench -->";
const END: &str = "<!-- end: written by make bench -->";

/// What is drawn of a record.
type Figure = fn(&Record) -> f64;

#[expect(clippy::cast_precision_loss, reason = "counts and bytes are few compared with what a float holds")]
const PLOTS: [(&str, &str, &str, Load, Figure); 6] = [
    ("burst-time", "Until n backups are Created", "seconds", Load::Burst, |record| record.seconds),
    ("burst-writes", "API writes for n backups", "writes", Load::Burst, |record| record.total() as f64),
    ("burst-cpu", "Processor time for n backups", "seconds of CPU", Load::Burst, |record| record.cpu_seconds),
    ("burst-memory", "Peak memory with n backups", "MiB", Load::Burst, |record| {
        record.peak_rss as f64 / f64::from(1 << 20)
    }),
    ("restores-time", "Until n restores are Created", "seconds", Load::Restores, |record| record.seconds),
    (
        "restart-time",
        "Restart with n settled backups",
        "seconds until ready and quiet",
        Load::Restart,
        |record| record.seconds,
    ),
];

fn colour(who: Who) -> &'static str {
    match who {
        Who::BareClient => "#999",
        Who::Nacre => "#0a6",
        Who::Peer => "#c33",
        Who::PeerFast => "#e90",
    }
}

fn plot(results: &Results, title: &str, unit: &str, load: Load, figure: Figure) -> Option<String> {
    let line = |who: Who| {
        let records = results.records.iter().filter(|record| record.who == who && record.load == load);
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let points =
            records.map(|record| Point { x: record.n as f64, y: figure(record), hollow: !record.is_done() });
        Line { name: who.name(), colour: colour(who), points: points.collect() }
    };
    draw(title, unit, Who::ALL.map(line).into())
}

/// Reads the figures of an earlier run.
pub fn read(docs: &Path) -> Result<Results> {
    let path = docs.join("benchmarks/results.json");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Writes the figures, the plots, and their part of the page.
pub fn write(results: &Results, docs: &Path) -> Result<()> {
    let folder = docs.join("benchmarks");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("results.json"), format!("{}\n", serde_json::to_string_pretty(results)?))?;
    let mut plots = String::new();
    for (name, title, unit, load, figure) in PLOTS {
        let Some(svg) = plot(results, title, unit, load, figure) else { continue };
        fs::write(folder.join(format!("{name}.svg")), svg)?;
        let _ = writeln!(plots, "![{title}](benchmarks/{name}.svg)");
    }
    let page = docs.join("benchmarks.md");
    let text = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
    let (before, rest) = text.split_once(BEGIN).context("the page does not say where figures begin")?;
    let (_, after) = rest.split_once(END).context("the page does not say where figures end")?;
    let reported = reported(results);
    fs::write(page, format!("{before}{BEGIN}\n\n{reported}{plots}\n{}{END}{after}", table::tables(results)))?;
    Ok(())
}

/// Where and how it was measured, and the verdict.
fn reported(results: &Results) -> String {
    let Results { command, date, machine, versions, notes, .. } = results;
    let versions: Vec<_> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!(
        "`{command}` on {date}: {} cores of {}, {} GiB, {}, load {} at the start; {}.\n\n",
        machine.cores,
        machine.processor,
        machine.memory,
        machine.kernel,
        machine.load,
        versions.join(", "),
    );
    for note in notes {
        let _ = writeln!(text, "- {note}");
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    let findings = findings(results);
    if !findings.is_empty() {
        text.push_str("| promised | measured | kept |\n| --- | ---: | --- |\n");
        for finding in findings {
            let kept = if finding.kept { "yes" } else { "**no**" };
            let _ = writeln!(text, "| {} | {} | {kept} |", finding.promise, finding.measured);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::{record, results};
    use super::*;

    #[test]
    fn figures_are_written_anew_and_the_words_around_them_stay() {
        let docs = tempfile::tempdir().unwrap();
        let page = docs.path().join("benchmarks.md");
        fs::write(&page, format!("# Words\n{BEGIN}\nold\n{END}\nmore words\n")).unwrap();
        let first = results(vec![record(Who::Nacre, Load::Burst, 100, 0.6, 300)]);
        for _ in 0..2 {
            write(&first, docs.path()).unwrap();
        }
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.starts_with("# Words\n") && text.ends_with("\nmore words\n"), "{text}");
        assert!(!text.contains("old") && text.contains("| 100 | nacre | 0.60 |"), "{text}");
        assert!(text.contains("(benchmarks/burst-time.svg)") && !text.contains("restores-time"), "{text}");
        assert_eq!(read(docs.path()).unwrap().records, first.records);
    }
}

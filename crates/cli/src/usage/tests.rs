use planner::usage::Usage;

use super::show::table;
use super::*;

fn row(namespace: &str, usage: Usage) -> Row {
    let limits = Limits {
        backups: Some(20),
        unfinished_restores: Some(2),
        bytes: Some(500 << 30),
        work_seconds_per_day: Some(7200),
        ..Limits::default()
    };
    Row { namespace: namespace.to_owned(), usage, limits: Some(limits) }
}

fn rows() -> Vec<Row> {
    let usage = |backups, bytes, work_seconds| Usage {
        backups,
        bytes,
        work_seconds,
        unfinished: 1,
        ..Usage::default()
    };
    vec![
        row("farm", usage(3, 12 << 20, 90)),
        row("shop", usage(20, 3 << 29, 4000)),
        Row { limits: None, ..row("mill", usage(7, 600 << 30, 8000)) },
    ]
}

fn shown(by: SortBy, format: Format) -> String {
    let mut rows = rows();
    sort(&mut rows, by);
    anstream::adapter::strip_str(&table(&rows, format).to_string()).to_string()
}

#[test]
fn figures_stand_next_to_what_is_allowed() {
    insta::assert_snapshot!(shown(SortBy::Namespace, Format::Table), @r"
    NAMESPACE   BACKUPS    UNFINISHED   STORED               WORK TODAY
    farm        3 of 20    1            12 MiB of 500 GiB    90s of 120m
    mill        7          1            600 GiB              133m
    shop        20 of 20   1            1.5 GiB of 500 GiB   66m of 120m
    ");
}

#[test]
fn the_largest_comes_first_by_what_was_asked() {
    let first = |by| shown(by, Format::Table).lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(
        [SortBy::Bytes, SortBy::Backups, SortBy::Work, SortBy::Namespace].map(first),
        ["mill", "shop", "mill", "farm"]
    );
}

#[test]
fn programs_get_plain_numbers() {
    let wide = shown(SortBy::Bytes, Format::Wide);
    assert!(wide.contains("644245094400") && wide.contains("8000"), "{wide}");
    let last = |at: usize| wide.lines().nth(at).and_then(|line| line.split_whitespace().next_back());
    assert_eq!((last(0), last(2)), (Some("MOST"), Some("2")), "{wide}");
    insta::assert_snapshot!(serde_json::to_string(&rows()[0]).unwrap(), @r#"{"namespace":"farm","usage":{"backups":3,"unfinished":1,"bytes":12582912,"workSeconds":90},"limits":{"backups":20,"unfinishedBackups":null,"unfinishedRestores":2,"bytes":536870912000,"workSecondsPerDay":7200}}"#);
}

#[test]
fn every_limit_of_the_policy_is_there() {
    let mut policy = Policy::default();
    policy.backup.max_active_per_namespace = Some(3);
    policy.restore.max_active_per_namespace = Some(2);
    let limits = Limits::from(&policy);
    assert_eq!((limits.unfinished_backups, limits.unfinished_restores), (Some(3), Some(2)));
}

#[test]
fn a_limit_that_is_reached_needs_attention() {
    assert_eq!(rows().iter().map(Row::is_full).collect::<Vec<_>>(), [false, true, false]);
}

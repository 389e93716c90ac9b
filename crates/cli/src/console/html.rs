//! HTML of what commands show as text: the same pages, tables and words. maud escapes every value.

use anstyle::Style;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use crate::{
    describe::page::{Body, Page, Part},
    style,
    table::{Cell, Table},
    text::age,
};

/// What stands around every page.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// The namespace, and which of its pages this is.
    pub(super) namespace: Option<(&'a str, &'a str)>,
    /// Which of the administrators' pages this is, if it is one.
    pub(super) admin: Option<&'a str>,
    /// Whether the person may see the administrators' pages.
    pub(super) is_admin: bool,
    pub(super) user: Option<&'a str>,
    /// What the form for signing out carries; none if there is nothing to sign out of.
    pub(super) sign_out: Option<&'a str>,
    /// The commands that show the same, and do what the buttons do, each with what is before it.
    pub(super) commands: Vec<(&'static str, String)>,
}

/// The pages of a namespace: path, name.
const OWN: [(&str, &str); 5] = [
    ("", "Overview"),
    ("/backups", "Backups"),
    ("/restores", "Restores"),
    ("/schedules", "Schedules"),
    ("/locations", "Storage"),
];

/// The pages of administrators.
const ADMIN: [(&str, &str); 6] = [
    ("requests", "Requests"),
    ("queue", "Queue"),
    ("usage", "Usage"),
    ("policy", "Policy"),
    ("migration", "Migration"),
    ("doctor", "Doctor"),
];

impl Frame<'_> {
    pub(super) fn around(&self, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " - nacre" }
                    link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/assets/console.css";
                    script src="/assets/console.js" defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    main id="main" tabindex="-1" { (main) (shell(&self.commands)) }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        let current = |yes: bool| yes.then_some("page");
        html! {
            header.top {
                a.brand href="/" { img src="/assets/icon.svg" alt="" width="24" height="24"; "nacre" }
                @if let Some((namespace, here)) = self.namespace {
                    nav aria-label={ "Namespace " (namespace) } {
                        span.namespace { (namespace) }
                        @for (path, name) in OWN {
                            a href={ "/ns/" (namespace) (path) } aria-current=[current(path == here)] { (name) }
                        }
                    }
                }
                @if self.is_admin {
                    nav.admin aria-label="Administration" {
                        @for (path, name) in ADMIN {
                            a href={ "/admin/" (path) } aria-current=[current(Some(path) == self.admin)] { (name) }
                        }
                    }
                }
                div.person {
                    @if let Some(user) = self.user { span.user { (user) } }
                    @if let Some(csrf) = self.sign_out {
                        form method="post" action="/logout" {
                            input type="hidden" name="csrf" value=(csrf);
                            button.quiet { "Sign out" }
                        }
                    }
                }
            }
        }
    }
}

/// The commands that do the same, ready to be copied.
fn shell(commands: &[(&str, String)]) -> Markup {
    html! { @if !commands.is_empty() {
        aside.shell aria-label="The same in a shell" { @for (what, line) in commands {
            div {
                span { (what) }
                code tabindex="0" { (line) }
                button.copy type="button" hidden data-copy=(line) { "Copy" }
            }
        } }
    } }
}

/// The class of a style: colours are for the style sheet, and never carry a meaning alone.
pub(super) fn class(style: Style) -> &'static str {
    match style {
        style if style == style::GOOD => "good",
        style if style == style::BAD => "bad",
        style if style == style::WARNING => "warning",
        style if style == style::BUSY => "busy",
        style if style == style::QUIET => "quiet",
        _ => "plain",
    }
}

/// The head of a page about one object: its name, its state in a word and a sentence, and what else belongs there.
pub(super) fn headline(title: &str, state: &Cell, word: &str, detail: &str, more: &Markup) -> Markup {
    let (mark, class) = match class(state.style()) {
        "good" => ("✓", "good"),
        "bad" => ("✕", "bad"),
        "busy" => ("…", "busy"),
        _ => ("!", "warning"),
    };
    html! {
        div class={ "card verdict " (class) } {
            span.mark aria-hidden="true" { (mark) }
            div {
                h1 { (title) " " span class={ "tag " (class) } { (word) } }
                p id="sentence" role="status" { (with_times(detail)) }
                (more)
            }
        }
    }
}

/// A table whose names are links where `link` knows one: it gets the row.
pub(super) fn table(table: &Table, label: &str, link: impl Fn(&[Cell]) -> Option<(usize, String)>) -> Markup {
    table_with_actions(table, label, link, &[])
}

/// The same, with what can be done about each row.
pub(super) fn table_with_actions(
    table: &Table,
    label: &str,
    link: impl Fn(&[Cell]) -> Option<(usize, String)>,
    actions: &[Markup],
) -> Markup {
    let (head, rows) = table.split();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr {
                    @for cell in head {
                        th scope="col" { (heading(cell.text())) }
                    }
                    @if !actions.is_empty() { th scope="col" { "Change" } }
                } }
                tbody {
                    @for (number, row) in rows.iter().enumerate() {
                        @let to = link(row);
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                td data-heading=(heading(head.get(at).map_or("", Cell::text))) {
                                    @match &to {
                                        Some((column, href)) if *column == at => a href=(href) { (cell.text()) },
                                        _ => (cell_text(cell)),
                                    }
                                }
                            }
                            @if let Some(actions) = actions.get(number) { td.row-actions data-heading="Change" { (actions) } }
                        }
                    }
                }
            }
        }
    }
}

/// A word of a fixed list, whatever its style.
pub(super) fn tag(cell: &Cell) -> Markup {
    html! { span class={ "tag " (class(cell.style())) } { (cell.text()) } }
}

fn cell_text(cell: &Cell) -> Markup {
    html! { @match class(cell.style()) {
        "plain" => (with_times(cell.text())),
        "quiet" => span.quiet { (with_times(cell.text())) },
        _ => (tag(cell)),
    } }
}

/// `LAST-RUN` is for terminals.
fn heading(text: &str) -> String {
    // In a terminal the answers yes and no need no heading.
    let text = if text.is_empty() { "STATE" } else { text };
    let mut letters = text.replace('-', " ").to_lowercase().chars().collect::<Vec<_>>();
    if let Some(first) = letters.first_mut() {
        first.make_ascii_uppercase();
    }
    letters.into_iter().collect()
}

/// A page of a command.
pub(super) fn page(page: &Page) -> Markup {
    html! { @for part in &page.parts { (part_of_page(part)) } }
}

fn part_of_page(part: &Part) -> Markup {
    match part {
        Part::Lines(lines) => {
            let plain = |line: &String| capitalized(&anstream::adapter::strip_str(line).to_string());
            html! { div.card { @for line in lines { p { (with_times(&plain(line))) } } } }
        }
        Part::Fields(fields) => html! {
            dl.fields { @for (name, value) in fields {
                div { dt { (name) } dd { (with_times(value)) } }
            } }
        },
        Part::Section(title, body) => html! { section { h2 { (title) } (body_of_section(title, body)) } },
    }
}

fn body_of_section(title: &str, body: &Body) -> Markup {
    let text = anstream::adapter::strip_str(&body.text).to_string();
    // Commands name what needs attention so.
    let class = if title == "Attention" { "notice warning" } else { "card" };
    html! {
        @if let Some(found) = &body.table { (table(found, title, |_| None)) }
        @if text.lines().any(is_code) { pre tabindex="0" { (text.trim_end()) } }
        @else if !text.is_empty() { div class=(class) { @for line in text.lines() { p { (with_times(line)) } } } }
    }
}

/// Whether a line is a command or YAML, in which each space counts, and not a sentence.
fn is_code(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    ["", "-", "kubectl"].contains(&first) || first.ends_with(':')
}

/// A line of a terminal is a sentence on a page.
fn capitalized(line: &str) -> String {
    let line = line.trim_start();
    let mut letters = line.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A text as it is. Each time in it is shown in the reader's zone, by the script.
pub(super) fn with_times(text: &str) -> Markup {
    // Each time, and what is before it.
    let mut pieces: Vec<(&str, Timestamp)> = Vec::new();
    // What is left of the text, and where to look in there.
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
        let is_within_a_word = rest[..at].ends_with(char::is_alphanumeric);
        let found = if is_within_a_word { None } else { time_at(&rest[at..]) };
        if let Some((length, time)) = found {
            pieces.push((&rest[..at], time));
            (rest, from) = (&rest[at + length..], 0);
        } else {
            let end = rest[at..].find(|c: char| !c.is_alphanumeric());
            from = end.map_or(rest.len(), |end| at + end);
        }
    }
    html! {
        @for (before, time) in pieces { (before) time datetime=(time) { (in_utc(time)) } }
        (rest)
    }
}

/// No time is written with more bytes.
const LONGEST_TIME: usize = 40;

/// The time that a text begins with, and how long it is there: as pages have it (`2026-11-15 12:00:02 UTC`), or as in YAML
/// (`2026-11-15T12:00:02Z`), which is how messages of nacre have it.
fn time_at(text: &str) -> Option<(usize, Timestamp)> {
    const ZONE: &str = " UTC";
    // The rest of a text may be long, and may look like times from one end to the other.
    let text = &text[..text.floor_char_boundary(LONGEST_TIME)];
    #[cfg(test)]
    tests::LOOKED_AT.with(|all| all.set(all.get() + text.len()));
    let shown = ["2026-11-15 12:00:02".len(), "2026-11-15 12:00".len()].into_iter().find_map(|length| {
        let (time, after) = text.split_at_checked(length)?;
        let time = after.starts_with(ZONE).then(|| format!("{}Z", time.replacen(' ', "T", 1)))?;
        Some((length + ZONE.len(), time.parse().ok()?))
    });
    let written = || {
        let end = text.find(|c: char| !c.is_ascii_digit() && !"-:.T".contains(c))?;
        let time = text[end..].starts_with('Z').then(|| &text[..=end])?;
        Some((time.len(), time.parse().ok()?))
    };
    shown.or_else(written)
}

fn in_utc(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A time, and how long ago it was.
pub(super) fn ago(time: Timestamp, now: Timestamp) -> Markup {
    let shown = time.strftime("%Y-%m-%d %H:%M UTC").to_string();
    html! { time datetime=(time) { (shown) } " (" (age(time, now)) " ago)" }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::describe::page::{fields, section};

    thread_local! {
        /// How many bytes were looked at to find times.
        pub(super) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_text_that_looks_like_times_all_along_is_looked_at_once() {
        for piece in ["1-", "1:", "2026-11-15T12:00:0", "2026-11-15 12:00 ", "1.é"] {
            let text = piece.repeat(100_000 / piece.len());
            LOOKED_AT.set(0);
            assert_eq!(with_times(&text).into_string(), text);
            assert!(LOOKED_AT.get() <= text.len() * LONGEST_TIME, "{piece}: {}", LOOKED_AT.get());
        }
    }

    #[test]
    fn text_of_others_never_becomes_markup() {
        let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
        let mut rows = Table::new(&["NAME", "WHY"]);
        rows.row([evil, evil]);
        let shown =
            page(&(fields(&[("Name", Some(evil.to_owned()))]) + section(evil, rows) + section("x", evil)));
        let text = shown.into_string();
        assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
        assert!(text.contains("&lt;script&gt;"));
    }

    #[test]
    fn only_commands_and_yaml_are_shown_as_in_a_terminal() {
        let shown = |text: &str| body_of_section("x", &text.into()).into_string();
        for text in ["kubectl nacre status", "ttl: 1h", "labelSelector:\n  matchLabels:", "- one"] {
            assert!(shown(text).starts_with("<pre"), "{text}");
        }
        let text = "whether the administrators have set more: not known\nclaim files";
        let sentences = "<p>whether the administrators have set more: not known</p><p>claim files</p>";
        assert_eq!(shown(text), format!("<div class=\"card\">{sentences}</div>"));
        let attention = body_of_section("Attention", &"it is not encrypted".into()).into_string();
        assert_eq!(attention, "<div class=\"notice warning\"><p>it is not encrypted</p></div>");
    }

    #[test]
    fn times_can_be_shown_in_the_readers_zone() {
        let time = "<time datetime=\"2026-11-15T12:00:02Z\">2026-11-15 12:00:02 UTC</time>";
        let shown = |text: &str| with_times(text).into_string();
        for written in ["2026-11-15 12:00:02 UTC", "2026-11-15T12:00:02Z"] {
            assert_eq!(shown(written), time);
            assert_eq!(shown(&format!("{written}, 59m ago")), format!("{time}, 59m ago"));
            let (text, is) =
                (format!("<b> in UTC ({written}, {written}: 9)"), format!("({time}, {time}: 9)"));
            assert_eq!(shown(&text), format!("&lt;b&gt; in UTC {is}"));
        }
        assert!(shown("2026-11-15 12:00 UTC").contains("datetime=\"2026-11-15T12:00:00Z\""));
        for text in [
            "naïve 2026-11-15 is a day",
            "2026-13-45T12:00:02Z",
            "nightly-20261117021400",
            "9é",
            "x2026-11-15T12:00:02Z",
            "",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}

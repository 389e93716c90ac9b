//! The reference: a page of Markdown and manual pages, made of the command line itself. `make gen` writes them, and the
//! test below says when they are out of date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Command};
use clap_mangen::Man;

use crate::args;

/// Every file of the reference, from the root of the repository.
fn files() -> BTreeMap<PathBuf, String> {
    let mut program = args::command();
    program.build();
    let mut files = BTreeMap::from([(PathBuf::from("docs/cli.md"), markdown(&program))]);
    manuals(&program, &mut files);
    files
}

/// The page: what all commands share once, then every command.
fn markdown(program: &Command) -> String {
    let mut page = "# kubectl nacre\n\n".to_owned();
    page += "<!-- Made by `make gen` from the command line itself. -->\n\n";
    let _ = writeln!(page, "{}.\n", about(program));
    let _ = writeln!(
        page,
        "```\n{}\n```\n",
        program.get_after_help().map(ToString::to_string).unwrap_or_default()
    );
    page += "| command | what it does |\n| --- | --- |\n";
    let mut sections = String::new();
    every(program, &mut |path, command| {
        let name = path.join(" ");
        let _ =
            writeln!(page, "| [`{name}`](#kubectl-nacre-{}) | {} |", path.join("-"), cell(&about(command)));
        section(&mut sections, &name, command);
    });
    page += "\n## Flags of every command\n\n";
    page += &table(program.get_arguments());
    page + &sections
}

/// Every command that does something, by the names on its way.
fn every<'a>(command: &'a Command, visit: &mut impl FnMut(&[&'a str], &'a Command)) {
    fn below<'a>(path: &[&'a str], command: &'a Command, visit: &mut impl FnMut(&[&'a str], &'a Command)) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            let path = [path, &[one.get_name()]].concat();
            if !one.has_subcommands() {
                visit(&path, one);
            }
            below(&path, one, visit);
        }
    }
    below(&[], command, visit);
}

fn section(page: &mut String, name: &str, command: &Command) {
    // Rendering takes a command that may change.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(page, "\n## kubectl nacre {name}\n\n{}.\n\n```\n{usage}\n```\n", about(command));
    let own = || command.get_arguments().filter(|arg| !arg.is_global_set() && arg.get_id() != "help");
    if own().any(|arg| !arg.is_hide_set()) {
        *page += &table(own());
        page.push('\n');
    }
    if let Some(examples) = command.get_after_help() {
        let _ = writeln!(page, "```\n{}\n```", examples.to_string().trim_end());
    }
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = "| flag or argument | what it says |\n| --- | --- |\n".to_owned();
    for arg in arguments.filter(|arg| !arg.is_hide_set()) {
        let short = arg.get_short().map_or_else(String::new, |short| format!("`-{short}`, "));
        let long = arg.get_long().map(|long| format!("--{long}"));
        let named =
            |name: &str| if arg.get_action().takes_values() { format!("<{name}>") } else { String::new() };
        let value = arg
            .get_value_names()
            .and_then(|names| names.first())
            .map_or_else(String::new, |name| named(name));
        let spelled = match (long, value.as_str()) {
            (Some(long), "") => long,
            // Without a value it is on; a value needs the equals sign.
            (Some(long), value) if arg.is_require_equals_set() => format!("{long}[={value}]"),
            (Some(long), value) => format!("{long} {value}"),
            (None, value) => value.to_owned(),
        };
        let _ = writeln!(table, "| {short}`{spelled}` | {} |", cell(&meaning(arg)));
    }
    table
}

/// What an argument means, what it can be, and what it is if nobody says.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let shown = arg.get_action().takes_values() && !values.is_empty() && !arg.is_hide_possible_values_set();
    let values = if shown { format!(" One of {}.", values.join(", ")) } else { String::new() };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.display().to_string()).collect();
    let reported =
        arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set();
    let default = if reported { format!(" Default: `{}`.", defaults.join(",")) } else { String::new() };
    let end = if help.ends_with(['.', '…']) || help.ends_with("...") { "" } else { "." };
    format!("{help}{end}{values}{default}")
}

fn about(command: &Command) -> String {
    let reported = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    reported.unwrap_or_default().trim_end_matches('.').to_owned()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

/// A manual page of each command, as `man kubectl-nacre-backup-create` finds it.
fn manuals(command: &Command, files: &mut BTreeMap<PathBuf, String>) {
    let page = Man::new(command.clone()).source("nacre").manual("kubectl nacre");
    files.insert(Path::new("deploy/man").join(page.get_filename()), manual(&page, command).unwrap());
    for below in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        manuals(below, files);
    }
}

fn manual(page: &Man, command: &Command) -> Result<String> {
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|one| !one.is_hide_set() && one.get_name() != "help") {
        page.render_subcommands_section(&mut text)?;
    }
    let mut text = String::from_utf8(text)?;
    if command.get_after_help().is_some() {
        let mut notes = Vec::new();
        page.render_extra_section(&mut notes)?;
        // Examples are to be read as they were written, line by line.
        text += &String::from_utf8(notes)?.replacen(".SH EXTRA\n", ".SH EXAMPLES AND NOTES\n.nf\n", 1);
        text += ".fi\n";
    }
    Ok(text)
}

/// Every file below a folder.
fn present(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn the_reference_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let files = files();
    let obsolete = present(&root.join("deploy/man"))
        .into_iter()
        .filter(|path| !files.contains_key(path.strip_prefix(root).unwrap_or(path)));
    if std::env::var_os("NACRE_GEN").is_some() {
        obsolete.for_each(|path| std::fs::remove_file(path).unwrap());
        for (path, text) in &files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        return;
    }
    assert_eq!(obsolete.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "run `make gen`");
    for (path, text) in &files {
        let found = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(found == *text, "{} is out of date: run `make gen`", path.display());
    }
}

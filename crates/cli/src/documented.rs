//! Every command that the guides show is one that this program takes.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use crate::args;

/// Every page but the reference, which is made of the command line itself.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with("cli.md"));
    let page = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    docs.chain([root.join("README.md"), root.join("CONTRIBUTING.md")]).map(page).collect()
}

/// Where a command on a page ends, and where a sentence of `doctor` goes on after one.
const ENDS: [&str; 12] =
    ["`", "\n", " | ", " > ", "  ", " && ", "; ", ")", " # ", ", or ", " applies one", " checks it"];

/// The commands on a page: lines of code, and what stands between backticks. A line that ends with `\` goes on.
fn commands(page: &str) -> Vec<String> {
    let mut lines = page.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let page = lines.fold(first, |page, line| page + line.trim_start());
    let rests = page.split("kubectl nacre ").skip(1);
    let cut = |rest: &str| ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    rests.map(|rest| rest[..cut(rest)].trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Words as a shell would split them, as far as the guides use quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in command.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Why a command is not one of this program's. What is left out on purpose is fine, as in "`backup logs`".
fn wrong(command: &str) -> Option<ErrorKind> {
    let given = std::iter::once("kubectl-nacre".to_owned()).chain(words(command));
    let kind = args::command().try_get_matches_from(given).err()?.kind();
    let fine = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::DisplayVersion,
    ];
    (!fine.contains(&kind)).then_some(kind)
}

#[test]
fn every_command_in_the_guides_exists_with_its_flags() {
    let (mut checked, mut unknown) = (0, Vec::new());
    for (page, text) in pages() {
        for command in commands(&text) {
            let why = wrong(&command);
            unknown.extend(why.map(|why| format!("{page}: kubectl nacre {command}: {why}")));
            checked += 1;
        }
    }
    assert_eq!(unknown, Vec::<String>::new());
    assert!(checked > 200, "only {checked} commands were found");
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    assert!(wrong("backup make daily").is_some());
    assert!(wrong("backup create daily --fast").is_some());
    assert!(wrong("restore create --from-backup daily --wait -n shop").is_none());
}

//! Every command that the guides show is one that this program takes.

use clap::error::ErrorKind;

use crate::args;

const PAGES: [(&str, &str); 7] = [
    ("README.md", include_str!("../../../README.md")),
    ("quick-start.md", include_str!("../../../docs/quick-start.md")),
    ("ten-policies.md", include_str!("../../../docs/ten-policies.md")),
    ("troubleshooting.md", include_str!("../../../docs/troubleshooting.md")),
    ("compatibility.md", include_str!("../../../docs/compatibility.md")),
    ("releasing.md", include_str!("../../../docs/releasing.md")),
    ("migrating-from-oadp-nac.md", include_str!("../../../docs/migrating-from-oadp-nac.md")),
];

/// The commands on a page: lines of code, and what stands between backticks.
fn commands(page: &str) -> Vec<String> {
    let ends = ["`", "\n", " | ", " > ", "  ", " && ", "; "];
    let rests = page.split("kubectl nacre ").skip(1);
    let cut = |rest: &str| ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
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
    let mut checked = 0;
    for (page, text) in PAGES {
        for command in commands(text) {
            assert_eq!(wrong(&command), None, "in {page}: kubectl nacre {command}");
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} commands were found");
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    assert!(wrong("backup make daily").is_some());
    assert!(wrong("backup create daily --fast").is_some());
    assert!(wrong("restore create --from-backup daily --wait -n shop").is_none());
}

//! Help by audience: clap lists commands in one heap, people look for theirs.

use std::fmt::Write as _;

use clap::Command;

/// Who needs which command. One that is not built in is left out.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "For the owner of a namespace",
        &["backup", "restore", "schedule", "location", "status", "usage", "explain", "whoami", "console"],
    ),
    (
        "For administrators",
        &[
            "request",
            "queue",
            "policy",
            "adopt",
            "relocate",
            "doctor",
            "verify",
            "install",
            "upgrade",
            "uninstall",
            "render",
        ],
    ),
    ("For those who live-migrate KubeVirt machines", &["migration"]),
    ("Other", &["completion", "man", "help"]),
];

/// The same command, with its commands listed by audience in its help.
pub(crate) fn grouped(command: Command) -> Command {
    let heading = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut listed = String::new();
    // clap adds `help` by itself, and only when it builds the command.
    let help = Command::new("help").about("Print this message or the help of a command");
    let all = || command.get_subcommands().chain([&help]);
    let width = all().map(|command| command.get_name().len()).max().unwrap_or_default();
    for (group, names) in GROUPS {
        let lines: Vec<String> = names
            .iter()
            .filter_map(|name| all().find(|command| command.get_name() == *name))
            .map(|command| {
                let (name, about) = (command.get_name(), command.get_about().cloned().unwrap_or_default());
                format!(
                    "  {literal}{name}{literal:#}{:padding$}  {about}\n",
                    "",
                    padding = width - name.len()
                )
            })
            .collect();
        if !lines.is_empty() {
            // Writing to a text does not fail.
            let _ = writeln!(listed, "{heading}{group}:{heading:#}\n{}", lines.concat());
        }
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listed}{heading}Options:{heading:#}\n{{options}}{{after-help}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::GROUPS;
    use crate::args;

    #[test]
    fn every_command_has_one_place() {
        for command in args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let places = GROUPS.iter().flat_map(|(_, names)| *names).filter(|other| **other == name).count();
            assert_eq!(places, 1, "{name}");
        }
    }
}

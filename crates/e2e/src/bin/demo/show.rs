//! How the demo prints.

use std::io::{IsTerminal as _, Write as _};

/// A heading of the story, bold on a terminal.
pub(crate) fn heading(text: &str) {
    let bold = std::io::stdout().is_terminal();
    line(&if bold { format!("\n\x1b[1m== {text}\x1b[0m") } else { format!("\n== {text}") });
}

/// A command as somebody types it; of long arguments and paths only what matters.
pub(crate) fn command(user: &str, program: &str, args: &[&str]) {
    let shown =
        args.iter().map(|arg| if arg.starts_with("custom-columns") { "custom-columns=..." } else { arg });
    // Files of the demo are in a temporary folder, whose name says nothing.
    let shown: Vec<_> = shown
        .map(|arg| arg.rsplit('/').next().filter(|_| arg.contains("/nacre-bed-")).unwrap_or(arg))
        .collect();
    line(&format!("   {user} $ {program} {}", shown.join(" ")));
}

/// One line.
pub(crate) fn line(text: &str) {
    // A reader that went away does not stop the story.
    let _ = writeln!(std::io::stdout(), "{text}");
}

//! Colours: few, and only where they help to see what matters. They are written always and taken out again on the way
//! to anything that is not a terminal, by `anstream`.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// It went wrong, or will.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Needs attention.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// In progress.
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
/// A heading.
pub(crate) const HEADING: Style = Style::new().bold();
/// Less important than what is around it.
pub(crate) const QUIET: Style = Style::new().dimmed();

/// A text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A text that is bad news.
pub(crate) fn bad(text: impl Display) -> String {
    paint(BAD, text)
}

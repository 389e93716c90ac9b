//! Prose that fits the terminal: lines break between words, and go on below the text they belong to.

use console::Term;

/// A page, wrapped to the width of standard output if that is a terminal. Pipes get whole lines.
pub(crate) fn to_terminal(page: String) -> String {
    let out = Term::stdout();
    let columns =
        out.is_term().then(|| out.size_checked()).flatten().map(|(_, columns)| usize::from(columns));
    match columns {
        // A terminal that does not know its width says 0.
        Some(columns) if columns > 0 => wrap(&page, columns),
        _ => page,
    }
}

fn wrap(page: &str, columns: usize) -> String {
    page.split_inclusive('\n').map(|line| wrap_line(line, columns)).collect()
}

fn wrap_line(line: &str, columns: usize) -> String {
    if width(line.trim_end_matches('\n')) <= columns {
        return line.to_owned();
    }
    let hang = hang(&anstream::adapter::strip_str(line).to_string(), columns);
    let mut wrapped = String::with_capacity(line.len() + hang);
    let mut column = 0;
    for (at, unit) in units(line).into_iter().enumerate() {
        let size = width(unit.trim_end_matches('\n'));
        let space = usize::from(at > 0);
        // A unit alone on its line is broken by the terminal, if at all.
        if column > hang && size > 0 && column + space + size > columns {
            let kept = wrapped.trim_end_matches(' ').len();
            wrapped.truncate(kept);
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', hang));
            column = hang;
        } else {
            wrapped.extend(std::iter::repeat_n(' ', space));
            column += space;
        }
        wrapped.push_str(unit);
        column += size;
    }
    wrapped
}

/// The column where the text of a line begins: after its indentation, and after labels and cells on the left.
fn hang(line: &str, columns: usize) -> usize {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let mut hang = indented;
    let mut spaces = 0;
    for (column, c) in line.chars().enumerate().take(columns * 2 / 3) {
        if c == ' ' {
            spaces += 1;
        } else {
            if spaces > 1 {
                hang = column;
            }
            spaces = 0;
        }
    }
    hang
}

/// What is not broken: words, and commands as a whole, since a copied half of one would do something else.
fn units(line: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let (mut start, mut in_command) = (0, false);
    for (space, _) in line.match_indices(' ').chain([(line.len(), "")]) {
        let last = line[start..space].rsplit(' ').next().unwrap_or_default();
        in_command |= last.trim_start_matches(['(', '`']).starts_with("kubectl");
        in_command &= !last.ends_with([')', ';', ',', '`', '.']);
        if !in_command || space == line.len() {
            units.push(&line[start..space]);
            start = space + 1;
        }
    }
    units
}

/// How many columns a text takes, colours not counted.
fn width(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::wrap;
    use crate::style;

    #[test]
    fn lines_break_between_words_below_their_text() {
        let page = "Namespace shop\n\nRefused           no: the administrator allows backups to be kept at most 48h\n  \
                    ok           Velero runs in its own namespace and is new enough for import\n";
        insta::assert_snapshot!(wrap(page, 40), @r"
        Namespace shop

        Refused           no: the administrator
                          allows backups to be
                          kept at most 48h
          ok           Velero runs in its own
                       namespace and is new
                       enough for import
        ");
        assert_eq!(wrap(page, 200), page);
    }

    #[test]
    fn commands_stay_whole() {
        let page = "fix: first look at it, then run kubectl nacre install --image x --wait (kubectl version) and look again\n";
        insta::assert_snapshot!(wrap(page, 40), @r"
        fix: first look at it, then run
        kubectl nacre install --image x --wait (kubectl version)
        and look again
        ");
    }

    #[test]
    fn colours_take_no_room_and_long_words_are_left_alone() {
        let painted = format!("{} {}\n", style::bad("would be refused"), "x".repeat(30));
        assert_eq!(wrap(&painted, 60), painted);
        assert_eq!(wrap(&painted, 20), painted.replacen(" xxx", "\nxxx", 1));
    }
}

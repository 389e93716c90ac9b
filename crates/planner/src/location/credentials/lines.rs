//! Files of one key per line, read so narrowly that no two readers can differ about them.

use super::CredentialRefusal;

/// The lines that say something, counted from one: blank ones and comments are left out. A comment may hold any
/// text, since none of it is kept; everything else is ASCII.
pub(super) fn speaking<'a>(
    bytes: &'a [u8],
    comment: &[char],
) -> Result<Vec<(usize, &'a str)>, CredentialRefusal> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let fine = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        CredentialRefusal::line(1 + fine.matches('\n').count(), "is not text")
    })?;
    if text.starts_with('\u{feff}') {
        return Err(CredentialRefusal::whole("begins with a byte order mark; save it without one"));
    }
    let mut found = Vec::new();
    for (at, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.chars().any(|c| c.is_control() && c != '\t') {
            return Err(CredentialRefusal::line(at + 1, "holds a control character; type it again"));
        }
        let content = line.trim_matches([' ', '\t']);
        if content.is_empty() || content.starts_with(comment) {
            continue;
        }
        if !line.is_ascii() {
            return Err(CredentialRefusal::line(
                at + 1,
                "holds a character that is not ASCII; type it again",
            ));
        }
        if line.starts_with([' ', '\t']) {
            let why = "begins with a blank, which makes it part of the line above; write every key at the start of its line";
            return Err(CredentialRefusal::line(at + 1, why));
        }
        found.push((at + 1, line));
    }
    Ok(found)
}

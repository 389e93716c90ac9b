//! Text for links and for a shell.

use super::Failed;

/// Names stay within their path.
pub(in crate::console) fn object_name(name: &str) -> Result<&str, Failed> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_one =
        !name.is_empty() && name.len() <= 253 && name.chars().all(plain) && name != "." && name != "..";
    if is_one { Ok(name) } else { Err(Failed::NotFound) }
}

/// A value for a link.
pub(in crate::console) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// An argument as a shell takes it.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:@+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Flags as they follow a command in a shell.
pub(super) fn in_shell(flags: &[String]) -> String {
    flags.iter().fold(String::new(), |line, flag| line + " " + &quoted(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_arguments_in_a_shell() {
        assert_eq!(quoted("--ttl=72h"), "--ttl=72h");
        assert_eq!(quoted("a; rm -rf 'x'"), r"'a; rm -rf '\''x'\'''");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn names_stay_within_their_path() {
        for odd in ["", "..", "a/b", "A", "a%2fb", "a?b"] {
            assert!(object_name(odd).is_err(), "{odd}");
        }
        assert!(object_name("daily-1.x").is_ok());
        assert_eq!(escaped("a b&c=<"), "a%20b%26c%3D%3C");
    }
}

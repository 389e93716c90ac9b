//! One line of Velero's log, field by field: as text (`key=value key="quoted value"`), or as JSON.

use serde_json::{Map, Value};

type Fields = Vec<(String, String)>;

/// A line, with its fields in their order.
pub(crate) struct Line(Fields);

impl Line {
    /// Reads a line; none if it is not one of Velero's, which all have a level and a message.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let line = Self(if text.starts_with('{') { json(text)? } else { pairs(text)? });
        (line.get("level").is_some() && line.get("msg").is_some()).then_some(line)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.fields().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether it is a warning or an error.
    pub(super) fn is_trouble(&self) -> bool {
        matches!(self.get("level"), Some("warning" | "warn" | "error" | "fatal" | "panic"))
    }
}

fn json(text: &str) -> Option<Fields> {
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some(fields.into_iter().map(|(key, value)| (key, text(value))).collect())
}

/// A key may have a space in it, as in `original name=x`.
fn pairs(text: &str) -> Option<Fields> {
    let mut fields = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=')?;
        let (value, after) = if let Some(quoted) = value.strip_prefix('"') {
            unquoted(quoted)?
        } else {
            let (value, after) = value.split_at(value.find(' ').unwrap_or(value.len()));
            (value.to_owned(), after)
        };
        if !after.is_empty() && !after.starts_with(' ') {
            return None;
        }
        fields.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Some(fields)
}

/// The text up to the closing quote, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' | 'r' | 't' => value.push(' '),
                c @ ('"' | '\\') => value.push(c),
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Line;

    fn fields(text: &str) -> Option<Vec<(String, String)>> {
        Line::parse(text).map(|line| line.0)
    }

    #[test]
    fn text_and_json_are_read_alike() {
        let text = r#"level=error msg="say \"no\"" error.message="a\nb" original name=prices namespace="#;
        let json = r#"{"level": "error", "msg": "say \"no\"", "error.message": "a b", "original name": "prices", "namespace": ""}"#;
        let mut read = (fields(text).unwrap(), fields(json).unwrap());
        read.0.sort();
        read.1.sort();
        assert_eq!(read.0, read.1);
        assert!(Line::parse(text).unwrap().is_trouble());
    }

    #[test]
    fn what_velero_does_not_write_is_no_line() {
        for text in [
            "",
            "<html>",
            "level=info",
            "[1]",
            r#"{"msg": 7"#,
            r#"level=info msg="no end"#,
            r#"level=info msg="a"b"#,
            "level=info msg=a panic",
        ] {
            assert_eq!(fields(text), None, "{text}");
        }
    }
}

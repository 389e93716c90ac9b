//! The lines of Velero's log that are about one namespace.
//!
//! | a line | is published if |
//! | --- | --- |
//! | of an object in the namespace: `namespace=NS`, `name=NS/...`, or the Namespace itself | it names no other namespace where only a namespace can be |
//! | of the backup or restore (`backup=velero/NAME`), a warning or an error | the same: `status.results` has it too |
//! | of the backup or restore, anything else | it is about no single object, and none of its words is another namespace |
//! | any other | never |
//!
//! Only some fields are published. A line in which one of them looks as if it held a key is left out.

mod key;
mod line;

use std::collections::VecDeque;
use std::fmt::Write as _;

use api::{LogLines, MOST_LINES};

use super::NotResults;
use super::read::shortened;
use super::redact::{self, without_addresses};
use key::looks_like_key;
pub(crate) use line::Line;

/// The longest line that is published, in bytes.
const LONGEST_LINE: usize = 1000;
/// All lines together, in bytes: the status is stored in the cluster.
const MOST_BYTES: usize = 64 * 1024;

/// The fields that are published, and the name that each gets.
const SHOWN: [(&str, &str); 10] = [
    ("time", "time"),
    ("level", "level"),
    ("msg", "msg"),
    ("error", "error"),
    ("error.message", "error"),
    ("namespace", "namespace"),
    ("resource", "resource"),
    ("groupResource", "resource"),
    ("name", "name"),
    ("original name", "name"),
];

/// Fields that name places in Velero's own code, and no namespace.
const OF_VELERO_ITSELF: [&str; 5] = ["time", "level", "logSource", "error.file", "error.function"];

/// What proves that a line is the reader's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// It is about an object in the namespace.
    Namespace,
    /// It is about the namespace's own backup or restore.
    Velero,
}

/// Takes a log line by line, and keeps what is about one namespace: never more than is published in the end.
pub struct OwnLines<'a, F> {
    namespace: &'a str,
    velero: &'a [String],
    is_namespace: F,
    count: usize,
    is_log: bool,
    troubles: Vec<(usize, String)>,
    others: VecDeque<(usize, String)>,
    not_listed: usize,
    left_out: usize,
}

impl<'a, F: Fn(&str) -> bool> OwnLines<'a, F> {
    /// For the log of what Velero has under these names, each as `NAMESPACE/NAME`, and a reader in this namespace.
    pub const fn new(namespace: &'a str, velero: &'a [String], is_namespace: F) -> Self {
        Self {
            namespace,
            velero,
            is_namespace,
            count: 0,
            is_log: false,
            troubles: Vec::new(),
            others: VecDeque::new(),
            not_listed: 0,
            left_out: 0,
        }
    }

    /// The next line of the log.
    pub fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.count += 1;
        let line = Line::parse(text);
        self.is_log |= line.is_some();
        let Some((line, text)) = line.and_then(|line| self.shown(&line).map(|text| (line, text))) else {
            self.left_out += 1;
            return;
        };
        if line.is_trouble() {
            if self.troubles.len() < MOST_LINES {
                self.troubles.push((self.count, text));
            } else {
                self.not_listed += 1;
            }
            return;
        }
        // Of the others the last ones: they say how it ended.
        self.others.push_back((self.count, text));
        if self.others.len() > MOST_LINES {
            self.others.pop_front();
            self.not_listed += 1;
        }
    }

    /// So many lines were not looked at.
    pub const fn leave_out(&mut self, lines: usize) {
        self.left_out += lines;
    }

    /// What is published. What has lines, and none of Velero's, is no log.
    pub fn finish(self) -> Result<LogLines, NotResults> {
        if self.count > 0 && !self.is_log {
            return Err(NotResults);
        }
        let mut not_listed = self.not_listed;
        let mut room = MOST_BYTES;
        let mut chosen = Vec::new();
        for (at, text) in self.troubles.into_iter().chain(self.others.into_iter().rev()) {
            if chosen.len() == MOST_LINES || text.len() > room {
                not_listed += 1;
            } else {
                room -= text.len();
                chosen.push((at, text));
            }
        }
        chosen.sort_unstable();
        let many = |count: usize| u32::try_from(count).ok().filter(|count| *count > 0);
        Ok(LogLines {
            lines: chosen.into_iter().map(|(_, text)| text).collect(),
            not_listed: many(not_listed),
            left_out: many(self.left_out),
        })
    }

    /// The line as it is published; none if it is left out.
    fn shown(&self, line: &Line) -> Option<String> {
        let proof = self.proof(line)?;
        if self.names_another(line, proof) {
            return None;
        }
        let mut out = String::new();
        for (key, name) in SHOWN {
            let Some(value) = line.get(key) else { continue };
            let value = without_addresses(&self.without_velero(value));
            if looks_like_key(&value) {
                return None;
            }
            let space = if out.is_empty() { "" } else { " " };
            let _ = write!(out, "{space}{name}={}", quoted(&shortened(&value)));
        }
        Some(cut(out))
    }

    fn proof(&self, line: &Line) -> Option<Proof> {
        let mut proof = None;
        for (key, value) in line.fields() {
            if key.to_ascii_lowercase().contains("namespace") && !value.is_empty() {
                if value.trim_matches(['[', ']']) != self.namespace {
                    return None;
                }
                proof = Some(Proof::Namespace);
            } else if let ("name", Some((namespace, _))) = (key, value.split_once('/')) {
                if namespace != self.namespace {
                    return None;
                }
                proof = Some(Proof::Namespace);
            } else if self.is_own_velero(key, value) {
                proof = proof.or(Some(Proof::Velero));
            }
        }
        let is_itself =
            line.get("resource") == Some("namespaces") && line.get("name") == Some(self.namespace);
        match proof {
            _ if is_itself => Some(Proof::Namespace),
            Some(Proof::Velero) if !line.is_trouble() && line.get("name").is_some() => None,
            proof => proof,
        }
    }

    fn is_own_velero(&self, key: &str, value: &str) -> bool {
        matches!(key, "backup" | "restore") && self.velero.iter().any(|own| own == value)
    }

    fn names_another(&self, line: &Line, proof: Proof) -> bool {
        let is_other = |name: &str| name != self.namespace && (self.is_namespace)(name);
        let is_strict = proof == Proof::Velero && !line.is_trouble();
        let checked = line
            .fields()
            .filter(|(key, value)| !OF_VELERO_ITSELF.contains(key) && !self.is_own_velero(key, value));
        checked.map(|(_, value)| self.without_velero(value)).any(|value| {
            redact::names_another(&value, &is_other) || (is_strict && redact::words(&value).any(is_other))
        })
    }

    /// The Velero object of the reader's own request, without the namespace that it is in.
    fn without_velero(&self, value: &str) -> String {
        let names = self.velero.iter().filter_map(|name| Some((name, name.split_once('/')?.1)));
        names.fold(value.to_owned(), |value, (name, bare)| value.replace(name.as_str(), bare))
    }
}

/// As Velero writes it: in quotes if there is more than letters, digits and what joins them.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/@:".contains(c);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn cut(mut line: String) -> String {
    const MORE: &str = "...";
    if line.len() > LONGEST_LINE {
        let end = (0..=LONGEST_LINE - MORE.len()).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or_default());
        line.push_str(MORE);
    }
    line
}

#[cfg(test)]
mod tests;

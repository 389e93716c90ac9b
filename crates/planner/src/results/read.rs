//! What the file says, as far as it is a tenant's to read.

use std::collections::BTreeMap;

use api::{MOST_MESSAGES, MOST_OBJECTS, ObjectList, VeleroResults};
use serde::Deserialize;

use super::grouped::grouped;
use super::redact::redacted;

/// The longest message that is published, in characters.
const LONGEST: usize = 400;

/// The file is not what Velero writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotResults;

/// Velero's file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    errors: Places,
    warnings: Places,
}

/// Messages by where Velero met them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Places {
    velero: Vec<String>,
    cluster: Vec<String>,
    namespaces: BTreeMap<String, Vec<String>>,
}

/// Reads the file about a request of this namespace. Messages about other namespaces are dropped, and the names of other
/// namespaces within messages are replaced.
pub fn read(
    text: &[u8],
    namespace: &str,
    is_namespace: impl Fn(&str) -> bool,
) -> Result<VeleroResults, NotResults> {
    let File { errors, warnings } = serde_json::from_slice(text).map_err(|_| NotResults)?;
    let is_other = |name: &str| name != namespace && is_namespace(name);
    let (errors, more_errors) = shown(errors, namespace, &is_other);
    let (warnings, more_warnings) = shown(warnings, namespace, &is_other);
    let not_listed = u32::try_from(more_errors + more_warnings).unwrap_or(u32::MAX);
    Ok(VeleroResults { errors, warnings, not_listed: Some(not_listed).filter(|more| *more > 0) })
}

/// Reads the list of the objects in a backup of this namespace. Only the namespace's own are published.
pub fn read_objects(text: &[u8], namespace: &str) -> Result<ObjectList, NotResults> {
    let all: BTreeMap<String, Vec<String>> = serde_json::from_slice(text).map_err(|_| NotResults)?;
    let mut list = ObjectList::default();
    let mut room = MOST_OBJECTS;
    let mut more = 0;
    for (kind, objects) in all {
        let own = objects.iter().filter_map(|object| object.split_once('/').filter(|own| own.0 == namespace));
        let mut names: Vec<String> = own.map(|(_, name)| shortened(name)).collect();
        more += names.len().saturating_sub(room);
        names.truncate(room);
        room -= names.len();
        if !names.is_empty() {
            list.names.insert(shortened(&kind), names);
        }
    }
    list.not_listed = u32::try_from(more).ok().filter(|more| *more > 0);
    Ok(list)
}

/// The messages that are published, and how many more there are.
fn shown(mut places: Places, namespace: &str, is_other: &impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let own = places.namespaces.remove(namespace).unwrap_or_default();
    let all: Vec<String> = places.velero.into_iter().chain(places.cluster).chain(own).collect();
    let mut lines = grouped(all.iter().map(String::as_str));
    let more = lines.len().saturating_sub(MOST_MESSAGES);
    lines.truncate(MOST_MESSAGES);
    (lines.iter().map(|line| shortened(&redacted(line, is_other))).collect(), more)
}

/// On one line, without what a terminal would obey, and not too long.
pub(super) fn shortened(line: &str) -> String {
    let clean = |c: char| if c.is_control() || is_format(c) { ' ' } else { c };
    match line.char_indices().nth(LONGEST) {
        None => line.chars().map(clean).collect(),
        Some((end, _)) => line[..end].chars().map(clean).chain("...".chars()).collect(),
    }
}

/// Characters that are not seen and change what is: directions, joiners, line separators.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

//! The contents of a backup, object by object: a tar archive with one JSON file for each.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use flate2::write::MultiGzDecoder;
use planner::restore_preview::Contents;

use super::Link;
use super::unpack::Bounded;

/// The most that is unpacked into memory.
const LIMIT: u64 = 256 << 20;

/// The size of a block in a tar archive.
const BLOCK: usize = 512;

/// Fetches the objects of one namespace, and those that are in none.
pub(crate) async fn objects(link: Link, namespace: &str) -> Result<Contents> {
    let mut unpacked = MultiGzDecoder::new(Bounded::new(Vec::new(), LIMIT));
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    read(&unpacked.finish().context("the file ends in the middle")?.into_inner(), namespace)
}

fn read(archive: &[u8], namespace: &str) -> Result<Contents> {
    let mut contents = Contents::new();
    for (path, bytes) in files(archive)? {
        if let Some(key) = key(&path, namespace) {
            contents.insert(key, serde_json::from_slice(bytes).with_context(|| format!("reading {path}"))?);
        }
    }
    Ok(contents)
}

/// The group-resource and the name in a path: `resources/RESOURCE/namespaces/NAMESPACE/NAME.json`, or
/// `resources/RESOURCE/cluster/NAME.json`. Copies in other versions of the API have one part more.
fn key(path: &str, namespace: &str) -> Option<(String, String)> {
    let parts: Vec<&str> = path.split('/').collect();
    let (resource, file) = match parts.as_slice() {
        ["resources", resource, "namespaces", found, file] if *found == namespace => (resource, file),
        ["resources", resource, "cluster", file] => (resource, file),
        _ => return None,
    };
    Some(((*resource).to_owned(), file.strip_suffix(".json")?.to_owned()))
}

/// The files of a tar archive, each with its path.
fn files(mut archive: &[u8]) -> Result<Vec<(String, &[u8])>> {
    let mut found = Vec::new();
    // A path that is too long for a header comes before it.
    let mut long: Option<String> = None;
    while let Some((header, rest)) = archive.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = octal(&header[124..136]).context("a size in the archive cannot be read")?;
        let padded = size.div_ceil(BLOCK).checked_mul(BLOCK).context("a size in the archive is too large")?;
        let (Some(bytes), Some(after)) = (rest.get(..size), rest.get(padded..)) else {
            bail!("the archive ends in the middle")
        };
        match header[156] {
            b'L' => long = Some(text(bytes)),
            b'x' => long = pax_path(bytes).or(long),
            b'0' | 0 => {
                let short = || match text(&header[345..500]) {
                    prefix if prefix.is_empty() => text(&header[..100]),
                    prefix => format!("{prefix}/{}", text(&header[..100])),
                };
                found.push((long.take().unwrap_or_else(short), bytes));
            }
            _ => long = None,
        }
        archive = after;
    }
    Ok(found)
}

/// A text up to its end.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<usize> {
    usize::from_str_radix(text(bytes).trim(), 8).ok()
}

/// The path in extended headers, which are lines of `LENGTH KEY=VALUE`.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let lines = String::from_utf8_lossy(bytes);
    lines.lines().find_map(|line| Some(line.split_once(' ')?.1.strip_prefix("path=")?.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kind: u8, path: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[156] = kind;
        header.extend_from_slice(bytes);
        header.resize(header.len().next_multiple_of(BLOCK), 0);
        header
    }

    #[test]
    fn objects_are_found_by_resource_and_name() {
        let long = format!("resources/widgets.example.com/namespaces/shop/{}.json", "w".repeat(120));
        let line = format!("{} path={long}\n", long.len() + 10);
        let archive = [
            entry(b'0', "metadata/version", b"1.1.0"),
            entry(b'5', "resources/configmaps/", b""),
            entry(b'0', "resources/configmaps/namespaces/shop/prices.json", br#"{"data":{"tea":"3"}}"#),
            entry(b'0', "resources/configmaps/v1-preferredversion/namespaces/shop/prices.json", b"{}"),
            entry(b'0', "resources/configmaps/namespaces/other/prices.json", b"{}"),
            entry(b'0', "resources/persistentvolumes/cluster/pv.json", br#"{"a":1}"#),
            entry(b'x', "PaxHeaders.0/w", line.as_bytes()),
            entry(b'0', "short", br#"{"b":2}"#),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        let contents = read(&archive, "shop").unwrap();
        let key = |resource: &str, name: &str| (resource.to_owned(), name.to_owned());
        assert_eq!(contents[&key("configmaps", "prices")], json!({"data": {"tea": "3"}}));
        assert_eq!(contents[&key("persistentvolumes", "pv")], json!({"a": 1}));
        assert_eq!(contents[&key("widgets.example.com", &"w".repeat(120))], json!({"b": 2}));
        assert_eq!(contents.len(), 3);
        assert!(read(&archive[..700], "shop").is_err(), "it ends in the middle");
    }
}

//! Whether Velero can be trusted with what it finds in a tenant's bucket.

/// From this version on, Velero does not run unfinished backups that it finds in a bucket.
const SAFE: [u64; 3] = [1, 18, 3];

/// Whether this version of Velero only imports backups that are over. What cannot be read is not safe, nor is what
/// came before the release; other suffixes are a builder's own.
pub(crate) fn is_safe(version: &str) -> bool {
    let Some(found) = numbers(version) else { return false };
    let suffix = split(version).1.to_ascii_lowercase();
    let early = ["rc", "alpha", "beta", "dev", "pre"].iter().any(|word| suffix.starts_with(word));
    found > SAFE || (found == SAFE && !early)
}

/// The three numbers of a version, whatever follows them.
pub(crate) fn numbers(version: &str) -> Option<[u64; 3]> {
    let parts: Vec<Option<u64>> = split(version).0.split('.').map(|part| part.parse().ok()).collect();
    let [Some(major), Some(minor), Some(patch)] = parts[..] else { return None };
    Some([major, minor, patch])
}

fn split(version: &str) -> (&str, &str) {
    let plain = version.strip_prefix('v').unwrap_or(version);
    plain.split_once(['-', '+']).unwrap_or((plain, ""))
}

#[cfg(test)]
mod tests {
    use super::is_safe;

    #[test]
    fn versions_are_compared_as_numbers() {
        for safe in [
            "v1.18.3",
            "1.18.3",
            "v1.18.10",
            "v1.19.0",
            "v2.0.0",
            "v1.18.3-OADP",
            "v1.18.3+build",
            "v1.19.0-rc.1",
        ] {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_ in ["v1.18.2", "v1.9.9", "v1.18.3-rc.1", "main", "", "v1.18", "v1.18.x", "1.18.3.1"] {
            assert!(!is_safe(unsafe_), "{unsafe_}");
        }
    }
}

//! The place within a bucket. Velero joins and cleans paths as a file system would, so a dot too many leads out of it.

/// Longer ones leave no room for what Velero puts below.
const LONGEST: usize = 256;

/// What is wrong with a bucket's name, if anything is: it becomes part of a path or of a host.
pub(super) fn bucket_objection(bucket: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let edge = |c: char| c.is_ascii_alphanumeric();
    let fine = (3..=222).contains(&bucket.len())
        && bucket.chars().all(plain)
        && bucket.starts_with(edge)
        && bucket.ends_with(edge)
        && !bucket.contains("..");
    (!fine).then_some(
        "must be the plain name of a bucket: 3 characters or more, of letters, digits, dots, dashes and underscores",
    )
}

/// What is wrong with a prefix, if anything is.
pub(super) fn objection(prefix: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if prefix.len() > LONGEST {
        return Some("is too long; 256 characters are allowed");
    }
    if prefix.starts_with('/') || prefix.ends_with('/') || prefix.contains("//") {
        return Some("must not begin or end with a slash, nor have two in a row");
    }
    if prefix.split('/').any(|segment| segment.chars().all(|c| c == '.')) {
        return Some("must not have a part that is only dots");
    }
    (!prefix.chars().all(|c| plain(c) || c == '/'))
        .then_some("may only have letters, digits, dots, dashes and underscores between its slashes")
}

/// The prefix Velero gets: below the tenant's namespace, whatever they asked for.
pub fn stored(namespace: &str, prefix: Option<&str>) -> String {
    match prefix.filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => format!("{namespace}/{prefix}"),
        None => namespace.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{bucket_objection, objection, stored};

    #[test]
    fn plain_segments_are_kept_below_the_namespace() {
        for prefix in ["velero", "a/b/c", "2026-11", "a.b/_c", "..a", "a..b"] {
            assert_eq!(objection(prefix), None, "{prefix}");
        }
        assert_eq!(stored("shop", Some("a/b")), "shop/a/b");
        assert_eq!(stored("shop", None), "shop");
        assert_eq!(stored("shop", Some("")), "shop");
    }

    #[test]
    fn ways_out_are_refused() {
        for prefix in [
            "..",
            ".",
            "../other",
            "a/../other",
            "a/./b",
            "a/..",
            "/a",
            "a/",
            "a//b",
            "...",
            "a\\..\\b",
            "a b",
            "a\0b",
            "a%2e%2e/b",
            "\u{ff0e}\u{ff0e}/b",
            "a\nb",
            "a*b",
            "~",
            "a?b",
        ] {
            assert!(objection(prefix).is_some(), "{prefix:?}");
        }
        assert!(objection(&"a".repeat(257)).is_some());
        assert_eq!(objection(&"a".repeat(256)), None);
        for slash in ["/a", "a/", "a//b"] {
            assert!(objection(slash).is_some_and(|reported| reported.contains("slash")), "{slash:?}");
        }
    }

    /// Where a path leads, as Velero cleans it.
    fn cleaned(path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        parts.join("/")
    }

    /// C9
    /// planted: prefixes are not checked
    #[test]
    fn c9_without_the_objection_such_a_prefix_would_lead_to_somebody_elses_folder() {
        for prefix in ["../victim/velero", "a/../../victim", "./.././victim"] {
            assert!(objection(prefix).is_some(), "{prefix}");
            assert!(
                cleaned(&stored("evil", Some(prefix))).starts_with("victim"),
                "the planted weakness: {prefix}"
            );
        }
        assert_eq!(cleaned(&stored("evil", Some("a/b"))), "evil/a/b");
    }

    #[test]
    fn buckets_have_plain_names() {
        for bucket in ["abc", "my.bucket-1", "My_Bucket", "0ab"] {
            assert_eq!(bucket_objection(bucket), None, "{bucket}");
        }
        for bucket in [
            "",
            "ab",
            "a/b/c",
            "arn:aws:s3:::x",
            "-abc",
            "abc.",
            "a..b",
            "a b c",
            "..",
            "abc?x",
            "abc@x",
            "abc#",
            "$root",
        ] {
            assert!(bucket_objection(bucket).is_some(), "{bucket:?}");
        }
        assert!(bucket_objection(&"a".repeat(223)).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Cleaning the path as Velero does never leads out of the namespace's folder.
        #[test]
        fn an_accepted_prefix_never_leaves_the_namespace(prefix in "[a./\\\\%]{0,12}") {
            if objection(&prefix).is_none() {
                let mut cleaned: Vec<&str> = Vec::new();
                let whole = stored("shop", Some(&prefix));
                for part in whole.split('/') {
                    match part {
                        "" | "." => {}
                        ".." => { cleaned.pop(); }
                        part => cleaned.push(part),
                    }
                }
                prop_assert_eq!(cleaned.join("/"), whole.clone());
                prop_assert_eq!(cleaned.first(), Some(&"shop"));
            }
        }
    }
}

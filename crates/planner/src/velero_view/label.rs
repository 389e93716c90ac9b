//! A name as Velero writes it into a label.

use std::borrow::Cow;

use ring::digest::{SHA256, digest};

use crate::hex;

/// The longest value a label can have.
const LONGEST: usize = 63;
/// How much of a longer name's hash stands at its end.
const HASHED: usize = 6;

/// What Velero's tools look for instead of a name that is too long for a label: its beginning, and some of its hash.
pub(super) fn valued(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    // Names of objects are ASCII; one that is not is cut a little shorter.
    let kept = name.floor_char_boundary(LONGEST - HASHED);
    let hash = digest(&SHA256, name.as_bytes());
    Cow::Owned(format!("{}{}", &name[..kept], hex(&hash.as_ref()[..HASHED / 2])))
}

#[cfg(test)]
mod tests {
    use super::valued;

    /// As Velero 1.18.3 has them.
    #[test]
    fn a_long_name_ends_in_its_hash() {
        let fits = "a".repeat(63);
        assert_eq!(valued(&fits), fits);
        let long = "the-backup-before-the-migration-of-the-shop-to-the-new-cluster-in-november";
        assert_eq!(valued(long), "the-backup-before-the-migration-of-the-shop-to-the-new-cleccdc2");
    }
}

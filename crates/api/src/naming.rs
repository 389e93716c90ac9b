//! How a Velero object is named after the non-admin object it is made for.

/// Kubernetes' limit for a label value; the name is used as one too.
const LIMIT: usize = 63;

/// `<namespace>-<name>-<uid>`, cut to 63 characters: first the end of the name goes, then the end of the
/// namespace, never the uid. Known without writing anything, so creating under it is safe to repeat.
pub fn velero_name(namespace: &str, name: &str, uid: &str) -> String {
    let whole = join(&[namespace, name, uid]);
    if whole.len() <= LIMIT {
        return whole;
    }
    // In addition to the uid, this many characters of both fit, with a dash after each.
    let room = LIMIT.saturating_sub(uid.len() + 2);
    if namespace.len() > room {
        return join(&[cut(namespace, room), uid]);
    }
    join(&[namespace, cut(name, room - namespace.len()), uid])
}

/// Whether a name ends as those of [`velero_name`] do.
pub fn ends_with_uid(name: &str) -> bool {
    let groups: Vec<&str> = name.rsplitn(6, '-').collect();
    let is = |(at, length): (usize, usize)| {
        let is_group =
            |group: &&str| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        groups.get(at).is_some_and(is_group)
    };
    [12, 4, 4, 4, 8].into_iter().enumerate().all(is)
}

/// Whose bytes a Velero Restore reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoredFrom {
    /// The administrators' storage.
    PlatformStorage,
    /// Storage that a tenant can write to: what comes back may be forged.
    TenantStorage,
}

impl RestoredFrom {
    /// Both.
    pub const ALL: [Self; 2] = [Self::PlatformStorage, Self::TenantStorage];

    /// The letter that stands for it in the name of a Velero Restore.
    pub const fn letter(self) -> char {
        match self {
            Self::PlatformStorage => 'p',
            Self::TenantStorage => 't',
        }
    }
}

/// How much of the namespace's uid stands in the name of a Velero Restore: 48 bits, and a dash between them.
pub const NAMESPACE_UID_IN_NAME: usize = 13;

/// The name of the Velero Restore for a request: some of the request's own name, a letter for the storage, the start of
/// the namespace's uid, and the request's uid.
///
/// Velero writes this name onto every object it restores. So an admission policy knows of each object, from the object
/// alone, which namespace it may go to and whether it may be forged.
pub fn restore_name(
    from: RestoredFrom,
    (namespace, namespace_uid): (&str, &str),
    (name, uid): (&str, &str),
) -> String {
    let owner = format!("{}{}", from.letter(), cut(namespace_uid, NAMESPACE_UID_IN_NAME));
    let room = LIMIT.saturating_sub(owner.len() + uid.len() + 2);
    join(&[cut(&join(&[namespace, name]), room), &owner, uid])
}

/// From which storage a Velero Restore of this name reads, as it says of itself; none for one that was named otherwise.
///
/// Who has the request chooses its name and may choose the namespace's, and names of other making are made of these alone.
/// So what stands in them says nothing.
pub fn restored_from(velero: &str, (namespace, name, uid): (&str, &str, &str)) -> Option<RestoredFrom> {
    let before = velero.strip_suffix(uid).filter(|_| !uid.is_empty())?.strip_suffix('-')?;
    let start = before.len().checked_sub(NAMESPACE_UID_IN_NAME + 1)?;
    let owner = before.get(start..)?;
    let from = RestoredFrom::ALL.into_iter().find(|from| owner.starts_with(from.letter()))?;
    let is_of_uid = |(at, byte): (usize, u8)| if at == 8 { byte == b'-' } else { byte.is_ascii_hexdigit() };
    let is_own = owner.bytes().skip(1).enumerate().all(is_of_uid);
    let is_chosen = join(&[namespace, name]).contains(owner);
    (is_own && !is_chosen).then_some(from)
}

/// A regular expression for the end of such a name, and of no other object's by accident.
pub fn restore_name_pattern(from: &[RestoredFrom]) -> String {
    let letters: String = from.iter().map(|from| from.letter()).collect();
    let [four, eight, twelve] = [4, 8, 12].map(|digits| format!("[0-9a-f]{{{digits}}}"));
    format!("^.+-[{letters}]{eight}-{four}-{eight}-{four}-{four}-{four}-{twelve}$")
}

fn join(parts: &[&str]) -> String {
    let given: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    given.join("-")
}

/// The first `length` characters, less any dash or dot that would stand before the joining dash.
fn cut(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text[..end].trim_end_matches(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::{RestoredFrom, ends_with_uid, restore_name, restored_from, velero_name};

    const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

    #[test]
    fn short_names_stay_whole() {
        assert_eq!(velero_name("shop", "daily", UID), format!("shop-daily-{UID}"));
    }

    #[test]
    fn a_restore_is_named_after_the_namespaces_uid_and_its_storage_however_long_the_names_are() {
        let namespace_uid = "1c2b3a4d-5e6f-4d8e-9f4e-0b8d1a523c0f";
        let named = |from, namespace: &str, name| restore_name(from, (namespace, namespace_uid), (name, UID));
        assert_eq!(
            named(RestoredFrom::TenantStorage, "shop", "back"),
            format!("shop-back-t1c2b3a4d-5e6f-{UID}")
        );
        let long = named(RestoredFrom::PlatformStorage, &"n".repeat(63), "back");
        assert_eq!(long, format!("{}-p1c2b3a4d-5e6f-{UID}", "n".repeat(11)));
        assert_eq!(long.len(), 63);
        let dashed = named(RestoredFrom::PlatformStorage, "a-namespac", "x");
        assert_eq!(dashed, format!("a-namespac-p1c2b3a4d-5e6f-{UID}"), "a dash is not left at the cut");
    }

    #[test]
    fn the_name_of_a_restore_says_whose_bytes_it_reads_and_no_request_can_say_it_in_its_place() {
        let namespace_uid = "1c2b3a4d-5e6f-4d8e-9f4e-0b8d1a523c0f";
        for from in RestoredFrom::ALL {
            for (namespace, name) in [("shop", "back"), (&*"n".repeat(63), "back"), ("a-namespac", "x")] {
                let velero = restore_name(from, (namespace, namespace_uid), (name, UID));
                assert_eq!(restored_from(&velero, (namespace, name, UID)), Some(from), "{velero}");
            }
        }
        // As the Go controller names it, whatever the request is called.
        for (namespace, name) in [
            ("shop", "back"),
            ("shop", "back-p1c2b3a4d-5e6f"),
            ("shop", "p1c2b3a4d-5e6f"),
            ("p1c2b3a4d", "5e6f"),
            ("shop-p1c2b3a4d-5e6f", "a-name-that-is-cut-away"),
            ("shop", "p1c2b3a4d-5e6f-and-more"),
        ] {
            let velero = velero_name(namespace, name, UID);
            assert_eq!(restored_from(&velero, (namespace, name, UID)), None, "{velero}");
        }
        let platform = restore_name(RestoredFrom::PlatformStorage, ("shop", namespace_uid), ("back", UID));
        for (velero, uid) in [
            (platform.as_str(), "another"),
            (platform.as_str(), ""),
            ("", UID),
            (UID, UID),
            ("é-p1c2b3a4d-5e6f", "x"),
        ] {
            assert_eq!(restored_from(velero, ("shop", "back", uid)), None, "{velero}");
        }
    }

    #[test]
    fn a_name_of_nacres_making_ends_with_a_uid() {
        for name in [velero_name("shop", "mine", UID), velero_name(&"n".repeat(63), "mine", UID)] {
            assert!(ends_with_uid(&name), "{name}");
        }
        for name in ["", "default", "aws-eu-west-1-a-b", "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6", "é-é-é-é-é-é"]
        {
            assert!(!ends_with_uid(name), "{name}");
        }
    }

    #[test]
    fn the_end_of_the_name_goes_first() {
        let name = velero_name("shop", "a-very-long-name-for-a-backup", UID);
        assert_eq!(name, format!("shop-a-very-long-name-for-{UID}").replace("for--", "for-"));
        assert!(name.len() <= 63);
    }

    #[test]
    fn then_the_end_of_the_namespace() {
        let namespace = "a-namespace-that-is-longer-than-twenty-five";
        assert_eq!(velero_name(namespace, "daily", UID), format!("a-namespace-that-is-longe-{UID}"));
    }

    #[test]
    fn a_namespace_that_fills_the_room_leaves_no_name() {
        let namespace = "exactly-twenty-five-chars";
        assert_eq!(velero_name(namespace, "daily", UID), format!("{namespace}-{UID}"));
    }

    #[test]
    fn a_cut_leaves_neither_dash_nor_dot_before_the_joining_dash() {
        assert_eq!(
            velero_name("twenty-chars-long-ns", "abcd.efghijk", UID),
            format!("twenty-chars-long-ns-abcd-{UID}")
        );
        assert_eq!(
            velero_name("shop", "twenty-chars-long-n.-x-y-z", UID),
            format!("shop-twenty-chars-long-n-{UID}")
        );
    }
}

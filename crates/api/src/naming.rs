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
    use super::velero_name;

    const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

    #[test]
    fn short_names_stay_whole() {
        assert_eq!(velero_name("shop", "daily", UID), format!("shop-daily-{UID}"));
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

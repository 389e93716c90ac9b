//! Messages of Velero and of the API server without what is not the reader's: names of other namespaces, and addresses of
//! the administrators' storage.
//!
//! A name such as `data` or `default` is a word as well as a namespace. So a name is replaced where it can only be a
//! namespace: before a slash (`NAME/object`), after the word namespace, in a Service's address (`x.NAME.svc`), and at
//! the beginning of the name of a Velero object (`NAME-...-UID`).

const NAMESPACE: &str = "<another namespace>";
const ADDRESS: &str = "<address>";

/// The message, for somebody to whom these namespaces are none of their business.
pub(super) fn redacted(message: &str, is_other: &impl Fn(&str) -> bool) -> String {
    let message = without_addresses(message);
    let mut out = String::with_capacity(message.len());
    let mut rest = message.as_str();
    let mut after_namespace = false;
    while let Some(start) = rest.find(is_name_character) {
        let end = rest[start..].find(|c| !is_name_character(c)).map_or(rest.len(), |length| start + length);
        let (between, word, tail) = (&rest[..start], &rest[start..end], &rest[end..]);
        out.push_str(between);
        let before_slash = tail.starts_with('/');
        if (after_namespace || before_slash) && is_other(word.trim_end_matches('.')) {
            out.push_str(NAMESPACE);
        } else {
            out.push_str(&inside(word, is_other));
        }
        after_namespace = matches!(word.to_ascii_lowercase().as_str(), "namespace" | "namespaces");
        rest = tail;
    }
    out + rest
}

/// Whether a message names another namespace where it can only be a namespace.
pub(super) fn names_another(message: &str, is_other: &impl Fn(&str) -> bool) -> bool {
    redacted(message, is_other).contains(NAMESPACE)
}

/// The words of a message, each of which could be the name of a namespace.
pub(super) fn words(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split(|c| !is_name_character(c));
    words.flat_map(|word| [word.trim_end_matches('.')].into_iter().chain(word.split('.')))
}

const fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.')
}

/// A word without a namespace within it.
fn inside(word: &str, is_other: &impl Fn(&str) -> bool) -> String {
    // The address of a Service.
    let parts: Vec<&str> = word.split('.').collect();
    if let Some(at) = parts.iter().position(|part| *part == "svc").filter(|at| *at > 0)
        && is_other(parts[at - 1])
    {
        return [&parts[..at - 1], &[NAMESPACE], &parts[at..]].concat().join(".");
    }
    // The name of a Velero object: it begins with the namespace.
    let dashes = word.match_indices('-').map(|(at, _)| at);
    if ends_in_uid(word) && dashes.map(|at| &word[..at]).any(is_other) {
        return NAMESPACE.to_owned();
    }
    word.to_owned()
}

fn ends_in_uid(word: &str) -> bool {
    let groups: Vec<&str> = word.rsplitn(6, '-').take(5).collect();
    let lengths = [12, 4, 4, 4, 8];
    let is_group = |(group, length): (&&str, &usize)| {
        group.len() == *length && group.chars().all(|c| c.is_ascii_hexdigit())
    };
    groups.len() == 5 && groups.iter().zip(&lengths).all(is_group)
}

/// Links may hold keys, and say where the administrators' storage is.
pub(super) fn without_addresses(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let begin = rest[..at].trim_end_matches(is_scheme).len();
        let end = rest[at..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'));
        out.push_str(&rest[..begin]);
        out.push_str(ADDRESS);
        rest = &rest[end.map_or(rest.len(), |length| at + length)..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::redacted;

    fn of_shop(message: &str) -> String {
        redacted(message, &|name| ["bank", "data", "default"].contains(&name))
    }

    #[test]
    fn other_namespaces_are_not_named() {
        let uid = "0a1b2c3d-0000-4000-8000-0123456789ab";
        assert_eq!(
            of_shop("host is already defined in ingress bank/web"),
            "host is already defined in ingress <another namespace>/web"
        );
        assert_eq!(of_shop("in namespace \"bank\": denied"), "in namespace \"<another namespace>\": denied");
        assert_eq!(of_shop("namespace: bank."), "namespace: <another namespace>");
        assert_eq!(
            of_shop("dial tcp: lookup db.bank.svc.cluster.local"),
            "dial tcp: lookup db.<another namespace>.svc.cluster.local"
        );
        assert_eq!(
            of_shop(&format!("backup bank-daily-{uid} is gone")),
            "backup <another namespace> is gone"
        );
    }

    #[test]
    fn words_that_are_also_namespaces_stay() {
        for message in [
            "could not restore, ServiceAccount:default already exists. Warning: the in-cluster version is different",
            // As Velero 1.14 writes it.
            "could not restore, ServiceAccount \"default\" already exists. Warning: the in-cluster version is different",
            "the volume of claim data is full",
            "shop/data: denied by data-policy",
            "namespace shop: no data",
        ] {
            assert_eq!(of_shop(message), message);
        }
    }

    #[test]
    fn addresses_are_not_shown() {
        assert_eq!(
            of_shop("Get \"https://s3.internal:9000/b/k?X-Amz-Signature=secret\": timeout"),
            "Get \"<address>\": timeout"
        );
        assert_eq!(of_shop("repository s3://bucket/shop, HTTP://host"), "repository <address> <address>");
    }
}

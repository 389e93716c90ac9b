//! Texts that look as if they held a key, a password or a token. Where in doubt, they do.

/// What only a signature, a token or a certificate begins with.
const MARKS: [&str; 5] = ["x-amz-", "x-goog-", "x-ms-", "bearer ", "-----begin"];

/// Words after which a value follows that nobody else should have.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "accesskey",
    "access_key",
    "access_key_id",
    "accesskeyid",
    "accountkey",
    "apikey",
    "api_key",
    "authorization",
    "signature",
];

/// The same, but these are also the names of things: `secret: not found`.
const AMBIGUOUS: [&str; 5] = ["secret", "token", "credential", "sig", "key"];

/// The shortest run of letters and digits that may be the id of a key, such as AWS' of 20.
const SHORTEST_ID: usize = 16;
/// The shortest run of characters of base64 that may be a key, such as AWS' of 40.
const SHORTEST_KEY: usize = 32;

/// Whether a text looks as if it held a key.
pub(super) fn looks_like_key(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| small.contains(mark))
        || NAMES.iter().any(|name| is_given(&small, name, &['=', ':']))
        || AMBIGUOUS.iter().any(|name| is_given(&small, name, &['=']))
        || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_id)
        || text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=_-".contains(c)).any(is_key)
}

/// Whether a value follows this word.
fn is_given(text: &str, name: &str, signs: &[char]) -> bool {
    let follows = |(at, _): (usize, &str)| {
        let rest = text[at + name.len()..].trim_start_matches(['"', '\'', '\\', ' ']);
        rest.strip_prefix(signs).is_some_and(|value| !value.trim().is_empty())
    };
    text.match_indices(name).any(follows)
}

/// Capitals and digits alone: names in Kubernetes have small letters.
fn is_id(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.len() >= SHORTEST_ID
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && !has(u8::is_ascii_lowercase)
}

fn is_key(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.len() >= SHORTEST_KEY
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::looks_like_key;

    #[test]
    fn keys_are_known_by_their_name_or_by_their_look() {
        for text in [
            "denied for AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0",
            "aws_secret_access_key = x",
            "password: hunter2",
            "{\"token\"=\"x\"}",
            "Authorization: Basic eA==",
            "?X-Amz-Credential=x",
            "-----BEGIN RSA PRIVATE KEY-----",
            "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.x",
        ] {
            assert!(looks_like_key(text), "{text}");
        }
    }

    #[test]
    fn names_of_objects_are_no_keys() {
        for text in [
            "Backing up item",
            "db-password",
            "secret: not found",
            "Error getting credentials",
            "shop-daily-0a1b2c3d-0000-4000-8000-0123456789ab",
            "volumesnapshots.snapshot.storage.k8s.io",
            "2026-11-18T07:00:00Z",
            "github.com/vmware-tanzu/velero/pkg/backup/item_backupper.go:200",
        ] {
            assert!(!looks_like_key(text), "{text}");
        }
    }
}

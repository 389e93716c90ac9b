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

/// The same, but these are also the names of things: `secret: not found`. Before a colon they count as a key of JSON alone.
const AMBIGUOUS: [&str; 5] = ["secret", "token", "credential", "sig", "key"];

/// The shortest run of letters and digits that may be the id of a key, such as AWS' of 20.
const SHORTEST_ID: usize = 16;
/// The shortest run of characters of base64 that may be a key, such as AWS' of 40.
const SHORTEST_KEY: usize = 32;
/// The shortest run of hexadecimal digits that may be a key. Those of a uid are shorter, since there are dashes between them.
const SHORTEST_HEX: usize = 32;
/// What stands before the digest of an image, which is no secret.
const DIGEST: &str = "sha256:";

/// Whether a text looks as if it held a key.
pub(super) fn looks_like_key(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| small.contains(mark))
        || NAMES.iter().any(|name| is_given(&small, name, &['=', ':']))
        || AMBIGUOUS.iter().any(|name| is_given(&small, name, &['=']) || is_in_json(&small, name))
        || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_id)
        || has_long_hex(&small)
        || text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=_-.".contains(c)).any(has_key)
}

/// Whether a value follows this word.
fn is_given(text: &str, name: &str, signs: &[char]) -> bool {
    let follows = |(at, _): (usize, &str)| {
        let rest = text[at + name.len()..].trim_start_matches(['"', '\'', '\\', ' ']);
        rest.strip_prefix(signs).is_some_and(|value| !value.trim().is_empty())
    };
    text.match_indices(name).any(follows)
}

/// Whether a value follows this word as a key of JSON: `"token":"x"`, also with its quotes escaped.
fn is_in_json(text: &str, name: &str) -> bool {
    let follows = |(at, _): (usize, &str)| {
        let rest = text[at + name.len()..].trim_start_matches('\\').strip_prefix(['"', '\'']);
        rest.and_then(|rest| rest.strip_prefix(':')).is_some_and(|value| !value.trim().is_empty())
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

/// Whether there are more hexadecimal digits in a row than a uid has, and no digest of an image.
fn has_long_hex(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_hexdigit());
    words.any(|run| {
        let at = run.as_ptr().addr() - text.as_ptr().addr();
        run.len() >= SHORTEST_HEX && !text[..at].ends_with(DIGEST)
    })
}

/// Whether there is a key in what is left of a word without the kind that it may begin with.
fn has_key(word: &str) -> bool {
    without_kind(word).split('.').any(is_key)
}

/// Without a kind in front, such as `kubevirt.io/v1/VirtualMachineInstanceMigration`, whose name may be as long as a key.
fn without_kind(word: &str) -> &str {
    let mut parts = word.splitn(4, '/');
    let (Some(group), Some(version), Some(kind)) = (parts.next(), parts.next(), parts.next()) else {
        return word;
    };
    let is_group = group.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c));
    let number = version.strip_prefix('v').unwrap_or_default();
    let is_version = number.starts_with(|c: char| c.is_ascii_digit())
        && number.split(|c: char| c.is_ascii_digit()).all(|word| ["", "alpha", "beta"].contains(&word));
    let is_kind = kind.chars().all(|c| c.is_ascii_alphabetic());
    if is_group && is_version && is_kind { parts.next().unwrap_or_default() } else { word }
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
            r#"answer: {"token":"hunter2"}"#,
            r#"the plugin said "secret":"abc""#,
            r#"{\"token\": \"hunter2\"}"#,
            "{'secretKey':'abc'}",
            "denied for 0123456789abcdef0123456789abcdef",
            "sha256=0123456789abcdef0123456789ABCDEF",
            "kubevirt.io/v1/Kind/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0",
            "example.com/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0",
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
            "kubevirt.io/v1/VirtualMachineInstanceMigration",
            "kubevirt.io/v1/VirtualMachineInstanceMigration/shop/vm-1",
            "admissionregistration.k8s.io/v1beta1/ValidatingWebhookConfigurations",
            "autoscaling/v2/HorizontalPodAutoscaler/shop",
            r#"secrets "db-1" not found, "secretName": "db""#,
            "image example.com/shop@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ] {
            assert!(!looks_like_key(text), "{text}");
        }
    }
}

//! The certificate authority of an endpoint.

use k8s_openapi::ByteString;
use serde_json::Value;

/// A bundle of every public authority is larger; a tenant's endpoint needs a few.
const LARGEST: usize = 64 * 1024;
const BEGIN: &str = "-----BEGIN ";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// What is wrong with a `caCert`, base64 of PEM, if anything is. Never shows any of it: people do paste the wrong file.
pub(super) fn objection(encoded: &str) -> Option<&'static str> {
    // Four characters for every three bytes.
    if encoded.len() > LARGEST / 3 * 4 + 4 {
        return Some("is too long; 64 KiB are allowed");
    }
    let Some(pem) = decode(encoded).and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return Some("is not PEM in base64; encode the certificates with base64 once");
    };
    if pem.contains("PRIVATE KEY") {
        return Some("holds a private key; take it out, put only certificates here, and make a new key");
    }
    let mut lines = pem.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut empty = true;
    while let Some(line) = lines.next() {
        if line != CERTIFICATE {
            return Some(if line.starts_with(BEGIN) {
                "holds something that is not a certificate; put only certificates here"
            } else {
                "holds text that is not PEM; put only certificates here"
            });
        }
        let mut body = String::new();
        loop {
            match lines.next() {
                Some(END) => break,
                Some(line) if !line.starts_with('-') => body.push_str(line),
                _ => return Some("holds a certificate without an end; copy the whole of it"),
            }
        }
        // The outermost thing of a certificate is a sequence.
        if decode(&body).is_none_or(|der| der.first() != Some(&0x30)) {
            return Some("holds a certificate that cannot be read; copy the whole of it");
        }
        empty = false;
    }
    empty.then_some("holds no certificate; leave the field out or put one there")
}

/// Base64, as Go reads it: line breaks mean nothing.
fn decode(text: &str) -> Option<Vec<u8>> {
    let unbroken = text.replace(['\r', '\n'], "");
    serde_json::from_value(Value::from(unbroken)).ok().map(|ByteString(bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::{LARGEST, objection};

    const BODY: &str = "MAoCAQECAQICAQMC\nAQQ=";

    fn block(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    fn ask(pem: &str) -> Option<&'static str> {
        let encoded = serde_json::to_value(ByteString(pem.as_bytes().to_vec())).unwrap();
        objection(encoded.as_str().unwrap())
    }

    #[test]
    fn certificates_are_taken() {
        let one = block("CERTIFICATE", BODY);
        assert_eq!(ask(&one), None);
        assert_eq!(ask(&format!("# my authority\n{one}\n\n# another\n{one}")), None);
        assert_eq!(ask(&one.replace('\n', "\r\n")), None);
        assert_eq!(ask(&format!("{one}{}", "#".repeat(LARGEST - one.len()))), None, "as long as can be");
    }

    #[test]
    fn anything_else_is_not() {
        let one = block("CERTIFICATE", BODY);
        for (pem, word) in [
            (String::new(), "no certificate"),
            ("# nothing\n".to_owned(), "no certificate"),
            (format!("{one}{}", block("RSA PRIVATE KEY", BODY)), "private key"),
            (format!("{one}{}", block("ENCRYPTED PRIVATE KEY", BODY)), "private key"),
            (block("X509 CRL", BODY), "not a certificate"),
            (block("TRUSTED CERTIFICATE", BODY), "not a certificate"),
            (format!("hello\n{one}"), "not PEM"),
            (block("CERTIFICATE", ""), "cannot be read"),
            (block("CERTIFICATE", "####"), "cannot be read"),
            (block("CERTIFICATE", "YWJj"), "cannot be read"),
            (block("CERTIFICATE", "not base64"), "cannot be read"),
            (one.replace("-----END CERTIFICATE-----\n", ""), "without an end"),
            (format!("-----BEGIN CERTIFICATE-----\n{one}"), "without an end"),
            (format!("{one}{}", "#".repeat(LARGEST - one.len() + 3)), "too long"),
        ] {
            assert!(ask(&pem).is_some_and(|reported| reported.contains(word)), "{word}: {:?}", ask(&pem));
        }
        assert_eq!(objection(""), Some("holds no certificate; leave the field out or put one there"));
        assert!(objection("%%%").is_some_and(|reported| reported.contains("base64")));
        assert!(
            objection(&one).is_some_and(|reported| reported.contains("base64")),
            "PEM as it is, not encoded"
        );
    }
}

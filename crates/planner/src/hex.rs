//! Bytes as text.

use std::fmt::Write as _;

/// Bytes as hexadecimal digits, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn each_byte_has_two_digits() {
    assert_eq!(hex(&[0, 10, 255]), "000aff");
}

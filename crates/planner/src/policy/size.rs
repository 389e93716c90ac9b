//! A number of bytes, as Kubernetes writes them: `500Gi`, `2T`, `1048576`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes, kept as it was written: one that cannot be read is reported with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Size(String);

const UNITS: [(&str, u64); 10] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
];

impl Size {
    /// How many bytes these are, if it is a size at all.
    pub fn bytes(&self) -> Option<u64> {
        let found = UNITS.iter().find_map(|(unit, factor)| Some((self.0.strip_suffix(unit)?, *factor)));
        let (number, factor) = found.unwrap_or((&self.0, 1));
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(factor)
    }
}

impl From<&str> for Size {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn sizes_are_read_as_kubernetes_writes_them() {
        let read = |text: &str| Size::from(text).bytes();
        assert_eq!(
            [read("0"), read("512"), read("1k"), read("2Ki"), read("500Gi"), read("3T")],
            [Some(0), Some(512), Some(1000), Some(2048), Some(500 << 30), Some(3_000_000_000_000),]
        );
        for odd in ["", "Gi", "-1", "+1", "1.5Gi", "1 Gi", "1gi", "99999999Pi"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}

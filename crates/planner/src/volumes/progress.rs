//! How far the volumes of a backup or restore are, in bytes.

use api::ClaimStatus;

/// Bytes of volume data, as far as Velero knows how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeBytes {
    /// Saved or restored so far.
    pub done: i64,
    /// In all.
    pub total: i64,
}

impl VolumeBytes {
    /// Of all these claims; none while Velero does not know how many bytes there are.
    pub fn of(claims: &[ClaimStatus]) -> Option<Self> {
        let sum = |bytes: fn(&ClaimStatus) -> Option<i64>| claims.iter().filter_map(bytes).sum::<i64>();
        let (done, total) = (sum(|claim| claim.bytes), sum(|claim| claim.total_bytes));
        (total > 0).then_some(Self { done: done.clamp(0, total), total })
    }

    /// For the message of a condition. Whole percents, so that a volume of any size causes at most a hundred writes.
    pub(crate) fn sentence(self) -> String {
        let percent = i128::from(self.done) * 100 / i128::from(self.total.max(1));
        format!("{percent} % of {} of volume data", size(self.total))
    }
}

/// A number of bytes, in the unit that leaves few digits: `12 KiB`, `1.5 GiB`.
pub fn size(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut tenths = i128::from(bytes.max(0)) * 10;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let (whole, rest) = (tenths / 10, tenths % 10);
    let unit = UNITS[unit];
    if rest == 0 || whole >= 10 { format!("{whole} {unit}") } else { format!("{whole}.{rest} {unit}") }
}

#[cfg(test)]
mod tests {
    use api::{ClaimState, ClaimStatus};

    use super::{VolumeBytes, size};

    fn claim(bytes: Option<i64>, total_bytes: Option<i64>) -> ClaimStatus {
        ClaimStatus {
            name: "data".to_owned(),
            state: ClaimState::Waiting,
            bytes,
            total_bytes,
            new_bytes: None,
            message: None,
        }
    }

    #[test]
    fn sizes_have_few_digits() {
        let sizes = [0, 1023, 1024, 1536, 8 << 20, 3 << 29, 5 << 50];
        assert_eq!(sizes.map(size), ["0 B", "1023 B", "1 KiB", "1.5 KiB", "8 MiB", "1.5 GiB", "5120 TiB"]);
    }

    #[test]
    fn bytes_of_all_claims_count_once_velero_knows_them() {
        assert_eq!(VolumeBytes::of(&[]), None);
        assert_eq!(VolumeBytes::of(&[claim(None, None), claim(Some(5), None)]), None);
        let known = VolumeBytes::of(&[claim(Some(512), Some(1024)), claim(None, Some(1024))]).unwrap();
        assert_eq!(known.sentence(), "25 % of 2 KiB of volume data");
        // What comes out of a tenant's bucket may be forged.
        let forged = VolumeBytes::of(&[claim(Some(i64::MAX / 2), Some(10))]).unwrap();
        assert_eq!(forged.sentence(), "100 % of 10 B of volume data");
    }
}

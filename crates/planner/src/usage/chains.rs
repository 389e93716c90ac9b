//! An estimate of how much volume data backups take in storage.
//!
//! Neither a Backup nor a BackupRepository has a size. What Velero reports for each volume of a backup is how many bytes
//! the volume had (`totalBytes`), and since Velero 1.18 how many of them were new or changed (`incrementalBytes`).
//! The uploader stores equal data once, so of the backups of one claim the first counts in full, and each later one with
//! what was new. When the first one is deleted, its data stays as far as the next one needs it: that one counts in full.
//!
//! The estimate does not know compression, what claims have in common, data that waits for the repository's maintenance,
//! the objects themselves, snapshots that stay in the cluster, and increments that Velero does not report.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// One volume in one backup, as far as it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedVolume {
    /// How many bytes the volume had.
    pub total: u64,
    /// How many of them were new.
    pub new: u64,
}

impl SavedVolume {
    /// From what Velero reports. A number below 0 counts as none, and no more can be new than there is.
    pub fn reported(total: i64, new: Option<i64>) -> Self {
        let total = u64::try_from(total).unwrap_or(0);
        Self { total, new: u64::try_from(new.unwrap_or(0)).unwrap_or(0).min(total) }
    }
}

/// Orders the backups of a claim: when the volume was saved, and the name of the object about it.
type At = (Option<Timestamp>, String);

/// The saved volumes of each claim, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    claims: BTreeMap<String, BTreeMap<At, SavedVolume>>,
    bytes: u64,
}

impl Chains {
    /// The bytes of all of them.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Adds a saved volume of a claim.
    pub fn add(&mut self, claim: &str, at: At, volume: SavedVolume) {
        self.change(claim, |chain| _ = chain.insert(at, volume));
    }

    /// Removes a saved volume of a claim.
    pub fn remove(&mut self, claim: &str, at: &At) {
        self.change(claim, |chain| _ = chain.remove(at));
    }

    /// Only the ends of a chain would have to be looked at; a claim has a few dozen backups.
    fn change(&mut self, claim: &str, change: impl FnOnce(&mut BTreeMap<At, SavedVolume>)) {
        let chain = self.claims.entry(claim.to_owned()).or_default();
        let before = length(chain);
        change(chain);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(length(chain));
        if chain.is_empty() {
            self.claims.remove(claim);
        }
    }
}

fn length(chain: &BTreeMap<At, SavedVolume>) -> u64 {
    let mut volumes = chain.values();
    let first = volumes.next().map_or(0, |volume| volume.total);
    volumes.fold(first, |bytes, volume| bytes.saturating_add(volume.new))
}

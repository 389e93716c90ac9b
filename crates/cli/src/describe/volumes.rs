//! Volumes in words.

use api::{
    DataMoverCounts, PodVolumeCounts,
    velero::{BackupStatus, HookStatus},
};

use crate::text::count;

/// How far a data mover is.
pub(super) fn moved(counts: Option<DataMoverCounts>) -> Option<String> {
    let counts = counts.filter(|counts| counts.total > 0)?;
    let DataMoverCounts {
        total,
        new,
        accepted,
        prepared,
        in_progress,
        canceling,
        canceled,
        failed,
        completed,
    } = counts;
    let waiting = new + accepted + prepared;
    let parts = [
        (in_progress, "moving"),
        (waiting, "waiting"),
        (canceling + canceled, "canceled"),
        (failed, "failed"),
    ];
    Some(format!("{completed} of {total} moved into the storage{}", listed(&parts)))
}

/// How far saving or bringing back file by file is.
pub(super) fn files(counts: Option<PodVolumeCounts>) -> Option<String> {
    let counts = counts.filter(|counts| counts.total > 0)?;
    let PodVolumeCounts { total, new, in_progress, failed, completed } = counts;
    let parts = [(in_progress, "under way"), (new, "waiting"), (failed, "failed")];
    Some(format!("{completed} of {total} file by file{}", listed(&parts)))
}

fn listed(parts: &[(u32, &str)]) -> String {
    parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!(", {number} {word}"))
        .collect::<Vec<_>>()
        .concat()
}

/// Snapshots that Velero took.
pub(super) fn snapshots(velero_status: &BackupStatus) -> Option<String> {
    let kinds = [
        (velero_status.volume_snapshots_completed, velero_status.volume_snapshots_attempted, "snapshot"),
        (
            velero_status.csi_volume_snapshots_completed,
            velero_status.csi_volume_snapshots_attempted,
            "CSI snapshot",
        ),
    ];
    let reported: Vec<String> = kinds
        .into_iter()
        .filter_map(|(done, tried, noun)| {
            let tried = tried.filter(|tried| *tried > 0)?;
            Some(format!("{} of {}", done.unwrap_or_default(), count(tried, noun)))
        })
        .collect();
    (!reported.is_empty()).then(|| reported.join(", "))
}

/// Hooks that were run.
pub(super) fn hooks(velero_status: Option<&HookStatus>) -> Option<String> {
    let tried = velero_status?.hooks_attempted.filter(|tried| *tried > 0)?;
    let failed = velero_status?.hooks_failed.unwrap_or_default();
    Some(format!("{} run, {failed} failed", count(tried, "hook")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_read_as_sentences() {
        let counts = DataMoverCounts {
            total: 5,
            completed: 2,
            in_progress: 1,
            new: 1,
            failed: 1,
            ..Default::default()
        };
        assert_eq!(
            moved(Some(counts)).unwrap(),
            "2 of 5 moved into the storage, 1 moving, 1 waiting, 1 failed"
        );
        assert_eq!(moved(Some(DataMoverCounts::default())), None);
        let counts = PodVolumeCounts { total: 2, completed: 2, ..Default::default() };
        assert_eq!(files(Some(counts)).unwrap(), "2 of 2 file by file");
    }
}

//! Volumes in words.

use api::{
    ClaimState, ClaimStatus, DataMoverCounts, PodVolumeCounts,
    velero::{BackupStatus, HookStatus},
};

use jiff::Timestamp;
use planner::volumes::{VolumeBytes, size};

use crate::{progress::RequestProgress, text::count};

/// What became of the data of each claim.
pub(super) fn claims(claims: &[ClaimStatus], not_listed: Option<u32>) -> Vec<String> {
    let told = |claim: &ClaimStatus| {
        let ClaimStatus { name, state, bytes, total_bytes, new_bytes: _, message } = claim;
        let size = match (state, bytes, total_bytes) {
            (ClaimState::Waiting, Some(done), Some(total)) => {
                format!(", {} of {}", size(*done), size(*total))
            }
            (_, Some(done), _) => format!(", {}", size(*done)),
            _ => String::new(),
        };
        let message = message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
        format!("{name}: {}{size}{message}", in_words(*state))
    };
    let more = not_listed.map(|more| format!("and {more} more"));
    claims.iter().map(told).chain(more).collect()
}

fn in_words(state: ClaimState) -> &'static str {
    match state {
        ClaimState::Saved => "saved",
        ClaimState::NotSaved => "NOT saved",
        ClaimState::LeftOut => "left out",
        ClaimState::Restored => "restored",
        ClaimState::Kept => "NOT restored",
        ClaimState::Mixed => "restored over newer files",
        ClaimState::NoData => "NOT restored, no data in the backup",
        ClaimState::Failed => "failed",
        ClaimState::Cancelled => "cancelled",
        ClaimState::Waiting => "waiting",
        ClaimState::Unknown => "unknown",
    }
}

/// How much volume data was saved or restored so far, and how fast since the start; none once it is over.
pub(super) fn bytes(progress: &RequestProgress<'_>, now: Timestamp) -> Option<String> {
    let VolumeBytes { done, total } = progress.volume_bytes()?;
    let seconds = progress.velero.started.map_or(0, |started| now.as_second() - started.as_second());
    let rate = if seconds > 0 { format!(", {}/s", size(done / seconds)) } else { String::new() };
    Some(format!("{} of {}{rate}", size(done), size(total)))
}

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
    fn claims_read_as_sentences() {
        let claim = |state, bytes, message: Option<&str>| ClaimStatus {
            name: "data".to_owned(),
            state,
            bytes,
            total_bytes: Some(9 << 20),
            new_bytes: None,
            message: message.map(str::to_owned),
        };
        let list = [
            claim(ClaimState::Restored, Some(8 << 20), None),
            claim(ClaimState::Kept, None, Some("the claim exists")),
            claim(ClaimState::Waiting, Some(1536), Some("pod \"db\" is gone")),
            claim(ClaimState::Restored, Some(12), None),
        ];
        insta::assert_snapshot!(claims(&list, Some(3)).join("\n"), @r#"
        data: restored, 8 MiB
        data: NOT restored: the claim exists
        data: waiting, 1.5 KiB of 9 MiB: pod "db" is gone
        data: restored, 12 B
        and 3 more
        "#);
    }

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

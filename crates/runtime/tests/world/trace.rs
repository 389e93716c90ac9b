//! A readable log of what happened, with short uids so that it is stable.

use api::{Kind, RestoredFrom};
use planner::{Action, Event, Target};
use serde_json::Value;

/// Kinds whose uids stand in names, by the letter that stands for them in a trace; a NonAdminBackup needs none.
const LETTERS: [(Kind, &str); 6] = [
    (Kind::NonAdminBackup, ""),
    (Kind::NonAdminRestore, "r"),
    (Kind::NonAdminBackupStorageLocation, "l"),
    (Kind::NonAdminDownloadRequest, "d"),
    (Kind::Namespace, "n"),
    (Kind::NonAdminSchedule, "s"),
];
/// What all uids have in the middle: they are version-4 UUIDs in shape.
const MIDDLE: &str = "-0000-4000-8000-";

/// The uid of the n-th object of a kind.
pub(super) fn uid(kind: Kind, birth: u32) -> String {
    format!("{:08x}{MIDDLE}{birth:012}", kind as u32)
}

/// What stands in the name of a Velero Restore for the uid of its namespace, whichever it is; in a trace it is left out.
fn of_namespace() -> String {
    format!("{:08x}-0000-<r", Kind::Namespace as u32)
}

/// Makes every uid short: `shop-daily-<1>`, and for a restore from the administrators' storage `shop-again-p-<r1>`.
pub(crate) fn short(text: &str) -> String {
    shortened(text).replace(&of_namespace(), "-<r")
}

fn shortened(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(MIDDLE) {
        let (start, end) = (at - 8, at + MIDDLE.len() + 12);
        let kind = u32::from_str_radix(&rest[start..at], 16).unwrap();
        let birth: u32 = rest[end - 12..end].parse().unwrap();
        let letter = LETTERS.iter().find(|(known, _)| *known as u32 == kind);
        let letter = letter.map_or_else(|| format!("{kind}:"), |(_, letter)| (*letter).to_owned());
        out = format!("{out}{}<{letter}{birth}>", &rest[..start]);
        rest = &rest[end..];
    }
    out + rest
}

/// And back: `<1>` is the uid of the first NonAdminBackup, `<r1>` of the first NonAdminRestore.
pub(crate) fn long(text: &str) -> String {
    let restores = RestoredFrom::ALL.map(RestoredFrom::letter);
    lengthened(&restores.iter().fold(text.to_owned(), |text, letter| {
        text.replace(&format!("-{letter}-<r"), &format!("-{letter}{}", of_namespace()))
    }))
}

fn lengthened(text: &str) -> String {
    let Some((before, rest)) = text.split_once('<') else {
        return text.to_owned();
    };
    let (inside, after) = rest.split_once('>').expect("a closing bracket");
    let digits = inside.trim_start_matches(char::is_alphabetic);
    let letter = &inside[..inside.len() - digits.len()];
    let (kind, _) = LETTERS.iter().find(|(_, known)| *known == letter).expect("a letter of a kind");
    format!("{before}{}{}", uid(*kind, digits.parse().unwrap()), lengthened(after))
}

/// One write. Of a status, what it is afterwards.
pub(super) fn shown_action(action: &Action, status: &Value) -> String {
    let line = match action {
        Action::AddFinalizer(target, _) => format!("hold {}", named(target)),
        Action::RemoveFinalizer(target, _) => format!("release {}", named(target)),
        Action::Create(object) | Action::Apply(object) => {
            format!("create {} {}/{}", object.kind.name(), object.namespace(), object.name())
        }
        Action::Patch(target, change) => format!("patch {} {change}", named(target)),
        Action::PatchStatus(target, _) => format!("status {}{}", named(target), shown_status(status)),
        Action::Delete(target) | Action::DeleteUnchanged(target) => format!("delete {}", named(target)),
    };
    short(&line)
}

pub(super) fn shown_event(event: &Event) -> String {
    let type_ = if event.warning { "Warning" } else { "Normal" };
    short(&format!("event {type_} {}: {}", event.reason, event.note))
}

fn named(target: &Target) -> String {
    format!("{} {}/{}", target.kind.name(), target.namespace, target.name)
}

fn shown_status(status: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut shown = vec![text(&status["phase"])];
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let type_ = text(&condition["type"]);
        // Said of every backup and restore without volumes: stories about volumes ask for it.
        if ["StillRunning", "NoClaims", "NoVolumes"].contains(&text(&condition["reason"]).as_str()) {
            continue;
        }
        let said = format!("{type_}={}/{}", text(&condition["status"]), text(&condition["reason"]));
        // Acceptance is not printed, and a refusal is in an Event as well.
        let words = matches!(type_.as_str(), "Deleting" | "SpecApplied");
        shown.push(if words { format!("{said}({})", text(&condition["message"])) } else { said });
    }
    if let Some(position) = status["queueInfo"]["estimatedQueuePosition"].as_i64() {
        shown.push(format!("queue={position}"));
    }
    for velero in [&status["veleroBackup"]["status"], &status["veleroRestore"]["status"]] {
        if let Some(phase) = velero["phase"].as_str() {
            shown.push(format!("velero={phase}"));
        }
        let progress = &velero["progress"];
        if let Some(total) = progress["totalItems"].as_i64() {
            let done = progress["itemsBackedUp"].as_i64().or_else(|| progress["itemsRestored"].as_i64());
            shown.push(format!("{}/{total}", done.unwrap_or_default()));
        }
    }
    let request = &status["veleroDeleteBackupRequest"];
    if request.is_object() {
        let said = request["status"]["errors"].as_array().map(|errors| format!("({})", text(&errors[0])));
        let phase = request["status"]["phase"].as_str().unwrap_or("unseen");
        shown.push(format!("request={phase}{}", said.unwrap_or_default()));
    }
    for volumes in [
        "fileSystemPodVolumeBackups",
        "dataMoverDataUploads",
        "fileSystemPodVolumeRestores",
        "dataMoverDataDownloads",
    ] {
        if status[volumes].is_object() {
            shown.push(format!("{volumes}={}", status[volumes]));
        }
    }
    format!(" {}", shown.join(" "))
}

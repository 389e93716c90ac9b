//! What of a tenant's storage Velero wanted to import, and the API server refused (`admission::fence`). Admission asks nobody,
//! and Velero only logs it. So nacre reads Velero's log, and the location says which backups are missing and why.

use std::collections::BTreeMap;

use kube::ResourceExt;

use crate::admission;
use crate::results::log::Line;
use crate::state::imports::MOST;

/// What Velero logs of a backup, and of a volume in one, that it could not import.
const MESSAGES: [&str; 2] =
    ["Error syncing backup into cluster", "Error syncing pod volume backup into cluster"];
/// The policies whose refusals are shown.
const POLICIES: [&str; 2] = ["nacre-tenant-backups", "nacre-tenant-volumes"];
/// What the API server writes before the message of a policy.
const DENIED: &str = " denied request: ";
/// The longest name of an object.
const LONGEST_NAME: usize = 253;
/// So many are named.
const NAMED: usize = 3;

/// One import that was refused, as Velero logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedImport {
    /// The BackupStorageLocation.
    pub location: String,
    /// The name of the backup: what the owner of the bucket has called its folder.
    pub backup: String,
    /// The demand of the policy that it did not meet.
    pub why: String,
}

/// Finds refused imports in Velero's log.
pub struct Reader(Vec<String>);

impl Reader {
    /// For Velero in this namespace.
    pub fn new(admin_namespace: &str) -> Self {
        let policies = admission::policies(admin_namespace).into_iter();
        let policies = policies.filter(|policy| POLICIES.contains(&policy.name_any().as_str()));
        let demands = policies.filter_map(|policy| policy.spec?.validations).flatten();
        Self(demands.filter_map(|demand| demand.message).collect())
    }

    /// Reads a line. The owner of the bucket chose the name of the backup, and the API server's message quotes more of what is
    /// in it: so only a name that an object can have, and only messages of nacre's policies are taken.
    pub fn read(&self, line: &str) -> Option<RefusedImport> {
        // Most lines are about something else, and need not be taken apart.
        if !MESSAGES.iter().any(|message| line.contains(message)) {
            return None;
        }
        let line =
            Line::parse(line).filter(|line| line.get("msg").is_some_and(|of| MESSAGES.contains(&of)))?;
        let location = line.get("backupLocation")?;
        let location = location.rsplit_once('/').map_or(location, |(_, name)| name);
        let backup = line.get("backup").filter(|name| is_name(name))?;
        let (_, said) = line.get("error").or_else(|| line.get("error.message"))?.split_once(DENIED)?;
        let why = self.0.iter().find(|demand| demand.as_str() == said)?;
        Some(RefusedImport { location: location.to_owned(), backup: backup.to_owned(), why: why.clone() })
    }
}

fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// The condition about it, as a message; none if nothing is missing.
pub(crate) fn message(refused: &BTreeMap<String, String>) -> Option<String> {
    let (_, first) = refused.first_key_value()?;
    let named: Vec<_> = refused.keys().take(NAMED).map(|name| format!("{name:?}")).collect();
    let number = if refused.len() >= MOST { format!("at least {MOST}") } else { refused.len().to_string() };
    let more = if refused.len() > NAMED { " and others" } else { "" };
    let (backups, requests, of) = if refused.len() == 1 {
        ("backup", "a request", "")
    } else {
        ("backups", "requests", "of the first: ")
    };
    Some(format!(
        "{number} {backups} in this storage cannot be used, and did not become {requests}: {}{more}; {of}{first}. \
         Backups that nacre made for this namespace are not affected",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{MOST, Reader, RefusedImport, message};

    /// As Velero 1.18.3 logged it.
    const LINE: &str = r#"time="2026-11-19T21:00:00Z" level=error msg="Error syncing backup into cluster" backup=nightly-2030 backupLocation=velero/shop-own-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f controller=backup-sync error="backups.velero.io \"nightly-2030\" is forbidden: ValidatingAdmissionPolicy 'nacre-tenant-backups' with binding 'nacre-tenant-backups' denied request: a backup that was found in a tenant's storage is never run" error.file="/go/src/velero/pkg/controller/backup_sync_controller.go:220" logSource="pkg/controller/backup_sync_controller.go:220""#;

    #[test]
    fn a_refused_import_is_read_from_veleros_log() {
        let reader = Reader::new("velero");
        let read = reader.read(LINE).unwrap();
        let expected = RefusedImport {
            location: "shop-own-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f".into(),
            backup: "nightly-2030".into(),
            why: "a backup that was found in a tenant's storage is never run".into(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn whatever_else_a_line_says_is_not_shown() {
        let reader = Reader::new("velero");
        for (from, to) in [
            ("Error syncing backup into cluster", "Attempting to sync backup"),
            (
                "level=error msg=\"Error syncing backup into cluster\"",
                "level=error msg=x text=\"Error syncing backup into cluster\"",
            ),
            ("backup=nightly-2030", "backup=\"Call 555\""),
            ("backup=nightly-2030", "backup=\"\""),
            ("found in a tenant's storage is never run", "found in V's storage"),
            ("denied request: ", "said: "),
            ("backupLocation", "location"),
        ] {
            let line = LINE.replace(from, to);
            assert_ne!(line, LINE, "{from}");
            assert_eq!(reader.read(&line), None, "{line}");
        }
        assert_eq!(reader.read(&LINE.replace("nightly-2030", &"x".repeat(254))), None);
    }

    #[test]
    fn the_message_names_a_few_and_says_why() {
        let refused = |many: usize| -> BTreeMap<String, String> {
            (0..many).map(|number| (format!("old-{number:02}"), "it is never run".to_owned())).collect()
        };
        assert_eq!(message(&refused(0)), None);
        let one = message(&refused(1)).unwrap();
        assert_eq!(
            one,
            "1 backup in this storage cannot be used, and did not become a request: \"old-00\"; it is never run. \
             Backups that nacre made for this namespace are not affected"
        );
        let many = message(&refused(MOST)).unwrap();
        assert_eq!(
            many,
            "at least 20 backups in this storage cannot be used, and did not become requests: \"old-00\", \"old-01\", \"old-02\" \
             and others; of the first: it is never run. Backups that nacre made for this namespace are not affected"
        );
    }
}

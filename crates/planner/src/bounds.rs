//! Upper bounds of what a spec may ask for, where the policy sets none of its own: no duration and no count is open.
//!
//! The bounds are far above what an honest request needs. An administrator who needs more sets the value in the policy,
//! as a default or enforced.

use api::Duration;

use crate::Refusal;

/// The longest a backup is kept: ten years.
pub(crate) const TTL: &str = "87600h";
/// The longest Velero waits for one snapshot.
pub(crate) const SNAPSHOT: &str = "24h";
/// The longest Velero waits for the volumes of one backup or restore.
pub(crate) const ITEM_OPERATION: &str = "168h";
/// The most files that are moved at a time.
pub(crate) const PARALLEL_FILES: i64 = 128;
/// The most hooks of one request, and the most commands of one hook: Velero's worker waits for each.
pub(crate) const HOOKS: usize = 32;

/// Refuses a duration above its bound, unless the administrators set that very value.
pub(crate) fn duration(
    field: impl Into<String>,
    asked: Option<&Duration>,
    longest: &str,
    set: &[Option<&Duration>],
) -> Option<Refusal> {
    let asked = asked.filter(|asked| !set.contains(&Some(*asked)))?;
    let over = asked.nanos()? > Duration::from(longest).nanos()?;
    over.then(|| {
        Refusal::new(field, format!("{asked} is longer than nacre allows; ask for {longest} or less"))
    })
}

/// Refuses a number outside of one to its bound, unless the administrators set that very value.
pub(crate) fn number(
    field: impl Into<String>,
    asked: Option<i64>,
    most: i64,
    set: &[Option<i64>],
) -> Option<Refusal> {
    let asked = asked.filter(|asked| !set.contains(&Some(*asked)))?;
    // Velero takes 0 for its own choice.
    (!(0..=most).contains(&asked))
        .then(|| Refusal::new(field, format!("{asked} is not a number nacre allows; ask for {most} or less")))
}

/// Refuses too many of something.
pub(crate) fn count(field: impl Into<String>, found: usize, most: usize) -> Option<Refusal> {
    (found > most).then(|| Refusal::new(field, format!("{found} are too many; ask for {most} or fewer")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Policy, backup, restore};

    fn backup(spec: &Value, policy: &Policy) -> String {
        let spec = serde_json::from_value(spec.clone()).unwrap();
        backup::check_spec(&spec, "shop", policy).map(|refusal| refusal.to_string()).unwrap_or_default()
    }

    fn restore(mut spec: Value, policy: &Policy) -> String {
        spec["backupName"] = json!("daily");
        let spec = serde_json::from_value(spec).unwrap();
        restore::check_spec(&spec, "shop", policy).map(|refusal| refusal.to_string()).unwrap_or_default()
    }

    fn hooks(number: usize, commands: usize) -> Value {
        let exec = json!({"exec": {"command": ["/bin/true"]}});
        let hook = json!({"name": "h", "pre": vec![exec; commands]});
        json!({"hooks": {"resources": vec![hook; number]}})
    }

    #[test]
    fn b7_every_duration_and_count_of_a_spec_has_a_bound() {
        let policy = Policy::default();
        for (asked, field, bound) in [
            (json!({"ttl": "876000h"}), "ttl", "87600h or less"),
            (json!({"csiSnapshotTimeout": "25h"}), "csiSnapshotTimeout", "24h or less"),
            (json!({"itemOperationTimeout": "999h"}), "itemOperationTimeout", "168h or less"),
            (
                json!({"uploaderConfig": {"parallelFilesUpload": 1_000_000}}),
                "parallelFilesUpload",
                "128 or less",
            ),
            (json!({"uploaderConfig": {"parallelFilesUpload": -1}}), "parallelFilesUpload", "128 or less"),
            (json!({"datamover": "theirs"}), "datamover", "leave the field out"),
            (hooks(33, 1), "hooks.resources", "32 or fewer"),
            (hooks(1, 33), "hooks.resources", "32 or fewer"),
        ] {
            let refused = backup(&asked, &policy);
            assert!(refused.contains(field) && refused.contains(bound), "{asked}: {refused}");
        }
        for (asked, field) in [
            (json!({"itemOperationTimeout": "999h"}), "itemOperationTimeout"),
            (json!({"uploaderConfig": {"parallelFilesDownload": 129}}), "parallelFilesDownload"),
        ] {
            assert!(restore(asked.clone(), &policy).contains(field), "{asked}");
        }
        for fine in [
            json!({"ttl": "8760h", "csiSnapshotTimeout": "24h", "itemOperationTimeout": "168h"}),
            json!({"uploaderConfig": {"parallelFilesUpload": 128}, "datamover": "velero"}),
            hooks(32, 32),
        ] {
            assert_eq!(backup(&fine, &policy), "", "{fine}");
        }
    }

    /// With the bound lifted by an administrator the same request passes.
    #[test]
    fn b7_what_the_administrators_set_is_no_tenants_excess() {
        let mut policy = Policy::default();
        let wide = json!({"itemOperationTimeout": "999h", "datamover": "theirs", "csiSnapshotTimeout": "48h",
            "uploaderConfig": {"parallelFilesUpload": 1000}});
        policy.backup.defaults = serde_json::from_value(wide.clone()).unwrap();
        assert_eq!(backup(&wide, &policy), "");
        policy.backup.ttl.max = Some("876000h".into());
        assert_eq!(backup(&json!({"ttl": "100000h"}), &policy), "");
    }
}

use api::condition::{self, Finding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{BACKUP, Frees, HealedBy, RESTORE, Refusal, StartsWhen, healed_by};
use crate::policy::AtLimit;

fn condition(type_: &'static str, reason: &'static str, message: &str) -> Condition {
    let mut conditions = Vec::new();
    let finding = Finding { type_, status: false.into(), reason, message };
    condition::set(&mut conditions, finding, None, jiff::Timestamp::UNIX_EPOCH);
    conditions.remove(0)
}

#[test]
fn what_heals_a_refusal_is_read_back_from_its_condition() {
    let mut refusals = vec![
        Refusal::new("spec.backupSpec.ttl", "too long; ask for less"),
        Refusal::new(
            "spec.backupSpec.ttl",
            "\"; the backup starts when it is\" is not a duration; write 72h",
        ),
        Refusal::new("spec.backupSpec.ttl", "the backup starts when it is").together(),
        Refusal::goes_on("spec.x", "there is no Secret; create it"),
        Refusal::over_limit("metadata.namespace", "this namespace has 3"),
        Refusal::at_limit("metadata.namespace", "this namespace has 3", Frees::End, AtLimit::Wait),
        Refusal::at_limit("metadata.namespace", "this namespace has 3", Frees::NextDay, AtLimit::Wait),
        Refusal::at_limit("metadata.namespace", "this namespace has 3", Frees::Deletion, AtLimit::Refuse),
        Refusal::at_limit("metadata.namespace", "this namespace has 3", Frees::End, AtLimit::Refuse),
        Refusal::at_limit("metadata.namespace", "this namespace has 3", Frees::NextDay, AtLimit::Refuse),
    ];
    for when in StartsWhen::ALL {
        refusals.push(Refusal::until("spec.x", "it is not there", BACKUP, when));
        refusals.push(Refusal::until("spec.x", "it is not there", RESTORE, when).together());
    }
    let reasons =
        [condition::INVALID_BACKUP_SPEC, condition::INVALID_RESTORE_SPEC, condition::BSL_SPEC_VALIDATION];
    for refusal in refusals {
        for reason in reasons {
            let reported = condition(condition::ACCEPTED, reason, &refusal.condition_message());
            assert_eq!(healed_by(&reported), Some(refusal.healed_by()), "{refusal}");
        }
    }
}

#[test]
fn where_the_reason_decides_the_message_does_not_matter() {
    let says = |type_, reason| healed_by(&condition(type_, reason, "any; the backup starts when it is"));
    assert_eq!(says(condition::ACCEPTED, condition::NAMESPACE_LIMIT_REACHED), Some(HealedBy::Limit));
    assert_eq!(says(condition::ACCEPTED, condition::POLICY_UNAVAILABLE), Some(HealedBy::OtherObject));
    assert_eq!(says(condition::ACCEPTED, condition::HAND_OVER_FAILED), Some(HealedBy::Retry));
    assert_eq!(says(condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED), Some(HealedBy::Retry));
    assert_eq!(says(condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR), Some(HealedBy::Retry));
    assert_eq!(says(condition::CLUSTER_ADMIN_APPROVED, condition::BSL_SPEC_REJECTED), Some(HealedBy::Spec));
    assert_eq!(says(condition::ACCEPTED, condition::VELERO_BACKUP_NOT_FOUND), None);
    assert_eq!(says(condition::ACCEPTED, condition::VELERO_RESTORE_NOT_FOUND), None);
    let accepted = Condition { status: "True".to_owned(), ..condition(condition::ACCEPTED, "x", "") };
    assert_eq!(healed_by(&accepted), None);
}

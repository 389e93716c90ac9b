//! Expiry of grants. The time is an annotation of the binding.

use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef};
use kube::core::ObjectMeta;

use super::{
    grant::{EXPIRES, GRANT},
    roles::MIGRATE,
};
use planner::plan::{Action, Event, Plan, Target};

/// A grant came to its end.
pub const GRANT_EXPIRED: &str = "GrantExpired";
/// A grant whose expiry annotation cannot be parsed.
pub const GRANT_UNREADABLE: &str = "GrantExpiryUnreadable";

/// Maximum requeue delay, since clocks can be changed.
const LOOK_AGAIN: Duration = Duration::from_hours(1);

/// Decides which grants are over, and when the next one is. `bindings` may hold others: only nacre's grants are looked at.
pub fn decide(cluster: &[ClusterRoleBinding], namespaced: &[RoleBinding], now: Timestamp) -> Plan {
    let everywhere =
        cluster.iter().map(|binding| (Kind::ClusterRoleBinding, &binding.metadata, &binding.role_ref));
    let somewhere =
        namespaced.iter().map(|binding| (Kind::RoleBinding, &binding.metadata, &binding.role_ref));
    everywhere
        .chain(somewhere)
        .fold(Plan::done(), |plan, (kind, metadata, role)| judge(plan, kind, metadata, role, now))
}

fn judge(plan: Plan, kind: Kind, metadata: &ObjectMeta, role: &RoleRef, now: Timestamp) -> Plan {
    let ours = metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(GRANT));
    let end = metadata.annotations.as_ref().and_then(|annotations| annotations.get(EXPIRES));
    let Some(end) = end.filter(|_| ours && role.name == MIGRATE && metadata.deletion_timestamp.is_none())
    else {
        return plan;
    };
    let place = metadata.namespace.as_deref().map_or(String::new(), |namespace| format!("{namespace}/"));
    let name = format!("{place}{}", metadata.name.as_deref().unwrap_or_default());
    match end.parse::<Timestamp>() {
        Err(_) => {
            let note =
                format!("{name} ends at {end:?}, which is not a time as RFC 3339 writes it; it is kept");
            plan.with_event(Event::warning(GRANT_UNREADABLE, note)).requeue_after(LOOK_AGAIN)
        }
        // Extended a moment ago? Then it is not the grant that was judged, and it stays.
        Ok(end) if end <= now => plan
            .then(Action::DeleteUnchanged(Target::of(kind, metadata)))
            .with_event(Event::normal(GRANT_EXPIRED, format!("{name} ended at {end}"))),
        Ok(end) => plan.requeue_after(end.duration_since(now).unsigned_abs().min(LOOK_AGAIN)),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use kube::ResourceExt;

    use super::*;
    use crate::fixtures::{bound, bound_everywhere};

    const NOON: Timestamp = Timestamp::UNIX_EPOCH;

    fn grant(name: &str, end: &str) -> RoleBinding {
        let mut binding = bound("shop", name, MIGRATE, &["user:ann"]);
        binding.labels_mut().insert(GRANT.to_owned(), "true".to_owned());
        binding.annotations_mut().insert(EXPIRES.to_owned(), end.to_owned());
        binding
    }

    fn deleted(plan: &Plan) -> Vec<&str> {
        plan.actions
            .iter()
            .map(|action| match action {
                Action::DeleteUnchanged(target) => target.name.as_str(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_is_over_goes_and_the_next_end_is_awaited() {
        let later = (NOON + 90.seconds()).to_string();
        let grants = [
            grant("over", "1969-12-31T23:59:59Z"),
            grant("now", "1970-01-01T00:00:00Z"),
            grant("later", &later),
        ];
        let plan = decide(&[], &grants, NOON);
        assert_eq!(deleted(&plan), ["over", "now"]);
        assert_eq!(plan.delay(), Some(Duration::from_secs(90)));
    }

    #[test]
    fn however_long_nobody_looked_it_is_over() {
        let plan = decide(&[], &[grant("old", "1969-01-01T00:00:00Z")], NOON + 87_600.hours());
        assert_eq!(deleted(&plan), ["old"]);
    }

    #[test]
    fn other_zones_are_understood_and_nonsense_is_told_and_kept() {
        assert_eq!(deleted(&decide(&[], &[grant("zone", "1970-01-01T01:59:59+02:00")], NOON)), ["zone"]);
        let plan = decide(&[], &[grant("odd", "tomorrow")], NOON);
        assert!(plan.actions.is_empty());
        assert_eq!(plan.events[0].reason, GRANT_UNREADABLE);
    }

    #[test]
    fn nobody_elses_binding_is_deleted_whatever_it_is_annotated_with() {
        let mut unmarked = grant("unmarked", "1969-01-01T00:00:00Z");
        unmarked.labels_mut().clear();
        let mut other = grant("other", "1969-01-01T00:00:00Z");
        other.role_ref.name = "view".to_owned();
        let cluster = bound_everywhere("permanent", MIGRATE, &["user:ann"]);
        assert_eq!(decide(&[cluster], &[unmarked, other], NOON), Plan::done());
    }
}

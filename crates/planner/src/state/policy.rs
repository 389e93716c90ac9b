//! The policy in force, read again whenever one of its sources changes.

use std::sync::Arc;

use api::Kind;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;

use super::State;
use crate::location::endpoint::HostPattern;
use crate::policy::{self, InForce, LastPolicy, Policies, Problem, Reading, Readings, Vanished};
use crate::requester::extra;
use crate::turns::LEDGER;
use crate::view::Seen;
use crate::{Action, Key, Policy, affected};

impl State {
    /// Sets the API server's host names. Invalid host names are left out.
    pub fn set_api_server(&mut self, hosts: &[String]) {
        self.api_server = hosts.iter().filter_map(|host| host.parse::<HostPattern>().ok()).collect();
    }

    /// Everything was listed once: the policy can be read, and is read again from now on whenever a source changes.
    /// Until then there is none, and nothing should be decided. A source that vanished while nacre was down, or not
    /// long before, is in force as long as if nacre had been there.
    pub fn read_policy(&mut self) {
        self.policy_known = true;
        self.last_policy = LastPolicy::read(self.policy_copy().as_deref());
        self.load_policy();
    }

    /// Sets the policy of every namespace, in place of what the sources say: for whoever has no sources.
    pub fn set_policy(&mut self, policy: Option<Arc<Policy>>) {
        self.policies = policy.map(Policies::from);
        self.review_all();
        self.note_turns_again(None);
    }

    /// Drops a policy that vanished and whose time is over. Returns the requests that this affects.
    pub fn end_vanished_policy(&mut self) -> Vec<Key> {
        if self.policy_vanished.iter().all(|vanished| self.now < vanished.until) {
            return Vec::new();
        }
        self.reload_policy()
    }

    /// Takes whether the API server holds pods of tenants' restores to Pod Security level baseline. Returns the requests
    /// that this affects.
    pub fn set_pods_are_fenced(&mut self, are_fenced: bool) -> Vec<Key> {
        if self.pods_are_fenced == are_fenced {
            return Vec::new();
        }
        self.pods_are_fenced = are_fenced;
        self.reload_policy()
    }

    /// Takes that Velero is for tenants alone. It is so for as long as the process runs.
    pub fn set_dedicated(&mut self, dedicated: bool) {
        self.dedicated = dedicated;
    }

    /// Reads the policy again, and returns the requests that depend on it.
    fn reload_policy(&mut self) -> Vec<Key> {
        self.load_policy();
        let (kind, gone) = (Kind::DataProtectionApplication, ObjectMeta::default());
        let mut keys = affected::application(self, None, None);
        keys.extend(crate::velero_view::affected(self, kind, Some(&gone), None, &keys));
        keys
    }

    /// The problems of the policy as last loaded.
    pub fn policy_problems(&self) -> &[Problem] {
        &self.policy_problems
    }

    /// How often the policy was read: whoever reports it compares this.
    pub fn policy_reads(&self) -> u64 {
        self.policy_reads
    }

    /// Which sources of the policy vanished and are in force all the same.
    pub fn policy_vanished(&self) -> &[Vanished] {
        &self.policy_vanished
    }

    /// The write that makes the policy in force survive a restart, if one is needed.
    pub fn policy_copy_write(&self) -> Option<Action> {
        if !self.policy_known {
            return None;
        }
        self.last_policy.write(&self.admin_namespace, self.policy_copy().as_deref())
    }

    /// The write that has the extra fields of users recorded that the policy lists, if one is needed.
    pub fn requester_extra_write(&self) -> Option<Action> {
        let policies = self.policies.as_ref().filter(|_| self.policy_known)?;
        extra::write(policies.base(), &self.admin_namespace, self.requester_extra_map().as_deref())
    }

    /// Which extra fields of users the API server's policies want recorded, by their keys.
    pub fn requester_extra(&self) -> Vec<String> {
        extra::listed(self.requester_extra_map().as_deref())
    }

    fn requester_extra_map(&self) -> Option<Arc<ConfigMap>> {
        self.admin(extra::LIST)
    }

    fn policy_copy(&self) -> Option<Arc<ConfigMap>> {
        self.admin(policy::IN_FORCE)
    }

    pub(super) fn index_config_map(&mut self, before: Option<&ConfigMap>, after: Option<&ConfigMap>) {
        if let Some(map) = after {
            self.read_usage_record(map);
        }
        let name = after.or(before).and_then(|map| map.metadata.name.as_deref());
        if name == Some(policy::CONFIG_MAP) {
            self.load_policy();
        } else if let Some(map) = after.filter(|_| name == Some(LEDGER)) {
            self.read_ledger(map);
        }
    }

    pub(super) fn index_application<K>(&mut self, _: Option<&K>, _: Option<&K>) {
        self.load_policy();
    }

    fn load_policy(&mut self) {
        if !self.policy_known {
            return;
        }
        let reading = |seen: Seen<ConfigMap>| match seen.unreadable {
            Some(why) => Reading::Unreadable(why.to_string()),
            None => Reading::Found(seen.object),
        };
        let map = self.config_maps.get(&self.admin_namespace, policy::CONFIG_MAP);
        let odd = self.applications.all().find_map(|seen| seen.unreadable);
        let applications = match odd {
            Some(why) => Reading::Unreadable(why.to_string()),
            None if self.applications.is_empty() => Reading::Absent,
            None => Reading::Found(self.applications.all().map(|seen| seen.object).collect()),
        };
        let readings = Readings { config_map: map.map_or(Reading::Absent, reading), applications };
        let InForce { loaded, last, vanished, .. } =
            policy::in_force(self.policies.as_ref(), &self.last_policy, &readings, self.now);
        let as_seen = |policies: Policies| {
            let policies = policies.sparing(&self.api_server).with_fenced_pods(self.pods_are_fenced);
            if self.dedicated { policies.without_roles() } else { policies }
        };
        self.policies = loaded.policies.map(as_seen);
        self.policy_problems = loaded.problems;
        self.last_policy = last;
        self.policy_vanished = vanished;
        self.policy_reads += 1;
        self.review_all();
        self.note_turns_again(None);
    }

    /// Notes which namespaces show the Velero view.
    fn review_all(&mut self) {
        let spaces = self.namespaces.all().filter_map(|seen| seen.object.metadata.name.clone());
        for name in spaces.collect::<Vec<_>>() {
            self.review(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::super::{Moment, RawObject, Update};
    use super::*;
    use crate::location::check_spec;

    fn start() -> Moment {
        Moment { clock: "2026-11-16T12:00:00Z".parse().unwrap(), uptime: Duration::ZERO }
    }

    /// A ConfigMap as the watch reports it; without data it is gone.
    fn map(state: &mut State, name: &str, version: u64, data: Option<&serde_json::Value>) {
        let gone = data.is_none();
        let text = json!({"metadata": {"name": name, "namespace": "velero", "uid": name,
            "resourceVersion": version.to_string()}, "data": data});
        let object = RawObject::new(&text.to_string());
        let update = if gone { Update::ObservedGone(&object) } else { Update::Observed(&object) };
        state.update(Kind::ConfigMap, update, start());
    }

    fn asks_for_approval(state: &State) -> bool {
        state.policy("shop").unwrap().storage_locations.require_approval
    }

    fn approval() -> serde_json::Value {
        json!({"policy.yaml": "storageLocations: {requireApproval: true}"})
    }

    fn end_vanished_at(state: &mut State, now: Timestamp) {
        state.set_now(now);
        state.end_vanished_policy();
    }

    #[test]
    fn a_policy_that_vanishes_is_in_force_for_ten_minutes() {
        let mut state = State::new("velero");
        map(&mut state, policy::CONFIG_MAP, 1, Some(&approval()));
        state.read_policy();
        assert!(asks_for_approval(&state));
        map(&mut state, policy::CONFIG_MAP, 2, None);
        assert!(asks_for_approval(&state), "gone for no time");
        let until = state.policy_vanished()[0].until;
        assert_eq!(until, start().clock + SignedDuration::from_mins(10));
        end_vanished_at(&mut state, until - SignedDuration::from_secs(1));
        assert!(asks_for_approval(&state));
        end_vanished_at(&mut state, until);
        assert!(!asks_for_approval(&state) && state.policy_vanished().is_empty());
    }

    #[test]
    fn whoever_starts_while_it_is_gone_goes_by_the_copy() {
        let mut state = State::new("velero");
        map(&mut state, policy::CONFIG_MAP, 1, Some(&approval()));
        assert_eq!(state.policy_copy_write(), None, "nothing is known yet");
        state.read_policy();
        let Some(Action::Create(copy)) = state.policy_copy_write() else { panic!("no copy") };

        let mut next = State::new("velero");
        map(&mut next, policy::IN_FORCE, 3, Some(&copy.body["data"]));
        next.read_policy();
        assert!(asks_for_approval(&next));
        assert!(matches!(next.policy_copy_write(), Some(Action::Patch(..))), "since when it is gone");
    }

    #[test]
    fn the_extra_fields_of_users_that_are_recorded_follow_the_policy() {
        let mut state = State::new("velero");
        let listing = |keys: &str| json!({ "policy.yaml": format!("requester: {{extra: [{keys}]}}") });
        map(&mut state, policy::CONFIG_MAP, 1, Some(&listing("b, a")));
        assert_eq!(state.requester_extra_write(), None, "nothing is known yet");
        state.read_policy();
        let Some(Action::Create(list)) = state.requester_extra_write() else { panic!("no list") };
        assert_eq!(state.requester_extra(), Vec::<String>::new(), "the API server knows of none yet");
        map(&mut state, extra::LIST, 2, Some(&list.body["data"]));
        assert_eq!(
            (state.requester_extra_write(), state.requester_extra().join(" ")),
            (None, "a b".to_owned())
        );
        map(&mut state, policy::CONFIG_MAP, 3, Some(&listing("a")));
        assert!(matches!(state.requester_extra_write(), Some(Action::Patch(..))));
        // What cannot be read changes nothing.
        map(&mut state, policy::CONFIG_MAP, 4, Some(&json!({"policy.yaml": "nonsense: ["})));
        map(&mut state, extra::LIST, 5, Some(&json!({"extra": "a"})));
        assert_eq!(state.requester_extra_write(), None);
        map(&mut state, extra::LIST, 6, None);
        assert!(matches!(state.requester_extra_write(), Some(Action::Create(..))), "it comes back");
    }

    #[test]
    fn whether_pods_come_back_from_tenants_storage_follows_the_fence() {
        let come_back =
            |state: &State| state.policy("shop").unwrap().restore.from_tenant_storage.pods_come_back();
        let mut state = State::new("velero");
        state.read_policy();
        assert!(!come_back(&state));
        state.set_pods_are_fenced(true);
        assert!(come_back(&state));
        // A policy that is read later, or cannot be read, changes nothing about it.
        map(&mut state, policy::CONFIG_MAP, 1, Some(&json!({"policy.yaml": "restore: {hooks: forbid}"})));
        assert!(come_back(&state));
        map(&mut state, policy::CONFIG_MAP, 2, Some(&json!({"policy.yaml": "nonsense: ["})));
        assert!(come_back(&state));
        state.set_pods_are_fenced(false);
        assert!(!come_back(&state));
    }

    #[test]
    fn nobody_may_send_velero_to_where_the_api_server_is() {
        let mut state = State::new("velero");
        state.set_api_server(&[
            "10.96.0.1".to_owned(),
            "api.example.com".to_owned(),
            "not a host".to_owned(),
        ]);
        state.read_policy();
        let policy = state.policy("shop").unwrap();
        let refused = |url: &str| {
            let spec = json!({"provider": "aws", "objectStorage": {"bucket": "backups"}, "config": {"region": "eu-west-1", "s3Url": url},
                "credential": {"name": "keys", "key": "cloud"}});
            check_spec(&serde_json::from_value(spec).unwrap(), "shop", &policy.storage_locations)
        };
        // Whatever else listens there is for nobody either: another port is the same host.
        for url in [
            "https://10.96.0.1",
            "https://10.96.0.1:9000",
            "https://api.example.com:6443",
            "http://[::ffff:10.96.0.1]",
        ] {
            let reported = refused(url).unwrap().message;
            assert!(reported.contains("is the host of the cluster's API server"), "{url}: {reported}");
        }
        assert_eq!(refused("https://198.51.100.2"), None);
    }
}

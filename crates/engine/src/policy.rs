//! Which policy holds, read anew whenever one of its sources changes.

use std::sync::Arc;

use api::Kind;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use planner::location::endpoint::HostPattern;
use planner::policy::{self, InForce, LastPolicy, Problem, Reading, Readings, Vanished};
use planner::view::Seen;
use planner::{Action, Key, concern, copies};
use tracing::{info, warn};

use crate::cluster::{Cluster, State};

impl Cluster {
    /// Takes the hosts by which the API server is reached. What cannot be a host is left out: nobody could name it.
    pub fn reached_at(&self, hosts: &[String]) {
        let hosts: Vec<HostPattern> = hosts.iter().filter_map(|host| host.parse().ok()).collect();
        self.change(|state| {
            state.api_server = hosts;
            Vec::new()
        });
    }

    /// Everything has been seen once: the policy can be read, and is read anew from now on whenever a source changes.
    /// Until then there is none, and nothing should be decided. A source that vanished while nacre was down, or not
    /// long before, is in force as long as if nacre had been there.
    pub fn read_policy(&self) {
        self.read_policy_at(Timestamp::now());
    }

    fn read_policy_at(&self, now: Timestamp) {
        self.change(|state| {
            state.policy_known = true;
            state.last_policy = LastPolicy::read(state.policy_copy().as_deref());
            state.load_policy(now);
            Vec::new()
        });
    }

    /// Lets go of a policy that vanished and whose time is over, and returns whom that concerns.
    pub fn end_vanished_policy(&self, now: Timestamp) -> Vec<Key> {
        if self.look().policy_vanished.iter().all(|vanished| now < vanished.until) {
            return Vec::new();
        }
        self.change(|state| {
            state.load_policy(now);
            let (kind, gone) = (Kind::DataProtectionApplication, ObjectMeta::default());
            let mut keys = concern::application(state, None, None);
            keys.extend(copies::also(state, kind, Some(&gone), None, &keys));
            keys
        })
    }
}

impl State {
    /// What is wrong with the policy as it was last read.
    pub fn policy_problems(&self) -> &[Problem] {
        &self.policy_problems
    }

    /// Which sources of the policy vanished and are in force all the same.
    pub fn policy_vanished(&self) -> &[Vanished] {
        &self.policy_vanished
    }

    /// What is to be written so that the policy in force survives a restart, if anything.
    pub fn policy_copy_write(&self) -> Option<Action> {
        if !self.policy_known {
            return None;
        }
        self.last_policy.write(&self.admin_namespace, self.policy_copy().as_deref())
    }

    fn policy_copy(&self) -> Option<Arc<ConfigMap>> {
        self.admin(policy::IN_FORCE)
    }

    pub(crate) fn index_config_map(&mut self, before: Option<&ConfigMap>, after: Option<&ConfigMap>) {
        let name = after.or(before).and_then(|map| map.metadata.name.as_deref());
        if name == Some(policy::CONFIG_MAP) {
            self.load_policy(Timestamp::now());
        }
    }

    pub(crate) fn index_application<K>(&mut self, _: Option<&K>, _: Option<&K>) {
        self.load_policy(Timestamp::now());
    }

    fn load_policy(&mut self, now: Timestamp) {
        if !self.policy_known {
            return;
        }
        let reading = |seen: &Seen<ConfigMap>| match &seen.unreadable {
            Some(why) => Reading::Unreadable(why.to_string()),
            None => Reading::Found(seen.object.clone()),
        };
        let map = self.config_maps.get(&self.admin_namespace, policy::CONFIG_MAP);
        let odd = self.applications.all().find_map(|seen| seen.unreadable.as_ref());
        let applications = match odd {
            Some(why) => Reading::Unreadable(why.to_string()),
            None if self.applications.is_empty() => Reading::Absent,
            None => Reading::Found(self.applications.all().map(|seen| seen.object.clone()).collect()),
        };
        let readings = Readings { config_map: map.map_or(Reading::Absent, reading), applications };
        let InForce { loaded, last, vanished, .. } =
            policy::in_force(self.policies.as_ref(), &self.last_policy, &readings, now);
        for new in vanished.iter().filter(|new| !self.policy_vanished.contains(new)) {
            warn!(%new, "a policy vanished");
        }
        for problem in &loaded.problems {
            warn!(%problem, "the policy as written does not count in full");
        }
        info!(outdated = loaded.is_outdated(), in_effect = loaded.policies.is_some(), "read the policy");
        self.policies = loaded.policies.map(|policies| policies.sparing(&self.api_server));
        self.policy_problems = loaded.problems;
        self.last_policy = last;
        self.policy_vanished = vanished;
        let spaces = self.namespaces.all().filter_map(|seen| seen.object.metadata.name.clone());
        for name in spaces.collect::<Vec<_>>() {
            self.review(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use planner::location::check_spec;
    use planner::view::View;
    use serde_json::json;

    use super::*;
    use crate::guard::Told;

    /// A ConfigMap as the watch reports it; without data it is gone.
    fn map(cluster: &Cluster, name: &str, version: u64, data: Option<&serde_json::Value>) {
        let gone = data.is_none();
        let text = json!({"metadata": {"name": name, "namespace": "velero", "uid": name,
            "resourceVersion": version.to_string()}, "data": data});
        let told = Told::new(&text.to_string());
        cluster.change(|state| {
            if gone {
                let change = state.config_maps.told_gone(kube::Resource::meta(&told));
                state.follow(change)
            } else {
                state.told::<ConfigMap>(&told)
            }
        });
    }

    fn asks_for_approval(cluster: &Cluster) -> bool {
        cluster.look().policy("shop").unwrap().storage_locations.require_approval
    }

    fn approval() -> serde_json::Value {
        json!({"policy.yaml": "storageLocations: {requireApproval: true}"})
    }

    #[test]
    fn a_policy_that_vanishes_is_in_force_for_ten_minutes() {
        let cluster = Cluster::new("velero");
        map(&cluster, policy::CONFIG_MAP, 1, Some(&approval()));
        cluster.read_policy();
        assert!(asks_for_approval(&cluster));
        map(&cluster, policy::CONFIG_MAP, 2, None);
        assert!(asks_for_approval(&cluster), "gone for no time");
        let until = cluster.look().policy_vanished()[0].until;
        let just_before = until - jiff::SignedDuration::from_secs(1);
        cluster.end_vanished_policy(just_before);
        assert!(asks_for_approval(&cluster));
        cluster.end_vanished_policy(until);
        assert!(!asks_for_approval(&cluster) && cluster.look().policy_vanished().is_empty());
    }

    #[test]
    fn whoever_starts_while_it_is_gone_goes_by_the_copy() {
        let cluster = Cluster::new("velero");
        map(&cluster, policy::CONFIG_MAP, 1, Some(&approval()));
        assert_eq!(cluster.look().policy_copy_write(), None, "nothing is known yet");
        cluster.read_policy();
        let Some(Action::Create(copy)) = cluster.look().policy_copy_write() else { panic!("no copy") };

        let next = Cluster::new("velero");
        map(&next, policy::IN_FORCE, 3, Some(&copy.body["data"]));
        next.read_policy();
        assert!(asks_for_approval(&next));
        assert!(matches!(next.look().policy_copy_write(), Some(Action::Patch(..))), "since when it is gone");
    }

    #[test]
    fn nobody_may_send_velero_to_where_the_api_server_is() {
        let cluster = Cluster::new("velero");
        cluster.reached_at(&["10.96.0.1".to_owned(), "api.example.com".to_owned(), "not a host".to_owned()]);
        cluster.read_policy();
        let policy = cluster.look().policy("shop").unwrap();
        let refused = |url: &str| {
            let spec = json!({"provider": "aws", "objectStorage": {"bucket": "backups"}, "config": {"region": "eu-west-1", "s3Url": url},
                "credential": {"name": "keys", "key": "cloud"}});
            check_spec(&serde_json::from_value(spec).unwrap(), "shop", &policy.storage_locations)
        };
        for url in ["https://10.96.0.1", "https://api.example.com:6443", "http://[::ffff:10.96.0.1]"] {
            let told = refused(url).unwrap().message;
            assert!(told.contains("is the cluster's API server"), "{url}: {told}");
        }
        assert_eq!(refused("https://10.96.0.2"), None);
    }
}

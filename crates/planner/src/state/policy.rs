//! The policy in force, read again whenever one of its sources changes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;

use super::State;
use crate::Policy;
use crate::location::endpoint::HostPattern;
use crate::policy::{self, Policies, Problem, Reading, Readings};
use crate::view::Seen;

impl State {
    /// Takes the hosts by which the API server is reached. What cannot be a host is left out: nobody could name it.
    pub fn set_api_server(&mut self, hosts: &[String]) {
        self.api_server = hosts.iter().filter_map(|host| host.parse::<HostPattern>().ok()).collect();
    }

    /// Everything was listed once: the policy can be read, and is read again from now on whenever a source changes.
    /// Until then there is none, and nothing should be decided.
    pub fn read_policy(&mut self) {
        self.policy_known = true;
        self.load_policy();
    }

    /// Sets the policy of every namespace, in place of what the sources say: for whoever has no sources.
    pub fn set_policy(&mut self, policy: Option<Arc<Policy>>) {
        self.policies = policy.map(Policies::from);
        self.review_all();
    }

    /// What is wrong with the policy as it was last read.
    pub fn policy_problems(&self) -> &[Problem] {
        &self.policy_problems
    }

    /// How often the policy was read: whoever reports it compares this.
    pub fn policy_reads(&self) -> u64 {
        self.policy_reads
    }

    pub(super) fn index_config_map(&mut self, before: Option<&ConfigMap>, after: Option<&ConfigMap>) {
        let name = after.or(before).and_then(|map| map.metadata.name.as_deref());
        if name == Some(policy::CONFIG_MAP) {
            self.load_policy();
        }
    }

    pub(super) fn index_application<K>(&mut self, _: Option<&K>, _: Option<&K>) {
        self.load_policy();
    }

    fn load_policy(&mut self) {
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
        let loaded = policy::load(self.policies.as_ref(), &readings);
        self.policies = loaded.policies.map(|policies| policies.sparing(&self.api_server));
        self.policy_problems = loaded.problems;
        self.policy_reads += 1;
        self.review_all();
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
    use serde_json::json;

    use super::State;
    use crate::location::check_spec;

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
        for url in ["https://10.96.0.1", "https://api.example.com:6443", "http://[::ffff:10.96.0.1]"] {
            let told = refused(url).unwrap().message;
            assert!(told.contains("is the cluster's API server"), "{url}: {told}");
        }
        assert_eq!(refused("https://10.96.0.2"), None);
    }
}

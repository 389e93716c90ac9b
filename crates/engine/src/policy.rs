//! Which policy holds, read anew whenever one of its sources changes.

use k8s_openapi::api::core::v1::ConfigMap;
use planner::location::endpoint::HostPattern;
use planner::policy::{self, Problem, Reading, Readings};
use planner::view::Seen;
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
    /// Until then there is none, and nothing should be decided.
    pub fn read_policy(&self) {
        self.change(|state| {
            state.policy_known = true;
            state.load_policy();
            Vec::new()
        });
    }
}

impl State {
    /// What is wrong with the policy as it was last read.
    pub fn policy_problems(&self) -> &[Problem] {
        &self.policy_problems
    }

    pub(crate) fn index_config_map(&mut self, before: Option<&ConfigMap>, after: Option<&ConfigMap>) {
        let name = after.or(before).and_then(|map| map.metadata.name.as_deref());
        if name == Some(policy::CONFIG_MAP) {
            self.load_policy();
        }
    }

    pub(crate) fn index_application<K>(&mut self, _: Option<&K>, _: Option<&K>) {
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
        for problem in &loaded.problems {
            warn!(%problem, "the policy as written does not count in full");
        }
        info!(outdated = loaded.is_outdated(), in_effect = loaded.policies.is_some(), "read the policy");
        self.policies = loaded.policies.map(|policies| policies.sparing(&self.api_server));
        self.policy_problems = loaded.problems;
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

    use super::Cluster;

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

use serde_json::json;

use super::*;

fn pair(name: &str) -> Pair {
    let pem = |what: &str| format!("-----BEGIN CERTIFICATE-----\n{what}-{name}\n{END}\n");
    Pair { authority: pem("authority"), certificate: pem("certificate"), key: format!("key-{name}") }
}

/// A cluster with nothing in it but the Secret and the configuration.
struct World {
    secret: Option<HiddenSecret>,
    configurations: Vec<Configuration>,
    now: Timestamp,
    made: usize,
    /// How each certificate is by now.
    ages: BTreeMap<String, Validity>,
}

impl World {
    fn new() -> Self {
        let objects = crate::admission::objects("velero");
        let review = objects.into_iter().find(|object| object.kind == Kind::ValidatingWebhookConfiguration);
        let both = [review.unwrap(), crate::admission::webhook::recorder("velero")];
        Self {
            secret: None,
            configurations: both.iter().map(|one| Configuration::of(one.kind, &one.body)).collect(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            made: 0,
            ages: BTreeMap::new(),
        }
    }

    fn held(&self, key: &str) -> String {
        let secret = self.secret.as_ref().unwrap();
        String::from_utf8(stored(secret, key).to_vec()).unwrap()
    }

    fn validity(&self, key: &str) -> Validity {
        let Some(secret) = &self.secret else { return Validity::Invalid };
        let held = String::from_utf8(stored(secret, key).to_vec()).unwrap();
        let sound = if held.is_empty() { Validity::Invalid } else { Validity::Valid };
        self.ages.get(&held).copied().unwrap_or(sound)
    }

    /// One decision, carried out; whether it did anything.
    fn round(&mut self) -> bool {
        self.made += 1;
        let fresh = pair(&self.made.to_string());
        let seen = Observed {
            namespace: "velero",
            secret: self.secret.as_ref(),
            current: self.validity("tls.crt"),
            next: self.validity("next.crt"),
            configurations: &self.configurations,
            fresh: Some(&fresh),
            settle: Duration::from_mins(1),
            now: self.now,
        };
        let plan = decide(&seen);
        for action in &plan.actions {
            match action {
                Action::Create(object) => {
                    self.secret = Some(serde_json::from_value(object.body.clone()).unwrap());
                }
                Action::Patch(target, body) if target.kind == Kind::Secret => {
                    let mut secret = serde_json::to_value(self.secret.as_ref().unwrap()).unwrap();
                    merge(&mut secret, body);
                    self.secret = Some(serde_json::from_value(secret).unwrap());
                }
                Action::Patch(target, body) => {
                    let found = self.configurations.iter_mut().find(|one| one.kind == target.kind).unwrap();
                    found.webhooks = serde_json::from_value(body["webhooks"].clone()).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        !plan.actions.is_empty()
    }

    fn settle(&mut self) {
        let mut rounds = 0;
        while self.round() {
            rounds += 1;
            assert!(rounds < 10, "it does not come to rest");
        }
    }

    /// What the API server trusts, whichever of the two it calls.
    fn trusted(&self) -> String {
        let bundle =
            |one: &Configuration| one.webhooks[0].client_config.ca_bundle.clone().unwrap_or_default();
        assert_eq!(bundle(&self.configurations[0]), bundle(&self.configurations[1]));
        String::from_utf8(bundle(&self.configurations[0]).0).unwrap()
    }

    /// Whether the API server trusts what nacre shows it.
    fn trusts(&self) -> bool {
        let shown = self.held("tls.crt").replace("certificate-", "authority-");
        self.trusted().contains(shown.trim())
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

#[test]
fn the_first_certificate_is_made_told_and_left_alone() {
    let mut world = World::new();
    world.settle();
    assert!(world.trusts());
    assert_eq!(world.held("ca.crt"), world.trusted());
    assert!(!world.round(), "a settled cluster is left alone");
}

#[test]
fn a_certificate_that_ends_is_replaced_without_a_moment_of_mistrust() {
    let mut world = World::new();
    world.settle();
    for _ in 0..3 {
        let first = world.held("tls.crt");
        world.ages.insert(first.clone(), Validity::Expiring);
        // Step by step: at each, what is shown is trusted.
        while world.round() {
            assert!(world.trusts());
        }
        assert_eq!(world.held("tls.crt"), first, "its follower waits until it is known everywhere");
        assert!(world.trusted().contains(&world.held("next.crt").replace("certificate-", "authority-")));
        world.now += Duration::from_secs(59);
        assert!(!world.round());
        world.now += Duration::from_secs(1);
        while world.round() {
            assert!(world.trusts());
        }
        assert_ne!(world.held("tls.crt"), first);
        assert!(world.held("next.key").is_empty());
        let old = first.replace("certificate-", "authority-");
        assert!(world.trusted().contains(old.trim()), "a replica may still show the old one");
        assert_eq!(world.trusted().matches(END).count(), 2, "but no older one");
    }
}

#[test]
fn a_follower_waits_for_as_long_as_the_api_server_could_not_be_told() {
    let mut world = World::new();
    world.settle();
    let first = world.held("tls.crt");
    world.ages.insert(first.clone(), Validity::Expiring);
    world.settle();
    world.now += Duration::from_hours(1);
    // An old configuration was restored: its caBundle is updated first.
    let mut old = World::new();
    std::mem::swap(&mut world.configurations, &mut old.configurations);
    assert!(world.round() && world.held("tls.crt") == first && world.trusts());
    world.settle();
    assert!(world.held("tls.crt") != first && world.trusts());
}

#[test]
fn what_is_useless_is_replaced_at_once() {
    let mut world = World::new();
    world.settle();
    world.ages.insert(world.held("tls.crt"), Validity::Invalid);
    world.settle();
    assert!(world.trusts());
    assert_eq!(world.trusted().matches(END).count(), 1);

    // One that ran out while its follower waited: the follower is known by now, or as good as.
    let first = world.held("tls.crt");
    world.ages.insert(first.clone(), Validity::Expiring);
    world.settle();
    let next = world.held("next.crt");
    world.ages.insert(first, Validity::Invalid);
    world.settle();
    assert_eq!(world.held("tls.crt"), next);
}

#[test]
fn a_certificate_is_for_the_names_the_configuration_says() {
    let mut configurations = World::new().configurations;
    assert_eq!(names(&configurations), ["nacre-webhook.velero.svc"]);
    configurations.truncate(1);
    configurations[0].webhooks[0].client_config.service = None;
    for (url, host) in [
        ("https://127.0.0.1:9443/review", "127.0.0.1"),
        ("https://[::1]:9443/review", "::1"),
        ("https://nacre.example.org/review", "nacre.example.org"),
    ] {
        configurations[0].webhooks[0].client_config.url = Some(url.to_owned());
        assert_eq!(names(&configurations), [host]);
    }
    for url in ["", "::", "/review"] {
        configurations[0].webhooks[0].client_config.url = Some(url.to_owned());
        assert!(names(&configurations).is_empty(), "{url}");
    }
}

#[test]
fn what_else_a_configuration_says_is_kept() {
    let before = crate::admission::webhook::recorder("velero").body;
    let mut world = World::new();
    world.settle();
    let mut after = json!(world.configurations[1].webhooks);
    after[0]["clientConfig"].as_object_mut().unwrap().remove("caBundle").unwrap();
    assert_eq!(after, before["webhooks"]);
}

#[test]
fn keys_are_not_shown() {
    let mut world = World::new();
    world.settle();
    world.ages.insert(world.held("tls.crt"), Validity::Expiring);
    let fresh = pair("secret");
    let seen = Observed {
        namespace: "velero",
        secret: world.secret.as_ref(),
        current: Validity::Expiring,
        next: Validity::Invalid,
        configurations: &world.configurations,
        fresh: Some(&fresh),
        settle: Duration::ZERO,
        now: world.now,
    };
    let shown = format!("{:?}", decide(&seen));
    let key = encoded(fresh.key.as_bytes());
    assert!(shown.contains("hidden") && !shown.contains(key.as_str().unwrap()), "{shown}");
}

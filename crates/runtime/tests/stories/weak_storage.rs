//! Planted weaknesses of tenants' storage: Secrets and settings that nacre does not let pass are passed on as they are.
//! Then what the attack is about arrives in Velero's namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Hidden, Kind};
use planner::view::Credential;
use planner::{Action, Key, Plan, State, Target, location};
use runtime::Bug;
use serde_json::{Value, json};

use super::storage;
use super::weaknesses::twice;
use crate::world::World;
use crate::world::manifests::object;

/// A Secret that a tenant brings: good keys under `cloud`, and this text under this key.
struct Brought {
    /// The name of the location that names it.
    location: &'static str,
    provider: &'static str,
    key: &'static str,
    text: &'static str,
}

const PROGRAM: &str = "[default]\ncredential_process = /bin/sh -c id\n";

const SECRETS: [Brought; 8] = [
    Brought { location: "c1", provider: "aws", key: "cloud", text: PROGRAM },
    Brought {
        location: "c2-aws",
        provider: "aws",
        key: "cloud",
        text: "[default]\nrole_arn = r\nweb_identity_token_file = /var/run/token\n",
    },
    Brought {
        location: "c2-gcp",
        provider: "gcp",
        key: "cloud",
        text: r#"{"type": "external_account", "token_url": "https://example.com",
            "credential_source": {"file": "/var/run/secrets/kubernetes.io/serviceaccount/token"}}"#,
    },
    Brought {
        location: "c3",
        provider: "azure",
        key: "cloud",
        text: "AZURE_CLIENT_ID=c\nAZURE_CLIENT_CERTIFICATE_PATH=/etc/passwd\n",
    },
    Brought { location: "c4", provider: "aws", key: "cloud", text: "[default]\n" },
    Brought {
        location: "c4-role",
        provider: "aws",
        key: "cloud",
        text: "[default]\ncredential_source = Ec2InstanceMetadata\n",
    },
    Brought { location: CHANGED, provider: "aws", key: "cloud", text: PROGRAM },
    Brought { location: "c14", provider: "aws", key: "second", text: PROGRAM },
];

/// The location whose Secret is good until Velero has it.
const CHANGED: &str = "c12";

/// A credential that nacre accepts.
fn good(provider: &str) -> &'static str {
    match provider {
        "aws" => "[default]\naws_access_key_id=a\naws_secret_access_key=b\n",
        "azure" => "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a+b/c==\n",
        _ => {
            r#"{"type": "service_account", "client_email": "velero@shop-1.iam.gserviceaccount.com",
            "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE+/w=\n-----END PRIVATE KEY-----\n",
            "token_uri": "https://oauth2.googleapis.com/token"}"#
        }
    }
}

fn hidden(text: &str) -> Hidden {
    Hidden::from(text.as_bytes().to_vec())
}

impl Brought {
    fn secret(&self) -> Value {
        let data = BTreeMap::from([("cloud", good(self.provider)), (self.key, self.text)]);
        let data: BTreeMap<_, _> = data.into_iter().map(|(key, text)| (key, hidden(text))).collect();
        object(Kind::Secret, "shop/keys", json!({ "data": data }))
    }

    /// Brings it, and returns whether Velero is given it.
    fn arrives(&self, world: &mut World) -> bool {
        let place = format!("shop/{}", self.location);
        if self.location != CHANGED {
            world.apply(self.secret());
        }
        let mut location = storage::bucket(&place, "mine");
        let spec = &mut location["spec"]["backupStorageLocationSpec"];
        spec["provider"] = json!(self.provider);
        match self.provider {
            "aws" => {}
            "azure" => {
                spec["config"] = json!({"resourceGroup": "group", "storageAccount": "account",
                    "storageAccountKeyEnvVar": "AZURE_STORAGE_ACCOUNT_ACCESS_KEY"});
            }
            _ => spec["config"] = json!({}),
        }
        world.apply(location);
        world.rest();
        let velero = world.velero_name(&format!("nabsl {place}"));
        if self.location == CHANGED {
            assert!(
                world.has(&format!("secret {velero}")),
                "good keys are accepted:\n{}",
                world.whole_trace()
            );
            world.apply(self.secret());
            world.rest();
        }
        world.get(&format!("secret {velero}"))["data"][self.key] == json!(hidden(self.text))
    }
}

/// Reads a location as it is, if the plan is about one.
fn seen(state: &State, key: &Key) -> Option<location::Observed> {
    let is_location = key.kind == Kind::NonAdminBackupStorageLocation;
    is_location.then(|| location::observe(state, &key.namespace, &key.name)).flatten()
}

/// The weakness: every Secret passes for a good one, and Velero is given it as it is, with all its keys.
fn passes_on_secrets(state: &State, key: &Key, plan: Plan) -> Plan {
    let Some(mut seen) = seen(state, key) else { return plan };
    let Credential::Found(bytes) = &seen.credential else { return plan };
    let mut data = BTreeMap::from([("cloud", (**bytes).clone())]);
    // The state has no key of a Secret but the one that a location names: that is the defence.
    let brought = SECRETS.iter().find(|brought| brought.location == key.name && brought.key != "cloud");
    data.extend(brought.map(|brought| (brought.key, hidden(brought.text))));
    let provider = &seen.location.spec.backup_storage_location_spec.provider;
    seen.credential = Credential::Found(hidden(good(provider)).into());
    let mut plan = location::decide(&seen);
    plan.actions.retain(|action| !matches!(action, Action::Patch(target, _) if target.kind == Kind::Secret));
    for action in &mut plan.actions {
        if let Action::Create(object) = action
            && object.kind == Kind::Secret
        {
            object.body["data"] = json!(data);
        }
    }
    match &seen.copy {
        Some(copy) if json!(copy.data) != json!(data) => {
            plan.then(Action::Patch(Target::of(Kind::Secret, &copy.metadata), json!({ "data": data })))
        }
        _ => plan,
    }
}

/// planted: every Secret passes, and is passed on as it is
#[test]
fn c1_c2_c3_c4_c12_c14_with_secrets_passed_on_velero_would_be_given_each_as_it_is() {
    for brought in &SECRETS {
        twice(passes_on_secrets, |world| brought.arrives(world), || prepared(good("aws")));
    }
}

/// A cluster where a tenant has these keys.
fn prepared(keys: &str) -> World {
    let mut world = storage::world(&["shop"]);
    // Which is about what can be written, and not about faults.
    world.stop_recording();
    let data = BTreeMap::from([("cloud", hidden(keys))]);
    world.apply(object(Kind::Secret, "shop/keys", json!({ "data": data })));
    world
}

/// What Velero is given for a location with these parts in its spec.
fn given(world: &mut World, parts: &Value) -> Value {
    let mut location = storage::bucket("shop/bucket", "mine");
    for (name, part) in parts.as_object().into_iter().flatten() {
        location["spec"]["backupStorageLocationSpec"][name] = part.clone();
    }
    world.apply(location);
    world.rest();
    let velero = world.velero_name("nabsl shop/bucket");
    world.get(&format!("bsl {velero}"))["spec"].clone()
}

/// planted: settings and provider are passed on as they are
#[test]
fn c5_c15_with_settings_and_providers_passed_on_velero_would_be_given_them() {
    let as_written: Bug = |state, key, plan| {
        let Some(mut seen) = seen(state, key) else { return plan };
        let spec = &mut Arc::make_mut(&mut seen.location).spec.backup_storage_location_spec;
        let provider = std::mem::replace(&mut spec.provider, "aws".to_owned());
        let region = BTreeMap::from([("region".to_owned(), "eu-west-1".to_owned())]);
        let config = spec.config.replace(region);
        let mut plan = location::decide(&seen);
        for action in &mut plan.actions {
            if let Action::Create(object) = action
                && object.kind == Kind::BackupStorageLocation
            {
                object.body["spec"]["provider"] = json!(provider);
                object.body["spec"]["config"] = json!(config);
            }
        }
        // Nor is it mended.
        let mends = |target: &Target| target.kind == Kind::BackupStorageLocation;
        plan.actions.retain(|action| !matches!(action, Action::Patch(target, _) if mends(target)));
        plan
    };
    for key in ["credentialsFile", "customerKeyEncryptionFile", "somethingNew"] {
        let wish = json!({"config": {"region": "eu-west-1", key: "/credentials/cloud"}});
        let attack = |world: &mut World| given(world, &wish)["config"][key] == "/credentials/cloud";
        twice(as_written, attack, || prepared(good("aws")));
    }
    for provider in ["replicated.com/hostpath", "velero.io/fs", "AWS "] {
        let wish = json!({ "provider": provider });
        let attack = |world: &mut World| given(world, &wish)["provider"] == provider;
        twice(as_written, attack, || prepared(good("aws")));
    }
}

/// planted: a policy that lists the provider
#[test]
fn c15_a_provider_that_the_policy_does_not_list_reaches_velero_once_it_does() {
    let provider = |allowed: &[&str]| {
        let mut world = prepared(good("gcp"));
        world.policy(|policy| {
            policy.storage_locations.providers = allowed.iter().map(|&name| name.to_owned()).collect();
        });
        given(&mut world, &json!({"provider": "gcp", "config": {}}))["provider"].clone()
    };
    assert_eq!(provider(&["aws"]), Value::Null);
    assert_eq!(provider(&["aws", "gcp"]), "gcp", "the planted weakness");
}

//! Stories of `nacre operator`, in a small cluster in memory.

#![expect(clippy::unwrap_used, reason = "a helper's failure is a test's failure")]

use api::{DataProtectionApplication, Kind, condition, labels};
use jiff::Timestamp;
use planner::dpa_operator::{Acting, Decision, INSTALLED_BY, Observed, decide, failed};
use planner::install::{CONTROLLER, Found, Settings, objects, program};
use planner::{Action, Target};
use serde_json::{Value, json};

const IMAGE: &str = "nacre.dev/nacre:test";

struct World {
    namespace: &'static str,
    applications: Vec<DataProtectionApplication>,
    elsewhere: Vec<String>,
    found: Vec<Found>,
    with_finalizer: Vec<Target>,
    copies: Vec<Target>,
    acting: Acting<'static>,
    oadp: bool,
    contested: bool,
    uids: u32,
}

fn application(namespace: &str, name: &str, age: i64, spec: &Value) -> DataProtectionApplication {
    let at = Timestamp::from_second(1000 - age).unwrap().to_string();
    serde_json::from_value(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"namespace": namespace, "name": name, "uid": name, "generation": 1, "creationTimestamp": at},
        "spec": spec,
    }))
    .unwrap()
}

fn on() -> Value {
    json!({"nonAdmin": {"enable": true}})
}

fn off() -> Value {
    json!({"nonAdmin": {"enable": false}})
}

fn request(name: &str, finalizers: &[&str]) -> Target {
    Target {
        kind: Kind::NonAdminBackup,
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        resource_version: "1".to_owned(),
        finalizers: finalizers.iter().map(|one| (*one).to_owned()).collect(),
    }
}

impl World {
    fn with(applications: Vec<DataProtectionApplication>) -> Self {
        Self {
            namespace: "velero",
            applications,
            elsewhere: Vec::new(),
            found: Vec::new(),
            with_finalizer: Vec::new(),
            copies: Vec::new(),
            acting: Acting::Nobody,
            oadp: false,
            contested: false,
            uids: 0,
        }
    }

    fn observed<'a>(&'a self, with_finalizer: Option<&'a [Target]>) -> Observed<'a> {
        Observed {
            namespace: self.namespace,
            applications: &self.applications,
            elsewhere: &self.elsewhere,
            found: &self.found,
            with_finalizer,
            copies: if with_finalizer.is_some() { &self.copies } else { &[] },
            acting: self.acting,
            oadp: self.oadp,
            contested: self.contested,
            image: IMAGE,
            now: Timestamp::from_second(2000).unwrap(),
        }
    }

    fn decide(&self) -> Decision {
        let decision = decide(&self.observed(None));
        if decision.needs_finalizers { decide(&self.observed(Some(&self.with_finalizer))) } else { decision }
    }

    /// Runs until there is nothing to do, or something is waited for. Returns the steps.
    fn settle(&mut self) -> Vec<String> {
        let mut steps = Vec::new();
        for _ in 0..10 {
            let decision = self.decide();
            if let Some(who) = decision.waiting_for {
                steps.push(format!("wait for {who}"));
                return steps;
            }
            if decision.plan.actions.is_empty() {
                return steps;
            }
            for action in decision.plan.actions {
                steps.push(self.act(action));
            }
        }
        panic!("no end: {steps:#?}");
    }

    fn act(&mut self, action: Action) -> String {
        match action {
            Action::Apply(object) => {
                let known =
                    self.found.iter().position(|one| (one.kind, one.name()) == (object.kind, object.name()));
                let mut body = object.body.clone();
                self.uids += 1;
                body["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
                let made = Found { kind: object.kind, body };
                let verb = if known.is_some() { "change" } else { "make" };
                match known {
                    Some(place) => self.found[place] = made,
                    None => self.found.push(made),
                }
                format!("{verb} {}", object.kind.name())
            }
            Action::Patch(target, body) => {
                let one = self.found.iter_mut().find(|one| one.kind == target.kind).unwrap();
                one.body["spec"]["replicas"] = body["spec"]["replicas"].clone();
                format!("scale to {}", body["spec"]["replicas"])
            }
            Action::PatchStatus(target, body) => {
                let conditions = &body["status"]["conditions"];
                let reported = format!(
                    "condition {} {}={}: {}",
                    target.name, conditions[0]["type"], conditions[0]["status"], conditions[0]["message"]
                );
                let one = self
                    .applications
                    .iter_mut()
                    .find(|one| one.metadata.name.as_deref() == Some(&*target.name))
                    .unwrap();
                one.status = Some(serde_json::from_value(body["status"].clone()).unwrap());
                reported.replace('"', "")
            }
            Action::RemoveFinalizer(target, finalizer) => {
                let all = self.with_finalizer.iter_mut().chain(&mut self.copies);
                let one = all.into_iter().find(|one| one.name == target.name).unwrap();
                one.finalizers.retain(|found| found != finalizer);
                format!("release {}", target.name)
            }
            Action::Delete(target) => {
                self.found.retain(|one| (one.kind, one.name()) != (target.kind, &*target.name));
                self.copies.retain(|one| one.name != target.name);
                format!("delete {}", target.kind.name())
            }
            other => panic!("{other:?}"),
        }
    }

    fn edit(&mut self, name: &str, spec: Value) {
        let one =
            self.applications.iter_mut().find(|one| one.metadata.name.as_deref() == Some(name)).unwrap();
        one.spec = serde_json::from_value(spec).unwrap();
    }

    fn deployment(&self) -> Option<&Value> {
        self.found.iter().find(|one| one.kind == Kind::Deployment).map(|one| &one.body)
    }

    fn reported(&self, name: &str) -> (bool, String) {
        let one = self.applications.iter().find(|one| one.metadata.name.as_deref() == Some(name)).unwrap();
        let found = condition::get(&one.status.as_ref().unwrap().conditions, condition::RECONCILED).unwrap();
        (found.status == "True", found.message.clone())
    }
}

#[test]
fn nobody_gets_a_controller_who_did_not_ask_for_it() {
    for spec in [json!({}), off(), json!({"features": {"nonAdmin": {}}}), json!({"nonAdmin": {}})] {
        let mut world = World::with(vec![application("velero", "dpa", 1, &spec)]);
        assert_eq!(world.settle(), ["condition dpa Reconciled=True: Reconcile complete"]);
        assert_eq!(world.settle(), [""; 0], "and then there is silence");
    }
    assert_eq!(World::with(Vec::new()).settle(), [""; 0]);
}

#[test]
fn enabling_installs_changing_changes_and_disabling_lets_go_before_it_removes() {
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    world.with_finalizer =
        vec![request("daily", &["theirs/x", labels::NAB_FINALIZER]), request("free", &["theirs/x"])];
    let steps = world.settle();
    assert_eq!(
        steps,
        [
            "make Service",
            "make Deployment",
            "make PodDisruptionBudget",
            "condition dpa Reconciled=True: Reconcile complete"
        ]
    );
    let image = |world: &World| {
        world.deployment().unwrap()["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image(&world), IMAGE);

    world.edit(
        "dpa",
        json!({"nonAdmin": {"enable": true}, "unsupportedOverrides": {"nonAdminControllerImageFqin": "mine:1"},
            "configuration": {"velero": {"logLevel": "debug"}}}),
    );
    assert_eq!(world.settle(), ["change Deployment"]);
    assert_eq!(image(&world), "mine:1");
    assert!(world.deployment().unwrap().to_string().contains(r#"{"name":"LOG_LEVEL","value":"5"}"#));

    world.edit("dpa", off());
    world.acting = Acting::Here("pod x");
    assert_eq!(world.settle(), ["scale to 0", "wait for pod x"]);
    world.acting = Acting::Nobody;
    assert_eq!(
        world.settle(),
        ["release daily", "delete Service", "delete PodDisruptionBudget", "delete Deployment"]
    );
    assert_eq!(world.with_finalizer[0].finalizers, ["theirs/x"]);
    assert!(world.reported("dpa").0);

    // The other place to say it.
    world.edit("dpa", json!({"features": {"nonAdmin": {"enable": true}}}));
    assert_eq!(world.settle()[1], "make Deployment");
    // And the one that counts if both speak.
    world.edit("dpa", json!({"features": {"nonAdmin": {"enable": true}}, "nonAdmin": {"enable": false}}));
    assert_eq!(world.settle()[0], "scale to 0");
}

#[test]
fn copies_of_veleros_objects_go_before_anything_else_and_only_once_nobody_makes_them() {
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    world.with_finalizer = vec![request("daily", &[labels::NAB_FINALIZER])];
    world.settle();
    let copy = |kind: Kind, name: &str, finalizers: &[&str]| Target { kind, ..request(name, finalizers) };
    world.copies = vec![
        copy(Kind::Backup, "copy", &[]),
        copy(Kind::Schedule, "nightly", &["theirs/x", labels::VELERO_VIEW_FINALIZER]),
    ];
    world.edit("dpa", off());
    world.acting = Acting::Here("pod x");
    assert_eq!(world.settle(), ["scale to 0", "wait for pod x"]);
    world.acting = Acting::Nobody;
    let steps = world.settle();
    assert_eq!(steps[..4], ["delete Backup", "release nightly", "delete Schedule", "release daily"]);
    assert!(world.copies.is_empty() && world.found.is_empty());

    // Another installation keeps them.
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    world.settle();
    world.copies = vec![copy(Kind::Backup, "copy", &[])];
    world.edit("dpa", off());
    world.acting = Acting::Elsewhere("pod y");
    world.settle();
    assert!(world.copies.len() == 1 && world.found.is_empty());
}

#[test]
fn an_application_that_is_deleted_takes_the_controller_with_it_after_any_interruption() {
    let mut whole = World::with(vec![application("velero", "dpa", 1, &on())]);
    whole.with_finalizer = vec![request("daily", &[labels::NAB_FINALIZER])];
    whole.settle();
    // Interrupted after any number of steps, it goes on from there.
    for before in 0..6 {
        let mut world = World::with(Vec::new());
        world.found.clone_from(&whole.found);
        world.with_finalizer.clone_from(&whole.with_finalizer);
        for _ in 0..before {
            if let Some(action) = world.decide().plan.actions.into_iter().next() {
                world.act(action);
            }
        }
        world.settle();
        assert!(world.found.is_empty(), "after {before} steps: {:?}", world.found);
        assert!(world.with_finalizer[0].finalizers.is_empty(), "after {before} steps");
    }
}

#[test]
fn of_two_that_want_it_in_two_namespaces_one_has_it_and_the_other_is_told_where() {
    let here = application("velero", "here", 1, &on());
    let there = application("other", "there", 5, &on());
    let mut world = World::with(vec![here, there]);
    world.elsewhere = vec!["other".to_owned()];
    assert_eq!(world.settle().len(), 1);
    let (done, words) = world.reported("here");
    assert!(!done && words.contains("namespace other") && words.contains("nonAdmin.enable"), "{words}");

    // It heals by itself once the other is off.
    world.edit("there", off());
    assert_eq!(world.settle().len(), 4);
    assert!(world.reported("here").0);

    // Enabled at the same moment, both are installed: the older one stays, and lets nobody go.
    world.edit("there", on());
    world.with_finalizer = vec![request("daily", &[labels::NAB_FINALIZER])];
    world.acting = Acting::Elsewhere("other/pod");
    let steps = world.settle();
    assert_eq!(steps[0], "scale to 0", "{steps:?}");
    assert!(!steps.iter().any(|step| step.starts_with("release")), "{steps:?}");
    assert!(!world.reported("here").0 && world.deployment().is_none());
    assert_eq!(world.with_finalizer[0].finalizers, [labels::NAB_FINALIZER]);
}

#[test]
fn the_older_of_two_installations_stays() {
    let mut world =
        World::with(vec![application("velero", "here", 9, &on()), application("other", "there", 5, &on())]);
    world.settle();
    world.elsewhere = vec!["other".to_owned()];
    assert_eq!(world.settle(), [""; 0]);
    assert!(world.reported("here").0);
}

#[test]
fn saying_no_beside_anothers_yes_is_fine_and_changes_nothing_there() {
    let mut world =
        World::with(vec![application("velero", "here", 1, &off()), application("other", "there", 5, &on())]);
    world.elsewhere = vec!["other".to_owned()];
    assert_eq!(world.settle(), ["condition here Reconciled=True: Reconcile complete"]);
}

#[test]
fn of_several_in_a_namespace_one_counts_and_the_others_are_told() {
    let mut world =
        World::with(vec![application("velero", "b", 1, &off()), application("velero", "a", 1, &on())]);
    world.settle();
    assert!(world.deployment().is_some() && world.reported("a").0);
    assert_eq!(
        world.reported("b"),
        (
            false,
            "of several DataProtectionApplications in this namespace a counts; delete this one".to_owned()
        )
    );
}

#[test]
fn a_wish_that_makes_no_sense_changes_nothing_and_says_why() {
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    world.settle();
    world.edit(
        "dpa",
        json!({"nonAdmin": {"enable": true, "garbageCollectionPeriod": "soon"}, "logFormat": "xml"}),
    );
    assert_eq!(world.settle().len(), 1);
    let (done, words) = world.reported("dpa");
    assert!(
        !done && words.contains("garbageCollectionPeriod") && words.contains("logFormat is \"xml\""),
        "{words}"
    );
    assert!(world.deployment().is_some());
}

#[test]
fn what_somebody_else_installed_is_theirs() {
    // By hand: it stays, whatever the application says.
    let mut world = World::with(vec![application("velero", "dpa", 1, &off())]);
    world.found = program(&Settings::default());
    assert_eq!(world.settle().len(), 1);
    assert!(world.deployment().is_some() && world.reported("dpa").0);
    // Enabling takes it over.
    world.edit("dpa", on());
    assert!(world.settle().contains(&"change Deployment".to_owned()));
    assert_eq!(world.deployment().unwrap()["metadata"]["labels"][INSTALLED_BY.0], INSTALLED_BY.1);

    // Another program of the same name.
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    let body = json!({"metadata": {"name": CONTROLLER, "namespace": "velero"}, "spec": {"replicas": 1}});
    world.found = vec![Found { kind: Kind::Deployment, body }];
    world.settle();
    let (done, words) = world.reported("dpa");
    assert!(!done && words.contains("made by somebody else"), "{words}");
    assert_eq!(world.found.len(), 1);
}

#[test]
fn where_oadps_operator_is_nothing_is_done_and_nothing_is_said() {
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    world.oadp = true;
    assert_eq!(world.settle(), [""; 0]);
    world.oadp = false;
    // Where somebody else keeps writing conditions, the work is done silently.
    world.contested = true;
    assert_eq!(world.settle().len(), 3);
    assert!(world.applications[0].status.is_none());
}

#[test]
fn a_failure_is_told_in_the_api_servers_words() {
    let mut world = World::with(vec![application("velero", "dpa", 1, &on())]);
    for action in failed(&world.observed(None), "quota exceeded").actions {
        world.act(action);
    }
    assert_eq!(world.reported("dpa"), (false, "quota exceeded".to_owned()));
}

#[test]
fn the_program_is_all_that_an_application_switches() {
    let all = objects(&Settings::default());
    assert!(program(&Settings::default()).iter().all(|part| all.contains(part)));
}

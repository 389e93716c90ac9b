//! Replaces OADP's operator: a DataProtectionApplication says whether there is a controller, and this installs or
//! removes it. As OADP's operator, it looks after one namespace, and there is one controller in a cluster.
//!
//! Switching off leaves no request stuck: the controller is scaled down, copies of Velero's objects in tenants'
//! namespaces and nacre's finalizers are removed, and only then is it deleted. The Deployment itself is the memory of
//! how far that has come, so whoever is interrupted goes on from there.

mod conditions;
mod settings;

use api::{DataProtectionApplication, Kind};
use jiff::Timestamp;
use serde_json::json;
pub use settings::{enabled, settings};

use crate::install::uninstall::{copy_removals, finalizer_removals};
use crate::install::{CONTROLLER, Found, Settings, changes, is_ours, program};
use crate::policy::{Reading, Readings, counts, load};
use crate::{Action, Event, Object, Plan, Target};

/// Label: installed because of a DataProtectionApplication, and removed with it. What somebody installed by hand does
/// not bear it.
pub const INSTALLED_BY: (&str, &str) = ("nacre.dev/installed-by", "operator");

/// The Deployment of OADP's own operator. Where it runs, it manages the applications in its namespace.
pub const OADP: &str = "openshift-adp-controller-manager";

/// The program was installed or changed; OADP's operator says it with the same word.
pub const RECONCILED: &str = "NonAdminDeploymentReconciled";
/// The program was removed.
pub const REMOVED: &str = "NonAdminDeploymentDeleteSucceed";

/// Everything the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The namespace that is looked after.
    pub namespace: &'a str,
    /// Every application that may be seen, in every namespace.
    pub applications: &'a [DataProtectionApplication],
    /// The other namespaces in which there is a Deployment of the controller's name.
    pub elsewhere: &'a [String],
    /// What there is in this namespace under the names of the program's parts.
    pub found: &'a [Found],
    /// Every request with finalizers; none if they were not listed.
    pub with_finalizer: Option<&'a [Target]>,
    /// Every copy of a Velero object in a tenant's namespace and every link for a download, listed with them.
    pub copies: &'a [Target],
    /// Who acts as the controller.
    pub acting: Acting<'a>,
    /// Whether OADP's operator runs in this namespace.
    pub oadp: bool,
    /// Whether somebody else keeps writing the applications' conditions.
    pub contested: bool,
    /// The image to run where an application names none.
    pub image: &'a str,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// Who acts as the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acting<'a> {
    /// Nobody.
    Nobody,
    /// A pod or process of this namespace's installation.
    Here(&'a str),
    /// Another installation.
    Elsewhere(&'a str),
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The next steps. There are more as long as there are any.
    pub plan: Plan,
    /// The application that counts: Events are about it.
    pub about: Option<(String, String)>,
    /// What has to be over before it goes on.
    pub waiting_for: Option<String>,
    /// Whether requests with finalizers have to be listed first.
    pub needs_finalizers: bool,
}

/// The decision about an application.
#[derive(Clone, Debug, PartialEq)]
enum EnableDecision {
    Install(Box<Settings>),
    Remove,
    /// There is a controller in another namespace, and only one is allowed.
    Taken(String),
    /// The application is invalid; the installation stays as it is.
    Wrong(String),
}

/// Decides the next steps.
pub fn decide(seen: &Observed<'_>) -> Decision {
    if seen.oadp {
        return Decision::default();
    }
    let own: Vec<_> =
        seen.applications.iter().filter(|one| is_here(seen, one) && !is_deleting(one)).collect();
    let chosen = counts(&own);
    let verdict = chosen.map_or(EnableDecision::Remove, |chosen| judge(seen, chosen));
    let mut decision = match &verdict {
        EnableDecision::Install(settings) => install(seen, settings),
        EnableDecision::Remove => remove(seen, true),
        EnableDecision::Taken(_) => remove(seen, false),
        EnableDecision::Wrong(_) => Decision::default(),
    };
    // The condition comes last: an action that fails ends the plan before it.
    if !seen.contested && decision.waiting_for.is_none() && !decision.needs_finalizers {
        let problem = match &verdict {
            EnableDecision::Install(_) | EnableDecision::Remove => None,
            EnableDecision::Taken(namespace) => Some(taken(namespace)),
            EnableDecision::Wrong(problem) => Some(problem.clone()),
        };
        let removing = verdict == EnableDecision::Remove && !decision.plan.actions.is_empty();
        for one in own {
            let counts = chosen.is_some_and(|chosen| chosen.metadata.name == one.metadata.name);
            let problem = if counts { problem.clone() } else { chosen.map(another) };
            if !(counts && removing) {
                decision.plan = decision.plan.then_if(conditions::report(one, problem.as_deref(), seen.now));
            }
        }
    }
    decision.about = chosen.map(|one| named(&one.metadata));
    decision
}

/// The conditions of an application whose plan failed.
pub fn failed(seen: &Observed<'_>, why: &str) -> Plan {
    let own: Vec<_> =
        seen.applications.iter().filter(|one| is_here(seen, one) && !is_deleting(one)).collect();
    let reported = counts(&own).filter(|_| !seen.contested && !seen.oadp);
    Plan::done().then_if(reported.and_then(|one| conditions::report(one, Some(why), seen.now)))
}

fn judge(seen: &Observed<'_>, chosen: &DataProtectionApplication) -> EnableDecision {
    if !enabled(chosen) {
        return EnableDecision::Remove;
    }
    if let Some(namespace) = elsewhere(seen, chosen) {
        return EnableDecision::Taken(namespace.to_owned());
    }
    let applications = Reading::Found(vec![std::sync::Arc::new(chosen.clone())]);
    let loaded = load(None, &Readings { config_map: Reading::Absent, applications });
    let wrong = loaded.problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string);
    let settings = settings(chosen, seen.namespace, seen.image);
    let mut wrong: Vec<_> = wrong.chain(settings.problems()).collect();
    wrong.extend(foreign(seen));
    if wrong.is_empty() {
        EnableDecision::Install(Box::new(settings))
    } else {
        EnableDecision::Wrong(wrong.join("; "))
    }
}

/// Another namespace whose application wants the controller and has it. Should both have it, the older application keeps it.
fn elsewhere<'a>(seen: &Observed<'a>, chosen: &DataProtectionApplication) -> Option<&'a str> {
    let installed_here = deployment(seen).is_some();
    let age = |one: &DataProtectionApplication| {
        (one.metadata.creation_timestamp.as_ref().map(|at| at.0), one.metadata.namespace.clone())
    };
    let others =
        seen.applications.iter().filter(|one| !is_here(seen, one) && !is_deleting(one) && enabled(one));
    let others = others.filter(|one| !installed_here || age(one) < age(chosen));
    let mut namespaces = others.filter_map(|one| one.metadata.namespace.as_deref());
    namespaces.find(|namespace| seen.elsewhere.iter().any(|other| other == namespace))
}

fn foreign(seen: &Observed<'_>) -> Option<String> {
    let other = seen.found.iter().find(|found| found.kind == Kind::Deployment && !is_ours(found))?;
    Some(format!(
        "the Deployment {} in this namespace was made by somebody else; delete it, and nacre's takes its place",
        other.name()
    ))
}

fn install(seen: &Observed<'_>, settings: &Settings) -> Decision {
    let wanted: Vec<_> = program(settings).into_iter().map(by_operator).collect();
    let mut plan = changes(&wanted, seen.found).plan;
    let applied = plan.actions.iter().find_map(|action| match action {
        Action::Apply(object) if object.kind == Kind::Deployment => Some(object),
        _ => None,
    });
    if let Some(object) = applied {
        let done = if object.body["metadata"]["uid"].is_string() { "updated" } else { "created" };
        let note = format!("Deployment {CONTROLLER} was {done}, with image {}", settings.image);
        plan = plan.with_event(Event::normal(RECONCILED, note));
    }
    Decision { plan, ..Decision::default() }
}

/// Scales down, then removes copies of Velero's objects and the finalizers, then deletes the installation. If another
/// installation is active, both stay.
fn remove(seen: &Observed<'_>, let_go: bool) -> Decision {
    let Some(deployment) = deployment(seen).filter(|found| is_by_operator(found)) else {
        return Decision::default();
    };
    if deployment.body["spec"]["replicas"] != 0 {
        let rest = Action::Patch(target(deployment), json!({"spec": {"replicas": 0}}));
        return Decision { plan: Plan::done().then(rest), ..Decision::default() };
    }
    if let Acting::Here(who) = seen.acting {
        return Decision { waiting_for: Some(who.to_owned()), ..Decision::default() };
    }
    if let_go && seen.acting == Acting::Nobody {
        let Some(with_finalizer) = seen.with_finalizer else {
            return Decision { needs_finalizers: true, ..Decision::default() };
        };
        let copies = copy_removals(seen.copies);
        let actions = if copies.is_empty() { finalizer_removals(with_finalizer) } else { copies };
        if !actions.is_empty() {
            return Decision { plan: Plan { actions, ..Plan::default() }, ..Decision::default() };
        }
    }
    let parts = seen.found.iter().filter(|found| is_ours(found) && is_by_operator(found));
    // The Deployment last: it is the memory.
    let (last, first): (Vec<_>, Vec<_>) = parts.partition(|found| found.kind == Kind::Deployment);
    let actions = first.into_iter().chain(last).map(|found| Action::Delete(target(found))).collect();
    let note = format!("Deployment {CONTROLLER} was removed");
    let plan = Plan { actions, ..Plan::default() }.with_event(Event::normal(REMOVED, note));
    Decision { plan, ..Decision::default() }
}

fn deployment<'a>(seen: &Observed<'a>) -> Option<&'a Found> {
    seen.found.iter().find(|found| found.kind == Kind::Deployment && is_ours(found))
}

fn by_operator(mut object: Object) -> Object {
    object.body["metadata"]["labels"][INSTALLED_BY.0] = INSTALLED_BY.1.into();
    object
}

/// Whether the operator made it, rather than an installer.
pub(crate) fn is_by_operator(found: &Found) -> bool {
    found.body["metadata"]["labels"][INSTALLED_BY.0] == INSTALLED_BY.1
}

fn target(found: &Found) -> Target {
    // What the API server sent has metadata.
    let meta = serde_json::from_value(found.body["metadata"].clone()).unwrap_or_default();
    Target::of(found.kind, &meta)
}

fn is_here(seen: &Observed<'_>, one: &DataProtectionApplication) -> bool {
    one.metadata.namespace.as_deref() == Some(seen.namespace)
}

fn is_deleting(one: &DataProtectionApplication) -> bool {
    one.metadata.deletion_timestamp.is_some()
}

fn named(meta: &kube::core::ObjectMeta) -> (String, String) {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn taken(namespace: &str) -> String {
    format!(
        "there is one non-admin controller in a cluster, and it is installed in namespace {namespace}: set nonAdmin.enable to \
         false there first, or here"
    )
}

fn another(chosen: &DataProtectionApplication) -> String {
    let name = chosen.metadata.name.as_deref().unwrap_or_default();
    format!("of several DataProtectionApplications in this namespace {name} counts; delete this one")
}

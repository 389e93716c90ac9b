//! Playing OADP's part where OADP is not: a DataProtectionApplication says whether there is a controller, and this makes it
//! so. As OADP's operator, it looks after one namespace, and there is one controller in a cluster.
//!
//! Switching off leaves no request stuck: the program goes to rest, our finalizers are taken off, and only then is it
//! removed. The Deployment itself is the memory of how far that has come, so whoever is interrupted goes on from there.

mod conditions;
mod wish;

use api::{DataProtectionApplication, Kind};
use jiff::Timestamp;
use serde_json::json;
pub use wish::{enabled, settings};

use crate::install::uninstall::releases;
use crate::install::{CONTROLLER, Found, Settings, changes, is_ours, program};
use crate::policy::{Reading, Readings, counts, load};
use crate::{Action, Event, Object, Plan, Target};

/// Says that the program was installed by an application's wish, and goes when that goes. What somebody installed by hand
/// does not bear it.
pub const INSTALLED_BY: (&str, &str) = ("nacre.dev/installed-by", "operator");

/// The Deployment of OADP's own operator. Where it is, the applications beside it are its own.
pub const OADP: &str = "openshift-adp-controller-manager";

/// The program was installed or changed; OADP's operator says it with the same word.
pub const RECONCILED: &str = "NonAdminDeploymentReconciled";
/// The program was removed.
pub const REMOVED: &str = "NonAdminDeploymentDeleteSucceed";

/// What the decision reads.
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
    /// Every request that is held by finalizers; none if that was not looked at.
    pub held: Option<&'a [Target]>,
    /// Who acts as the controller.
    pub acting: Acting<'a>,
    /// Whether OADP's operator runs in this namespace.
    pub oadp: bool,
    /// Whether somebody else keeps writing the applications' conditions.
    pub contested: bool,
    /// The image to run where an application names none.
    pub image: &'a str,
    /// The time.
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

/// What shall be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The next steps. There are more as long as there are any.
    pub plan: Plan,
    /// The application that counts: Events are about it.
    pub about: Option<(String, String)>,
    /// What has to be over before it goes on.
    pub waiting_for: Option<String>,
    /// Whether requests that are held have to be looked at first.
    pub look_at_held: bool,
}

/// What becomes of an application's wish.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Install(Box<Settings>),
    Remove,
    /// There is one elsewhere, and there is only one.
    Taken(String),
    /// It makes no sense; what there is stays as it is.
    Wrong(String),
}

/// Decides the next steps.
pub fn decide(seen: &Observed<'_>) -> Decision {
    if seen.oadp {
        return Decision::default();
    }
    let own: Vec<_> = seen.applications.iter().filter(|one| is_here(seen, one) && !leaving(one)).collect();
    let chosen = counts(&own);
    let verdict = chosen.map_or(Verdict::Remove, |chosen| judge(seen, chosen));
    let mut decision = match &verdict {
        Verdict::Install(settings) => install(seen, settings),
        Verdict::Remove => remove(seen, true),
        Verdict::Taken(_) => remove(seen, false),
        Verdict::Wrong(_) => Decision::default(),
    };
    // Told only once it is so: an action that fails ends the plan before.
    if !seen.contested && decision.waiting_for.is_none() && !decision.look_at_held {
        let problem = match &verdict {
            Verdict::Install(_) | Verdict::Remove => None,
            Verdict::Taken(namespace) => Some(taken(namespace)),
            Verdict::Wrong(problem) => Some(problem.clone()),
        };
        let removing = verdict == Verdict::Remove && !decision.plan.actions.is_empty();
        for one in own {
            let counts = chosen.is_some_and(|chosen| chosen.metadata.name == one.metadata.name);
            let problem = if counts { problem.clone() } else { chosen.map(another) };
            if !(counts && removing) {
                decision.plan = decision.plan.then_if(conditions::tell(one, problem.as_deref(), seen.now));
            }
        }
    }
    decision.about = chosen.map(|one| named(&one.metadata));
    decision
}

/// What to say about an application whose wish could not be carried out.
pub fn failed(seen: &Observed<'_>, why: &str) -> Plan {
    let own: Vec<_> = seen.applications.iter().filter(|one| is_here(seen, one) && !leaving(one)).collect();
    let told = counts(&own).filter(|_| !seen.contested && !seen.oadp);
    Plan::done().then_if(told.and_then(|one| conditions::tell(one, Some(why), seen.now)))
}

fn judge(seen: &Observed<'_>, chosen: &DataProtectionApplication) -> Verdict {
    if !enabled(chosen) {
        return Verdict::Remove;
    }
    if let Some(namespace) = elsewhere(seen, chosen) {
        return Verdict::Taken(namespace.to_owned());
    }
    let applications = Reading::Found(vec![std::sync::Arc::new(chosen.clone())]);
    let loaded = load(None, &Readings { config_map: Reading::Absent, applications });
    let wrong = loaded.problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string);
    let settings = settings(chosen, seen.namespace, seen.image);
    let mut wrong: Vec<_> = wrong.chain(settings.problems()).collect();
    wrong.extend(foreign(seen));
    if wrong.is_empty() { Verdict::Install(Box::new(settings)) } else { Verdict::Wrong(wrong.join("; ")) }
}

/// Another namespace whose application wants the controller and has it. Should both have it, the older application keeps it.
fn elsewhere<'a>(seen: &Observed<'a>, chosen: &DataProtectionApplication) -> Option<&'a str> {
    let installed_here = deployment(seen).is_some();
    let age = |one: &DataProtectionApplication| {
        (one.metadata.creation_timestamp.as_ref().map(|at| at.0), one.metadata.namespace.clone())
    };
    let others = seen.applications.iter().filter(|one| !is_here(seen, one) && !leaving(one) && enabled(one));
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
        plan = plan.telling(Event::normal(RECONCILED, note));
    }
    Decision { plan, ..Decision::default() }
}

/// To rest, then let go of every request, then away with it. Where another installation acts, requests are its business.
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
        let Some(held) = seen.held else {
            return Decision { look_at_held: true, ..Decision::default() };
        };
        let actions = releases(held);
        if !actions.is_empty() {
            return Decision { plan: Plan { actions, ..Plan::default() }, ..Decision::default() };
        }
    }
    let parts = seen.found.iter().filter(|found| is_ours(found) && is_by_operator(found));
    // The Deployment last: it is the memory.
    let (last, first): (Vec<_>, Vec<_>) = parts.partition(|found| found.kind == Kind::Deployment);
    let actions = first.into_iter().chain(last).map(|found| Action::Delete(target(found))).collect();
    let note = format!("Deployment {CONTROLLER} was removed");
    let plan = Plan { actions, ..Plan::default() }.telling(Event::normal(REMOVED, note));
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

fn leaving(one: &DataProtectionApplication) -> bool {
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

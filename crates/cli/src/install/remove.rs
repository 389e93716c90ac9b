//! `uninstall`: stops the controller, removes finalizers, deletes the rest, and prints what stays.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use engine::Retry;
use engine::install::{
    at_work, copies, execute_plan, kept, marked, permitted_copies, remains, requests, with_finalizer,
};
use planner::install::uninstall::{Observed, Scope, decide, helm_release};
use planner::install::{Settings, place};
use tokio::time::{Instant, sleep};

use super::changes::{Change, InstallChanges, changes};
use super::settings::patience;
use crate::confirm::Consent;
use crate::connect::Session;
use crate::output::{Outcome, print, remark};

const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre uninstall              the program, its roles and policies
  kubectl nacre uninstall --crds       the CRDs too, and with them every request of every tenant; asks first
  kubectl nacre uninstall --crds --yes the same without asking, where nobody can be asked
  kubectl nacre uninstall --requests-only   only nacre's finalizers, and copies of Velero's objects, in tenant namespaces
  kubectl nacre uninstall --dry-run    what the first step would be, and what stays

nacre's finalizers are removed, so that nothing is stuck. Velero's backups, restores and locations stay; copies of them
and download links in tenant namespaces are deleted. `helm uninstall` runs --requests-only itself; run this before or after it, for what
else Helm does not know.")]
pub(crate) struct Uninstall {
    /// Also remove the CRDs of nacre's kinds, and with them every request of every tenant. Asks first.
    #[arg(long)]
    crds: bool,

    /// Only remove nacre's finalizers from requests, once the program has ended, and copies of Velero's objects.
    #[arg(long, conflicts_with = "crds")]
    requests_only: bool,

    #[command(flatten)]
    consent: Consent,

    /// Print what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,

    /// How long to wait for the program to end: 90s, 2m.
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = patience)]
    timeout: Duration,
}

pub(crate) async fn uninstall(
    session: &Session,
    uninstall: &Uninstall,
    namespace: Option<&str>,
) -> Result<Outcome> {
    let client = &session.client;
    let alone = uninstall.requests_only;
    // Whoever only lets requests go needs no permission to look at the rest.
    let first =
        if alone { Vec::new() } else { marked(client).await.context("looking at what is installed")? };
    let release = helm_release(&first).map(|(name, place)| (name.to_owned(), place.to_owned()));
    let settings = Settings { namespace: place(namespace, &first), ..Settings::default() };
    let scope = match (alone, uninstall.crds) {
        (true, _) => Scope::Requests,
        (false, true) => Scope::Definitions,
        (false, false) => Scope::Installation,
    };
    let lost = if uninstall.crds { lost(session).await? } else { None };
    if let Some(lost) = lost.as_ref().filter(|_| !uninstall.dry_run)
        && !agreed(&uninstall.consent, lost)?
    {
        bail!("nothing was removed");
    }
    let deadline = Instant::now() + uninstall.timeout;
    let mut done = Vec::new();
    let mut reported = String::new();
    loop {
        let found = if alone {
            Vec::new()
        } else {
            remains(client, &settings.namespace).await.context("looking at what is installed")?
        };
        let working = at_work(client, &settings.namespace).await.context("looking for the program")?;
        let requests = with_finalizer(client).await.context("looking for requests")?;
        let shown = if alone {
            permitted_copies(client, &settings.namespace).await.map(Option::unwrap_or_default)
        } else {
            copies(client, &settings.namespace).await
        };
        let shown = shown.context("looking for copies of Velero's objects")?;
        let seen = Observed {
            scope,
            found: &found,
            with_finalizer: &requests,
            copies: &shown,
            at_work: working.as_deref(),
        };
        let decision = decide(&seen);
        if !decision.refusals.is_empty() {
            bail!("{}", decision.refusals.join("\n       "));
        }
        if uninstall.dry_run {
            done = all_steps(&seen);
        }
        if let Some(who) = decision.waiting_for.filter(|_| !uninstall.dry_run) {
            if Instant::now() > deadline {
                bail!("{who} did not end in time, and would put back what is taken away; try again");
            }
            if reported != who {
                remark(format_args!("waiting for {who} to end"));
                reported = who;
            }
            sleep(LOOK_AGAIN).await;
            continue;
        }
        if uninstall.dry_run || decision.plan.actions.is_empty() {
            if !uninstall.dry_run && !alone {
                crate::policy::egress::remove(session, &settings.namespace).await?;
            }
            let mut remarks =
                if alone { Vec::new() } else { kept(client, &settings.namespace, uninstall.crds).await? };
            remarks.extend(release.map(|(name, place)| {
                format!("Helm's own record of release {name}; `helm uninstall {name} -n {place}` removes it")
            }));
            let answer = InstallChanges {
                dry_run: uninstall.dry_run,
                namespace: settings.namespace,
                changes: done,
                remarks,
            };
            if let Some(lost) = lost {
                let verb = if uninstall.dry_run { "would be removed" } else { "removed" };
                remark(format_args!("{verb} with the CRDs: {lost}"));
            }
            for text in &answer.remarks {
                remark(format_args!("kept: {text}"));
            }
            let nothing = if alone { "nothing to let go of" } else { "nacre is not installed" };
            print(session.format, &answer, || answer.table(nothing), || answer.names())?;
            return Ok(Outcome::Good);
        }
        if Instant::now() > deadline {
            bail!(
                "something puts back what is taken away, such as `nacre operator` for a DataProtectionApplication that \
                 enables it: stop that first"
            );
        }
        match execute_plan(client, &settings, &decision.plan).await {
            Ok(()) => done.extend(changes(&decision.plan, &found)),
            // A request changed between the look and the hand, or is gone.
            Err(failure) if matches!(failure.retry(), Retry::Now | Retry::WhenItChanges) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

/// Which requests go with the CRDs: `3 NonAdminBackups, 1 NonAdminRestore in 2 namespaces`; nothing if there are none.
async fn lost(session: &Session) -> Result<Option<String>> {
    let (kinds, namespaces) = requests(&session.client).await.context("counting the requests of tenants")?;
    Ok(in_words(&kinds, namespaces))
}

fn in_words(kinds: &[(api::Kind, usize)], namespaces: usize) -> Option<String> {
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let counts: Vec<String> =
        kinds.iter().map(|(kind, number)| format!("{number} {}{}", kind.name(), plural(*number))).collect();
    let all = counts.join(", ");
    (!counts.is_empty()).then(|| format!("{all} in {namespaces} namespace{}", plural(namespaces)))
}

/// Whether the administrator agrees to lose these.
fn agreed(consent: &Consent, lost: &str) -> Result<bool> {
    let stays =
        "Velero's own objects and the data in storage stay, and each backup expires when its TTL ends";
    let question = format!(
        "Removing the CRDs deletes every request of every tenant: {lost}. {stays}. Uninstall nacre and delete them?"
    );
    consent.given(&question).with_context(|| format!("nothing was removed: --crds would delete {lost}"))
}

/// Every step from here, as if each went through at once.
fn all_steps(seen: &Observed<'_>) -> Vec<Change> {
    let mut left: Vec<_> = seen.found.to_vec();
    let mut with_finalizer = seen.with_finalizer.to_vec();
    let mut copies = seen.copies.to_vec();
    let mut steps = Vec::new();
    loop {
        let next = decide(&Observed {
            scope: seen.scope,
            found: &left,
            with_finalizer: &with_finalizer,
            copies: &copies,
            at_work: None,
        });
        if next.plan.actions.is_empty() {
            return steps;
        }
        steps.extend(changes(&next.plan, &left));
        for action in &next.plan.actions {
            match action {
                planner::Action::RemoveFinalizer(target, finalizer) => with_finalizer
                    .iter_mut()
                    .filter(|one| one.uid == target.uid)
                    .for_each(|one| one.finalizers.retain(|other| other != finalizer)),
                planner::Action::Delete(target) => {
                    copies.retain(|one| one.uid != target.uid);
                    left.retain(|one| one.body["metadata"]["uid"] != target.uid.as_str());
                }
                _ => return steps,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::Kind;

    use super::in_words;

    #[test]
    fn what_would_be_lost_is_counted() {
        let kinds = [(Kind::NonAdminBackup, 3), (Kind::NonAdminRestore, 1)];
        assert_eq!(
            in_words(&kinds, 2).as_deref(),
            Some("3 NonAdminBackups, 1 NonAdminRestore in 2 namespaces")
        );
        assert_eq!(in_words(&[], 0), None);
    }
}

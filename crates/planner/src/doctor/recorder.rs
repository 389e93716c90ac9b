//! Whether nacre's webhook records who asks, where the API server cannot do that by itself.

use super::{Area, Finding, Observed, installed};
use crate::Object;
use crate::admission::certificate::Configuration;
use crate::admission::webhook;
use crate::policy::{Policies, Policy, Reading, RequesterMode};
use crate::requester::extra::{self, LIST};

const AREA: Area = Area::Admission;

/// What there is to say of its configuration.
pub(super) fn examine(seen: &Observed, found: &Object) -> Finding {
    let name = format!("MutatingWebhookConfiguration {}", webhook::RECORDER);
    let known = match &seen.certificate {
        Reading::Found(certificate) => Some(certificate.bundle.as_slice()),
        _ => None,
    };
    let webhooks = Configuration::of(found.kind, &found.body).webhooks;
    let bundles = || webhooks.iter().map(|one| one.client_config.ca_bundle.as_ref());
    // Without a look at the certificate all that is known is whether there is a bundle.
    let fits = bundles().all(|bundle| {
        bundle.is_some_and(|bundle| !bundle.0.is_empty() && known.is_none_or(|known| known == bundle.0))
    });
    if webhooks.is_empty() || !fits {
        return AREA.problem(
            format!("{name} has no caBundle that fits: the API server does not call nacre, and nobody records who asks"),
            "nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have",
        );
    }
    if !installed::same(&webhook::recorder(&seen.namespace), found) {
        return AREA.warning(format!("{name} differs from what this version installs"), seen.installer());
    }
    AREA.note(
        "nacre's webhook records who asks, while nacre runs (Kubernetes 1.36 and later do it by themselves)",
    )
}

/// Which extra fields of users are recorded: those in nacre's ConfigMap, which should be those that the policy lists.
pub(super) fn extra(seen: &Observed, policies: Option<&Policies>) -> Option<Finding> {
    let name = format!("ConfigMap {LIST}");
    let listed = match &seen.requester_extra {
        Reading::Found(found) => extra::listed(Some(found)),
        Reading::Absent => Vec::new(),
        unseen => return AREA.unseen(unseen, &name, &format!("get configmaps in {}", seen.namespace)),
    };
    let wanted: Vec<&str> = extra::wanted(policies?.base()).into_iter().collect();
    let named = |keys: &[String]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
    if listed != wanted {
        let is = if matches!(seen.requester_extra, Reading::Absent) { "is missing" } else { "differs" };
        let wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
        return Some(AREA.problem(
            format!(
                "{name} {is}: of extra fields of users {} are recorded, and the policy's requester.extra lists {}",
                named(&listed),
                named(&wanted)
            ),
            "nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have",
        ));
    }
    (!listed.is_empty()).then(|| {
        AREA.note(format!(
            "of extra fields of users {} are recorded: everybody who may read a request can read them",
            named(&listed)
        ))
    })
}

/// Requests that are made while nobody records who asks.
pub(super) fn unrecorded(seen: &Observed, base: &Policy) -> Option<Finding> {
    let by_webhook = matches!(seen.recorder, Reading::Found(_));
    let open =
        base.requester.mode == RequesterMode::Enforce && base.requester.unrecorded != RequesterMode::Enforce;
    (by_webhook && open).then(|| {
        Area::Policy.warning(
            "who asks is not recorded while nacre is down, and permissions of such requests are not enforced",
            "set requester.unrecorded: enforce; such requests then have to be made again",
        )
    })
}

//! Whether the API server can ask nacre before it stores a request.

use super::{Area, Finding, Observed, program};
use crate::admission::certificate::{SECRET, Validity};
use crate::admission::webhook::CONFIGURATION;
use crate::policy::Reading;

const AREA: Area = Area::Admission;
/// What becomes of a certificate whose Secret is deleted.
const ANOTHER: &str = "; without its Secret nacre makes another at once";

pub(super) fn examine(seen: &Observed) -> Vec<Finding> {
    let name = format!("ValidatingWebhookConfiguration {CONFIGURATION}");
    let may_not = format!("get validatingwebhookconfiguration {CONFIGURATION}");
    if let Some(unseen) = AREA.unseen(&seen.webhook, &name, &may_not) {
        return vec![unseen];
    }
    let Reading::Found(configuration) = &seen.webhook else {
        let late = "a bad request is stored first and refused by its condition";
        if seen.values().is_ok_and(|values| values.get("webhook") == Some(&false.into())) {
            return vec![AREA.note(format!("the webhook is off (webhook: false): {late}"))];
        }
        return vec![AREA.warning(format!("there is no {name}: {late}"), seen.installer())];
    };
    let webhooks = configuration.webhooks.as_deref().unwrap_or_default();
    let mut findings = Vec::new();
    if webhooks.iter().any(|webhook| webhook.failure_policy.as_deref() == Some("Fail")) {
        findings.push(AREA.warning(
            format!("{name} has failurePolicy Fail: nobody can make a request while nacre is down"),
            "set webhooks[0].failurePolicy to Ignore; the controllers check everything again",
        ));
    }
    let bundles: Vec<&[u8]> = webhooks
        .iter()
        .map(|webhook| {
            webhook.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default()
        })
        .collect();
    if bundles.is_empty() || bundles.iter().any(|bundle| bundle.is_empty()) {
        findings.push(AREA.problem(
            format!("{name} has no caBundle: the API server cannot verify nacre, and does not call it"),
            "nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have",
        ));
        return findings;
    }
    findings.push(certificate(seen, &bundles));
    findings
}

fn certificate(seen: &Observed, bundles: &[&[u8]]) -> Finding {
    let renew = format!("kubectl delete secret {SECRET} -n {}", seen.namespace);
    let may_not = format!("get secret {SECRET} in namespace {}", seen.namespace);
    if let Some(unseen) = AREA.unseen(&seen.certificate, "the webhook's certificate", &may_not) {
        return unseen;
    }
    match &seen.certificate {
        Reading::Found(known) if bundles.iter().any(|bundle| *bundle != known.bundle) => AREA.problem(
            "the webhook's caBundle is not the authority of nacre's certificate: the API server refuses to ask",
            "nacre writes it as soon as it is leader; if it runs, /readyz names the permission it does not have",
        ),
        Reading::Found(known) => match known.validity {
            Validity::Valid if program::is_down(seen) => AREA.warning(
                "the webhook is set up, but nacre does not run: a bad request is stored first and refused by its condition",
                "start nacre; see above",
            ),
            Validity::Valid => AREA.ok("the API server asks nacre about requests, and its certificate fits"),
            Validity::Expiring => AREA.warning(
                format!("the webhook's certificate ends within a day{ANOTHER}"),
                renew,
            ),
            Validity::Invalid => AREA.problem(
                format!(
                    "the webhook's certificate is out of date or for other names: the API server refuses to ask{ANOTHER}"
                ),
                renew,
            ),
        },
        _ => AREA.problem(
            format!("the webhook has no certificate: there is no Secret {SECRET} in {}", seen.namespace),
            "nacre makes it as soon as it is leader; if it runs, /readyz names the permission it does not have",
        ),
    }
}

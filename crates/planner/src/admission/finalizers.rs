//! The API server puts nacre's finalizer onto new requests, which saves nacre a write for each.
//!
//! Only while nacre's Deployment exists and has replicas: a finalizer that nobody removes would keep a request for ever.
//! `nacre operator` scales it down before it removes finalizers, and a request that arrives then must get none.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, ParamRef};

use crate::install::CONTROLLER;
use crate::install::uninstall::FINALIZERS;
use crate::vap::{Draft, cel::at};

/// Its name, and its binding's.
const NAME: &str = "nacre-finalizers";

/// The API server itself writes the number where a Deployment names none.
const RUNS: &str = "params.spec.replicas != 0";

/// Adds the finalizer of the kind to what there is.
pub(super) fn finalizers() -> MutatingAdmissionPolicy {
    // nacre puts none onto schedules: it has nothing to do when one goes.
    let held: Vec<_> = FINALIZERS.iter().filter(|(kind, _)| *kind != Kind::NonAdminSchedule).collect();
    let resources: Vec<&str> = held.iter().map(|(kind, _)| kind.plural()).collect();
    let of_kind = held.iter().rev().fold("''".to_owned(), |rest, (kind, finalizer)| {
        format!("request.resource.resource == '{}' ? '{finalizer}' : ({rest})", kind.plural())
    });
    let over = [(Kind::NonAdminBackup.group(), resources.as_slice())];
    Draft::over(NAME, &["CREATE"], &over)
        .for_each(Kind::Deployment)
        .only_if("runs", RUNS)
        .with("finalizers", at("object", &["metadata", "finalizers"], "[]"))
        .with("own", of_kind)
        .patching(
            "variables.own in variables.finalizers ? [] : \
             [JSONPatch{op: 'add', path: '/metadata/finalizers', value: variables.finalizers + [variables.own]}]",
        )
        .mutating()
}

/// Where the Deployment is.
pub(super) fn controller(namespace: &str) -> ParamRef {
    ParamRef {
        name: Some(CONTROLLER.to_owned()),
        namespace: Some(namespace.to_owned()),
        // Without a Deployment the policy does nothing.
        parameter_not_found_action: Some("Allow".to_owned()),
        selector: None,
    }
}

//! The installation in parts, each for any namespace of Velero's: what the files in `deploy` hold for `velero`.

use api::Kind;

use super::{Settings, definitions, extras, is_mutation, objects, operator, recorder, request_definitions};
use crate::{Object, admission, velero_view};

/// A part of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The CRDs: `deploy/crds`.
    Crds,
    /// The CRDs of tenants' requests alone, without the DataProtectionApplication, which is OADP's on OADP.
    RequestCrds,
    /// Service account, roles and program: `deploy/nacre.yaml`.
    Controller,
    /// Admission policies and the webhook's configuration: `deploy/admission.yaml`.
    Admission,
    /// Policies that record who asks, from Kubernetes 1.36 on: `deploy/requester.yaml`.
    Requester,
    /// The same by nacre's webhook, before: `deploy/requester-webhook.yaml`.
    RequesterWebhook,
    /// The roles of the Velero view: `deploy/velero-view.yaml`.
    VeleroView,
    /// `nacre operator`: `deploy/operator.yaml`.
    Operator,
    /// What OADP's own role leaves out.
    Oadp,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Crds,
        Self::RequestCrds,
        Self::Controller,
        Self::Admission,
        Self::Requester,
        Self::RequesterWebhook,
        Self::VeleroView,
        Self::Operator,
        Self::Oadp,
    ];

    /// As it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crds => "crds",
            Self::RequestCrds => "request-crds",
            Self::Controller => "controller",
            Self::Admission => "admission",
            Self::Requester => "requester",
            Self::RequesterWebhook => "requester-webhook",
            Self::VeleroView => "velero-view",
            Self::Operator => "operator",
            Self::Oadp => "oadp",
        }
    }

    /// Its objects, in an order in which they can be applied; on OADP for this service account.
    pub fn objects(self, settings: &Settings, account: &str) -> Vec<Object> {
        let namespace = settings.namespace.as_str();
        let of = |wanted: &dyn Fn(&Object) -> bool| {
            let mut all = objects(&Settings { velero_view: false, ..settings.clone() });
            all.retain(|object| object.kind != Kind::CustomResourceDefinition && wanted(object));
            all
        };
        let held = admission::objects(namespace);
        let is_held = |object: &Object| {
            held.iter().any(|other| other.kind == object.kind && other.name() == object.name())
        };
        match self {
            Self::Crds => definitions(),
            Self::RequestCrds => request_definitions(),
            Self::Controller => of(&|object| !is_held(object)),
            Self::Admission => of(&|object| is_held(object) && !is_mutation(object)),
            Self::Requester => of(&is_mutation),
            Self::RequesterWebhook => recorder(settings),
            Self::VeleroView => velero_view::roles::objects(namespace, &settings.aggregate_to),
            Self::Operator => operator(settings),
            Self::Oadp => extras(namespace, account, &settings.aggregate_to),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Every value of a field of this name, at any depth.
    fn values<'a>(body: &'a Value, field: &str, found: &mut Vec<&'a str>) {
        match body {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if name == field {
                        found.extend(value.as_str());
                    }
                    values(value, field, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| values(item, field, found)),
            _ => {}
        }
    }

    /// Whoever has Velero elsewhere applies nothing that is about the namespace `velero`.
    #[test]
    fn every_part_can_be_had_for_another_namespace() {
        let settings = Settings { namespace: "openshift-adp".to_owned(), ..Settings::default() };
        for part in Part::ALL {
            let objects = part.objects(&settings, "robot");
            assert!(!objects.is_empty(), "{}", part.name());
            for object in objects.iter().filter(|object| object.kind != Kind::CustomResourceDefinition) {
                let (mut places, text) = (Vec::new(), object.body.to_string());
                values(&object.body, "namespace", &mut places);
                let other = places.iter().find(|place| !["openshift-adp", "kube-system"].contains(place));
                assert_eq!(other, None, "{} {}", object.kind.name(), object.name());
                for word in [
                    "serviceaccount:velero:",
                    "serviceaccounts:velero",
                    "namespace == 'velero'",
                    "namespace == \\\"velero\\\"",
                ] {
                    assert!(!text.contains(word), "{word} in {} {}", object.kind.name(), object.name());
                }
            }
        }
    }
}

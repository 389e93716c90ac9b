//! Facts about requests: namespace, location and spec, and whether the location was changed since.

use anyhow::{Result, bail};
use api::{
    ApprovalDecision, NonAdminBackupStorageLocation as Location,
    NonAdminBackupStorageLocationRequest as Request, RequestPhase,
};
use jiff::Timestamp;
use planner::location::{
    endpoint_of,
    review::{Difference, StorageRequest, approved_by_policy, differences, last_decision, meant, phase},
    stored_prefix,
};
use serde::Serialize;

use crate::{connect::Session, list, output::remark, style, table::Cell};

/// Everything there is, as far as the caller may read it.
pub(super) struct Facts {
    pub(super) requests: Vec<(Request, Option<String>)>,
    /// None if they are not for the caller to read.
    locations: Option<Vec<Location>>,
}

/// Who asks for what, and where that stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) namespace: String,
    pub(super) location: String,
    /// The request's own name.
    pub(super) request: String,
    pub(super) state: RequestPhase,
    pub(super) decision: ApprovalDecision,
    /// It is approved because the policy requires no approval; nobody approved it by hand.
    pub(super) approved_by_policy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bucket: Option<String>,
    /// Where in the bucket Velero would keep backups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prefix: Option<String>,
    /// What the location says now where that is not what was asked for; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) differences: Option<Vec<Difference>>,
    /// The location is gone.
    pub(super) gone: bool,
    /// Since when it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreadable: Option<String>,
}

impl Facts {
    /// Reads all requests, and the locations they are about.
    pub(super) async fn read(session: &Session) -> Result<Self> {
        let (requests, locations) = tokio::join!(
            list::all::<Request>(session, Some(&session.velero_namespace), None, false),
            list::all::<Location>(session, None, None, false),
        );
        let locations = match locations {
            Ok(found) => Some(found.items.into_iter().map(|(location, _)| location).collect()),
            Err(error) if is_forbidden(&error) => {
                remark("tenants' locations are not for you to read; whether one has changed is not known");
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { requests: requests?.items, locations })
    }

    /// The one request that is meant by this, of this namespace if one was given; or a list of those that could be, and
    /// nothing done.
    pub(super) fn find(&self, text: &str, given: Option<&str>) -> Result<&Request> {
        let requests = self.requests.iter().map(|(request, _)| request);
        let here =
            |request: &&Request| given.is_none_or(|given| StorageRequest::from(*request).namespace == given);
        let several = match meant(requests.filter(here), text) {
            Ok(request) => return Ok(request),
            Err(several) => several,
        };
        if several.is_empty() {
            let place = given.map(|given| format!(" in namespace {given}")).unwrap_or_default();
            bail!("no request fits {text:?}{place}; `kubectl nacre request list` shows which there are");
        }
        let lines: Vec<String> = several
            .iter()
            .map(|request| {
                let asked = StorageRequest::from(*request);
                format!("  {}/{}   {}", asked.namespace, asked.location, asked.request)
            })
            .collect();
        bail!("{text:?} matches several requests, and nothing was changed; choose one:\n{}", lines.join("\n"))
    }

    /// The location that a request was made for.
    pub(super) fn location(&self, request: &Request) -> Option<&Location> {
        let made_for = |location: &&Location| {
            planner::ownership::made_for(
                &request.metadata,
                &location.metadata,
                api::labels::NABSL_NAME,
                api::labels::NABSL_NAMESPACE,
            )
        };
        self.locations.iter().flatten().find(made_for)
    }

    pub(super) fn summary(&self, request: &Request, unreadable: Option<&str>) -> Summary {
        let asked = StorageRequest::from(request);
        let location = self.location(request);
        let differences = asked
            .spec
            .zip(location)
            .map(|(spec, location)| differences(spec, &location.spec.backup_storage_location_spec));
        let decision = last_decision(request);
        let reported = request.status.as_ref().and_then(|status| status.phase);
        let storage = asked.spec.map(|spec| &spec.object_storage);
        Summary {
            namespace: asked.namespace.to_owned(),
            location: asked.location.to_owned(),
            request: asked.request.to_owned(),
            state: reported.unwrap_or_else(|| phase(decision)),
            decision,
            approved_by_policy: approved_by_policy(request),
            provider: asked.spec.map(|spec| spec.provider.clone()),
            endpoint: asked.spec.and_then(endpoint_of).map(|endpoint| endpoint.to_string()),
            bucket: storage.map(|storage| storage.bucket.clone()),
            prefix: storage.map(|storage| stored_prefix(asked.namespace, storage.prefix.as_deref())),
            differences,
            gone: self.locations.is_some() && location.is_none(),
            since: request.metadata.creation_timestamp.as_ref().map(|time| time.0),
            unreadable: unreadable.map(str::to_owned),
        }
    }
}

impl Summary {
    /// Where the decision stands, in colour.
    pub(super) fn state(&self) -> Cell {
        if self.unreadable.is_some() {
            return Cell::painted(style::BAD, "Unreadable");
        }
        let (style, word) = match self.state {
            RequestPhase::Pending => (style::WARNING, "Pending"),
            RequestPhase::Approved if self.approved_by_policy => (style::GOOD, "Approved by policy"),
            RequestPhase::Approved => (style::GOOD, "Approved"),
            RequestPhase::Rejected => (style::BAD, "Rejected"),
        };
        Cell::painted(style, word)
    }

    /// What is not as it was asked for, by fields.
    pub(super) fn changed(&self) -> Cell {
        if self.gone {
            return Cell::painted(style::QUIET, "location gone");
        }
        match &self.differences {
            None => "?".into(),
            Some(none) if none.is_empty() => "-".into(),
            Some(some) => {
                let fields: Vec<&str> = some.iter().map(|changed| changed.field.as_str()).collect();
                Cell::painted(style::BAD, fields.join(","))
            }
        }
    }

    /// Endpoint, bucket and prefix on one line.
    pub(super) fn place(&self) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or("an unknown store");
        let bucket = self.bucket.as_deref().unwrap_or_default();
        format!("{endpoint}, bucket {bucket}, under {}", self.prefix.as_deref().unwrap_or_default())
    }
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.is_forbidden())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn request(namespace: &str, name: &str, decision: &str) -> Request {
        let own = format!("{namespace}-{name}-uid");
        serde_json::from_value(json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocationRequest",
            "metadata": {"name": own, "namespace": "velero", "resourceVersion": "7", "creationTimestamp": "2026-11-15T12:00:00Z",
                "annotations": {"openshift.io/oadp-nabsl-origin-name": name, "openshift.io/oadp-nabsl-origin-namespace": namespace}},
            "spec": {"approvalDecision": decision},
            "status": {"nonAdminBackupStorageLocation": {"requestedSpec": spec("backups"), "nacuuid": own, "name": name,
                "namespace": namespace}},
        }))
        .unwrap()
    }

    fn spec(bucket: &str) -> Value {
        json!({"provider": "aws", "objectStorage": {"bucket": bucket, "prefix": "daily"},
            "config": {"region": "eu-west-1", "s3Url": "HTTP://Store.Example.com:80/"}, "credential": {"name": "keys", "key": "cloud"}})
    }

    pub(crate) fn location(namespace: &str, name: &str, bucket: &str) -> Location {
        serde_json::from_value(json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"backupStorageLocationSpec": spec(bucket)},
        }))
        .unwrap()
    }

    pub(crate) fn facts() -> Facts {
        Facts {
            requests: vec![
                (request("shop", "mine", "pending"), None),
                (request("farm", "mine", "approve"), None),
                (request("mill", "gone", "reject"), None),
            ],
            locations: Some(vec![location("shop", "mine", "backups"), location("farm", "mine", "another")]),
        }
    }

    #[test]
    fn what_fits_several_is_listed_and_not_chosen() {
        let facts = facts();
        let find = |text, given| facts.find(text, given).map_err(|error| error.to_string());
        assert!(find("shop/mine", None).is_ok() && find("gone", None).is_ok());
        let reported = find("mine", None).unwrap_err();
        assert_eq!(
            reported,
            "\"mine\" matches several requests, and nothing was changed; choose one:\n  shop/mine   shop-mine-uid\n  farm/mine   farm-mine-uid"
        );
        assert!(find("yours", None).unwrap_err().contains("no request fits \"yours\""));
        assert_eq!(find("mine", Some("farm")).unwrap().metadata.name.as_deref(), Some("farm-mine-uid"));
        let elsewhere = find("gone", Some("farm")).unwrap_err();
        assert!(elsewhere.contains("no request fits \"gone\" in namespace farm"), "{elsewhere}");
    }

    #[test]
    fn without_the_right_to_read_locations_nothing_is_claimed() {
        let blind = Facts { locations: None, ..facts() };
        let summary = blind.summary(&blind.requests[0].0, None);
        assert!(summary.differences.is_none() && !summary.gone);
        assert_eq!(summary.changed(), Cell::from("?"));
    }
}

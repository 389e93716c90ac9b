//! Admission, as an installation sets it up.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use api::{NonAdminBackup, labels};
use bed::{Builder, eventually};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::test_cluster::{deploy, free_address};
use crate::{Nacre, Tenant, TestCluster, VELERO};

const TIMEOUT: Duration = Duration::from_mins(2);

/// An API server without policies that change objects, as before Kubernetes 1.36.
#[must_use]
pub fn before_1_36(bed: Builder) -> Builder {
    let kinds = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];
    let off = kinds.map(|kind| format!("admissionregistration.k8s.io/v1/{kind}=false")).join(",");
    bed.api_server_flag(&format!("--runtime-config={off}"))
        .api_server_flag("--disable-admission-plugins=MutatingAdmissionPolicy")
}

/// Why a request was refused; none if it was not.
pub fn refusal<T>(answer: kube::Result<T>) -> Result<Option<String>> {
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => Ok(Some(status.message)),
        Err(error) => bail!("no answer: {error}"),
    }
}

/// Whether this policy refused; a refusal by RBAC would prove nothing.
pub fn refused_by<T>(policy: &str, answer: kube::Result<T>) -> Result<()> {
    let Some(message) = refusal(answer)? else { bail!("{policy} lets it pass") };
    ensure!(message.contains(&format!("ValidatingAdmissionPolicy '{policy}'")), "not by {policy}: {message}");
    Ok(())
}

impl TestCluster {
    /// Puts the policies and the webhook's configuration into the cluster, and waits until the policies are in force.
    pub async fn admission(&self) -> Result<()> {
        self.bed.apply_path(&deploy("admission.yaml")).await?;
        self.until_policies_are_in_force().await
    }

    /// Waits until the API server enforces every policy that was created before this call.
    ///
    /// It learns of policies, and of their bindings, in the order in which they were created. So one more policy is
    /// created: when that one refuses, all the others do.
    pub async fn until_policies_are_in_force(&self) -> Result<()> {
        self.bed
            .apply_yaml(
                "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
                 metadata: {name: last}\nspec:\n  \
                 matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [namespaces], \
                 operations: [CREATE]}]}\n  \
                 matchConditions: [{name: probe, expression: \"object.metadata.name == 'probe'\"}]\n  \
                 validations: [{expression: 'false'}]\n---\n\
                 apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                 metadata: {name: last}\nspec: {policyName: last, validationActions: [Deny]}\n",
            )
            .await?;
        let namespaces = Api::<Namespace>::all(self.bed.client().await?);
        let probe = serde_json::from_value(json!({"metadata": {"name": "probe"}}))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the policies to be in force", TIMEOUT, async || {
            refused_by("last", namespaces.create(&dry, &probe).await)
        })
        .await
    }

    /// A planted weakness: takes every policy out of force, and waits until none is. [`Self::admission`] comes before.
    pub async fn take_policies_away(&self) -> Result<()> {
        let client = self.bed.client().await?;
        let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
        let mut names: Vec<_> =
            bindings.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        // The one that is probed goes last: the API server hears of them in this order.
        names.sort_by_key(|name| name == "last");
        for name in names {
            bindings.delete(&name, &DeleteParams::default()).await?;
        }
        let namespaces = Api::<Namespace>::all(client);
        let probe = serde_json::from_value(json!({"metadata": {"name": "probe"}}))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the policies to be gone", TIMEOUT, async || namespaces.create(&dry, &probe).await)
            .await?;
        Ok(())
    }

    /// Has the API server record who asks, and waits until it does.
    pub async fn record_requesters(&self) -> Result<()> {
        self.bed.apply_path(&deploy("requester.yaml")).await?;
        self.until_recorded().await
    }

    /// Has nacre's webhook record who asks, once it answers ([`Self::until_recorded`]).
    pub async fn record_by_webhook(&self) -> Result<()> {
        self.bed.apply_path(&deploy("requester-webhook.yaml")).await
    }

    /// Waits until it is recorded who asks.
    pub async fn until_recorded(&self) -> Result<()> {
        let requests = Api::<NonAdminBackup>::namespaced(self.bed.client().await?, "default");
        let probe = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "probe"}, "spec": {"backupSpec": {}},
        });
        let probe = serde_json::from_value(probe)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("who asks to be recorded", TIMEOUT, async || {
            let made = requests.create(&dry, &probe).await?;
            let is_recorded = made.annotations().contains_key(labels::REQUESTER);
            ensure!(is_recorded && !made.finalizers().is_empty(), "{:?}", made.metadata);
            Ok(())
        })
        .await
    }

    /// Lets the API server ask at an address of this machine, since there are no pods for a Service to find.
    pub async fn ask_at(&self, address: SocketAddr) -> Result<()> {
        let client = self.bed.client().await?;
        let reviewing = Api::<ValidatingWebhookConfiguration>::all(client.clone());
        let recording = Api::<MutatingWebhookConfiguration>::all(client);
        // nacre writes there too: what it wrote meanwhile must not be taken back.
        eventually("the configuration to be changed", TIMEOUT, async || {
            let mut found = reviewing.get("nacre").await?;
            for webhook in found.webhooks.iter_mut().flatten() {
                webhook.client_config.service = None;
                webhook.client_config.url = Some(format!("https://{address}/review"));
            }
            reviewing.replace("nacre", &PostParams::default(), &found).await?;
            let Some(mut found) = recording.get_opt("nacre-requester").await? else { return Ok(()) };
            for webhook in found.webhooks.iter_mut().flatten() {
                webhook.client_config.service = None;
                webhook.client_config.url = Some(format!("https://{address}/record"));
            }
            recording.replace("nacre-requester", &PostParams::default(), &found).await?;
            anyhow::Ok(())
        })
        .await
    }

    /// Lets the API server ask at nacre's Service again, as in a cluster with pods. Here nobody answers then.
    pub async fn ask_at_service(&self) -> Result<()> {
        let client = self.bed.client().await?;
        let recording = Api::<MutatingWebhookConfiguration>::all(client);
        let service = |path: &str| {
            serde_json::from_value(
                json!({"name": "nacre-webhook", "namespace": self.velero(), "path": path, "port": 443}),
            )
        };
        eventually("the configuration to be changed back", TIMEOUT, async || {
            let mut found = recording.get("nacre-requester").await?;
            for webhook in found.webhooks.iter_mut().flatten() {
                webhook.client_config.url = None;
                webhook.client_config.service = Some(service("/record")?);
            }
            recording.replace("nacre-requester", &PostParams::default(), &found).await?;
            anyhow::Ok(())
        })
        .await
    }

    /// Starts a second replica, with its webhook at its own address.
    pub async fn start_standby(&self, more: &[(&str, &str)]) -> Result<(Nacre, SocketAddr)> {
        let address = free_address()?;
        let here = address.to_string();
        let reported: Vec<_> =
            more.iter().copied().chain([("WEBHOOK_BIND_ADDRESS", here.as_str())]).collect();
        let nacre = self.launch("standby", VELERO, &self.account().await?, &reported)?;
        nacre.until_ready().await?;
        Ok((nacre, address))
    }

    /// Starts nacre with its webhook, and waits until the API server asks it.
    pub async fn start_answering(
        &self,
        tenant: &Tenant<'_>,
        more: &[(&str, &str)],
    ) -> Result<(Nacre, SocketAddr)> {
        let address = free_address()?;
        self.ask_at(address).await?;
        let here = address.to_string();
        let reported: Vec<_> =
            more.iter().copied().chain([("WEBHOOK_BIND_ADDRESS", here.as_str())]).collect();
        let nacre = self.start_nacre_in(&self.account().await?, &reported).await?;
        eventually("the webhook to be asked", TIMEOUT, async || {
            let said = tenant.would_create("probe", json!({"includeClusterResources": true})).await?;
            ensure!(said.is_some_and(|said| said.contains("requests.nacre.dev")), "nobody objects");
            Ok(())
        })
        .await?;
        Ok((nacre, address))
    }
}

impl Tenant<'_> {
    /// What would be said to a NonAdminBackup with this spec.
    pub async fn would_create(&self, name: &str, spec: Value) -> Result<Option<String>> {
        let body = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": name}, "spec": {"backupSpec": spec},
        });
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        refusal(self.api::<NonAdminBackup>().create(&dry, &serde_json::from_value(body)?).await)
    }
}

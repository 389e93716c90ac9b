//! Several replicas and one lease: the audit log shows which one wrote when.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::Backup;
use api::{NonAdminBackup, Phase};
use bed::{Request, Requests, eventually};
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{NACRE, Nacre, Tenant, TestCluster, VELERO};

/// Where the second install is.
pub const SECOND: &str = "second";
/// A lease that is short enough for a story, and long enough for a busy machine.
pub const BRISK: [(&str, &str); 3] = [
    ("NACRE_LEASE_DURATION", "6s"),
    ("NACRE_LEASE_RENEW_PERIOD", "500ms"),
    ("NACRE_LEASE_RETRY_PERIOD", "200ms"),
];
/// The account that every install runs as.
const ACCOUNT: &str = "non-admin-controller";
/// How long a busy machine may take for what should be at once.
const TIMEOUT: Duration = Duration::from_mins(2);

/// When somebody wrote, the last who had written the lease was the same; and nobody else wrote the lease before that
/// write had its answer.
pub fn only_holders_act(requests: &Requests) -> Result<()> {
    let requests = requests.by(NACRE);
    // The name of what is created is not in the log: in these stories it is the Secret in the Lease's place.
    let of_lease = |request: &Request| {
        request.is_of_lease() || (request.resource == "secrets" && request.verb == "create")
    };
    let writes = requests.only(|request| request.is_write() && !of_lease(request));
    let leases = requests.only(|request| request.is_write() && of_lease(request) && request.code < 300);
    for write in writes.as_slice() {
        let until_then = leases.as_slice().iter().filter(|lease| lease.received <= write.received);
        let holder = until_then.max_by_key(|lease| lease.received);
        let holder = holder.with_context(|| format!("{write:?} came before anybody had the lease"))?;
        ensure!(
            sender(holder) == sender(write),
            "{write:?} came when the lease was last written by {holder:?}"
        );
        let meanwhile = leases.as_slice().iter().find(|lease| {
            lease.received > write.received
                && lease.received < write.answered
                && sender(lease) != sender(write)
        });
        ensure!(meanwhile.is_none(), "{write:?} was on its way when {meanwhile:?}");
    }
    Ok(())
}

/// Which process sent it: each has a token of its own.
pub fn sender(request: &Request) -> (&str, &str) {
    (&request.user, &request.credential)
}

/// Waits until a nacre leads, or until it does not.
pub async fn leads(nacre: &Nacre, wanted: bool) -> Result<()> {
    let wanted = f64::from(u8::from(wanted));
    let leading = async || {
        let leads = nacre.metric("nacre_leader").await?;
        ensure!((leads - wanted).abs() < 0.5, "nacre_leader is {leads}: {}", nacre.details().await?);
        Ok(())
    };
    nacre.process.must_do(eventually("leadership to change", TIMEOUT, leading)).await
}

/// Waits until a request is `Created`.
pub async fn created(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    tenant
        .wait("it to be Created", name, |backup: Option<&NonAdminBackup>| {
            (backup?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
        })
        .await
}

impl TestCluster {
    /// A new token for an install's account, and a file with it: so each process can be distinguished.
    pub async fn account_of(&self, namespace: &str) -> Result<PathBuf> {
        self.account_named(namespace, ACCOUNT).await
    }

    /// The same for another account.
    pub async fn account_named(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let written = self.bed.service_account_kubeconfig(namespace, account).await?;
        let own = format!("{namespace}.{account}.{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let own = written.with_file_name(own);
        std::fs::copy(&written, &own)?;
        Ok(own)
    }

    /// Installs nacre a second time, in a namespace of its own, with the same rights.
    pub async fn install_second(&self) -> Result<()> {
        self.bed.namespace(SECOND).await?;
        let role = Api::<Role>::namespaced(self.bed.client().await?, VELERO).get("nacre").await?;
        let rbac = "rbac.authorization.k8s.io";
        let version = format!("{rbac}/v1");
        let subject = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SECOND}]);
        let binding = |kind: &str, namespace: Value, role: &str| {
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "nacre-second", "namespace": namespace},
                "roleRef": {"apiGroup": rbac, "kind": role, "name": "nacre"}, "subjects": subject})
        };
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": SECOND}}),
            // No Velero works there, so nothing would make room for what waits.
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nacre-policy", "namespace": SECOND},
                "data": {"policy.yaml": "queue: { inFlight: 0 }\n"}}),
            json!({"apiVersion": version, "kind": "Role", "metadata": {"name": "nacre", "namespace": SECOND},
                "rules": role.rules}),
            binding("RoleBinding", json!(SECOND), "Role"),
            binding("RoleBinding", json!("kube-system"), "Role"),
            binding("ClusterRoleBinding", json!(null), "ClusterRole"),
        ];
        let objects = objects.into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
        self.bed.apply(&objects).await?;
        // The API server takes a moment to know rights; without them nacre would count kinds as empty.
        let user = format!("system:serviceaccount:{SECOND}:{ACCOUNT}");
        self.bed.wait_allowed(&user, SECOND, "list", "velero.io", "backups").await?;
        self.bed.wait_allowed(&user, "kube-system", "create", "coordination.k8s.io", "leases").await?;
        self.bed.wait_allowed(&user, "default", "list", "oadp.openshift.io", "nonadminbackups").await
    }

    /// Both installs start at once with work to do: one is leader, the other names it.
    pub async fn two_replicas(&self, round: usize) -> Result<()> {
        self.forget_lease().await?;
        let tenant = self.tenant(&format!("contest-{round}"), "ada").await?;
        let requests = ["one", "two", "three"];
        for name in requests {
            tenant.back_up(name).await?;
        }
        let mut installs = [VELERO, SECOND];
        installs.rotate_left(round % 2);
        let accounts = [self.account_of(installs[0]).await?, self.account_of(installs[1]).await?];
        let mark = self.bed.audit().mark().await?;
        let start = |number: usize| {
            let name = format!("{}-{round}", installs[number]);
            self.launch(&name, installs[number], &accounts[number], &[])
        };
        let both = [start(0)?, start(1)?];
        for nacre in &both {
            nacre.until_ready().await?;
        }
        for name in requests {
            created(&tenant, name).await?;
        }
        let first = both[0].metric("nacre_leader").await? > 0.5;
        let (winner, loser) = if first { (0, 1) } else { (1, 0) };
        let words = format!("standby: {0}/{0}-{round}_", installs[winner]);
        let reported = async || {
            let details = both[loser].details().await?;
            ensure!(details.contains(&words), "{details}");
            anyhow::Ok(())
        };
        eventually("the loser to say who holds the lease", TIMEOUT, reported).await?;
        ensure!(both[loser].process.output().contains(&words), "its log says so too");
        for nacre in &both {
            ensure!(nacre.process.terminate(TIMEOUT).await? == Some(0), "it ends in peace");
        }
        let seen = self.bed.audit().since(mark).await?;
        only_holders_act(&seen)?;
        ensure!(!seen.by(NACRE).writes().is_empty(), "somebody acted");
        self.one_backup_each(&tenant.namespace, requests.len()).await
    }

    /// Each request has one Velero Backup, in one of the namespaces.
    async fn one_backup_each(&self, tenant: &str, requests: usize) -> Result<()> {
        let mut found = 0;
        for namespace in [VELERO, SECOND] {
            let backups = Api::<Backup>::namespaced(self.bed.client().await?, namespace);
            let all = backups.list(&ListParams::default()).await?.items;
            let own = all.iter().filter(|backup| {
                let annotations = backup.metadata.annotations.as_ref();
                annotations
                    .and_then(|all| all.get("openshift.io/oadp-nab-origin-namespace").map(String::as_str))
                    == Some(tenant)
            });
            found += own.count();
        }
        ensure!(found == requests, "{found} Velero Backups for {requests} requests");
        Ok(())
    }
}

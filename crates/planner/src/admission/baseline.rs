//! Pods out of storage that a tenant can write to: at the level *baseline* of the Pod Security Standards, or better,
//! whatever level the namespace has. OpenShift goes by the permissions of who creates a pod, and that is Velero.

use api::RestoredFrom;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::restored::over_restored;
use crate::vap::{Draft, cel::at, cel::list};

/// Pods, their containers that are added later, and what makes pods.
pub(super) const PODS: [(&str, &[&str]); 4] = [
    ("", &["pods", "pods/ephemeralcontainers", "podtemplates", "replicationcontrollers"]),
    ("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"]),
    ("batch", &["jobs", "cronjobs"]),
    ("apps.openshift.io", &["deploymentconfigs"]),
];

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const SYSCTLS: [&str; 11] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
];

const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// What can name a host that the kubelet then talks to.
const PROBES: [&[&str]; 5] = [
    &["livenessProbe"],
    &["readinessProbe"],
    &["startupProbe"],
    &["lifecycle", "postStart"],
    &["lifecycle", "preStop"],
];

const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What the level demands: an expression, and what is not met.
fn demands() -> Vec<(String, &'static str)> {
    let containers = |fine: &str| format!("variables.containers.all(one, {fine})");
    let contexts = |fine: &str| format!("variables.contexts.all(one, {fine})");
    let one = |path: &[&str], default: &str| format!("({})", at("one", path, default));
    let host = |field: &str| format!("({}) != true", at("variables.spec", &[field], "false"));
    let hosts: Vec<String> = PROBES
        .iter()
        .flat_map(|probe| {
            ["httpGet", "tcpSocket"].map(|how| one(&[probe, &[how, "host"][..]].concat(), "''"))
        })
        .collect();
    vec![
        (
            ["hostNetwork", "hostPID", "hostIPC"].map(host).join(" && "),
            "hostNetwork, hostPID and hostIPC are not allowed",
        ),
        (
            format!("({}).all(volume, !has(volume.hostPath))", at("variables.spec", &["volumes"], "[]")),
            "hostPath volumes are not allowed",
        ),
        (
            containers(&format!("{} != true", one(&["securityContext", "privileged"], "false"))),
            "privileged containers are not allowed",
        ),
        (
            containers(&format!(
                "{}.all(added, added in {})",
                one(&["securityContext", "capabilities", "add"], "[]"),
                list(&CAPABILITIES)
            )),
            "capabilities beyond those of the level may not be added",
        ),
        (
            containers(&format!(
                "{}.all(port, !has(port.hostPort) || port.hostPort == 0)",
                one(&["ports"], "[]")
            )),
            "hostPorts are not allowed",
        ),
        (
            containers(&format!("{} in ['', 'Default']", one(&["securityContext", "procMount"], "''"))),
            "procMount must be Default",
        ),
        (
            containers(&format!("[{}].all(host, host == '')", hosts.join(", "))),
            "probes and lifecycle hooks may not name a host",
        ),
        (
            contexts(&format!("{} != 'Unconfined'", one(&["seccompProfile", "type"], "''"))),
            "seccompProfile may not be Unconfined",
        ),
        (
            contexts(&format!("{} != 'Unconfined'", one(&["appArmorProfile", "type"], "''"))),
            "appArmorProfile may not be Unconfined",
        ),
        (
            format!(
                "variables.annotations.all(key, !key.startsWith('{APPARMOR}') || variables.annotations[key] in ['', 'runtime/default'] || \
                 variables.annotations[key].startsWith('localhost/'))"
            ),
            "AppArmor annotations may not say unconfined",
        ),
        (
            contexts(&format!(
                "{} in {} && {} == '' && {} == ''",
                one(&["seLinuxOptions", "type"], "''"),
                list(&SELINUX_TYPES),
                one(&["seLinuxOptions", "user"], "''"),
                one(&["seLinuxOptions", "role"], "''")
            )),
            "seLinuxOptions may name no user, no role, and only the types of the level",
        ),
        (
            contexts(&format!("{} != true", one(&["windowsOptions", "hostProcess"], "false"))),
            "hostProcess is not allowed",
        ),
        (
            format!(
                "({}).all(one, one.name in {})",
                at("variables.spec", &["securityContext", "sysctls"], "[]"),
                list(&SYSCTLS)
            ),
            "sysctls beyond those of the level are not allowed",
        ),
    ]
}

/// The pod in an object of any of these kinds: the object itself, or the template in it.
pub(super) fn pod() -> String {
    let template = |path: &[&str], otherwise: &str| format!("({})", at("object", path, otherwise));
    let of_controller = template(&["spec", "template"], "object");
    let of_cron_job = template(&["spec", "jobTemplate", "spec", "template"], &of_controller);
    template(&["template"], &of_cron_job)
}

/// Pods, and templates of pods, that a tenant's restore brings back from the tenant's own storage.
pub(super) fn pods(namespace: &str) -> ValidatingAdmissionPolicy {
    let draft = over_restored("nacre-restored-pods", &PODS, &[RestoredFrom::TenantStorage], namespace);
    at_baseline(draft, "pods come back from a tenant's own storage at Pod Security level baseline")
}

/// Holds the pods of a policy to the level; a refusal begins with these words.
pub(super) fn at_baseline(draft: Draft, rule: &str) -> ValidatingAdmissionPolicy {
    let containers = ["containers", "initContainers", "ephemeralContainers"]
        .map(|field| format!("({})", at("variables.spec", &[field], "[]")));
    let draft = draft
        .with("pod", pod())
        .with("spec", at("variables.pod", &["spec"], "{}"))
        .with("annotations", at("variables.pod", &["metadata", "annotations"], "{}"))
        .with("containers", containers.join(" + "))
        .with(
            "contexts",
            format!(
                "[{}] + variables.containers.map(one, {})",
                at("variables.spec", &["securityContext"], "{}"),
                at("one", &["securityContext"], "{}")
            ),
        );
    demands()
        .into_iter()
        .fold(draft, |draft, (expression, what)| draft.demand(expression, &format!("{rule}: {what}")))
        .done()
}

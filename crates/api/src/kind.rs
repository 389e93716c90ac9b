//! Every kind nacre touches, by name, and where the API server keeps it.

use kube::core::ApiResource;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $group:literal / $version:literal / $plural:literal, $scope:ident;)*) => {
        /// A kind of object nacre reads or writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        impl Kind {
            /// All of them, in the order above.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The kind as it stands in a manifest.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// The API group; empty for the core group.
            pub const fn group(self) -> &'static str {
                match self { $(Self::$kind => $group,)* }
            }

            /// The version nacre speaks.
            pub const fn version(self) -> &'static str {
                match self { $(Self::$kind => $version,)* }
            }

            /// The plural, as it stands in URLs and roles.
            pub const fn plural(self) -> &'static str {
                match self { $(Self::$kind => $plural,)* }
            }

            /// Whether objects of this kind live in a namespace.
            pub const fn namespaced(self) -> bool {
                match self { $(Self::$kind => Scope::$scope.namespaced(),)* }
            }
        }
    };
}

enum Scope {
    Namespaced,
    Cluster,
}

impl Scope {
    const fn namespaced(self) -> bool {
        matches!(self, Self::Namespaced)
    }
}

kinds! {
    /// A tenant's request for a backup.
    NonAdminBackup = "oadp.openshift.io" / "v1alpha1" / "nonadminbackups", Namespaced;
    /// A tenant's request for a restore.
    NonAdminRestore = "oadp.openshift.io" / "v1alpha1" / "nonadminrestores", Namespaced;
    /// A tenant's own storage.
    NonAdminBackupStorageLocation = "oadp.openshift.io" / "v1alpha1" / "nonadminbackupstoragelocations", Namespaced;
    /// What an administrator approves or rejects.
    NonAdminBackupStorageLocationRequest = "oadp.openshift.io" / "v1alpha1" / "nonadminbackupstoragelocationrequests", Namespaced;
    /// A tenant's request for a log or the contents of a backup.
    NonAdminDownloadRequest = "oadp.openshift.io" / "v1alpha1" / "nonadmindownloadrequests", Namespaced;
    /// OADP's own configuration.
    DataProtectionApplication = "oadp.openshift.io" / "v1alpha1" / "dataprotectionapplications", Namespaced;
    /// Velero's backup.
    Backup = "velero.io" / "v1" / "backups", Namespaced;
    /// Velero's restore.
    Restore = "velero.io" / "v1" / "restores", Namespaced;
    /// Velero's storage location.
    BackupStorageLocation = "velero.io" / "v1" / "backupstoragelocations", Namespaced;
    /// Velero's request to delete a backup with its data.
    DeleteBackupRequest = "velero.io" / "v1" / "deletebackuprequests", Namespaced;
    /// Velero's request for a presigned URL.
    DownloadRequest = "velero.io" / "v1" / "downloadrequests", Namespaced;
    /// Velero's word about itself.
    ServerStatusRequest = "velero.io" / "v1" / "serverstatusrequests", Namespaced;
    /// A volume saved from inside its pod.
    PodVolumeBackup = "velero.io" / "v1" / "podvolumebackups", Namespaced;
    /// A volume brought back inside its pod.
    PodVolumeRestore = "velero.io" / "v1" / "podvolumerestores", Namespaced;
    /// A snapshot on its way to the bucket.
    DataUpload = "velero.io" / "v2alpha1" / "datauploads", Namespaced;
    /// A snapshot on its way back.
    DataDownload = "velero.io" / "v2alpha1" / "datadownloads", Namespaced;
    /// A claim to a volume.
    PersistentVolumeClaim = "" / "v1" / "persistentvolumeclaims", Namespaced;
    /// A volume.
    PersistentVolume = "" / "v1" / "persistentvolumes", Cluster;
    /// A pod.
    Pod = "" / "v1" / "pods", Namespaced;
    /// A program that runs on every node.
    DaemonSet = "apps" / "v1" / "daemonsets", Namespaced;
    /// A credential.
    Secret = "" / "v1" / "secrets", Namespaced;
    /// A policy, or an administrator's record of an adoption.
    ConfigMap = "" / "v1" / "configmaps", Namespaced;
    /// A tenant.
    Namespace = "" / "v1" / "namespaces", Cluster;
    /// Who a program is.
    ServiceAccount = "" / "v1" / "serviceaccounts", Namespaced;
    /// Where a program is reached.
    Service = "" / "v1" / "services", Namespaced;
    /// A program that runs.
    Deployment = "apps" / "v1" / "deployments", Namespaced;
    /// How many of its pods may be missing.
    PodDisruptionBudget = "policy" / "v1" / "poddisruptionbudgets", Namespaced;
    /// Which replica is leader.
    Lease = "coordination.k8s.io" / "v1" / "leases", Namespaced;
    /// Rights in a namespace.
    Role = "rbac.authorization.k8s.io" / "v1" / "roles", Namespaced;
    /// Rights, to be bound anywhere.
    ClusterRole = "rbac.authorization.k8s.io" / "v1" / "clusterroles", Cluster;
    /// Who has rights in a namespace.
    RoleBinding = "rbac.authorization.k8s.io" / "v1" / "rolebindings", Namespaced;
    /// Who has rights everywhere.
    ClusterRoleBinding = "rbac.authorization.k8s.io" / "v1" / "clusterrolebindings", Cluster;
    /// A rule the API server holds even while nacre is down.
    ValidatingAdmissionPolicy = "admissionregistration.k8s.io" / "v1" / "validatingadmissionpolicies", Cluster;
    /// Where such a rule applies.
    ValidatingAdmissionPolicyBinding = "admissionregistration.k8s.io" / "v1" / "validatingadmissionpolicybindings", Cluster;
    /// Who is asked before an object is accepted.
    ValidatingWebhookConfiguration = "admissionregistration.k8s.io" / "v1" / "validatingwebhookconfigurations", Cluster;
    /// Who changes an object before it is accepted.
    MutatingWebhookConfiguration = "admissionregistration.k8s.io" / "v1" / "mutatingwebhookconfigurations", Cluster;
    /// A kind, described.
    CustomResourceDefinition = "apiextensions.k8s.io" / "v1" / "customresourcedefinitions", Cluster;
    /// A change the API server makes to every object of a kind as it comes in.
    MutatingAdmissionPolicy = "admissionregistration.k8s.io" / "v1" / "mutatingadmissionpolicies", Cluster;
    /// Where such a change applies.
    MutatingAdmissionPolicyBinding = "admissionregistration.k8s.io" / "v1" / "mutatingadmissionpolicybindings", Cluster;
    /// A tenant's schedule of backups.
    NonAdminSchedule = "oadp.openshift.io" / "v1alpha1" / "nonadminschedules", Namespaced;
    /// Velero's own schedule; the Go controller made these.
    Schedule = "velero.io" / "v1" / "schedules", Namespaced;
}

impl Kind {
    /// `group/version`, or just the version in the core group.
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// What a dynamic client needs to know.
    pub fn resource(self) -> ApiResource {
        ApiResource {
            group: self.group().to_owned(),
            version: self.version().to_owned(),
            api_version: self.api_version(),
            kind: self.name().to_owned(),
            plural: self.plural().to_owned(),
        }
    }

    /// `plural.group`, as Velero's filters and CRD names spell it.
    pub fn group_resource(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }
}

//! The object stores nacre knows how to keep safe.

use serde::{Deserialize, Serialize};

/// The provider. Velero takes any installed plugin by name; tenants may only ask for these, because only of these nacre
/// knows what a credential or a configuration key can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Amazon S3 and whatever speaks its language.
    Aws,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcp,
}

impl Provider {
    /// Every provider there is.
    pub const ALL: [Self; 3] = [Self::Aws, Self::Azure, Self::Gcp];

    /// The provider a location names: Velero takes `aws` and `velero.io/aws` for the same.
    pub fn of(name: &str) -> Option<Self> {
        let short = name.strip_prefix("velero.io/").unwrap_or(name);
        Self::ALL.into_iter().find(|provider| provider.name() == short)
    }

    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Provider;

    #[test]
    fn a_provider_has_two_names_and_no_third() {
        assert_eq!(Provider::of("aws"), Some(Provider::Aws));
        assert_eq!(Provider::of("velero.io/gcp"), Some(Provider::Gcp));
        for other in
            ["", "AWS", "velero.io/", "velero.io/fs", "velero.io/velero.io/aws", "replicated.com/hostpath"]
        {
            assert_eq!(Provider::of(other), None, "{other:?}");
        }
    }
}

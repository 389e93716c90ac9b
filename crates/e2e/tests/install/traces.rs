//! All objects of nacre in a cluster: by name, by label, or by service account.

use anyhow::Result;
use bed::Bed;

/// Every object of every kind that is nacre's, as `Kind namespace/name`. CRDs stay by design, and Events expire that
/// ends by itself.
pub(crate) async fn traces(bed: &Bed) -> Result<Vec<String>> {
    let kinds = bed.kubectl(&["api-resources", "--verbs=list", "-o", "name"]).await?.ok()?;
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let template = "jsonpath={range .items[*]}{.kind}{\" \"}{.metadata.namespace}{\"/\"}{.metadata.name}{\" \"}{.metadata.labels}{\"\\n\"}{end}";
    let all = bed.kubectl(&["get", &kinds.join(","), "-A", "-o", template]).await?.ok()?;
    let ours = |line: &&str| {
        // Labels of namespaces are an administrator's.
        let others = ["CustomResourceDefinition ", "Namespace "].iter().any(|kind| line.starts_with(kind));
        !others && (line.contains("nacre") || line.contains("/non-admin-controller"))
    };
    let named = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(all.lines().filter(ours).map(named).collect())
}

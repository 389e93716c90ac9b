//! Who would re-create what a replacement removes: operators and GitOps.

use std::collections::BTreeMap;

use super::objects::Workload;

/// Labels and annotations by which a tool marks what it manages, and how to pause the tool.
const TOOLS: [(&str, &[&str], &str); 3] = [
    (
        "Argo CD",
        &["argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"],
        "turn off its automatic sync first (argocd app set NAME --sync-policy none)",
    ),
    (
        "Flux",
        &[
            "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/name",
            "kustomize.toolkit.fluxcd.io/namespace",
        ],
        "suspend it first (flux suspend kustomization NAME, or flux suspend helmrelease NAME)",
    ),
    ("Rancher Fleet", &["objectset.rio.cattle.io/id"], "pause its GitRepo first"),
];

/// Why a workload would be re-created by somebody else while its claims are replaced.
pub(super) fn problem(root: &Workload) -> Option<String> {
    if let Some(owner) = root.owner.as_ref().filter(|owner| owner.built_in.is_none()) {
        return Some(format!(
            "{} belongs to {}: an operator would re-create it while its claims are replaced; pause the operator first",
            root.called(),
            owner.called
        ));
    }
    marked(&root.labels).or_else(|| marked(&root.annotations)).map(|(tool, pause)| {
        format!(
            "{} is managed by {tool}, which would re-create it while its claims are replaced; {pause}",
            root.called()
        )
    })
}

fn marked(marks: &BTreeMap<String, String>) -> Option<(&'static str, &'static str)> {
    let found = TOOLS.iter().find(|(_, keys, _)| keys.iter().any(|key| marks.contains_key(*key)));
    found.map(|(tool, _, pause)| (*tool, *pause))
}

use serde_json::json;

use super::{claim, owned_by, workload};
use crate::replace::objects::{Claim, Workload, WorkloadKind};
use crate::replace::permissions;
use crate::replace::record::WorkloadRef;
use crate::replace::scope::{BackupPod, Observed, Scope, choose};
use crate::restore_preview::SavedClaim;

fn seen<'a>(claims: &'a [Claim], workloads: &'a [Workload]) -> Observed<'a> {
    let saved = claims.iter().map(|claim| (claim.name.clone(), SavedClaim::Saved(None)));
    Observed { backup: "good", claims, workloads, saved: saved.collect(), ..Observed::default() }
}

fn names(scope: &Scope) -> (Vec<&str>, Vec<String>) {
    let claims = scope.claims.iter().map(|claim| claim.name.as_str()).collect();
    (claims, scope.workloads.iter().map(WorkloadRef::called).collect())
}

/// A Deployment with its ReplicaSet and pod, a StatefulSet with two claims, a CronJob and a bare pod.
fn shop() -> (Vec<Claim>, Vec<Workload>) {
    let templates = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let workloads = vec![
        workload(WorkloadKind::Deployment, "web", &["files"], &json!({})),
        workload(WorkloadKind::ReplicaSet, "web-1", &["files"], &owned_by("apps/v1", "Deployment", "web")),
        workload(WorkloadKind::Pod, "web-1-a", &["files"], &owned_by("apps/v1", "ReplicaSet", "web-1")),
        workload(WorkloadKind::StatefulSet, "db", &[], &templates),
        workload(WorkloadKind::Pod, "db-0", &["data-db-0"], &owned_by("apps/v1", "StatefulSet", "db")),
        workload(WorkloadKind::Pod, "db-1", &["data-db-1"], &owned_by("apps/v1", "StatefulSet", "db")),
        workload(WorkloadKind::CronJob, "clean", &["files"], &json!({})),
        workload(WorkloadKind::Pod, "shell", &["files"], &json!({})),
        workload(WorkloadKind::Deployment, "idle", &[], &json!({})),
    ];
    (["files", "data-db-0", "data-db-1"].map(claim).to_vec(), workloads)
}

#[test]
fn workloads_go_by_their_controllers_and_in_order() {
    let (claims, workloads) = shop();
    let scope = choose(&seen(&claims, &workloads)).unwrap();
    let (found, removed) = names(&scope);
    assert_eq!(found, ["files", "data-db-0", "data-db-1"]);
    assert_eq!(removed, ["CronJob clean", "Deployment web", "StatefulSet db", "Pod shell"]);
    let needed = permissions(&scope);
    assert!(needed.contains(&("delete", "batch", "cronjobs")) && needed.contains(&("delete", "", "pods")));
    assert!(!needed.contains(&("delete", "apps", "replicasets")), "{needed:?}");
}

#[test]
fn one_claim_takes_only_its_own_workloads_and_those_of_a_set_go_together() {
    let (claims, workloads) = shop();
    let only = ["data-db-0".to_owned()];
    let scope = choose(&Observed { only_claims: &only, backup_pods: Some(&[]), ..seen(&claims, &workloads) });
    let problems = scope.unwrap_err();
    assert!(problems[0].contains("StatefulSet db uses claim data-db-1 too"), "{problems:?}");
    let only = ["files".to_owned()];
    let scope = choose(&Observed { only_claims: &only, ..seen(&claims, &workloads) }).unwrap();
    assert_eq!(names(&scope).1, ["CronJob clean", "Deployment web", "Pod shell"]);
    assert_eq!(scope.kept[0].1, "the request does not ask for it");
}

#[test]
fn a_kept_claim_is_not_written_over_by_a_pod_of_the_backup() {
    let (claims, workloads) = shop();
    let only = ["data-db-0".to_owned(), "data-db-1".to_owned()];
    // The pods of a Deployment have new names: whether the backup has old ones is not known without its contents.
    let problems = choose(&Observed { only_claims: &only, ..seen(&claims, &workloads) }).unwrap_err();
    assert!(problems[0].contains("claim files stays, but a pod in backup good may use it"), "{problems:?}");
    let old =
        [BackupPod { name: "web-0-z".to_owned(), claims: vec!["files".to_owned()], ..BackupPod::default() }];
    let problems =
        choose(&Observed { only_claims: &only, backup_pods: Some(&old), ..seen(&claims, &workloads) })
            .unwrap_err();
    assert!(problems[0].contains("Velero would create pod web-0-z of backup good"), "{problems:?}");
    let same = [BackupPod { name: "web-1-a".to_owned(), ..old[0].clone() }];
    let scope =
        choose(&Observed { only_claims: &only, backup_pods: Some(&same), ..seen(&claims, &workloads) })
            .unwrap();
    assert_eq!(names(&scope).1, ["StatefulSet db"]);
}

#[test]
fn operators_and_git_ops_stop_it_unless_they_are_paused() {
    let claims = [claim("files")];
    let cases = [
        (
            owned_by("redis.example.com/v1", "Redis", "cache"),
            "web belongs to Redis cache: an operator would re-create it",
        ),
        (json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}}), "managed by Argo CD"),
        (json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}}), "managed by Flux"),
        (json!({"metadata": {"labels": {"helm.toolkit.fluxcd.io/name": "x"}}}), "managed by Flux"),
    ];
    for (more, words) in cases {
        let workloads = [workload(WorkloadKind::Deployment, "web", &["files"], &more)];
        let problems = choose(&seen(&claims, &workloads)).unwrap_err();
        assert!(problems[0].contains(words), "{problems:?}");
        assert!(choose(&Observed { ignore_managers: true, ..seen(&claims, &workloads) }).is_ok());
    }
    // A pod of an operator's own kind, without anything built in between.
    let workloads =
        [workload(WorkloadKind::Pod, "web", &["files"], &owned_by("example.com/v1", "Game", "go"))];
    assert!(choose(&seen(&claims, &workloads)).unwrap_err()[0].contains("Pod web belongs to Game go"));
}

#[test]
fn what_would_not_come_back_is_not_removed() {
    let claims = [claim("files")];
    let workloads = [workload(WorkloadKind::Deployment, "web", &["files"], &json!({}))];
    let mut observed = seen(&claims, &workloads);
    observed.left_out.insert("pods".to_owned(), "the request, includedResources".to_owned());
    let problems = choose(&observed).unwrap_err();
    assert_eq!(
        problems,
        ["pods would be removed and not come back: they are left out by the request, includedResources"]
    );

    let mut labelled = claims.clone();
    labelled[0].labels.insert("app".to_owned(), "web".to_owned());
    let selectors = [serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap()];
    let problems = choose(&Observed { selectors: &selectors, ..seen(&labelled, &workloads) }).unwrap_err();
    assert!(problems[0].contains("Deployment web uses files and would be removed"), "{problems:?}");
}

#[test]
fn only_claims_with_data_in_the_backup_go() {
    let claims = ["files", "cache", "new"].map(claim);
    let workloads = [workload(WorkloadKind::Deployment, "web", &["files", "cache", "new"], &json!({}))];
    let mut observed = seen(&claims, &workloads);
    observed.saved.insert("cache".to_owned(), SavedClaim::NotSaved("not opted in".to_owned()));
    observed.saved.remove("new");
    observed.backup_started = Some("2026-11-09T00:00:00Z".parse().unwrap());
    let scope = choose(&observed).unwrap();
    assert_eq!(names(&scope).0, ["files"]);
    assert_eq!(
        scope.kept[0],
        ("cache".to_owned(), "its data is not in backup good: not opted in".to_owned())
    );
    assert_eq!(scope.kept[1], ("new".to_owned(), "it was made after backup good".to_owned()));
    // Named by the user, it is refused; unknown, everything is.
    let only = ["cache".to_owned()];
    let problems = choose(&Observed { only_claims: &only, ..observed.clone() }).unwrap_err();
    assert!(problems[0].contains("it would come back empty"), "{problems:?}");
    observed.backup_started = Some("2026-11-12T00:00:00Z".parse().unwrap());
    assert!(choose(&observed).unwrap_err()[0].starts_with("it is not known whether the data of claim new"));
    observed.all_saved = Some(true);
    assert_eq!(names(&choose(&observed).unwrap()).0, ["files", "new"]);
}

#[test]
fn without_claims_there_is_nothing_to_replace_unless_they_are_gone() {
    assert!(choose(&seen(&[], &[])).unwrap_err()[0].contains("there is nothing to replace"));
    let mut observed = seen(&[], &[]);
    observed.saved.insert("files".to_owned(), SavedClaim::Saved(None));
    assert_eq!(choose(&observed).unwrap(), Scope::default());
}

#[test]
fn a_stateful_set_that_deletes_its_claims_is_removed_alone() {
    let more = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}});
    let claims = [claim("data-db-0")];
    let scope = choose(&seen(&claims, &[workload(WorkloadKind::StatefulSet, "db", &[], &more)])).unwrap();
    assert!(scope.workloads[0].orphan);
    assert!(permissions(&scope).contains(&("delete", "", "pods")));
}

#[test]
fn what_uses_a_claim_that_is_gone_goes_too() {
    let (_, workloads) = shop();
    let mut observed = seen(&[], &workloads);
    observed.saved.insert("files".to_owned(), SavedClaim::Saved(None));
    let scope = choose(&observed).unwrap();
    assert_eq!(scope.lost, ["files"]);
    assert!(scope.claims.is_empty() && !scope.workloads.is_empty());
    let only = ["files".to_owned()];
    let named = choose(&Observed { only_claims: &only, ..observed.clone() }).unwrap();
    assert_eq!(named.lost, ["files"]);
    let other = ["else".to_owned()];
    let problems = choose(&Observed { only_claims: &other, ..observed }).unwrap_err();
    assert!(problems[0].contains("there is no claim else"), "{problems:?}");
}

//! Who may do what once nacre is installed, asked of the API server's authorizer and tried by real requests.

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore};
use bed::Bed;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Error};
use serde_json::json;

use crate::life::nacre;

const GROUP: &str = "oadp.openshift.io";
const KINDS: [&str; 4] = ["nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", LINKS];
const LINKS: &str = "nonadmindownloadrequests";
const LOOK: [&str; 3] = ["get", "list", "watch"];
const ASK: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// The administrators of a namespace and its editors ask, its viewers look, others do neither; nobody writes statuses or
/// touches what administrators decide about.
pub(crate) async fn tenants_do_what_they_may(bed: &Bed) -> Result<()> {
    // `ada` is admin of `shop` already.
    bed.bind("shop", "eve", "edit").await?;
    bed.bind("shop", "vic", "view").await?;
    bed.namespace("rival").await?;
    bed.bind("rival", "bob", "admin").await?;
    bed.apply_yaml(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: asks, namespace: shop}, \
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nonadminbackup-editor-role}, \
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: may}]}",
    )
    .await?;
    for user in ["ada", "eve", "may"] {
        bed.wait_allowed(user, "shop", "create", GROUP, "nonadminbackups").await?;
    }
    bed.wait_allowed("vic", "shop", "get", GROUP, "nonadminbackups").await?;

    let users = [
        ("ada", true, true),
        ("eve", true, true),
        ("may", true, true),
        ("vic", true, false),
        ("bob", false, false),
    ];
    let mut wrong = Vec::new();
    for (user, looks, asks) in users {
        for kind in KINDS {
            for (verbs, expected) in [(&LOOK[..], looks), (&ASK[..], asks)] {
                for verb in verbs {
                    // Download requests hold links to Secrets: viewers do not even look.
                    let expected = expected && (asks || kind != LINKS);
                    wrong.extend(differs(bed, user, "shop", verb, kind, expected).await?);
                    // Another namespace, and Velero's, are closed to all of them.
                    let elsewhere = user == "bob";
                    wrong.extend(differs(bed, user, "rival", verb, kind, elsewhere).await?);
                    wrong.extend(differs(bed, user, "velero", verb, kind, false).await?);
                }
            }
            let status = format!("{kind}/status");
            let reads = looks && (asks || kind != LINKS);
            wrong.extend(differs(bed, user, "shop", "get", &status, reads).await?);
            for verb in ["update", "patch"] {
                wrong.extend(differs(bed, user, "shop", verb, &status, false).await?);
            }
        }
        for place in ["shop", "velero"] {
            for verb in LOOK.iter().chain(&ASK) {
                let requests = "nonadminbackupstoragelocationrequests";
                wrong.extend(differs(bed, user, place, verb, requests, false).await?);
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    by_real_requests(bed).await?;
    viewers_get_no_download_links(bed).await?;
    nacre_looks_at_secrets_by_name(bed).await
}

async fn differs(
    bed: &Bed,
    user: &str,
    namespace: &str,
    verb: &str,
    resource: &str,
    expected: bool,
) -> Result<Option<String>> {
    let allowed = bed.allowed(user, namespace, verb, GROUP, resource).await?;
    Ok((allowed != expected).then(|| format!("{user} {verb} {resource} in {namespace}: {allowed}")))
}

fn is_forbidden<T>(answer: Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Api(status)) if status.code == 403)
}

async fn by_real_requests(bed: &Bed) -> Result<()> {
    let backups = async |user: &str, namespace: &str| -> Result<Api<NonAdminBackup>> {
        Ok(Api::namespaced(bed.client_as(user, &[]).await?, namespace))
    };
    let wish =
        |name: &str| serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"backupSpec": {}}}));
    let make = PostParams::default();
    for user in ["ada", "eve", "may"] {
        let own = backups(user, "shop").await?;
        own.create(&make, &wish(user)?).await?;
        let status = Patch::Merge(json!({"status": {"phase": "Created"}}));
        ensure!(
            is_forbidden(own.patch_status(user, &PatchParams::default(), &status).await),
            "{user} wrote a status"
        );
        ensure!(is_forbidden(backups(user, "rival").await?.create(&make, &wish("theft")?).await));
        ensure!(is_forbidden(backups(user, "velero").await?.create(&make, &wish("theft")?).await));
    }
    let viewer = backups("vic", "shop").await?;
    ensure!(viewer.list(&ListParams::default()).await?.items.len() == 3);
    ensure!(is_forbidden(viewer.create(&make, &wish("vic")?).await));
    ensure!(is_forbidden(backups("bob", "shop").await?.list(&ListParams::default()).await));
    // An administrator can do what tenants cannot: the refusals above are about who asks.
    let request = json!({"metadata": {"name": "x"}, "spec": {"approvalDecision": "pending"}});
    let request: NonAdminBackupStorageLocationRequest = serde_json::from_value(request)?;
    for user in ["ada", "eve", "may", "vic"] {
        let theirs = Api::namespaced(bed.client_as(user, &[]).await?, "shop");
        ensure!(is_forbidden(theirs.create(&make, &request).await), "{user} made a request for approval");
    }
    Api::namespaced(bed.client().await?, "velero").create(&make, &request).await?;
    for user in ["ada", "eve", "may"] {
        backups(user, "shop").await?.delete(user, &kube::api::DeleteParams::default()).await?;
    }
    Ok(())
}

/// Somebody with nothing but `view` reads backups and restores, and no link to what is in them.
async fn viewers_get_no_download_links(bed: &Bed) -> Result<()> {
    let make = PostParams::default();
    let target = json!({"metadata": {"name": "contents"}, "spec": {"target": {"kind": "BackupContents", "name": "b"}}});
    let owners = Api::<NonAdminDownloadRequest>::namespaced(bed.client_as("ada", &[]).await?, "shop");
    owners.create(&make, &serde_json::from_value(target)?).await?;
    let vic = bed.client_as("vic", &[]).await?;
    Api::<NonAdminBackup>::namespaced(vic.clone(), "shop").list(&ListParams::default()).await?;
    Api::<NonAdminRestore>::namespaced(vic.clone(), "shop").list(&ListParams::default()).await?;
    let links = Api::<NonAdminDownloadRequest>::namespaced(vic, "shop");
    ensure!(is_forbidden(links.get("contents").await), "a viewer got a download request");
    ensure!(is_forbidden(links.get_status("contents").await), "a viewer got a download request's status");
    ensure!(is_forbidden(links.list(&ListParams::default()).await), "a viewer listed download requests");
    ensure!(
        is_forbidden(links.watch(&WatchParams::default(), "0").await),
        "a viewer watched download requests"
    );
    let (success, _, words) = nacre(bed, &["backup", "logs", "b", "-n", "shop", "--as=vic"]).await?;
    let clear = "the log cannot be fetched: you may not create NonAdminDownloadRequests in namespace shop";
    ensure!(!success && words.contains(clear) && !words.contains("could not be removed"), "{words}");

    // The planted weakness: a role of somebody else's that `view` includes.
    bed.apply_yaml(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: links, labels: \
         {rbac.authorization.k8s.io/aggregate-to-view: \"true\"}}, \
         rules: [{apiGroups: [oadp.openshift.io], resources: [nonadmindownloadrequests], verbs: [get]}]}",
    )
    .await?;
    bed.wait_allowed("vic", "shop", "get", GROUP, LINKS).await?;
    links.get("contents").await?;
    bed.kubectl(&["delete", "clusterrole", "links"]).await?.ok()?;
    owners.delete("contents", &kube::api::DeleteParams::default()).await?;
    Ok(())
}

async fn nacre_looks_at_secrets_by_name(bed: &Bed) -> Result<()> {
    let nacre = "system:serviceaccount:velero:non-admin-controller";
    bed.wait_allowed(nacre, "shop", "get", "", "secrets").await?;
    for verb in ["list", "watch", "create", "update", "patch", "delete", "deletecollection"] {
        for namespace in ["shop", "kube-system", ""] {
            ensure!(
                !bed.allowed(nacre, namespace, verb, "", "secrets").await?,
                "nacre may {verb} secrets in {namespace:?}"
            );
        }
    }
    for verb in ["list", "watch", "create", "patch", "delete"] {
        ensure!(
            bed.allowed(nacre, "velero", verb, "", "secrets").await?,
            "nacre may not {verb} secrets in Velero's namespace"
        );
    }
    Ok(())
}

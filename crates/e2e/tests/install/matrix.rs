//! Who may do what once nacre is installed, asked of the API server's authorizer and tried by real requests.

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminBackupStorageLocationRequest};
use bed::Bed;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::json;

const GROUP: &str = "oadp.openshift.io";
const KINDS: [&str; 4] =
    ["nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests"];
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
                    wrong.extend(differs(bed, user, "shop", verb, kind, expected).await?);
                    // Another namespace, and Velero's, are closed to all of them.
                    let elsewhere = user == "bob";
                    wrong.extend(differs(bed, user, "rival", verb, kind, elsewhere).await?);
                    wrong.extend(differs(bed, user, "velero", verb, kind, false).await?);
                }
            }
            let status = format!("{kind}/status");
            wrong.extend(differs(bed, user, "shop", "get", &status, looks).await?);
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
            "nacre may not {verb} secrets beside Velero"
        );
    }
    Ok(())
}

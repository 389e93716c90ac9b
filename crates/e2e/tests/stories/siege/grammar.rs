//! A hostile backup, by seed: objects out of the templates, each with a few things wrong, in an archive with a few things
//! wrong; and the files next to it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{Archive, DEVICE, FILE, FOLDER, HARD_LINK, LINK, PIPE, packed};
use super::dice::Dice;
use super::objects::{HOME, Template, VICTIM, templates};

/// How files are called that Velero would unpack outside its own folder.
pub(super) const ESCAPED: &str = "siege-escaped";

/// What one seed makes.
pub(super) struct Hostile {
    /// The archive with the objects.
    pub(super) archive: Vec<u8>,
    /// The other files of the backup, by what follows its name.
    pub(super) files: BTreeMap<&'static str, Vec<u8>>,
    /// What the owner of the bucket makes of files that Velero writes about the restore itself, by what follows its name.
    pub(super) of_restore: BTreeMap<&'static str, Value>,
    /// The Restore, but for the backup's name: as wide as can be.
    pub(super) restore: Value,
}

const NAMESPACES: [&str; 9] = [HOME, HOME, HOME, VICTIM, "velero", "kube-system", "default", "newns", ""];
const NAMES: [&str; 7] = ["x", "x", "y", "ledger", "prices", "default", HOME];
const VERSIONS: [&str; 6] = ["", "", "", "/v1", "/v1-preferredversion", "/v1beta1"];

/// Annotations that Velero, or somebody else with permissions, goes by.
const ANNOTATIONS: [(&str, &str); 14] = [
    ("restore.velero.io/must-include-additional-items", "true"),
    ("velero.io/restore-status", "true"),
    ("velero.io/volume-snapshot-name", "x"),
    ("velero.io/csi-volumesnapshot-handle", "somebody-elses"),
    ("velero.io/csi-driver-name", "d"),
    ("pv.kubernetes.io/bind-completed", "yes"),
    ("volume.kubernetes.io/selected-node", "node-1"),
    ("csi.storage.k8s.io/snapshotter-secret-name", "x"),
    ("csi.storage.k8s.io/snapshotter-secret-namespace", "velero"),
    ("init.hook.restore.velero.io/container-image", "evil"),
    ("init.hook.restore.velero.io/command", "[\"x\"]"),
    ("cdi.kubevirt.io/storage.checkStaticVolume", ""),
    ("nacre.dev/requester", "{\"username\":\"root\"}"),
    ("container.apparmor.security.beta.kubernetes.io/c", "unconfined"),
];

const LABELS: [(&str, &str); 6] = [
    ("velero.io/restore-name", "an-administrators"),
    ("velero.io/backup-name", "x"),
    ("velero.io/exclude-from-backup", "true"),
    ("velero.io/schedule-name", "nightly"),
    ("openshift.io/oadp", "true"),
    ("openshift.io/oadp-nab-origin-nacuuid", "somebody-elses"),
];

/// What one seed makes.
pub(super) fn hostile(seed: u64) -> Result<Hostile> {
    let mut dice = Dice::new(seed);
    let all = templates();
    let mut archive = Archive::default();
    if !dice.once_in(20) {
        let version = *dice.pick(&["1.1.0", "1.1.0", "1.1.0", "1.1.0", "1.1.0", "1", "../../x", "9.9.9"]);
        archive.file("metadata/version", version.as_bytes());
    }
    let many = 10 + dice.below(40);
    for _ in 0..many {
        entry(&mut dice, &all, &mut archive);
    }
    // Velero gives up on such an archive, so only few are like this.
    if dice.once_in(15) {
        let up = "../".repeat(1 + dice.below(6));
        let place = *dice.pick(&["", "plugins/", "velero/plugins/", "velero/"]);
        archive.entry(FILE, &format!("{up}{place}{ESCAPED}"), "", b"#!/bin/sh\n");
    }
    let archive = archive.packed()?;
    let archive = if dice.once_in(25) { archive[..archive.len() / 2].to_vec() } else { archive };
    let mut files = files(&mut dice)?;
    let restore = restore(&mut dice);
    // Dice of their own, so that the seeds of before still mean the same.
    let mut more = Dice::new(!seed);
    more_files(&mut more, &mut files)?;
    Ok(Hostile { archive, files, of_restore: of_restore(&mut more), restore })
}

fn any<'a>(dice: &mut Dice, all: &'a [Vec<Template>]) -> &'a Template {
    let group = dice.pick(all);
    dice.pick(group)
}

/// One entry of the archive.
fn entry(dice: &mut Dice, all: &[Vec<Template>], archive: &mut Archive) {
    let template = any(dice, all);
    let mut object = template.object.clone();
    let metadata = &mut object["metadata"];
    let name = *dice.pick(&NAMES);
    metadata["name"] = json!(name);
    let namespace = *dice.pick(&NAMESPACES);
    if template.namespaced {
        metadata["namespace"] = json!(namespace);
    }
    for _ in 0..dice.below(4) {
        damage(dice, &mut object);
    }
    // The group of a kind may be another than that of its folder.
    let folder = if dice.once_in(12) { any(dice, all).folder } else { template.folder };
    let version = *dice.pick(&VERSIONS);
    let of_namespace = template.namespaced != dice.once_in(15);
    let said = if dice.once_in(10) { *dice.pick(&NAMESPACES) } else { namespace };
    let place = if of_namespace { format!("namespaces/{said}") } else { "cluster".to_owned() };
    let file = if dice.once_in(15) { *dice.pick(&NAMES) } else { name };
    let path = format!("resources/{folder}{version}/{place}/{file}.json");
    let bytes = bytes(dice, &object);
    match dice.below(60) {
        0 => {
            let target: &&str = dice.pick(&["/etc/passwd", "../../../../..", "../x.json"]);
            archive.entry(LINK, &path, target, b"");
        }
        1 => {
            let target: &&str = dice.pick(&["/etc/passwd", "metadata/version"]);
            archive.entry(HARD_LINK, &path, target, b"");
        }
        2 => archive.entry(FOLDER, &path, "", b""),
        3 => archive.entry(*dice.pick(&[PIPE, DEVICE]), &path, "", b""),
        4 => {
            // A link to a folder outside, and a file through it.
            archive.entry(LINK, "resources/way", "../..", b"");
            archive.file(&format!("resources/way/{ESCAPED}"), b"x");
        }
        5 => archive.file(&format!("resources/{folder}/namespaces/{HOME}/../{VICTIM}/{file}.json"), &bytes),
        _ => archive.file(&path, &bytes),
    }
}

/// One thing wrong with an object.
fn damage(dice: &mut Dice, object: &mut Value) {
    let labels = LABELS.map(|(key, value)| (key, json!(value)));
    let annotations = ANNOTATIONS.map(|(key, value)| (key, json!(value)));
    match dice.below(13) {
        0..=3 => {
            let (key, value) = dice.pick(&annotations);
            object["metadata"]["annotations"][*key] = value.clone();
        }
        4 | 5 => {
            let (key, value) = dice.pick(&labels);
            object["metadata"]["labels"][*key] = value.clone();
        }
        6 => object["metadata"]["finalizers"] = json!(["x.example/y"]),
        7 => {
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Namespace", "name": VICTIM, "uid": "u"}]);
        }
        8 => object["metadata"]["namespace"] = json!(*dice.pick(&NAMESPACES)),
        9 => {
            let other =
                dice.pick(&["v1", "apps/v1", "rbac.authorization.k8s.io/v1", "batch/v1", "example.com/v9"]);
            object["apiVersion"] = json!(other);
        }
        10 => {
            let other = *dice.pick(&["Pod", "RoleBinding", "ConfigMap", "Namespace", "List", "Secret", ""]);
            object["kind"] = json!(other);
            if other == "List" {
                object["items"] = json!([object.clone()]);
            }
        }
        11 => object["metadata"]["generateName"] = json!("x-"),
        _ => object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
    }
}

/// An object as bytes, sometimes none that can be read, sometimes many.
fn bytes(dice: &mut Dice, object: &Value) -> Vec<u8> {
    let mut bytes = object.to_string().into_bytes();
    match dice.below(40) {
        0 => bytes.truncate(bytes.len() / 2),
        1 => bytes.clear(),
        2 => bytes = "[".repeat(20_000).into_bytes(),
        3 => bytes.resize(bytes.len() + (1 << 20), b' '),
        4 => {
            bytes =
                format!(r#"{{"apiVersion":"v1","apiVersion":"v2",{}"#, &object.to_string()[1..]).into_bytes();
        }
        5 => {
            let mut padded = object.clone();
            padded["metadata"]["annotations"]["padding"] = json!("x".repeat(200_000));
            bytes = padded.to_string().into_bytes();
        }
        _ => {}
    }
    bytes
}

/// The files next to the archive.
fn files(dice: &mut Dice) -> Result<BTreeMap<&'static str, Vec<u8>>> {
    let volume = json!([{"pvcName": "x", "pvcNamespace": HOME, "pvName": "x",
        "backupMethod": *dice.pick(&["CSISnapshot", "NativeSnapshot", "PodVolumeBackup", "", "Other"]),
        "snapshotDataMoved": dice.once_in(2), "skipped": dice.once_in(3), "result": "succeeded",
        "csiSnapshotInfo": {"snapshotHandle": "somebody-elses", "driver": "d", "vscName": "x"},
        "nativeSnapshotInfo": {"snapshotHandle": "somebody-elses", "volumeType": "t", "volumeAZ": "z"},
        "pvInfo": {"reclaimPolicy": "Delete", "labels": {"x": "y"}}}]);
    let native = json!([{"spec": {"backupName": "x", "location": "default", "persistentVolumeName": "x",
        "providerVolumeID": "v", "volumeType": "t"}, "status": {"providerSnapshotID": "somebody-elses", "phase": "Completed"}}]);
    let content = json!([{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "planted"}, "spec": {"driver": "d", "deletionPolicy": "Delete",
        "source": {"snapshotHandle": "somebody-elses"}, "volumeSnapshotRef": {"namespace": VICTIM, "name": "x"}}}]);
    let class = json!([{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": "planted"}, "driver": "d", "deletionPolicy": "Delete"}]);
    let list =
        json!({"v1/ConfigMap": [format!("{HOME}/x"), format!("{VICTIM}/ledger")], "v1/Namespace": ["newns"]});
    let mut files = BTreeMap::new();
    for (name, contents) in [
        ("-volumeinfo.json.gz", volume),
        ("-volumesnapshots.json.gz", native),
        ("-csi-volumesnapshotcontents.json.gz", content),
        ("-csi-volumesnapshotclasses.json.gz", class),
        ("-resource-list.json.gz", list),
        ("-itemoperations.json.gz", json!([{"spec": {"backupName": "x", "operationID": "x"}}])),
    ] {
        let contents = match dice.below(8) {
            0 => continue,
            1 => contents.to_string().into_bytes(),
            2 => packed(b"[[[[")?,
            3 => packed(b"null")?,
            _ => packed(contents.to_string().as_bytes())?,
        };
        files.insert(name, contents);
    }
    Ok(files)
}

/// Further files next to the archive, and lists whose elements are nothing.
fn more_files(dice: &mut Dice, files: &mut BTreeMap<&'static str, Vec<u8>>) -> Result<()> {
    let volume = json!([{"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": *dice.pick(&["planted", "x"]), "namespace": *dice.pick(&["velero", VICTIM, ""]),
            "labels": {"velero.io/backup-name": "x", "velero.io/backup-uid": "u"},
            "finalizers": *dice.pick(&[&[][..], &["x.example/y"]])},
        "spec": {"node": "n", "pod": {"kind": "Pod", "namespace": *dice.pick(&[HOME, VICTIM]), "name": "x"}, "volume": "v",
            "backupStorageLocation": "default", "repoIdentifier": "r", "uploaderType": "kopia"},
        "status": {"phase": *dice.pick(&["", "New", "Completed"]), "snapshotID": "somebody-elses"}}]);
    if !dice.once_in(3) {
        files.insert("-podvolumebackups.json.gz", packed(volume.to_string().as_bytes())?);
    }
    let operation = json!({"spec": {"backupName": "x", "backupUID": "u", "operationID": "x",
        "backupItemAction": *dice.pick(&["velero.io/csi-pvc-backupper", "x"])},
        "status": {"operationPhase": *dice.pick(&["New", "InProgress", "Completed", "Other", ""]), "nTotal": -1}});
    let operations = match dice.below(4) {
        0 => json!([operation, null]),
        1 => json!({"operations": [operation]}),
        2 => json!([[operation]]),
        _ => json!([operation]),
    };
    files.insert("-itemoperations.json.gz", packed(operations.to_string().as_bytes())?);
    if dice.once_in(12) {
        let names: Vec<&str> = files.keys().copied().collect();
        files.insert(*dice.pick(&names), packed(b"[null]")?);
    }
    Ok(())
}

/// What Velero wrote about a restore, as the owner of the bucket has it: claims that never came back, operations that never
/// were.
fn of_restore(dice: &mut Dice) -> BTreeMap<&'static str, Value> {
    let claim = format!("{}/x(created)", *dice.pick(&[HOME, VICTIM]));
    let list = json!({"v1/PersistentVolumeClaim": [claim], "v1/Namespace": ["newns(created)"]});
    let operation = json!({"spec": {"restoreName": "x", "restoreUID": "u", "operationID": "x",
        "restoreItemAction": *dice.pick(&["velero.io/csi-pvc-restorer", "x"])},
        "status": {"operationPhase": *dice.pick(&["New", "InProgress", "Completed", ""])}});
    let operations = if dice.once_in(8) { json!([null]) } else { json!([operation]) };
    let results = json!({"errors": {"velero": ["x"]}, "warnings": *dice.pick(&["x", ""])});
    let files =
        [("-resource-list.json.gz", list), ("-itemoperations.json.gz", operations), ("-results.gz", results)];
    files.into_iter().filter(|_| dice.once_in(3)).collect()
}

/// A Restore as if every filter of nacre's had failed.
fn restore(dice: &mut Dice) -> Value {
    let mut spec = json!({"includedNamespaces": ["*"], "includeClusterResources": true});
    if dice.once_in(2) {
        spec["existingResourcePolicy"] = json!("update");
    }
    if dice.once_in(3) {
        spec["restoreStatus"] = json!({"includedResources": ["*"]});
    }
    if dice.once_in(4) {
        spec["namespaceMapping"] = json!({HOME: *dice.pick(&[VICTIM, "newns", "velero"]), VICTIM: HOME});
    }
    if dice.once_in(3) {
        spec["preserveNodePorts"] = json!(true);
    }
    if dice.once_in(3) {
        let container =
            json!({"name": "hook", "image": "x", "command": ["x"], "securityContext": {"privileged": true}});
        spec["hooks"] =
            json!({"resources": [{"name": "h", "postHooks": [{"init": {"initContainers": [container]}}]}]});
    }
    spec
}

/// The metadata of a backup that Velero shall import, by seed, made of those of a genuine one. Its folder has this name.
pub(super) fn planted(seed: u64, genuine: &Value, name: &str) -> Value {
    let mut dice = Dice::new(seed);
    let mut backup = genuine.clone();
    backup["metadata"]["name"] = json!(name);
    backup["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] = json!(name);
    for _ in 0..=dice.below(3) {
        match dice.below(12) {
            0 => backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly"),
            1 => backup["metadata"]["labels"]["velero.io/storage-location"] = json!("default"),
            2 => backup["metadata"]["finalizers"] = json!(["x.example/y"]),
            3 => {
                backup["metadata"]["ownerReferences"] = json!([{"apiVersion": "velero.io/v1", "kind": "Schedule", "name": "nightly", "uid": "u"}]);
            }
            4 => {
                backup["spec"]["includedNamespaces"] =
                    json!(*dice.pick(&[&["*"][..], &[VICTIM], &[HOME, VICTIM], &[]]));
            }
            5 => backup["spec"]["includeClusterResources"] = json!(true),
            6 => {
                backup["status"]["phase"] = json!(*dice.pick(&[
                    "",
                    "New",
                    "InProgress",
                    "Deleting",
                    "WaitingForPluginOperations",
                    "Finalizing"
                ]));
            }
            7 => backup["metadata"]["annotations"]["openshift.io/oadp-nab-origin-namespace"] = json!(VICTIM),
            8 => backup["metadata"]["namespace"] = json!(*dice.pick(&[VICTIM, "kube-system", HOME])),
            9 => backup["spec"]["storageLocation"] = json!("default"),
            10 => backup["metadata"]["labels"]["app.example.com/team"] = json!("x"),
            _ => backup["status"]["startTimestamp"] = json!("2030-01-01T00:00:00Z"),
        }
    }
    backup
}

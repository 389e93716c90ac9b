#!/usr/bin/env bash
# Tries a release as a new user does, with nothing but its files: `make release-try`.
#
#   tools/release-try.sh RELEASE BED
#
# RELEASE is the folder of `make release`. Its files are copied to an empty folder, and everything happens there. BED is the
# program that starts a test cluster (Linux and root). The cluster stands for the user's: it has Velero with its node agent,
# kubectl and helm, and nothing of nacre.
#
# For each way to install (command line, manifests, chart): install, lose a volume as a tenant and restore it, uninstall,
# and look for objects that were left behind. The commands of the quick start are run as they are written. Of the manifests
# for OADP, whose operator is not here, every file is sent to the API server as a dry run.
set -euo pipefail
# Without this a failing command inside $(...) counts as one that finds nothing.
shopt -s inherit_errexit
release=$(realpath "$1") bed=$(realpath "$2")
work=$(mktemp -d /tmp/nacre-release.XXXXXX)
cluster=$work/bed/cluster
start=$SECONDS

say() { echo "== $* ($((SECONDS - start)) s)"; }
fail() { echo "release-try: $*" >&2; exit 1; }

# The test cluster's programs are found by this machine's settings.
home=$HOME path=$PATH
bed() { HOME=$home PATH=$path "$bed" "$@" --dir "$work/bed" >/dev/null; }

clean_up() {
  bed down || true
  rm -rf "$work"
}
trap clean_up EXIT

# What the quick start has a tenant do, as it is written there.
quick_start=$(sed -n '/^## As a tenant/,/^## /p' "$(dirname "$0")/../docs/quick-start.md" | sed -n '/^```sh/,/^```$/{/^```/!p}')
[ -n "$quick_start" ] || fail "docs/quick-start.md has no commands for a tenant"

# An empty folder. Nothing of this machine's settings counts, and no other program of nacre is found.
mkdir "$work/empty"
cp "$release"/* "$work/empty/"
cd "$work/empty"
export HOME=$work/empty PATH=$work/empty/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset KUBECONFIG CARGO_TARGET_DIR

say "Checksums"
sha256sum --check --strict --quiet SHA256SUMS
# Every file but the list itself is in the list.
[ "$(wc -l <SHA256SUMS)" = "$(($(find . -type f | wc -l) - 1))" ] || fail "SHA256SUMS does not list every file"

say "Programs"
kind=$(basename kubectl-nacre-*.tar.gz .tar.gz)
platform=${kind#kubectl-nacre-}
mkdir bin
for program in kubectl-nacre nacre; do
  tar -xzf "$program-$platform.tar.gz" -C bin "$program"
  if ldd "bin/$program" 2>&1 | grep -q '=>'; then fail "$program needs shared libraries"; fi
  "bin/$program" --version
done
version=$(kubectl-nacre --version | sed -n 's/^kubectl-nacre \([^ ]*\) .*/\1/p')
tar -xzf nacre-completions.tar.gz
bash -c 'source completions/kubectl-nacre.bash && complete -p kubectl-nacre' >/dev/null
tar -xzf nacre-man.tar.gz
[ -s man/kubectl-nacre-install.1 ] || fail "the manual has no page about install"

say "A cluster with Velero"
bed up --with-node
# Who pushes the image to a registry pulls it from there; here there is none.
image=localhost/nacre:$version
"$cluster/inside" ctr --namespace k8s.io images import "$PWD/nacre-image-$platform.tar" >/dev/null

admin() { "$cluster/enter" "$@"; }
as_ada() { admin kubectl --as=ada -n "$namespace" "$@"; }
nacre_as_ada() { admin kubectl nacre --as=ada -n "$namespace" "$@"; }

make_tenant() {
  admin kubectl create namespace "$namespace"
  admin kubectl create rolebinding ada --clusterrole=edit --user=ada -n "$namespace"
  # Without it no pod can be made.
  admin kubectl wait --for=create serviceaccount/default -n "$namespace" --timeout=1m
} >/dev/null

start_workload() {
  as_ada apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: db }
spec:
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Gi } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: db }
spec:
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: db
        image: node.test/busybox:bed
        args: [-c, "[ -e /data/rows ] || head -c 1048576 /dev/urandom > /data/rows; exec tail -f /dev/null"]
        readinessProbe: { exec: { command: [test, -s, /data/rows] }, periodSeconds: 1 }
        volumeMounts: [{ name: data, mountPath: /data }]
      volumes: [{ name: data, persistentVolumeClaim: { claimName: db } }]
YAML
}

checksum() {
  as_ada rollout status deployment/db --timeout=3m >/dev/null
  as_ada exec deployment/db --container db -- sha256sum /data/rows
}

# What a tenant does with it, however it was installed.
lose_and_restore() {
  local before after
  # The search for what is left behind can fail.
  [ -n "$(traces)" ] || fail "nothing of nacre is found where it is installed"
  make_tenant
  start_workload
  before=$(checksum)
  nacre_as_ada backup create first --wait
  as_ada delete deployment,pvc db --timeout=3m >/dev/null
  as_ada wait --for=delete pod --selector app=db --timeout=3m >/dev/null
  nacre_as_ada restore create --from-backup first --wait
  after=$(checksum)
  [ "$before" = "$after" ] || fail "the volume had $before and has $after"
  echo "The volume is what it was: ${after%% *}"
}

# The quick start's commands, in its namespace and as the owner of it.
follow_the_quick_start() {
  local namespace=shop
  make_tenant
  as_ada create deployment web --image=node.test/busybox:bed -- tail -f /dev/null >/dev/null
  as_ada rollout status deployment/web --timeout=3m >/dev/null
  (
    kubectl() {
      if [ "$1" = nacre ]; then admin kubectl nacre --as=ada "${@:2}"; else admin kubectl --as=ada "$@"; fi
    }
    eval "$quick_start"
  )
  as_ada rollout status deployment/web --timeout=3m >/dev/null
  admin kubectl delete namespace "$namespace" --timeout=2m >/dev/null
}

# All objects of nacre but CRDs and tenants' requests, which stay.
traces() {
  local kinds all
  kinds=$(admin kubectl api-resources --verbs=list --output name |
    grep -v -e '^events' -e '^customresourcedefinitions' -e '^nonadmin' -e '^namespaces$' -e '^componentstatuses$' -e '^endpoints$' |
    paste -sd,)
  all=$(admin kubectl get "$kinds" --all-namespaces --output \
    jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}')
  grep -e '/nacre' -e '/non-admin-controller' -e '/nonadminbackup' <<<"$all" || true
}

uninstalled() {
  local left
  left=$(traces)
  [ -z "$left" ] || fail "left behind: $left"
  # The tenant's namespace can go: nothing in it is stuck.
  admin kubectl delete namespace "$namespace" --timeout=2m
}

say "Installed by the command line"
namespace=by-command
admin kubectl nacre install --image "$image" --wait --timeout 4m
admin kubectl create configmap nacre-policy -n velero --from-literal=policy.yaml='storageLocations: { requireApproval: true }'
admin kubectl nacre doctor
lose_and_restore
follow_the_quick_start
admin kubectl delete configmap nacre-policy -n velero
admin kubectl nacre uninstall
uninstalled

say "Installed by the manifests"
namespace=by-manifests
tar -xzf nacre-manifests.tar.gz
apply() { admin kubectl apply --server-side -f "$@"; }
apply nacre/crds
sed "s|image: nacre.dev/nacre:.*|image: $image|" nacre/velero/controller.yaml | apply -
apply nacre/velero/admission.yaml -f nacre/velero/requester.yaml
admin kubectl rollout status deployment/non-admin-controller -n velero --timeout=4m
lose_and_restore
admin kubectl nacre uninstall
uninstalled

say "Manifests for OADP, as a dry run"
admin kubectl create namespace openshift-adp
files=(nacre/openshift-adp/*.yaml)
for file in "${files[@]}"; do
  apply "$file" --dry-run=server >/dev/null || fail "the API server refuses $file"
done
echo "The API server accepts ${#files[@]} files"
admin kubectl delete namespace openshift-adp

say "Installed by the chart"
namespace=by-chart
admin helm install nacre "nacre-$version.tgz" -n velero --set "image=$image" --wait --timeout 4m
lose_and_restore
admin helm uninstall nacre -n velero --wait
# What the program made for itself is not Helm's.
admin kubectl nacre uninstall
uninstalled

say "The release installs, restores and uninstalls in each of three ways"

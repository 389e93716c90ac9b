#!/usr/bin/env bash
# Runs the tenants' stories about pods and volumes in a cluster that exists, with Velero and nacre in it. Part of
# `make stories KUBECONFIG=FILE`.
#
#   tools/stories.sh FILE [NAME...]
#
# FILE is the kubeconfig file of an administrator who may impersonate users. The stories make namespaces `nacre-story-*`
# and disturb nothing else. Their backups are deleted with their data, and the namespaces afterwards.
#
#   NACRE_STORIES_IMAGE          image of the workloads: a shell, find, sort, xargs, sha256sum (docker.io/library/busybox:stable)
#   NACRE_STORIES_STORAGE_CLASS  StorageClass of the claims (the default one)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
KUBECONFIG=$(realpath "$1")
shift
export KUBECONFIG
export NACRE_STORIES_KUBECONFIG=$KUBECONFIG
export NACRE_STORIES_IMAGE=${NACRE_STORIES_IMAGE:-docker.io/library/busybox:stable}
nacre=${KUBECTL_NACRE_BIN:-${CARGO_TARGET_DIR:-target}/release/kubectl-nacre}
PATH=$PATH:$(tools/build.sh --where 2>/dev/null || true)

# A story that was stopped leaves namespaces behind.
clean_up() {
  local namespace name
  for namespace in $(kubectl get namespaces --selector nacre.dev/story=true --output name); do
    namespace=${namespace#namespace/}
    for name in $(kubectl get nonadminbackups --namespace "$namespace" --output name); do
      "$nacre" backup delete "${name#*/}" --namespace "$namespace" --yes >/dev/null || true
    done
    kubectl wait --for=delete nonadminbackups --all --namespace "$namespace" --timeout=2m >/dev/null 2>&1 || true
    kubectl delete namespace "$namespace" --timeout=3m
  done
}

clean_up
trap clean_up EXIT
cargo test --package e2e --test node -- --test-threads=2 "$@"

#!/usr/bin/env bash
# Part of `make up` and `make down`: nacre in the cluster in FOLDER, and five commands to try it with.
#
#   tools/try.sh up FOLDER
#   tools/try.sh down FOLDER
#
# On a node nacre is installed as it is everywhere. Without one no pod can run: then nacre is a process on this machine,
# next to the API server, until `make down`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
action=$1 folder=$2
programs=$PWD/${CARGO_TARGET_DIR:-target}/release
cluster=$folder/cluster
pid_file=$cluster/nacre.pid

# Ends the process of an earlier `up`, if it is still that program.
stop() {
  [ -f "$pid_file" ] || return 0
  local pid
  pid=$(cat "$pid_file")
  if [ "$(ps -o args= -p "$pid")" = "$programs/nacre" ]; then kill "$pid"; fi
  rm -f "$pid_file"
}

install_on_node() {
  local image=localhost/nacre:try archive=$cluster/nacre.tar
  cargo run --quiet --package image -- archive --with-libraries --programs "$programs" --name "$image" "$archive" >/dev/null
  "$cluster/inside" ctr --namespace k8s.io images import "$(realpath "$archive")" >/dev/null
  "$cluster/enter" "$programs/kubectl-nacre" install --image "$image" --wait
}

install_without_node() {
  # There are no pods for the API server to ask.
  kubectl nacre install --image none --replicas 0 --no-webhook >/dev/null
  stop
  WATCH_NAMESPACE=velero setsid nohup "$programs/nacre" >"$cluster/nacre.log" 2>&1 </dev/null &
  echo $! >"$pid_file"
}

# A namespace, and somebody with the edit role in it.
make_tenant() {
  "$@" kubectl create namespace shop --dry-run=client -o yaml | "$@" kubectl apply -f - >/dev/null
  "$@" kubectl create rolebinding ada --clusterrole=edit --user=ada -n shop --dry-run=client -o yaml |
    "$@" kubectl apply -f - >/dev/null
}

commands() {
  echo "
nacre runs in it. Try it, as ada, who may edit the namespace shop and nothing else, and as an administrator:

$1
  ${2}kubectl --as=ada -n shop create configmap prices --from-literal=tea=3
  ${2}kubectl nacre --as=ada -n shop backup create daily --wait
  ${2}kubectl --as=ada -n shop delete configmap prices
  ${2}kubectl nacre --as=ada -n shop restore create --from-backup daily --wait
  ${2}kubectl nacre $3"
  if [ -z "$2" ]; then
    echo "  kubectl nacre --as=ada -n shop console"
  else
    # The console listens in the network of the node: a browser is started there too, with a profile of its own.
    echo "  ${2}kubectl nacre --as=ada -n shop console --no-open --port 8090   # prints a link; in a second shell:
  ${2}chromium --no-sandbox --user-data-dir=\$(mktemp -d) LINK"
  fi
}

case $action in
up)
  if [ -x "$cluster/enter" ]; then
    install_on_node
    make_tenant "$cluster/enter"
    commands "  export PATH=$programs:\$PATH" "$cluster/enter " doctor
  else
    KUBECONFIG=$(realpath "$cluster/kubeconfig/admin")
    PATH=$programs:$(cargo run --quiet --package bed -- env --dir "$folder" | sed "s/.*PATH='\([^']*\)'.*/\1/"):$PATH
    export KUBECONFIG PATH
    install_without_node
    make_tenant env
    commands "  export KUBECONFIG=$KUBECONFIG PATH=$programs:\$PATH" "" "policy show"
  fi
  ;;
down) stop ;;
esac

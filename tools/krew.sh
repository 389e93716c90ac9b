#!/usr/bin/env bash
# Has krew itself check its manifest in a release, and install the plugin by it: `make krew`.
#
#   tools/krew.sh RELEASE        the folder of `make release`
#
# The programs are built from the pinned Go module tools/krew, with the Go toolchain's own cache. So it needs Go, and the network
# once for each machine. krew takes the archive from the folder, since the manifest's `uri` is a placeholder, and compares its
# checksum. Everything happens in a folder of its own.
set -euo pipefail
release=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/krew"
fail() { echo "krew: $*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOWORK=off go build -buildvcs=false -trimpath -o "$work/" tool

# krew knows a plugin by the name of its file.
cp "$release/nacre-krew.yaml" "$work/nacre.yaml"
"$work/validate-krew-manifest" -skip-install -manifest "$work/nacre.yaml" 2>"$work/said" || fail "$(cat "$work/said")"

archives=("$release"/kubectl-nacre-linux-*.tar.gz)
install_plugin() {
  KREW_ROOT=$work/root HOME=$work "$work/krew" install --manifest "$work/nacre.yaml" --archive "$1" >"$work/said" 2>&1
}
# The checksum counts.
(cat "${archives[0]}"; echo) >"$work/other.tar.gz"
if install_plugin "$work/other.tar.gz"; then fail "it installs an archive with another checksum"; fi
install_plugin "${archives[0]}" || fail "$(cat "$work/said")"
"$work/root/bin/kubectl-nacre" --version
echo "== krew accepts its manifest, and installs kubectl nacre by it."

#!/usr/bin/env bash
# Has OLM's own library look at the bundle: `make bundle`. Any error or warning fails.
#
#   tools/bundle.sh [BUNDLE]         default: deploy/olm
#
# The program is built from the pinned Go module tools/olm, with the Go toolchain's own cache. So it needs Go, and the network
# once for each machine. With OFFLINE set nothing is fetched: where the cache lacks a module, the bundle is not checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bundle=$(realpath "${1:-deploy/olm}")

if [ -n "${OFFLINE:-}" ]; then
  export GOPROXY=off
  if ! (cd tools/olm && GOWORK=off go list -deps tool) >/dev/null 2>&1; then
    echo "== The bundle was not checked: OFFLINE is set, and Go has not fetched the modules of tools/olm yet."
    exit 0
  fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd tools/olm && GOWORK=off go build -buildvcs=false -trimpath -o "$work/" tool)
# It ends with 0 whatever it finds in a bundle that it can read. It always warns of its own flag for OperatorHub; the newer
# validators have none.
code=0
found=$("$work/operator-verify" manifests --operatorhub_validate --object_validate "$bundle" 2>&1) || code=$?
found=$(grep -v 'validator is deprecated' <<<"$found" || true)
if [ "$code" != 0 ] || [ -n "$found" ]; then
  echo "$found" >&2
  exit 1
fi
echo "== OLM's library finds nothing wrong with the bundle."

#!/usr/bin/env bash
# Says how many tests `make test` left out, since CI=true was not set. The last step of `make test`.
#
#   tools/left-out.sh "--package e2e --test stories -- siege:: turns::"...
#
# Each argument names test programs and, after `--`, names of what was left out of them: without names all of it. The
# programs of a node are counted only where a node can run, since only there they were built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=
if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then missing+=", and all that need a node (Linux and root)"; fi
tools/browser.sh >/dev/null 2>&1 || missing+=", and all that need a browser"

count=0
for left_out in "$@"; do
  if [[ $left_out == *"--test node"* && $missing == *node* ]]; then continue; fi
  # shellcheck disable=SC2086 # words of their own
  listed=$(cargo test --quiet $left_out --list)
  found=$(grep -c ': test$' <<<"$listed" || true)
  if [ "$found" = 0 ]; then
    echo "== FAILURE: no test is left out by: $left_out (the lists ONLY_CI_... of the Makefile)" >&2
    exit 1
  fi
  count=$((count + found))
done
echo "== All of these tests passed; $count were left out$missing. \`CI=true make test\` runs them too."

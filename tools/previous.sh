#!/usr/bin/env bash
# Builds a commit as the release before this one: `nacre`, `kubectl-nacre` and `deploy` in FOLDER. Part of `make upgrade`.
#
#   tools/previous.sh COMMIT FOLDER
#
# A folder that holds this commit already is left as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=$(git rev-parse --verify "$1^{commit}")
mkdir -p "$2"
folder=$(realpath "$2")
if [ "$(cat "$folder/commit" 2>/dev/null)" = "$commit" ]; then exit 0; fi

sources=$(mktemp --directory)
crates=(api planner live_migration runtime engine controller cli)
# Stopped in between, the target folder has the older programs, and cargo would take them for this release's.
clean_up() {
  rm -rf "$sources"
  [ -z "${older_built:-}" ] || cargo clean --quiet --release "${crates[@]/#/--package=}"
}
trap clean_up EXIT
git archive "$commit" | tar --extract --directory "$sources"
# In the same target folder, so that dependencies of both are compiled once. Cargo distinguishes the crates of the two by the
# times of their files alone, which say nothing here: so they are removed before each build.
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
build() {
  cargo clean --quiet --release "${crates[@]/#/--package=}"
  cargo build --locked --release --package controller --package cli
}
export CARGO_TARGET_DIR=$target
older_built=yes
(cd "$sources" && build)
rm -rf "$folder/deploy" "$folder/commit"
cp -r "$sources/deploy" "$folder/deploy"
cp "$target/release/nacre" "$target/release/kubectl-nacre" "$folder/"
# The programs of this release are put back.
build
older_built=
echo "$commit" >"$folder/commit"

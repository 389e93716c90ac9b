#!/usr/bin/env bash
# Makes the release a second time, in a copy of the commit at another path, and compares every byte: `make release-again`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target_dir=${CARGO_TARGET_DIR:-$PWD/target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
first=${OUT:-$target_dir/release-v$version}
[ -f "$first/SHA256SUMS" ] || { echo "release-again: there is no release in $first; run make release first" >&2; exit 1; }

# The copy has what is committed and nothing else: uncommitted changes would be reported as differences of the build.
[ -z "$(git status --porcelain)" ] || {
  echo "release-again: there are uncommitted changes, and the second build is made of the commit; commit or stash them and run make release again" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-hardlinks . "$work/again"
CARGO_TARGET_DIR=$work/target OUT=$work/out "$work/again/tools/release.sh"

different=0
diff <(ls "$first") <(ls "$work/out") || { echo "DIFFERENT: the two have other files"; different=1; }
for file in "$first"/*; do
  name=$(basename "$file")
  if cmp --silent "$file" "$work/out/$name"; then echo "same: $name"; else echo "DIFFERENT: $name"; different=1; fi
done
exit $different
